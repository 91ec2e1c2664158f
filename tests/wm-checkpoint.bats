#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-checkpoint: what it says of checkpoints, whole, damaged and old. The files in tests/golden/checkpoint/v1/tools were
# made once, by each tool's line in begin(), in a folder /srv/golden that is gone; they have to load for ever.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	golden=$BATS_TEST_DIRNAME/golden/checkpoint/v1/tools
	man=$BATS_TEST_DIRNAME/../man/wm-checkpoint.1
	data=$BATS_TEST_DIRNAME/data
	PATH=$(cd "${WM_BIN:-build/release}" && pwd):$PATH
	cd "$BATS_TEST_TMPDIR" || return 1
}

# The rows that were there when the golden files were made, and those that came since.
first_rows() {
	printf '%s\n' time,host,n 2025-11-29T10:00:00Z,a,1 2025-11-29T10:00:30Z,b,2 2025-11-29T10:01:10Z,a,4 \
		2025-11-29T10:00:50Z,b,x 2025-11-29T10:01:40Z,b,8
}

second_rows() {
	printf '%s\n' 2025-11-29T10:01:20Z,a,16 2025-11-29T10:03:00Z,b,32 2025-11-29T10:03:05Z,a,64 \
		2025-11-29T10:00:01Z,a,128
}

names=(window sliding sessions complete dedup sort join lag lag-windows stamp)

# The command line of a name, in $line; without its input, checkpoint and output.
line_of() {
	case $1 in
	window) line=(wm-window -q -t time -w 20s --source host --tumbling 1m -g host -a "count,max:n") ;;
	sliding) line=(wm-window -q -t time -w 20s --sliding "1m,30s" --trigger 2rows --allowed-lateness 1m) ;;
	sessions) line=(wm-window -q -t time -w 20s --session 40s -g host -a "count,sum:n" --rejects rejects.csv) ;;
	complete) line=(wm-window -q -t time -w 20s --tumbling 1m --mode complete --trigger 5rows) ;;
	dedup) line=(wm-dedup -q -t time -w 20s -k host --remember 30s) ;;
	sort) line=(wm-sort -q -t time -w 30s) ;;
	join) line=(wm-join -q -t time -w 20s -k host --between "0s,10s") ;;
	lag) line=(wm-lag -q -t time -w 20s -g host --max-jump 1h) ;;
	# Of a version that closed no window before the end of a run.
	lag-windows) line=(wm-lag -q -t time -w 20s -g host --every 1m) ;;
	stamp) line=(wm-stamp -q -t time -w 20s --source host) ;;
	esac
}

# go NAME ARGUMENT...: runs the line of a name on in.csv, results behind those in out.csv; a join on right.csv too.
go() {
	local line files=(in.csv)
	line_of "$1"
	[ "$1" != join ] || files+=(right.csv)
	shift
	"${line[@]}" "$@" "${files[@]}" >>out.csv || [ $? -eq 1 ]
}

# begin NAME: what made a golden file.
begin() {
	first_rows >in.csv
	first_rows >right.csv
	rm -f out.csv rejects.csv
	go "$1" -C "$1.ckpt"
}

# refused MESSAGE ARGUMENT...: status 3, one line, nothing on standard output. The message is a glob.
refused() {
	local want="wm-checkpoint: $1"
	shift
	run -3 --separate-stderr wm-checkpoint "$@"
	assert_equal "$output" ''
	assert_equal "${#stderr_lines[@]}" 1
	# shellcheck disable=SC2053
	[[ $stderr == $want ]] || { echo "$stderr" && return 1; }
}

misused() {
	local want="wm-checkpoint: $1"
	shift
	run -2 --separate-stderr wm-checkpoint "$@"
	assert_equal "$stderr" "$want"
	assert_equal "$output" ''
}

# ---- files of version 1 ----

