#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-join as a user meets it: which rows come out, in which form, from files, pipes and live inputs. Random inputs are
# held to a model by the laws.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	load until
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	page=$PWD/man/wm-join.1
	cd "$BATS_TEST_TMPDIR" || return 1
	export LC_ALL=C
	printf '%s\n' ts,k,a 100,x,1 103,y,2 110,x,3 120,z,4 130,y,5 >left.csv
	printf '%s\n' ts,k,b 100,x,A 104,x,B 105,y,C 112,x,D 140,w,E >right.csv
}

wm_join() {
	"$bin/wm-join" "$@"
}

# A usage error: one line that has the words given, nothing on standard output, status 2.
refused() { # words, arguments
	local words=$1
	shift
	run -2 --separate-stderr wm_join "$@"
	assert_equal "$output" ""
	assert_equal "${#stderr_lines[@]}" 1
	[[ $stderr == "wm-join: "*"$words"* ]] || {
		echo "no '$words' in: $stderr"
		return 1
	}
}

@test "misuse: one line that says what to do" {
	local both=(-t ts -w 5s left.csv right.csv)
	refused "name two inputs, LEFT and RIGHT; one of them may be - for standard input" -t ts
	refused "name two inputs, LEFT and RIGHT" -t ts left.csv
	refused "name two inputs, LEFT and RIGHT" "${both[@]}" left.csv
	refused "standard input is named twice" -t ts - -
	refused "no 'outer': inner, left, right, full, semi or anti" --type outer "${both[@]}"
	for type in left right full semi anti; do
		refused "--type $type: a row would wait for ever to be matched: bound its wait with --between LO,HI, --tumbling SIZE or --asof backward" \
			--type $type "${both[@]}"
	done
	for type in left full semi anti; do
		refused "--type $type: a row would wait for ever" --type $type --between 0s, "${both[@]}"
	done
	for type in right full; do
		refused "--type $type: a row would wait for ever" --type $type --between ,5s "${both[@]}"
	done
	refused "--between: '5s,1s': LO is greater than HI: nothing would match" --between 5s,1s "${both[@]}"
	for range in 5s 1s,2s,3s '' '()'; do
		refused "--between: '$range': write LO,HI, as in -5m,1h; an end left empty is open, one in round brackets strict" \
			--between "$range" "${both[@]}"
	done
	refused "--between: '5': five what?" --between 5,10s "${both[@]}"
	refused "--between, --tumbling and --asof exclude each other" --between 0s,1s --tumbling 5s "${both[@]}"
	refused "--between, --tumbling and --asof exclude each other" --asof backward --tumbling 5s "${both[@]}"
	refused "--tolerance: is for --asof" --tolerance 5s --tumbling 5s "${both[@]}"
	refused "--asof: no 'forward': backward" --asof forward "${both[@]}"
	for type in right full semi anti; do
		refused "--asof: is for --type inner and left" --asof backward --type $type "${both[@]}"
	done
	refused "--tumbling: '1w': windows of the calendar cannot be joined: write a number of hours" --tumbling 1w "${both[@]}"
	refused "--tumbling: '1mo': windows of the calendar" --tumbling 1mo "${both[@]}"
	refused "--tumbling: '1d': windows of the calendar" --tumbling 1d --tz Europe/Berlin "${both[@]}"
	refused "-k, or --left-key and --right-key: the keys have one name, or two" -k k --left-key k "${both[@]}"
	refused "--left-key and --right-key: give both" --left-key k "${both[@]}"
	refused "--left-key and --right-key: name as many columns on both sides" --left-key k,a --right-key k "${both[@]}"
	refused "--policy: each side has its own watermark; one for both is for --compat spark" --policy max "${both[@]}"
	refused "--late-left and --late-right: both name 'l': give each a file of its own" --late-left l --late-right l "${both[@]}"
	refused "--eager and --idle-wall: nothing is waited for with --eager: give one of them" --eager --idle-wall 5s "${both[@]}"
	refused "--prefix: 'l_': write L,R, as in left_,right_; one may be empty" --prefix l_ "${both[@]}"
	refused "--prefix: 'a_,a_': both are the same: columns could not be told apart" --prefix a_,a_ "${both[@]}"
	refused "--left-delay: '5': five what?" --left-delay 5 "${both[@]}"
	refused "--right-delay: '-5s': a delay is not negative" --right-delay=-5s "${both[@]}"
	refused "--stamp: results may be of any time before: close the range with --between LO,HI" --stamp left "${both[@]}"
	refused "--stamp: results may be of any time before" --stamp left --between 0s, "${both[@]}"
	refused "--stamp: results may be of any time before" --stamp right --between ,0s "${both[@]}"
	refused "--stamp right: with --asof the right row may be of any time before: give --tolerance D" \
		--stamp right --asof backward "${both[@]}"
	refused "--late: write --late-left or --late-info in full" --late l "${both[@]}"
	refused "no option --merge" --merge "${both[@]}"
	refused "no time column" -w 5s left.csv right.csv
	refused "left.csv:1: no column 'tss': did you mean 'ts'?" -t tss left.csv right.csv
	refused "right.csv:1: no column 'a'" -t ts --between 0s,1s -k a left.csv right.csv
	refused "right.csv:1: no column 'time'" -t ts --right-time time --between 0s,1s left.csv right.csv
}

# What the rows of CSV on standard input say of columns a and b, in one line: 1A, or 1- and -A where a side is not there.
pairs() {
	python3 -c 'import csv, sys
print(*((row.get("a") or "-") + (row.get("b") or "-") for row in csv.DictReader(sys.stdin)))'
}

class_of() { # report, member
	jq -r "select(.type == \"report\").$2" "$1"
}

@test "every type: a range of time after" {
	local options=(-t ts --time-format s -k k --between '0s,5s')
	# by hand: x of 100 with those of 100 and 104; y of 103 with that of 105; x of 110 with that of 112
	assert_equal "$(wm_join "${options[@]}" left.csv right.csv | pairs)" "1A 1B 2C 3D"
	assert_equal "$(wm_join "${options[@]}" --type left left.csv right.csv | pairs)" "1A 1B 2C 3D 4- 5-"
	assert_equal "$(wm_join "${options[@]}" --type right left.csv right.csv | pairs)" "1A 1B 2C 3D -E"
	assert_equal "$(wm_join "${options[@]}" --type full left.csv right.csv | pairs)" "1A 1B 2C 3D -E 4- 5-"
	assert_equal "$(wm_join "${options[@]}" --type semi left.csv right.csv)" $'ts,k,a\n100,x,1\n103,y,2\n110,x,3'
	assert_equal "$(wm_join "${options[@]}" --type anti left.csv right.csv)" $'ts,k,a\n120,z,4\n130,y,5'
	# whole rows; w comes when the left has ended, and waits for nothing
	run -0 --separate-stderr wm_join "${options[@]}" --type full left.csv right.csv
	assert_output 'ts,k,a,right_ts,b
100,x,1,100,A
100,x,1,104,B
103,y,2,105,C
110,x,3,112,D
,w,,140,E
120,z,4,,
130,y,5,,'
	assert_equal "$stderr" ""
}

@test "ranges: strict, open, before, and without keys" {
	local both=(-q -t ts --time-format s -k k left.csv right.csv)
	assert_equal "$(wm_join --between '(0s,4s]' "${both[@]}" | pairs)" "1B 2C 3D"
	assert_equal "$(wm_join --between '[0s,4s)' "${both[@]}" | pairs)" "1A 2C 3D"
	assert_equal "$(wm_join --between '(0s,4s)' "${both[@]}" | pairs)" "2C 3D"
	assert_equal "$(wm_join --between '[2s,4s]' "${both[@]}" | pairs)" "1B 2C 3D"
	assert_equal "$(wm_join --between 0s,0s "${both[@]}" | pairs)" "1A"
	assert_equal "$(wm_join --between '(0s,0s)' "${both[@]}" | pairs)" ""
	assert_equal "$(wm_join --between=-10s,-6s "${both[@]}" | pairs)" "3A 3B"
	assert_equal "$(wm_join --between '(-10s,-6s)' "${both[@]}" | pairs)" ""
	assert_equal "$(wm_join --between '-25s,-1us' "${both[@]}" | pairs)" "3A 3B 5C"
	assert_equal "$(wm_join --between 0s, "${both[@]}" | pairs)" "1A 1B 2C 1D 3D"
	assert_equal "$(wm_join --between ,-10s "${both[@]}" | pairs)" "3A 5C"
	assert_equal "$(wm_join --between , "${both[@]}" | pairs)" "$(wm_join "${both[@]}" | pairs)"
	assert_equal "$(wm_join -q -t ts --time-format s --between 0s,1s left.csv right.csv | pairs)" "1A 2B"
	assert_equal "$(wm_join -q -t ts --time-format s --between=-1s,2s left.csv right.csv | pairs)" "1A 2B 2C 3D"
	# an end that is open: said once, and the type that would wait there is refused
	run -0 --separate-stderr wm_join -t ts --time-format s -k k --between 0s, left.csv right.csv
	assert_equal "$stderr" "wm-join: no bound says when a row can be forgotten: memory grows with the input: give --between LO,HI"
	run -0 wm_join -q -t ts --time-format s -k k --type right --between 0s, left.csv right.csv
}

@test "the same window" {
	# windows of 10 s: 100 and 103 | 110 | 120 | 130, and 100 104 105 | 112 | 140
	assert_equal "$(wm_join -t ts -k k --tumbling 10s left.csv right.csv | pairs)" "1A 1B 2C 3D"
	assert_equal "$(wm_join -t ts -k k --tumbling 4s left.csv right.csv | pairs)" "1A"
	assert_equal "$(wm_join -t ts -k k --tumbling 10s --type full left.csv right.csv | pairs)" "1A 1B 2C 3D -E 4- 5-"
	assert_equal "$(wm_join -t ts --tumbling 10s left.csv right.csv | pairs)" "1A 2A 1B 2B 1C 2C 3D"
	# on the grid of the epoch, before it too
	printf 'ts,a\n-1,1\n-10,2\n-11,3\n0,4\n' >l.csv
	printf 'ts,b\n-5,A\n-11,B\n9,C\n10,D\n' >r.csv
	assert_equal "$(wm_join --time-format s -t ts --tumbling 10s l.csv r.csv | pairs | tr ' ' '\n' | sort | xargs)" "1A 2A 3B 4C"
}

@test "as-of: the last at or before" {
	assert_equal "$(wm_join -q -t ts --time-format s -k k --asof backward left.csv right.csv | pairs)" "1A 3B 5C"
	assert_equal "$(wm_join -q -t ts --time-format s -k k --asof backward --type left left.csv right.csv | pairs)" "1A 2- 3B 4- 5C"
	assert_equal "$(wm_join -t ts --time-format s -k k --asof backward --type left --tolerance 24s left.csv right.csv | pairs)" "1A 2- 3B 4- 5-"
	assert_equal "$(wm_join -t ts --time-format s -k k --asof backward --tolerance 25s left.csv right.csv | pairs)" "1A 3B 5C"
	assert_equal "$(wm_join -t ts --time-format s -k k --asof backward --tolerance 0s left.csv right.csv | pairs)" "1A"
	assert_equal "$(wm_join -q -t ts --time-format s --asof backward left.csv right.csv | pairs)" "1A 2A 3C 4D 5D"
	# of several at one time the last of the input
	printf 'ts,k,b\n100,x,A\n100,x,B\n99,x,C\n' >twice.csv
	assert_equal "$(wm_join -q -t ts --time-format s -k k -w 10s --asof backward left.csv twice.csv | pairs)" "1B 3B"
	run -0 --separate-stderr wm_join -t ts --time-format s --asof backward left.csv right.csv
	assert_equal "$stderr" "wm-join: no bound says when a row can be forgotten: memory grows with the number of keys: give --tolerance D"
}