@test "golden files: each is whole, and is shown and dumped as ever" {
	for name in "${names[@]}"; do
		cp "$golden/$name.ckpt" .
		run -0 wm-checkpoint verify "$name.ckpt"
		assert_output --partial "$name.ckpt: whole: wm-"
		wm-checkpoint show "$name.ckpt" >shown
		diff "$golden/$name.show" shown
		wm-checkpoint dump "$name.ckpt" >dumped
		diff "$golden/$name.dump" dumped
		jq -e .section dumped >/dev/null
	done
}

@test "golden files: a run goes on from each, to the bytes of one without a checkpoint" {
	for name in "${names[@]}"; do
		[ "$name" != complete ] || continue # its last table alone is the same
		begin "$name"
		[ "$name" = lag-windows ] || cmp "$golden/$name.out" out.csv
		second_rows >>in.csv
		second_rows >>right.csv
		rm -f st st.lock st.prev
		cp "$golden/$name.ckpt" st
		# wm-lag measures all runs, and wrote that at the end of each
		if [[ $name == lag* ]]; then : >out.csv; else cp "$golden/$name.out" out.csv; fi
		rm -f rejects.csv
		go "$name" -C st --eof flush
		mv out.csv resumed.csv
		rm -f rejects.csv
		go "$name" --eof flush
		diff out.csv resumed.csv
	done
}

# The files in tests/golden/checkpoint/v1/tsv are of in.tsv, made when TSV had quotes. tsv_line NAME: with what.
tsv_line() {
	case $1 in
	sums) line=(wm-window -q -t time -w 20s --tumbling 1m -a "count,sum:n") ;;
	keys) line=(wm-window -q -t time -w 20s --tumbling 1m -g host) ;;
	max) line=(wm-window -q -t time -w 20s --tumbling 1m -a max:host) ;;
	dedup) line=(wm-dedup -q -t time -w 20s -k host) ;;
	sort) line=(wm-sort -q -t time -w 20s) ;;
	stamp) line=(wm-stamp -q -t time -w 20s) ;;
	source) line=(wm-stamp -q -t time -w 20s --source host) ;;
	esac
}

# tsv_goes_on NAME OPTION...: from a golden file, to what one run of CSV with tabs gives.
tsv_goes_on() {
	local line name=$1 folder=$BATS_TEST_DIRNAME/golden/checkpoint/v1/tsv
	shift
	tsv_line "$name"
	rm -f st st.lock st.prev
	cp "$folder/in.tsv" in.tsv
	cp "$folder/$name.ckpt" st
	cp "$folder/$name.out" out
	printf '2025-11-29T10:00:59.75Z\ta\t8\n2025-11-29T10:05:00Z\tb\t16\n' >>in.tsv
	"${line[@]}" "$@" -C st --eof flush in.tsv >>out || return
	"${line[@]}" -i csv -d '\t' in.tsv >want
	cmp want out
}

@test "golden files of TSV from when it had quotes: refused where texts are held, and read on as CSV" {
	for name in sums stamp; do
		tsv_goes_on "$name"
	done
	for name in keys max dedup sort source; do
		run -3 --separate-stderr tsv_goes_on "$name"
		assert_regex "$stderr" "^wm-[a-z]*: st: holds texts of TSV from when that had quotes, which are letters now: read on with -i csv -d '\\\\t', as it was read then, or name another checkpoint\$"
		tsv_goes_on "$name" -i csv -d '\t'
	done
	# what is made now goes on, as TSV, and only with the same escapes
	rm -f st st.lock st.prev
	tsv_line keys
	head -n 2 in.tsv >part.tsv
	"${line[@]}" -C st part.tsv >out
	cp in.tsv part.tsv
	run -3 --separate-stderr "${line[@]}" -C st --tsv-escapes none part.tsv
	assert_regex "$stderr" "^wm-window: st: was made without --tsv-escapes, and this run is with --tsv-escapes none"
	"${line[@]}" -C st --eof flush part.tsv >>out || [ $? -eq 1 ]
	"${line[@]}" -i tsv in.tsv >want || [ $? -eq 1 ]
	cmp want out
}

# ---- show, dump ----

@test "nothing is changed, and no lock is taken" {
	begin window
	sha256sum window.ckpt* >before
	find . | sort >../names
	exec 9<window.ckpt.lock
	for command in show dump verify watermark position; do
		wm-checkpoint $command window.ckpt >/dev/null
	done
	wm-checkpoint why window.ckpt 2025-11-29T10:02:00Z >/dev/null
	sha256sum -c --quiet before
	find . | sort | diff ../names -
}

@test "the rows of open windows are those that were not written" {
	begin window
	# the watermark is 10:00:50
	run -0 bash -c 'wm-checkpoint dump window.ckpt | jq -c "select(.window_start) | [.window_start, .key[0], .rows, .results.count]"'
	assert_output - <<-'END'
		["2025-11-29T10:00:00Z","a",1,1]
		["2025-11-29T10:00:00Z","b",2,2]
		["2025-11-29T10:01:00Z","a",1,1]
		["2025-11-29T10:01:00Z","b",1,1]
	END
}

# held FILTER FILE: of each line of what is held, behind the first, what a filter of jq makes of it.
held() {
	wm-checkpoint dump "$2" | jq -c 'select(.section == "STAT" and .version == null) | '"$1"
}

@test "mode update: all open windows, changed since the last batch or not" {
	first_rows >in.csv
	wm-window -q -t time -w 20s --tumbling 1m -g host -a count,sum:n --mode update --trigger 2rows -C st in.csv >/dev/null || [ $? -eq 1 ]
	# x is no number: that row is rejected. The watermark of the last batch that ended is 10:00:50, then came b at 10:01:40.
	run -0 held '[.window_start, .key[0], .rows, .results.n_sum]' st
	assert_output - <<-'END'
		["2025-11-29T10:00:00Z","a",1,1]
		["2025-11-29T10:00:00Z","b",1,2]
		["2025-11-29T10:01:00Z","a",1,4]
		["2025-11-29T10:01:00Z","b",1,8]
	END
	run -0 bash -c 'wm-checkpoint dump st | jq "select(.section == \"STAT\" and .version == 1).windows"'
	assert_output 4
	# A window that is complete, and within the allowed lateness, is still open.
	printf '2025-11-29T10:03:00Z,b,32\n2025-11-29T10:03:01Z,b,64\n' >>in.csv
	wm-window -q -t time -w 20s --tumbling 1m -g host -a count,sum:n --mode update --allowed-lateness 1m -C st2 in.csv >/dev/null || [ $? -eq 1 ]
	run -0 held '[.window_start, .key[0], .results.n_sum]' st2
	assert_output - <<-'END'
		["2025-11-29T10:01:00Z","a",4]
		["2025-11-29T10:01:00Z","b",8]
		["2025-11-29T10:03:00Z","b",96]
	END
}

@test "the keys that wm-dedup remembers, and until when" {
	printf 't,a,b\n%s\n%s\n%s\n%s\n%s\n' 0,x,1 20,x,1 30,x,2 95,y, 119,,y >in.csv
	# The watermark is 59: what came first at 0 is forgotten at 60, not yet.
	wm-dedup -q -t t -w 1m -k a,b -C st in.csv >/dev/null
	run -0 held '[.key, .until]' st
	assert_output - <<-'END'
		[["x","1"],"1970-01-01T00:01:00Z"]
		[["x","2"],"1970-01-01T00:01:30Z"]
		[["y",""],"1970-01-01T00:02:35Z"]
		[["","y"],"1970-01-01T00:02:59Z"]
	END
	run -0 bash -c 'wm-checkpoint dump st | jq "select(.section == \"STAT\" and .version == 1).keys"'
	assert_output 4
	# One second later it is forgotten.
	printf '120,z,\n' >>in.csv
	wm-dedup -q -t t -w 1m -k a,b -C st in.csv >/dev/null
	run -0 held '.key[0]' st
	assert_output $'"x"\n"y"\n""\n"z"'
	wm-dedup -q -t t --forever -C st2 in.csv >/dev/null
	run -0 held '[.key, .until]' st2
	assert_line --index 0 '[["0,x,1"],"end"]'
}