@test "keys: other names, several, none, and what equals what" {
	sed 's/^ts,k,b$/at,key,b/' right.csv >named.csv
	run -0 wm_join -t ts --time-format s --right-time at --left-key k --right-key key --between 0s,5s --type full left.csv named.csv
	assert_line --index 0 'ts,k,a,at,key,b'
	assert_line --index 1 '100,x,1,100,x,A'
	assert_line --index 5 ',,,140,w,E'
	assert_line --index 6 '120,z,4,,,'
	# two columns never run together
	printf 'ts,p,q,a\n1,a,bc,1\n1,ab,c,2\n1,,abc,3\n' >l.csv
	printf 'ts,q,p,b\n1,bc,a,A\n1,c,ab,B\n1,abc,,C\n' >r.csv
	assert_equal "$(wm_join -t ts --time-format s -k p,q --between 0s,0s l.csv r.csv | pairs)" "1A 2B 3C"
	run -0 wm_join -t ts --time-format s --left-key q --right-key p --between 0s,0s l.csv r.csv
	assert_output 'ts,p,q,a,right_ts,right_q,right_p,b'
	# of JSON the bytes count, not the type; null and missing match nothing
	printf '%s\n' '{"ts":1,"k":1,"a":"1"}' '{"ts":1,"k":"1","a":"2"}' '{"ts":1,"k":null,"a":"3"}' '{"ts":1,"a":"4"}' \
		'{"ts":1,"k":1.0,"a":"5"}' '{"ts":1,"k":"","a":"6"}' '{"ts":1,"k":true,"a":"7"}' >l.ndjson
	printf 'ts,k,b\n1,1,A\n1,,B\n1,null,C\n1,true,D\n' >r.csv
	assert_equal "$(wm_join -t ts --time-format s -k k --between 0s,0s -o csv l.ndjson r.csv | pairs)" "1A 2A 6B 7D"
	assert_equal "$(wm_join -t ts --time-format s -k k --between 0s,0s -o csv l.ndjson <(cat l.ndjson | sed 's/"a":/"b":/') | pairs)" "11 21 12 22 55 66 77"
	assert_equal "$(wm_join -t ts --time-format s -k k --between 0s,0s --type left -o csv l.ndjson r.csv | pairs)" "1A 2A 6B 7D 3- 4- 5-"
	# a path into an object, on one side
	printf '%s\n' '{"ts":1,"user":{"id":7},"a":"1"}' >l.ndjson
	printf 'ts,uid,b\n1,7,A\n' >r.csv
	run -0 wm_join -t ts --time-format s --left-key user.id --right-key uid --between 0s,0s l.ndjson r.csv
	assert_output '{"ts":1,"user":{"id":7},"a":"1","right_ts":1,"uid":7,"b":"A"}'
}

@test "random files beside SQLite: every type, range and window" {
	python3 - "$bin/wm-join" <<-'END'
		import csv, io, random, sqlite3, subprocess, sys

		rng = random.Random(11)
		db = sqlite3.connect(":memory:")
		sides = {}
		for side, column in (("l", "a"), ("r", "b")):
		    rows = [(rng.randrange(1000), rng.choice("xyzw"), f"{side}{i}") for i in range(300)]
		    db.execute(f"create table {side} (ts int, k text, {column} text)")
		    db.executemany(f"insert into {side} values (?,?,?)", rows)
		    with open(f"{side}.csv", "w") as file:
		        file.write(f"ts,k,{column}\n" + "".join(f"{ts},{k},{v}\n" for ts, k, v in rows))
		conditions = {
		    "--between=-7s,13s": "r.ts - l.ts between -7 and 13",
		    "--between=(-7s,13s)": "r.ts - l.ts > -7 and r.ts - l.ts < 13",
		    "--between=5s,5s": "r.ts - l.ts = 5",
		    "--tumbling=30s": "r.ts / 30 = l.ts / 30",
		}
		kinds = {
		    "inner": "select a, b from l join r on {}", "left": "select a, b from l left join r on {}",
		    "right": "select a, b from r left join l on {}",
		    "full": "select a, b from l left join r on {0} union all select null, b from r where not exists (select 1 from l where {0})",
		    "semi": "select a, '' from l where exists (select 1 from r where {})",
		    "anti": "select a, '' from l where not exists (select 1 from r where {})",
		}
		for option, condition in conditions.items():
		    for kind, query in kinds.items():
		        want = sorted((a or "", b or "") for a, b in db.execute(query.format(f"l.k = r.k and {condition}")))
		        out = subprocess.run([sys.argv[1], "-t", "ts", "-k", "k", option, "--type", kind, "l.csv", "r.csv"],
		                             capture_output=True, check=True, text=True).stdout
		        got = sorted((row["a"], row.get("b", "")) for row in csv.DictReader(io.StringIO(out)))
		        assert got == want, (option, kind, len(got), len(want))
		        assert want, (option, kind)
		asof = """select a, (select b from r where r.k = l.k and r.ts <= l.ts and l.ts - r.ts <= {}
		          order by r.ts desc, r.rowid desc limit 1) from l"""
		for tolerance in (3, 100000):
		    want = sorted((a, b or "") for a, b in db.execute(asof.format(tolerance)))
		    out = subprocess.run([sys.argv[1], "-q", "-t", "ts", "-k", "k", "--asof", "backward", "--tolerance", f"{tolerance}s",
		                          "--type", "left", "l.csv", "r.csv"], capture_output=True, check=True, text=True).stdout
		    assert sorted((row["a"], row["b"]) for row in csv.DictReader(io.StringIO(out))) == want, tolerance
	END
}

@test "the example of the man page does what it says" {
	local side time id left right what count=0 before=1
	sed -n '/^An example/,/^\.El/p' "$page" | sed -nE 's/^\.It (left|right) Ta ([0-9:]+) Ta ([a-z]) Ta ([0-9:]+) Ta ([0-9:]+|none) Ta (.*)$/\1 \2 \3 \4 \5 \6/p' >told
	echo time,id >l.csv
	echo time,id >r.csv
	while read -r side time id left right what; do
		count=$((count + 1))
		[ ${#time} -eq 8 ] || time=$time:00
		echo "2024-05-01T${time}Z,$id" >>"${side:0:1}.csv"
		wm_join -q -t time -w 1m -k id --between 0s,10m --type left --eof hold --late-right late --overwrite --report report l.csv r.csv >now
		case $what in
		'the pair of '*) assert_equal "$(tail -n +$((before + 1)) now | cut -d, -f2)" "${what: -1}" ;;
		*) assert_equal "$(wc -l <now)" "$before" ;;
		esac
		# the lower watermark is what a run tells
		if [[ $right == none || $right < $left ]]; then left=$right; fi
		[ "$left" != none ] || left=null
		assert_equal "$(class_of report eventTime.watermark)" "$(sed -E 's/^[0-9:]+$/2024-05-01T&:00Z/' <<<"$left")"
		[[ $what != *late ]] || assert_equal "$(tail -n 1 late)" "2024-05-01T${time}Z,$id"
		before=$(wc -l <now)
	done <told
	assert_equal "$count" 6
	# without the row before the last, and a millisecond later
	printf 'time,id\n2024-05-01T12:04:00Z,a\n2024-05-01T12:11:00.001Z,c\n' >r.csv
	assert_equal "$(wm_join -q -t time -w 1m -k id --between 0s,10m --type left --eof hold l.csv r.csv | tail -n 1)" "2024-05-01T12:00:00Z,b,"
	printf 'time,id\n2024-05-01T12:04:00Z,a\n2024-05-01T12:11:00Z,c\n' >r.csv
	assert_equal "$(wm_join -q -t time -w 1m -k id --between 0s,10m --type left --eof hold l.csv r.csv | wc -l)" 2
}