@test "the rows that wm-join holds: side, time, key, whether they have matched, what they add" {
	printf '%s\n' t,a,b,x 100,k,1,one 101,,1,two 102,k,2,three >left.csv
	printf '%s\n' t,a,b,y 100,k,1,uno 103,m,1,dos 104,,2,tres >right.csv
	wm-join -q -t t -w 1m -k a,b --between 0s,10s --type full -C st left.csv right.csv >out.csv
	# a pair was written; nothing has left, as no watermark has come so far
	assert_equal "$(tail -n +2 out.csv)" 100,k,1,one,100,uno
	run -0 held '[.side, .time, .key, .matched, .record]' st
	assert_output - <<-'END'
		["left","1970-01-01T00:01:40Z",["k","1"],true,"100,k,1,one"]
		["left","1970-01-01T00:01:41Z",["","1"],false,"101,,1,two"]
		["left","1970-01-01T00:01:42Z",["k","2"],false,"102,k,2,three"]
		["right","1970-01-01T00:01:40Z",["k","1"],true,"100,uno"]
		["right","1970-01-01T00:01:43Z",["m","1"],false,"103,dos"]
		["right","1970-01-01T00:01:44Z",["","2"],false,"104,tres"]
	END
	run -0 bash -c 'wm-checkpoint dump st | jq -c "select(.version) | [.left, .right]"'
	assert_output '[3,3]'
	run -0 bash -c 'wm-checkpoint show st | grep ^state'
	assert_output --partial ' 6 held rows, '
	# a null key matches nothing
	echo '{"t":100,"k":null}' >left.ndjson
	: >right.ndjson
	wm-join -q -t t -w 1m -k k --between 0s,10s --type left -C st4 left.ndjson right.ndjson >/dev/null
	run -0 held '[.side, .time, .key, .record]' st4
	assert_output '["left","1970-01-01T00:01:40Z",null,"{\"t\":100,\"k\":null}"]'
	# as-of: of each key and time the last right row; no key at all
	wm-join -q -t t -w 1m --asof backward --type left -C st2 left.csv right.csv >/dev/null
	run -0 held '[.side, .time, .key, .record]' st2
	assert_output - <<-'END'
		["left","1970-01-01T00:01:40Z",[],"100,k,1,one"]
		["left","1970-01-01T00:01:41Z",[],"101,,1,two"]
		["left","1970-01-01T00:01:42Z",[],"102,k,2,three"]
		["right","1970-01-01T00:01:40Z",[],"100,k,1,uno"]
		["right","1970-01-01T00:01:43Z",[],"103,m,1,dos"]
		["right","1970-01-01T00:01:44Z",[],"104,,2,tres"]
	END
	wm-join -q -t t -w 1m -k a --tumbling 1m --type semi -C st3 left.csv right.csv >/dev/null
	run -0 held '[.side, .key, .record]' st3
	assert_output - <<-'END'
		["right",["k"],""]
		["right",["m"],""]
		["right",[""],""]
	END
}

@test "rows that wm-join has written, and that wait for the columns of a side" {
	printf '%s\n' t,k,x 100,a,one 300,b,two >left.csv
	: >right.csv
	wm-join -q -t t -w 0s -k k --between 0s,10s --type left --right-delay none --eof hold -C st left.csv right.csv >out.csv
	assert_equal "$(cat out.csv)" ''
	run -0 held '[.side, .left, .right, .record]' st
	assert_output - <<-'END'
		["left",null,null,"100,a,one"]
		["left",null,null,"300,b,two"]
	END
}

@test "the groups of wm-lag: rows, times, and of each measure the sums" {
	printf '%s\n' t,k,at 100,a,101 90,a,95 107,b,107 104,a,103 3700,b,3700 >in.csv
	wm-lag -q -t t --ingest at -g k --every 1h --advise --tumbling 10s -C st in.csv >/dev/null
	# disorder: 0, 10 and 3 of a; 0 and 0 of b. lag: 1, 5, -1; 0 and 0. The window of 90 ends at 100.
	run -0 held '[.window_start, .window_end, .key[0], .rows, .first, .last]' st
	assert_output - <<-'END'
		["1970-01-01T00:00:00Z","1970-01-01T01:00:00Z","a",3,"1970-01-01T00:01:30Z","1970-01-01T00:01:44Z"]
		["1970-01-01T00:00:00Z","1970-01-01T01:00:00Z","b",1,"1970-01-01T00:01:47Z","1970-01-01T00:01:47Z"]
		["1970-01-01T01:00:00Z","1970-01-01T02:00:00Z","b",1,"1970-01-01T01:01:40Z","1970-01-01T01:01:40Z"]
	END
	run -0 held 'select(.key[0] == "a") | .disorder, .lag, .dropped.count' st
	assert_output - <<-'END'
		{"count":3,"zeros":1,"negative":0,"min_us":0,"max_us":10000000,"sum_us":"13000000","sketched":false}
		{"count":3,"zeros":0,"negative":1,"min_us":-1000000,"max_us":5000000,"sum_us":"5000000","sketched":false}
		3
	END
	run -0 bash -c 'wm-checkpoint show st | grep ^state'
	assert_output --partial ' 3 groups, '
}

@test "wm-stamp: the watermark that was told last" {
	printf 't\n' >in.csv
	wm-stamp -q -t t -w 1m -C st in.csv >/dev/null
	run -0 bash -c 'wm-checkpoint dump st | jq -c "select(.version) | [.bytes, .watermark_told]"'
	assert_output '[8,null]'
	printf '100\n90\n' >>in.csv
	wm-stamp -q -t t -w 1m -C st in.csv >/dev/null
	run -0 bash -c 'wm-checkpoint dump st | jq -c "select(.version) | .watermark_told"'
	assert_output '"1970-01-01T00:00:40Z"'
}

@test "control bytes and what is no UTF-8 are shown as \\xNN" {
	printf 'time,\e[1m\377\n1,2\n' >in.csv
	name=$(printf 'a\033\376')
	mv in.csv "$name"
	wm-window -q -t time -w 1s --tumbling 10s -g $'\e[1m\377' -C st "$name" >/dev/null
	wm-checkpoint show st >out
	grep -F 'option     --group-by \x1B[1m\xFF' out
	grep -F '/a\x1B\xFE: 15 bytes' out
	run ! grep -P '[\x00-\x09\x0b-\x1f\x80-\xff]' out
	wm-checkpoint dump st | jq -e . >/dev/null
}

# ---- watermark, position, why ----

@test "watermark: none, a time, that of the side behind" {
	printf 'time\n' >empty.csv
	wm-window -q -t time -w 1s --tumbling 10s -C st empty.csv >/dev/null
	run -0 wm-checkpoint watermark st
	assert_output none
	begin window
	run -0 wm-checkpoint watermark window.ckpt
	assert_output 2025-11-29T10:00:50Z
	begin sort
	run -0 wm-checkpoint watermark sort.ckpt
	assert_output 2025-11-29T10:01:10Z
	printf 'time,host\n2025-11-29T10:05:00Z,a\n' >right.csv
	line_of join
	"${line[@]}" -C st2 in.csv right.csv >/dev/null
	run -0 wm-checkpoint watermark st2
	assert_output 2025-11-29T10:01:20Z
}