@test "memory: what can match no more is forgotten, and a match beyond that is not found" {
	# 20 s of range and 5 s of delay are held of a million seconds
	python3 -c '
for name, step in ("l", 3), ("r", 2):
    with open(name + ".csv", "w") as file:
        file.write("ts,k\n" + "".join(f"{t},{t % 10}\n" for t in range(0, 1000000, step)))'
	wm_join -t ts -k k -w 5s --between=-10s,10s --state-limit 256K --report r l.csv r.csv | tail -n +2 | wc -l >count
	# a left row of an even time has right ones 10 s before, at it, and 10 s after, but for the first two and the last two
	assert_equal "$(cat count)" $((166667 * 3 - 4))
	assert_equal "$(class_of r rows_used)" 833334
	# of keys that match nothing
	sed '2,$s/,/,r/' r.csv >other.csv
	run -4 --separate-stderr wm_join -t ts --time-format s -k k -w 5s --between 0s,1000000s --state-limit 1M l.csv other.csv
	assert_output 'ts,k,right_ts'
	[[ ${stderr_lines[0]} == *"bound it with a shorter -w or a closer --between" ]]
}

@test "rows behind their side's watermark are late, whatever the other side does" {
	printf 'ts,k,a\n100,x,1\n90,x,2\n95,x,3\n94,x,4\n110,x,5\n' >l.csv
	printf 'ts,k,b\n50,x,A\n100,x,B\n96,x,C\n89,x,D\n' >r.csv
	wm_join -q -t ts --time-format s -k k -w 5s --right-delay 10s --between=-10s,10s --late-left late.l --late-right late.r --report r --type left l.csv r.csv >out.csv
	assert_equal "$(cat late.l)" $'ts,k,a\n90,x,2\n94,x,4'
	assert_equal "$(cat late.r)" $'ts,k,b\n89,x,D'
	assert_equal "$(pairs <out.csv | tr ' ' '\n' | sort | xargs)" "1B 1C 3B 3C 5B"
	assert_equal "$(class_of r rows_in) $(class_of r rows_late) $(class_of r rows_used) $(class_of r rows_out)" "9 3 6 5"
	# at the watermark it is not late; without a delay nothing is
	assert_equal "$(wm_join -q -t ts --time-format s -k k --left-delay none --right-delay 11s --between=-10s,10s l.csv r.csv | pairs | wc -w)" 12
	# the header alone where none is late, how late they were on request, and added to
	wm_join -q -t ts --time-format s -k k -w 20s --right-delay 50s --between=-10s,10s --late-left none.l --late-right none.r l.csv r.csv >out.csv
	assert_equal "$(cat none.l none.r)" $'ts,k,a\nts,k,b'
	wm_join -q -t ts --time-format s -k k -w 5s --late-left late.l --late-info --overwrite --between 0s,1s l.csv r.csv >out.csv
	assert_equal "$(sed -n 2p late.l)" '90,x,2,5,1970-01-01T00:01:35Z'
	run -2 --separate-stderr wm_join -t ts --time-format s --late-info --between 0s,1s l.csv r.csv
	assert_equal "$stderr" "wm-join: --late-info: there are no files of late rows: name them with --late-left FILE and --late-right FILE"
	run -2 --separate-stderr wm_join -t ts --time-format s --late-left late.l --between 0s,1s l.csv r.csv
	[[ $stderr == *"--late-left: late.l exists"* ]]
	# what is said of them
	run -0 --separate-stderr wm_join -t ts --time-format s -k k -w 5s --between 0s,1s --out out.csv --overwrite l.csv r.csv
	assert_equal "${stderr_lines[0]}" "wm-join: 3 of 9 rows were late and dropped (33%): --late-left FILE and --late-right FILE keep such rows"
	run -0 --separate-stderr wm_join -t ts --time-format s -k k -w 5s --between 0s,1s --out out.csv --late-right late.r --overwrite l.csv r.csv
	assert_equal "${stderr_lines[0]}" "wm-join: 3 of 9 rows were late and dropped (33%): those of the right in late.r"
	run -5 wm_join -q -t ts --time-format s -k k -w 5s --between 0s,1s --fail-late 1/4 l.csv r.csv
}

@test "rejected rows name the file of their side" {
	printf 'ts,k,a\n100,x,1\nsoon,x,2\n1,2\n' >l.csv
	printf '%s\n' '{"ts":100,"k":"x","b":"A"}' '{"k":"x"}' '{"ts":' >r.ndjson
	run -0 wm_join -q -t ts -k k --between 0s,0s --rejects bad.ndjson --report r l.csv r.ndjson
	assert_output $'ts,k,a,right_ts,b\n100,x,1,100,A'
	assert_equal "$(jq -r '[.reason, .input, .line] | join(" ")' bad.ndjson | sort)" "bad-time l.csv 3
malformed-json r.ndjson 3
no-time r.ndjson 2
ragged l.csv 4"
	assert_equal "$(class_of r rows_in) $(class_of r rows_rejected) $(class_of r rows_used)" "6 4 2"
	run -1 wm_join -q -t ts -k k --between 0s,0s l.csv r.ndjson
	run -1 wm_join -q -t ts -k k --strict --between 0s,0s l.csv r.ndjson
	# a column that no record of its side had
	run -1 --separate-stderr wm_join -t ts -k kk --between 0s,0s r.ndjson r.ndjson
	[[ $stderr == *"no record had the column 'kk'"* ]]
}