@test "position: bytes of a file, the column of a pipe, and nothing before there is any" {
	begin sort
	run -0 wm-checkpoint position sort.ckpt
	assert_output "$(wc -c <in.csv)"
	run -0 wm-checkpoint position sort.ckpt ./in.csv
	assert_output "$(wc -c <in.csv)"
	misused "position: 'other.csv' is no input of sort.ckpt: see wm-checkpoint show" position sort.ckpt other.csv
	wm-window -q -t time -w 20s --tumbling 1m -C st --position n <in.csv >/dev/null
	run -0 wm-checkpoint position st
	assert_output 8
	# shellcheck disable=SC2002
	cat in.csv | wm-window -q -t time -w 20s --tumbling 1m -C st2 --position n >/dev/null
	run -0 wm-checkpoint position st2
	assert_output 8
	run -0 wm-checkpoint position st2 -
	assert_output 8
	true | wm-window -q -t time -w 20s --tumbling 1m -C st3 --position n >/dev/null
	run -1 --separate-stderr wm-checkpoint position st3
	assert_equal "$output" ''
	assert_equal "$stderr" 'wm-checkpoint: st3: nothing was read yet: there is no position to go on from'
	begin join
	misused "position: join.ckpt has 2 inputs: name one of $PWD/in.csv, $PWD/right.csv" position join.ckpt
}

@test "why: the source that holds the watermark, and a row of that time closes the window" {
	begin window
	run -0 wm-checkpoint why window.ckpt 2025-11-29T10:01:59Z
	assert_output - <<-'END'
		window 2025-11-29T10:01:00Z to 2025-11-29T10:02:00Z: closed by a watermark of its end
		the watermark is 2025-11-29T10:00:50Z: it is open
		a is at 2025-11-29T10:01:10Z, its watermark at 2025-11-29T10:00:50Z: it takes a row of 2025-11-29T10:02:20Z or later
		b is at 2025-11-29T10:01:40Z, its watermark at 2025-11-29T10:01:20Z: it takes a row of 2025-11-29T10:02:20Z or later
	END
	# a millisecond less does not, that time does
	printf '%s\n' 2025-11-29T10:02:19.999Z,a,1 2025-11-29T10:02:20Z,b,1 >>in.csv
	go window -C window.ckpt
	run ! grep ^2025-11-29T10:01:00Z out.csv
	run -0 wm-checkpoint why window.ckpt 2025-11-29T10:01:59Z
	assert_line 'a is at 2025-11-29T10:02:19.999Z, its watermark at 2025-11-29T10:01:59.999Z: it takes a row of 2025-11-29T10:02:20Z or later'
	refute_output --partial 'b is at'
	echo 2025-11-29T10:02:20Z,a,1 >>in.csv
	go window -C window.ckpt
	grep ^2025-11-29T10:01:00Z out.csv
	run -0 wm-checkpoint why window.ckpt 2025-11-29T10:01:59Z
	assert_line --index 1 'the watermark is 2025-11-29T10:02:00Z: it is closed'
	assert_equal "${#lines[@]}" 2
}

@test "why: overlapping windows, batches, lateness, sessions, no windows, two sides" {
	begin sliding
	run -0 wm-checkpoint why sliding.ckpt 2025-11-29T10:01:40Z
	assert_line 'the first of them: window 2025-11-29T10:01:00Z to 2025-11-29T10:02:00Z: closed by a watermark of its end'
	assert_line 'the last of 2 windows: window 2025-11-29T10:01:30Z to 2025-11-29T10:02:30Z: closed by a watermark of its end'
	assert_line 'and the end of its batch (--trigger 2rows)'
	assert_line 'it takes late rows until the watermark is 2025-11-29T10:03:30Z'
	begin sessions
	run -0 wm-checkpoint why sessions.ckpt 2025-11-29T10:01:40Z
	assert_line --index 0 'a session whose last row is of 2025-11-29T10:01:40Z ends at 2025-11-29T10:02:20Z: closed by a watermark of its end'
	assert_line 'the input is at 2025-11-29T10:01:40Z, its watermark at 2025-11-29T10:01:20Z: it takes a row of 2025-11-29T10:02:40Z or later'
	begin join
	run -0 wm-checkpoint why join.ckpt 2025-11-29T10:01:40Z
	assert_line 'left input is at 2025-11-29T10:01:40Z, its watermark at 2025-11-29T10:01:20Z: it takes a row of 2025-11-29T10:02:00Z or later'
	assert_line 'right input is at 2025-11-29T10:01:40Z, its watermark at 2025-11-29T10:01:20Z: it takes a row of 2025-11-29T10:02:00Z or later'
	misused "why: 'noon': no time" why join.ckpt noon
}