@test "forms: CSV with NDJSON, what is written, names that both have" {
	printf '%s\n' '{"ts":100,"k":"x","b":1.50,"c":{"d":[1, 2]}}' '{"ts":104,"k":"y","b":null,"c":"p,q"}' >r.ndjson
	# a record of the form of the result is not touched
	printf 'ts,k,a\n100,x,"say ""no"", or"\n 104 ,y,\n' | sed 's/ 104 /104/' >l.csv
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s l.csv r.ndjson
	assert_output 'ts,k,a,right_ts,b,c
100,x,"say ""no"", or",100,1.50,"{""d"":[1, 2]}"
104,y,,104,,"p,q"'
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s r.ndjson l.csv
	assert_output '{"ts":100,"k":"x","b":1.50,"c":{"d":[1, 2]},"right_ts":100,"a":"say \"no\", or"}
{"ts":104,"k":"y","b":null,"c":"p,q","right_ts":104,"a":null}'
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s -o ndjson l.csv r.ndjson
	assert_output '{"ts":100,"k":"x","a":"say \"no\", or","right_ts":100,"b":1.50,"c":{"d":[1, 2]}}
{"ts":104,"k":"y","a":null,"right_ts":104,"b":null,"c":"p,q"}'
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s -o tsv l.csv r.ndjson
	assert_line --index 2 $'104\ty\t\t104\t\tp,q'
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s -o table l.csv r.ndjson
	assert_output ' ts  k  a             right_ts     b  c
---  -  ------------  --------  ----  ------------
100  x  say "no", or       100  1.50  {"d":[1, 2]}
104  y                     104        p,q'
	# nobody is there: null, in the order of the first object of that side
	printf '%s\n' '{"ts":300,"k":"z","b":2}' >>r.ndjson
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type full -o ndjson l.csv r.ndjson
	assert_line --index 2 '{"ts":null,"k":"z","a":null,"right_ts":300,"b":2}'
	printf 'ts,k,a\n300,n,1\n' >l.csv
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type left -o ndjson l.csv r.ndjson
	assert_output '{"ts":300,"k":"n","a":1,"right_ts":null,"b":null,"c":null}'
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type full --prefix l_, l.csv r.ndjson
	assert_line --index 0 'l_ts,k,a,ts,b,c'
	run -0 wm_join -t ts --time-format s --between 0s,0s --type full --prefix l_,r_ l.csv r.ndjson
	assert_line --index 0 'l_ts,l_k,a,r_ts,r_k,b,c'
	run -0 wm_join -t ts --time-format s --between 0s,0s --type semi --prefix l_,r_ l.csv r.ndjson
	assert_line --index 0 'ts,k,a'
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type full --no-output-header l.csv r.ndjson
	refute_line 'ts,k,a,right_ts,b,c'
	# members that come later have a place in NDJSON alone
	printf '%s\n' '{"ts":1,"k":"x"}' '{"ts":2,"k":"x","more":[]}' >r.ndjson
	printf '%s\n' '{"ts":1,"k":"x","more":0}' '{"k":"x","ts":2,"e":1}' >l.ndjson
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s l.ndjson r.ndjson
	assert_output '{"ts":1,"k":"x","more":0,"right_ts":1}
{"k":"x","ts":2,"e":1,"right_ts":2,"right_more":[]}'
	run -1 --separate-stderr wm_join -t ts --time-format s -k k --between 0s,0s -o csv l.ndjson r.ndjson
	assert_output $'ts,k,more,right_ts\n1,x,0,1'
}

@test "forms: line ends, quotes, delimiters, headers, nothing" {
	printf 'ts,k,a\r\n100,x,"1\r\n2"\r\n200,y,3' >l.csv
	printf '\xef\xbb\xbf"k";ts;b\n"x";100;"p;q"\ny;200;r,s' >r.csv
	# the first FILE fixes delimiter and line end
	wm_join -t ts --time-format s -k k --between 0s,0s l.csv r.csv >out.csv 2>err || true
	grep -q "^wm-join: r.csv:1: the header cannot be read" err
	printf '\xef\xbb\xbfk\tts\tb\nx\t100\t"p\\\tq"\ny\t200\tr,s' >r.tsv
	wm_join -t ts --time-format s -k k --between 0s,0s l.csv r.tsv >out.csv
	assert_equal "$(cat -A out.csv)" 'ts,k,a,right_ts,b^M$
100,x,"1^M$
2",100,"""p^Iq"""^M$
200,y,3,200,"r,s"^M$'
	wm_join -t ts --time-format s -k k --between 0s,0s r.tsv l.csv >out.tsv
	# of its own format a record is written as it came, escapes included
	assert_equal "$(cat -A out.tsv)" 'k^Its^Ib^Iright_ts^Ia$
x^I100^I"p\^Iq"^I100^I1\r\n2$
y^I200^Ir,s^I200^I3$'
	# nothing, or headers alone
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s /dev/null /dev/null
	assert_output ''
	printf 'ts,k,a' >l.csv
	printf 'ts,k,b\n' >r.csv
	for type in inner left right full; do
		run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type $type l.csv r.csv
		assert_output 'ts,k,a,right_ts,b'
		run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type $type l.csv /dev/null
		assert_output 'ts,k,a'
		run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type $type /dev/null r.csv
		assert_output 'ts,k,b'
	done
	for type in semi anti; do
		run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type $type l.csv r.csv
		assert_output 'ts,k,a'
	done
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type full left.csv /dev/null
	assert_output "$(cat left.csv)"
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type full /dev/null right.csv
	assert_output "$(cat right.csv)"
	run -0 wm_join -t ts --time-format s -k k --between 0s,0s --type right l.csv right.csv
	assert_line --index 1 ',x,,100,A'
	# no header, names from elsewhere
	tail -n +2 left.csv >l
	tail -n +2 right.csv >r
	run -0 wm_join --no-header -t 1 --time-format s -k 2 --between 0s,0s l r
	assert_output $'1,2,3,right_1,right_3\n100,x,1,100,A'
	run -0 wm_join --columns ts,k,v -t ts --time-format s -k k --between 0s,0s l r
	assert_output $'ts,k,v,right_ts,right_v\n100,x,1,100,A'
	run -0 wm_join --columns ts,k,v --no-output-header -t ts --time-format s -k k --between 0s,0s l r
	assert_output '100,x,1,100,A'
	# lines of logs on both sides become CSV
	printf '192.0.2.1 - - [01/May/2024:10:00:00 +0000] "GET /a HTTP/1.1" 200 12\n' >l.log
	printf '192.0.2.1 - - [01/May/2024:10:00:05 +0000] "GET /b HTTP/1.1" 404 7\n' >r.log
	run -0 wm_join -i clf -k host --between 0s,1m l.log r.log
	assert_line --index 0 --regexp '^host,ident,user,time,method,path,.*,right_ident,right_user,right_time,right_method,right_path,'
	assert_line --index 1 --regexp '^192.0.2.1,,,01/May/2024:10:00:00 \+0000,GET,/a,.*,404,'
}

# ---- stamped ----

@test "stamped sides: their watermarks are followed, and left out of the result" {
	"$bin/wm-stamp" -t ts --time-format s -w 5s left.csv >l.csv
	"$bin/wm-stamp" -t ts --time-format s -w 5s right.csv >r.csv
	for type in inner left right full; do
		wm_join -q -t ts --time-format s -w 5s -k k --between=-5s,5s --type $type left.csv right.csv >want.csv
		wm_join -q -k k --between=-5s,5s --type $type l.csv r.csv >got.csv
		assert_equal "$(head -n 1 got.csv)" 'ts,k,a,_time,right_ts,b,right__time'
		diff want.csv <(cut -d, -f1-3,5,6 got.csv)
	done
	# one of both, and a late row
	printf '103,x,9\n' >>right.csv
	wm_join -q -t ts --time-format s -w 5s -k k --between=-5s,5s --type full left.csv right.csv >want.csv
	wm_join -q --right-time ts --right-delay 5s -k k --between=-5s,5s --type full --late-right late.r l.csv right.csv >got.csv
	diff want.csv <(cut -d, -f1-3,5,6 got.csv)
	assert_equal "$(cat late.r)" $'ts,k,b\n103,x,9'
	# the late row of a stamped side: its watermark is emptied
	"$bin/wm-stamp" -q -t ts --time-format s -w 5s right.csv >r.csv
	wm_join -q -k k --between 0s,1s --late-right late.r --overwrite l.csv r.csv >got.csv
	assert_equal "$(tail -n 1 late.r)" '103,x,9,1970-01-01T00:01:43Z,'
	# a time of another column is refused, unless the watermark is not followed
	run -2 wm_join -t ts --time-format s -k k --between 0s,1s l.csv r.csv
	run -0 wm_join -t ts --time-format s --watermark-column none -k k --between 0s,1s --type semi l.csv r.csv
	assert_output $'ts,k,a,_time\n100,x,1,1970-01-01T00:01:40Z'
}

@test "--stamp: the time that was asked for, the lower watermark less the hold-back, punctuation" {
	printf 'ts,k,a\n100,x,1\n110,y,2\n130,z,3\n' >l.csv
	printf 'ts,k,b\n104,x,A\n120,w,B\n140,v,C\n' >r.csv
	run -0 wm_join -t ts --time-format s -w 5s -k k --between 0s,10s --type left --stamp left l.csv r.csv
	# 100 and 104: watermarks 95 and 99; then the left goes on to 110 (105), the right to 120 (115), the left to 130 (125), the
	# right to 140 (135), by which 110 leaves: the row has the lower watermark from before, 115 - 10. The left ends, and holds
	# nothing back; the right ends, and 130 leaves with its 135 - 10
	assert_output 'ts,k,a,right_ts,b,_time,_watermark
100,x,1,104,A,1970-01-01T00:01:40Z,1970-01-01T00:01:25Z
110,y,2,,,1970-01-01T00:01:50Z,1970-01-01T00:01:45Z
,,,,,,1970-01-01T00:01:55Z
130,z,3,,,1970-01-01T00:02:10Z,1970-01-01T00:02:05Z'
	wm_join -t ts --time-format s -w 5s -k k --between 0s,10s --stamp right l.csv r.csv | sed -n 2p | grep -q ',1970-01-01T00:01:44Z,1970-01-01T00:01:35Z$'
	wm_join -t ts --time-format s -w 5s -k k --between 0s,10s --stamp later --output-time s l.csv r.csv | sed -n 2p | grep -q ',104,95$'
	run -0 wm_join -t ts --time-format s -w 5s -k k --between 0s,10s --type right --stamp left -o ndjson --output-time s l.csv r.csv
	assert_line --index 0 '{"ts":100,"k":"x","a":1,"right_ts":104,"b":"A","_time":100,"_watermark":85}'
	assert_line --partial '{"ts":null,"k":"w","a":null,"right_ts":120,"b":"B","_time":120,"_watermark":'
	run -0 wm_join -t ts --time-format s -w 5s -k k --between 0s,10s --type semi --stamp later l.csv r.csv
	assert_line --index 1 '100,x,1,1970-01-01T00:01:44Z,1970-01-01T00:01:35Z'
	# a table is for eyes
	run -0 wm_join -t ts --time-format s -w 5s -k k --between 0s,10s --type left --stamp left -o table l.csv r.csv
	assert_equal "${#lines[@]}" 5
}

@test "rows that are due before the other side has told its columns wait for them" {
	# the watermark comes first: 10 and 30 can have no match any more
	printf '%s\n' '{"_watermark":"1970-01-01T00:01:00Z"}' \
		'{"ts":80,"k":"z","b":1,"_time":"1970-01-01T00:01:20Z","_watermark":"1970-01-01T00:01:20Z"}' >r.ndjson
	printf 'ts,k,a\n10,x,1\n30,x,2\n70,z,3\n' >l.csv
	local options=(--left-time ts --left-delay 0s -k k --between '0s,10s' --type left)
	run -0 wm_join -q "${options[@]}" l.csv r.ndjson
	assert_output $'ts,k,a,right_ts,b,_time\n10,x,1,,,\n30,x,2,,,\n70,z,3,80,1,1970-01-01T00:01:20Z'
	run -0 wm_join -q "${options[@]}" --stamp left --output-time s --prefix l_,r_ -o ndjson l.csv r.ndjson
	assert_output '{"l_ts":10,"k":"x","a":1,"r_ts":null,"b":null,"_time":10,"_watermark":null}
{"l_ts":30,"k":"x","a":2,"r_ts":null,"b":null,"_time":30,"_watermark":20}
{"l_ts":70,"k":"z","a":3,"r_ts":80,"b":1,"_time":70,"_watermark":60}'
	# from one run to the next, too
	cp r.ndjson all.ndjson
	head -n 1 all.ndjson >r.ndjson
	run -0 wm_join -q "${options[@]}" --stamp left --output-time s -C state l.csv r.ndjson
	assert_output ''
	tail -n 1 all.ndjson >>r.ndjson
	run -0 wm_join -q "${options[@]}" --stamp left --output-time s -C state l.csv r.ndjson
	assert_output 'ts,k,a,right_ts,b,_time,_watermark
10,x,1,,,10,
30,x,2,,,30,20
70,z,3,80,1,70,60'
	printf '%s\n' '{"_watermark":"1970-01-01T00:01:00Z"}' >l.ndjson
	printf '%s\n' '{"ts":10,"k":"x","b":1}' '{"ts":100,"k":"y","b":2}' >r.ndjson
	run -0 wm_join -q -k k --right-time ts --right-delay 0s --between 0s,5s --type full -o csv -C other l.ndjson r.ndjson
	assert_output ''
	printf '%s\n' '{"a":1,"k":"y","_time":"1970-01-01T00:01:40Z","_watermark":"1970-01-01T00:01:01Z"}' >>l.ndjson
	run -0 wm_join -q -k k --right-time ts --right-delay 0s --between 0s,5s --type full -o csv -C other l.ndjson r.ndjson
	assert_output $'a,k,_time,ts,b\n,x,,10,1\n1,y,1970-01-01T00:01:40Z,100,2'
	# a batch that the left has no row of, and then none at all
	printf '%s\n' '{"ts":1,"k":"x","b":1,"n":0}' >r.ndjson
	printf '%s\n' '{"ts":50,"k":"y","a":2,"n":1}' >l.ndjson
	run -0 wm_join -t ts --time-format s -w 0s -k k --between 0s,10s --type full --trigger column:n -o csv l.ndjson r.ndjson
	assert_output $'ts,k,a,n,right_ts,b,right_n\n,x,,,1,1,0\n50,y,2,1,,,'
	run -0 wm_join -t ts --time-format s -w 0s -k k --between 0s,10s --type full --trigger column:n /dev/null r.ndjson
	assert_output '{"ts":1,"k":"x","b":1,"n":0}'
}

# ---- pipes ----

@test "a pipe and a file, both ways, and a process in brackets" {
	local want
	want=$(wm_join -t ts -w 20s -k k --between=-5s,5s --type full left.csv right.csv)
	assert_equal "$(cat left.csv | wm_join -t ts -w 20s -k k --between=-5s,5s --type full - right.csv)" "$want"
	assert_equal "$(cat right.csv | wm_join -t ts -w 20s -k k --between=-5s,5s --type full left.csv -)" "$want"
	assert_equal "$(wm_join -t ts -w 20s -k k --between=-5s,5s --type full <(cat left.csv) <(sleep 0.2; cat right.csv))" "$want"
	assert_equal "$(wm_join -t ts -w 20s -k k --between=-5s,5s --type full <(sleep 0.2; cat left.csv) <(cat right.csv))" "$want"
	run -3 --separate-stderr wm_join -t ts --between 0s,0s left.csv none.csv
	assert_equal "$stderr" "wm-join: none.csv: No such file or directory"
	run -3 --separate-stderr wm_join -t ts --between 0s,0s none.csv right.csv
	assert_equal "$stderr" "wm-join: none.csv: No such file or directory"
}

@test "one producer of both inputs, one far ahead of the other: neither waits for ever" {
	mkfifo l r
	# 50 MB of the right before a row of the left
	timeout 60 python3 - <<-'END' &
		left, right = open("l", "w"), open("r", "w")
		left.write("ts,k,a\n")
		right.write("ts,k,b\n")
		pad = "x" * 80
		for i in range(550000):
		    right.write(f"{i},k{i},{pad}\n")
		right.flush()
		for i in range(0, 550000, 1000):
		    left.write(f"{i},k{i},{i}\n")
		left.close()
		right.write("600000,last,\n")
	END
	run -0 timeout 60 "$bin/wm-join" -q -t ts --time-format s -w 10s -k k --between 0s,1s --report report l r
	wait
	assert_equal "${#lines[@]}" 551
	assert_equal "$(class_of report rows_used)" 550551
	rm l r
	mkfifo l r
	# and the left before the right
	timeout 60 python3 - <<-'END' &
		left, right = open("l", "w"), open("r", "w")
		right.write("ts,k,b\n")
		right.flush()
		left.write("ts,k,a\n")
		for i in range(100000):
		    left.write(f"{i},k{i},{'x' * 80}\n")
		left.flush()
		for i in range(0, 100000, 1000):
		    right.write(f"{i},k{i},{i}\n")
	END
	run -0 timeout 60 "$bin/wm-join" -q -t ts --time-format s -w 10s -k k --between 0s,1s l r
	wait
	assert_equal "${#lines[@]}" 101
}

# Starts wm-join on two pipes that are held open as descriptors 7 and 8.
begin_live() {
	mkfifo l r
	"$bin/wm-join" -q "$@" l r >out 2>err &
	pid=$!
	exec 7>l 8>r
	printf 'ts,k,a\n' >&7
	printf 'ts,k,b\n' >&8
}

end_live() {
	exec 7>&- 8>&-
	wait "$pid"
}

@test "live: pairs come as soon as their rows do, with and without a delay" {
	local options round
	for options in '-w 0s' '-w 5s' ''; do
		# shellcheck disable=SC2086 # words of their own
		begin_live -t ts $options -k k --between=-2s,2s
		for round in 1 2 3; do
			printf '%s\n' "${round}0,x,$round" >&7
			printf '%s\n' "${round}1,x,$round" >&8
			# the side that is behind is waited for: the left goes on, so the right row is taken
			printf '%s\n' "${round}5,y,$round" >&7
			until_true "grep -q '^${round}0,x,$round,${round}1,$round\$' out"
			printf '%s\n' "${round}6,z,$round" >&8
		done
		end_live
		assert_equal "$(wc -l <out)" 4
		rm l r
	done
}

@test "live: the side that is behind holds the other, but for --eager and --idle-wall" {
	begin_live -t ts -w 0s -k k --between 0s,10s
	printf '1,x,1\n' >&7
	printf '100,y,A\n2,x,B\n' >&8
	# the left is behind: what the right sends behind 100 is not looked at
	sleep 0.5
	assert_equal "$(grep -c x out || true)" 0
	end_live
	rm l r
	for options in --eager '--idle-wall 200ms'; do
		# shellcheck disable=SC2086 # words of their own
		begin_live -t ts -w 0s -k k --between 0s,10s --type left $options
		printf '1,x,1\n1,y,2\n' >&7
		sleep 0.1
		printf '2,x,A\n5,z,B\n8,x,C\n' >&8
		until_true "[ \"\$(pairs <out)\" = '1A 1C' ]"
		printf '12,z,D\n' >&8 # y can have none any more
		until_true "[ \"\$(pairs <out)\" = '1A 1C 2-' ]"
		printf '13,w,E\n' >&8
		printf '20,z,3\n' >&7
		end_live
		assert_equal "$(pairs <out)" "1A 1C 2- 3-"
		rm l r
	done
}

@test "live: with --eager and with --idle-wall the same rows come out" {
	wm_join -q -t ts -w 5s -k k --between=-10s,10s --type full --late-left late.l left.csv right.csv | sort >want
	for options in --eager '--idle-wall 100ms'; do
		# shellcheck disable=SC2086 # words of their own
		wm_join -q -t ts -w 5s -k k --between=-10s,10s --type full $options \
			<(while read -r line; do echo "$line"; sleep 0.1; done <left.csv) \
			<(while read -r line; do echo "$line"; sleep 0.03; done <right.csv) | sort >got
		diff want got
	done
}

@test "signals, and a reader that goes away" {
	printf 'ts,k,b\n100,x,A\n' >r.csv
	for signal in INT TERM; do
		status=0
		tests=$BATS_TEST_DIRNAME
		"$tests/fault/interrupt.py" SIG$signal r.csv "$bin/wm-join" -t ts -w 5s -k k --between 0s,50s --type left left.csv - >out 2>err || status=$?
		assert_equal "$status" "$([ $signal = INT ] && echo 130 || echo 143)"
		# left rows up to 103, which the right has come up to, are taken in, and x of 100 is matched
		assert_equal "$(cat out)" $'ts,k,a,right_ts,b\n100,x,1,100,A'
		grep -q '^wm-join: .*rows\? w.* not written$' err
	done
	seq -f '%.0f,x' 1 300000 | sed '1i ts,k' >big.csv
	status=$({ wm_join -t ts -w 5s -k k --between 0s,5s big.csv big.csv 2>err || echo $? >&3; } 3>status.txt | head -n 1 >/dev/null; cat status.txt)
	assert_equal "$status" 141
	assert_equal "$(cat err)" ""
}

@test "--explain says what will be done, and reads nothing" {
	run -0 wm_join -t ts -w 5m --left-delay none -k id --between '(0s,1h]' --type left --explain none.csv nothing.csv
	assert_output 'A right row fits a left one if its time less that of the left is in (0s,1h].
Both have the same id.
Each pair is written, and each left row that has none.
The watermark of the left is the one that its rows carry, or none.
The watermark of the right is its highest event time so far less 5m.
The side that is behind is read next, and waited for.'
	run -0 wm_join --asof backward --tolerance 1h --left-key a --right-key b --eager --explain none.csv nothing.csv
	assert_line --index 0 'To each left row belongs the last right row at or before it, no further back than 1h.'
	assert_line --index 1 'a of the left is b of the right.'
	run -0 wm_join --tumbling 5m --explain none.csv nothing.csv
	assert_line --index 0 'A right row fits a left one if both are in the same window of 5m.'
}

@test "a record that waited for the columns of the other side is written as it came" {
	# In NDJSON it was taken apart, so that bytes depended on which side was read first, and on where runs were cut.
	printf '{"ts": 100, "k": "a"}\n{"ts": 101, "k": "a"}\n{"ts": 300, "k": "z"}\n' >l
	printf '{"ts": 100, "k": "a", "v": 1.0}\n' >r
	run -0 wm_join -t ts --time-format s -w 0s -k k --between=-5s,5s l r
	assert_output $'{"ts": 100, "k": "a","right_ts":100,"v":1.0}\n{"ts": 101, "k": "a","right_ts":100,"v":1.0}'
	want=$output
	: >later
	wm_join -q -t ts --time-format s -w 0s -k k --between=-5s,5s -C st l later >out
	cp r later
	wm_join -q -t ts --time-format s -w 0s -k k --between=-5s,5s -C st l later >>out
	assert_equal "$(cat out)" "$want"
}

@test "NDJSON: a member that the first record did not have never has the name of another" {
	printf '{"ts":1,"k":"a"}\n{"ts":2,"k":"a","right_v":9}\n{"ts":3,"k":"a","v":"\\u00e9","right_ts":"x"}\n' >left
	printf '{"ts":1,"k":"a","v":5}\n{"ts":1,"k":"a","right_ts":7,"right_v":[1, 2]}\n' >right
	cat >want <<-'END'
		{"ts":1,"k":"a","right_ts":1,"v":5}
		{"ts":2,"k":"a","right_v":9,"right_ts":1,"v":5}
		{"ts":1,"k":"a","right_ts":1,"right_right_ts":7,"right_v":[1, 2]}
		{"ts":2,"k":"a","right_v":9,"right_ts":1,"right_right_ts":7,"right_right_v":[1, 2]}
		{"ts":3,"k":"a","v":"\u00e9","right_ts":"x","right_right_ts":1,"right_v":5}
		{"ts":3,"k":"a","v":"\u00e9","right_ts":"x","right_right_ts":1,"right_right_right_ts":7,"right_v":[1, 2]}
	END
	join=("$bin/wm-join" -q -t ts --time-format s -w 5s -k k "--between=-5s,5s")
	"${join[@]}" left right >out
	cmp out want
	# The same where rows are kept between runs, whole or as the result has them.
	: >grown
	"${join[@]}" -C st left grown >out
	cp right grown
	"${join[@]}" -C st left grown >>out
	"${join[@]}" -C st --eof flush left grown >>out
	cmp <(sort out) <(sort want)
	run -0 bash -c "\"\$@\" --prefix l_, left right | tail -n 2" - "${join[@]}"
	assert_line --index 0 '{"l_ts":3,"k":"a","l_v":"é","right_ts":"x","ts":1,"v":5}'
	assert_line --index 1 '{"l_ts":3,"k":"a","l_v":"é","l_right_ts":"x","ts":1,"right_ts":7,"right_v":[1, 2]}'
}