@test "why: the zone of the run, and a flush" {
	printf 'time\n2025-11-29T10:00:00\n' >in.csv
	wm-window -q -t time -w 0s --tumbling 1d --tz Europe/Berlin -C st in.csv >/dev/null
	run -0 wm-checkpoint why st '2025-11-29 23:59:59'
	assert_line --index 0 'window 2025-11-28T23:00:00Z to 2025-11-29T23:00:00Z: closed by a watermark of its end'
	wm-window -q -t time -w 0s --tumbling 1d --tz Europe/Berlin -C st --eof flush in.csv >/dev/null
	run -0 wm-checkpoint show st
	assert_line --partial 'at the end of a run that closed everything'
}

# ---- hostile files ----

@test "damaged anywhere: one line, status 3, and the way back" {
	begin window
	second_rows >>in.csv
	go window -C window.ckpt
	mv window.ckpt whole
	size=$(wc -c <whole)
	for ((at = 0; at < size; at += 7)); do
		{
			head -c "$at" whole
			printf '\252'
			tail -c +$((at + 2)) whole
		} >window.ckpt
		cmp -s whole window.ckpt && continue
		((at >= 48 && at < 56)) || refused 'window.ckpt: *' verify window.ckpt
	done
	head -c 100 whole >window.ckpt
	refused 'window.ckpt: damaged at byte 64, in section OPTS: it is longer than the rest of the file: --resume prev goes back to window.ckpt.prev' \
		verify window.ckpt
	for command in show dump watermark position; do
		refused 'window.ckpt: damaged at byte 64, *' $command window.ckpt
	done
	refused 'window.ckpt: damaged at byte 64, *' why window.ckpt 2025-11-29T10:00:00Z
	cp window.ckpt window.ckpt.prev
	refused '*: so is window.ckpt.prev: begin anew, *' verify window.ckpt
	rm window.ckpt.prev
	refused '*: there is none before it: begin anew, with another checkpoint' verify window.ckpt
	run -3 --separate-stderr wm-checkpoint verify window.ckpt whole
	assert_output --partial 'whole: whole: wm-window, generation 4, written '
}

@test "foreign files, newer ones, none, a folder" {
	: >empty
	refused 'empty: damaged: it is empty*' show empty
	echo 'time,n' >in.csv
	refused 'in.csv: is no checkpoint: it does not begin as one' show in.csv
	refused 'none: cannot open: No such file or directory' show none
	refused '.: *' show .
	mkfifo pipe
	refused 'pipe: *' show pipe
}

@test "misuse" {
	misused 'say what to do: show, verify, dump, watermark, position, why'
	misused "no command 'sohw': did you mean show? there are show, verify, dump, watermark, position, why" sohw st
	misused "no command 'state': there are show, verify, dump, watermark, position, why" state
	misused 'show: write wm-checkpoint show FILE' show
	misused 'show: write wm-checkpoint show FILE' show a b
	misused 'why: write wm-checkpoint why FILE TIME' why st
	misused 'verify: write wm-checkpoint verify FILE...' verify
	run -3 --separate-stderr bash -c 'wm-checkpoint show "$1" >/dev/full' - "$golden/sort.ckpt"
	assert_equal "$stderr" 'wm-checkpoint: standard output: No space left on device'
}

# ---- the man page ----

@test "the examples of the man page run" {
	cp "$data/earthquakes.csv" .
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$man" |
		sed -n '/^\.Bd/,/^\.Ed/ { /^\./d; s/\\e$/\\/; p; }' >examples
	run -0 --separate-stderr bash -e examples
	assert_equal "$stderr" ''
	assert_line --index 0 --partial 'st: whole: wm-window, generation '
	assert_line 'option     --tumbling 1d'
	assert_line 'watermark  2018-02-05T01:26:13.840Z, highest event time 2018-02-07T01:26:13.840Z'
	assert_line '["2018-02-06T00:00:00Z",213]'
}
