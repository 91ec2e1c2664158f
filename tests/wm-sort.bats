#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-sort as a user meets it: when rows leave and in which order, one FILE and several, stamped and live. Random streams
# are held to a model by the laws.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	load until
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	page=$PWD/man/wm-sort.1
	quakes=$PWD/tests/data/earthquakes
	interrupt=$PWD/tests/fault/interrupt.py
	cd "$BATS_TEST_TMPDIR" || return 1
	export LC_ALL=C
	printf '%s\n' ts,a 105,1 100,2 112,3 100,4 112,5 101,6 130,7 >in.csv
}

wm_sort() {
	"$bin/wm-sort" "$@"
}

# A usage error: one line that has the words given, nothing on standard output, status 2.
refused() { # words, arguments
	local words=$1
	shift
	run -2 --separate-stderr wm_sort "$@"
	assert_equal "$output" ""
	assert_equal "${#stderr_lines[@]}" 1
	[[ $stderr == "wm-sort: "*"$words"* ]] || {
		echo "no '$words' in: $stderr"
		return 1
	}
}

# What the last column of CSV on standard input says, in one line.
numbers() {
	tail -n +2 | sed 's/.*,//' | paste -sd ' '
}

class_of() { # report, member
	jq -r "select(.type == \"report\").$2" "$1"
}

@test "misuse: one line that says what to do" {
	refused "-m and -w: rows that are in order need no delay: give one of them" -m -w 1s -t ts in.csv
	refused "-m and --trigger: each row tells how far its FILE has come: leave --trigger out" --merge-sorted --trigger 2rows -t ts in.csv
	refused "-m and --watermark-column: each row tells how far its FILE has come: give one of them" -m --watermark-column w -t ts in.csv
	refused "-m and --compat spark: rows of one time would be late: leave --compat out" -m --compat spark -t ts in.csv
	refused "--source: without a delay there is no watermark: give one with -w" -m --source a -t ts in.csv
	refused "--source and --merge" -t ts -w 1s --merge --source a in.csv in.csv
	refused "no option -k: see --help" -k a -t ts in.csv
	refused "no time column" in.csv
	refused "did you mean 'ts'?" -t tss in.csv
	printf 'ts,b\n' >other.csv
	refused "other.csv:1: no column 'a'" -t ts in.csv other.csv
	run -0 wm_sort -m --watermark-column none -t ts /dev/null
}

@test "without a watermark: a stable sort of it all, written at the end" {
	run -0 --separate-stderr wm_sort -t ts --time-format s in.csv
	assert_output "$(head -n 1 in.csv && tail -n +2 in.csv | sort -s -t, -k1,1n)"
	assert_equal "$stderr" ""
	# as sort does it, by times of one length
	wm_sort -t time "$quakes.csv" | cmp - <(head -n 1 "$quakes.csv" && tail -n +2 "$quakes.csv" | sort -s -t, -k2,2)
	wm_sort -t time "$quakes.ndjson" >out.ndjson
	jq -r .time out.ndjson | sort -c
	diff <(sort out.ndjson) <(sort "$quakes.ndjson")
}

@test "with a delay: rows leave in order, and those behind the watermark are late" {
	# at 112 the watermark is 107, and the second 100 is behind it
	wm_sort -q -t ts -w 5s --late late.csv --report r in.csv >out.csv
	assert_equal "$(numbers <out.csv)" "2 1 3 5 7"
	assert_equal "$(cat late.csv)" $'ts,a\n100,4\n101,6'
	assert_equal "$(class_of r rows_in) $(class_of r rows_used) $(class_of r rows_late) $(class_of r rows_out)" "7 5 2 5"
	# 12 s cover the disorder
	assert_equal "$(wm_sort -q -t ts -w 12s in.csv | numbers)" "2 4 6 1 3 5 7"
	assert_equal "$(wm_sort -q -t ts -w 11999ms in.csv | numbers)" "2 6 1 3 5 7"
	assert_equal "$(wm_sort -q -t ts -w 11s in.csv | numbers)" "2 6 1 3 5 7"
	assert_equal "$(wm_sort -q -t ts -w 10999ms in.csv | numbers)" "2 1 3 5 7"
	# in order already
	sort -s -t, -k1,1n <(tail -n +2 in.csv) | sed '1i ts,a' | wm_sort -t ts -w 0s | numbers >out
	assert_equal "$(cat out)" "2 4 6 1 3 5 7"
}

@test "the example of the man page does what it says" {
	local count=0 time watermark is leave before=''
	sed -n '/^An example/,/^\.El/p' "$page" | sed -nE 's/^\.It ([0-9:]+) Ta ([0-9:]+) Ta ([a-z]+) Ta (.*)$/\1 \2 \3 \4/p' >told
	echo ts,is >example.csv
	while read -r time watermark is leave; do
		count=$((count + 1))
		echo "2024-01-01T$time$([ ${#time} -eq 8 ] || echo :00)Z,$is" >>example.csv
		# what the watermark lets go, and no more
		wm_sort -q -t ts -w 10m --eof hold --late late --report report --overwrite example.csv | tail -n +2 |
			sed 's/,.*//; s/.*T//; s/Z//; s/\(:..\):00/\1/' | paste -sd ' ' >left
		[ "$leave" != none ] || leave=
		assert_equal "$(cat left)" "$(xargs <<<"$before $leave")"
		before=$(cat left)
		assert_equal "$(class_of report eventTime.watermark)" "2024-01-01T$watermark$([ ${#watermark} -eq 8 ] || echo :00)Z"
		assert_equal "$(grep -c late late)" "$(grep -c late example.csv)"
	done <told
	assert_equal "$count" 7
	leave=$(sed -n '/^An example/,/^\.El/s/^\.It end Ta .*Ta //p' "$page")
	assert_equal "$(wm_sort -q -t ts -w 10m example.csv | tail -n +2 | sed 's/,.*//; s/.*T//; s/Z//; s/\(:..\):00/\1/' | paste -sd ' ')" \
		"$before $leave"
}

@test "batches: rows leave when a batch ends" {
	# batches of three rows: 105 100 112 | 100 112 101 | 130, judged by nothing, 107, 107
	wm_sort -q -t ts -w 5s --trigger 3rows --late late.csv in.csv >out.csv
	assert_equal "$(numbers <out.csv)" "2 1 3 5 7"
	assert_equal "$(numbers <late.csv)" "4 6"
	# one batch: nothing is late
	assert_equal "$(wm_sort -t ts -w 0s --trigger eof in.csv | numbers)" "2 4 6 1 3 5 7"
	# held at the end: what the batch had let go is all
	run -0 --separate-stderr wm_sort -t ts -w 5s --trigger 4rows --eof trigger in.csv
	assert_output $'ts,a\n100,2\n100,4\n105,1\n112,3\n112,5'
	[[ $stderr == *"1 row was not written"* ]]
	run -0 --separate-stderr wm_sort -t ts -w 5s --trigger 4rows --eof hold --report r in.csv
	assert_output $'ts,a\n100,2\n100,4\n105,1'
	[[ $stderr == *"rows were not written"* || $stderr == *"row was not written"* ]]
}

@test "several FILEs: side by side, ties in their order" {
	printf 'ts,a\n1,a1\n4,a2\n4,a3\n9,a4\n' >a
	printf 'ts,a\n1,b1\n3,b2\n4,b3\n12,b4\n' >b
	printf 'ts,a\n4,c1\n0,c2\n' >c
	for options in '-w 4s' '-w 1h' ''; do
		# shellcheck disable=SC2086 # words
		assert_equal "$(wm_sort -q -t ts $options a b c | numbers)" "c2 a1 b1 b2 a2 a3 b3 c1 a4 b4"
	done
	assert_equal "$(wm_sort -q -t ts c b a | numbers)" "c2 b1 a1 b2 c1 b3 a2 a3 a4 b4"
	# c2 is behind the 4 s that its FILE has shown, and so have the others when it is read
	wm_sort -q -t ts -w 0s --late late a b c >out
	assert_equal "$(numbers <out)" "a1 b1 b2 a2 a3 b3 c1 a4 b4"
	assert_equal "$(numbers <late)" "c2"
	printf '%s\0' a b c | wm_sort -q -t ts --files0-from - | cmp - <(wm_sort -q -t ts a b c)
	# with --source they are one stream, read as named: the second begins at 3, that of x
	printf 'ts,a\n1,x\n2,y\n3,x\n4,y\n' >s
	assert_equal "$(wm_sort -q -t ts -w 0s --source a s s | numbers)" "x y x x y y"
	# side by side none is behind
	assert_equal "$(wm_sort -q -t ts -w 0s s s | numbers)" "x x y y x x y y"
}

@test "-m: FILEs in order become one, and next to nothing is held" {
	printf 'ts,a\n1,a1\n4,a2\n4,a3\n9,a4\n' >a
	printf 'ts,a\n1,b1\n3,b2\n4,b3\n12,b4\n' >b
	: >c
	run -0 --separate-stderr wm_sort -m -t ts --time-format s a b c
	assert_equal "$(numbers <<<"$output")" "a1 b1 b2 a2 a3 b3 a4 b4"
	assert_equal "$stderr" ""
	# as sort -m, on the networks of a week of earthquakes; memory is that of a few rows
	cut -d, -f4 "$quakes.csv" | tail -n +2 | sort -u >nets
	while read -r net; do
		{
			head -n 1 "$quakes.csv"
			awk -F, -v net="$net" '$4 == net' "$quakes.csv" | sort -s -t, -k2,2
		} >"net-$net"
	done <nets
	wm_sort -m -t time --report r net-* >out.csv
	for file in net-*; do tail -n +2 "$file" >"sorted-$file"; done
	cmp out.csv <(head -n 1 "$quakes.csv" && sort -s -m -t, -k2,2 sorted-*)
	# microseconds count
	printf 'ts\n1.000002\n1.000004\n' >u1
	printf 'ts\n1.000001\n1.000003\n' >u2
	assert_equal "$(wm_sort -m -t ts u1 u2 | paste -sd ' ')" "ts 1.000001 1.000002 1.000003 1.000004"
	# out of order: 3 belongs before what has left, and is late
	printf 'ts,a\n1,x1\n5,x2\n3,x3\n7,x4\n' >x
	wm_sort -q -m -t ts --late late a x >out
	assert_equal "$(numbers <out)" "a1 x1 a2 a3 x2 x4 a4"
	assert_equal "$(cat late)" $'ts,a\n3,x3'
	# one FILE: all is passed on, or late
	wm_sort -q -m -t ts --late late --overwrite x >out
	assert_equal "$(numbers <out)" "x1 x2 x4"
}

@test "rows stay byte for byte: CRLF, quotes, a missing final newline, TSV, NDJSON" {
	printf 'ts,a\r\n3,"x, ""y"""\r\n2,"two\r\nlines"\r\n1, z ' >in
	wm_sort -t ts in >out
	printf 'ts,a\r\n1, z \r\n2,"two\r\nlines"\r\n3,"x, ""y"""\r\n' | cmp - out
	printf 'ts\ta\n3\tx,\n1\ty\n' >in
	wm_sort -t ts in | cmp - <(printf 'ts\ta\n1\ty\n3\tx,\n')
	printf '{ "ts" : 2.50, "a":"\\u0041" }\r\n{"a":1e3,"ts":"1"}' >in
	wm_sort -t ts in >out
	printf '{"a":1e3,"ts":"1"}\r\n{ "ts" : 2.50, "a":"\\u0041" }\r\n' | cmp - out
	printf '2;x\n1;y\n' >in
	wm_sort -t 1 --no-header -d ';' in | cmp - <(printf '1;y\n2;x\n')
	wm_sort -t ts --columns ts,a -d ';' in | cmp - <(printf '1;y\n2;x\n')
	wm_sort -t ts --no-output-header in.csv | cmp - <(tail -n +2 in.csv | sort -s -t, -k1,1n)
}

@test "a later FILE is written in the form of the first" {
	printf 'ts,a\n3,x\n' >one
	printf 'a,ts\r\n"y,y",2\r\nz,3' >two
	wm_sort -t ts one two | cmp - <(printf 'ts,a\n2,"y,y"\n3,x\n3,z\n')
	wm_sort -t ts two one | cmp - <(printf 'a,ts\r\n"y,y",2\r\nz,3\r\nx,3\r\n')
}

@test "empty input, a header alone, empty FILEs" {
	assert_equal "$(wm_sort -t ts </dev/null 2>&1)" ""
	assert_equal "$(printf 'ts,a\n' | wm_sort -t ts -w 1s --late late 2>&1)" "ts,a"
	assert_equal "$(cat late)" "ts,a"
	: >empty
	printf 'ts,a\n' >header
	printf 'ts,a\n2,y\n1,x\n' >some
	for options in '' '-w 5s'; do
		# shellcheck disable=SC2086 # words
		assert_equal "$(wm_sort -t ts $options empty header some empty)" $'ts,a\n1,x\n2,y'
	done
	printf 'ts,a\n1,x\n2,y\n' >some
	assert_equal "$(wm_sort -t ts -m empty header some empty)" $'ts,a\n1,x\n2,y'
}

@test "lines of logs leave as they came, and in other formats with columns" {
	cat >access.log <<-'END'
		192.0.2.1 - - [10/Oct/2000:13:55:38 -0700] "GET /a HTTP/1.0" 200 5
		192.0.2.2 - - [10/Oct/2000:22:55:37 +0200] "GET /b HTTP/1.0" 200 5
	END
	wm_sort -i clf access.log | cmp - <(tac access.log)
	run -0 wm_sort -i clf -o csv access.log
	assert_line --index 1 '192.0.2.2,,,10/Oct/2000:22:55:37 +0200,GET,/b,,HTTP/1.0,200,5,,,GET /b HTTP/1.0,'
	printf 'ts=3 a="x y"\nts=1 a=z\n' >in.log
	wm_sort -i logfmt -t ts in.log | cmp - <(tac in.log)
	wm_sort -q -i clf -w 0s --late late.log access.log | cmp - <(head -n 1 access.log)
	cmp late.log <(tail -n 1 access.log)
}

@test "other formats; the first record of the input tells the columns" {
	run -0 wm_sort -t ts -o ndjson in.csv
	assert_line --index 0 '{"ts":100,"a":2}'
	run -0 wm_sort -t ts -o tsv in.csv
	assert_line --index 6 $'112\t5'
	run -0 wm_sort -t ts -o table in.csv
	assert_line --regexp '^100 +2$'
	printf '{"ts":3,"a":"x,y"}\n{"ts":2,"b":1}\n{"a":7,"ts":1}\n{"ts":0}\n' >in.ndjson
	run -1 --separate-stderr wm_sort -t ts -o csv in.ndjson
	assert_output $'ts,a\n0,\n1,7\n3,"x,y"'
	[[ $stderr == *"in.ndjson:2: 'b' is no column of the result"*"new-column"* ]]
}

@test "FIFOs: what is read side by side may come at any speed" {
	mkfifo p1 p2
	(
		exec 7>p1
		printf 'ts,a\n1,a\n' >&7
		sleep 0.2
		printf '5,b\n' >&7
	) &
	printf 'ts,a\n2,c\n3,d\n9,e\n' >p2 &
	assert_equal "$(wm_sort -m -t ts p1 p2 | numbers)" "a c d b e"
	wait
}

@test "live: a row leaves as soon as the watermark passes it" {
	mkfifo pipe
	wm_sort -q -t ts -w 10s <pipe >out &
	pid=$!
	exec 7>pipe
	printf 'ts,a\n20,x\n15,y\n' >&7
	until_true '[ "$(cat out)" = ts,a ]'
	printf '25,z\n' >&7 # 15 s: y leaves
	until_true '[ "$(tail -n 1 out)" = 15,y ]'
	assert_equal "$(wc -l <out)" 2
	printf '15,w\n' >&7 # of the watermark itself: not late, and at once
	until_true '[ "$(tail -n 1 out)" = 15,w ]'
	printf '30,v\n' >&7
	until_true '[ "$(tail -n 1 out)" = 20,x ]'
	exec 7>&-
	wait "$pid"
	assert_equal "$(numbers <out)" "y w x z v"
}

@test "live -m: a row leaves when each other FILE has shown one not before it, or has ended" {
	mkfifo p1 p2
	wm_sort -m -t ts p1 p2 >out &
	pid=$!
	exec 7<>p1 8<>p2
	printf 'ts,a\n1,a1\n3,a2\n' >&7
	printf 'ts,a\n2,b1\n' >&8
	until_true '[ "$(numbers <out)" = "a1 b1" ]'
	printf '3,b2\n' >&8 # a2 is of the first FILE, so it leaves before b2
	until_true '[ "$(numbers <out)" = "a1 b1 a2" ]'
	printf '4,a3\n' >&7
	until_true '[ "$(numbers <out)" = "a1 b1 a2 b2" ]'
	exec 8>&-
	until_true '[ "$(numbers <out)" = "a1 b1 a2 b2 a3" ]'
	exec 7>&-
	wait "$pid"
}

@test "--idle-close: silence lets the last rows go" {
	mkfifo pipe
	wm_sort -q -t ts -w 1s --idle-close 200ms <pipe >out &
	pid=$!
	exec 7>pipe
	printf 'ts,a\n20,x\n19.5,y\n' >&7
	until_true '[ "$(numbers <out)" = "y x" ]'
	exec 7>&-
	wait "$pid"
}

@test "without a watermark an input that goes on is told that everything is held" {
	mkfifo pipe
	wm_sort -t ts <pipe >out 2>err &
	pid=$!
	exec 7>pipe
	printf 'ts,a\n2,x\n1,y\n' >&7
	for _ in $(seq 60); do
		sleep 0.25
		! grep -q -- '-w' err || break
	done
	exec 7>&-
	wait "$pid"
	grep -q -- '-w' err
	assert_equal "$(numbers <out)" "y x"
}

@test "SIGINT and SIGTERM: what the watermark has passed is written, and how many rows were held is said" {
	printf 'ts,a\n20,x\n15,y\n25,z\n' >begin.csv
	for signal in INT TERM; do
		status=0
		"$interrupt" SIG$signal begin.csv "$bin/wm-sort" -t ts -w 10s >out 2>err || status=$?
		assert_equal "$status" "$([ $signal = INT ] && echo 130 || echo 143)"
		assert_equal "$(cat out)" $'ts,a\n15,y'
		grep -q '^wm-sort: .*2 rows were not written$' err
	done
	"$interrupt" SIGINT begin.csv "$bin/wm-sort" -t ts -w 10s --trigger 2rows >out 2>err || true
	grep -q '^wm-sort: .*3 rows were not written$' err
}

@test "a stamped input: rows have the watermark from before they were let go, punctuation follows" {
	printf '%s\n' ts,id,_time,_watermark '5,a,1970-01-01T00:00:05Z,' '3,b,1970-01-01T00:00:03Z,1970-01-01T00:00:02Z' \
		'9,c,1970-01-01T00:00:09Z,1970-01-01T00:00:04Z' '3,d,1970-01-01T00:00:03Z,1970-01-01T00:00:04Z' \
		',,,1970-01-01T00:00:06Z' '6,e,1970-01-01T00:00:06Z,' ',,,1970-01-01T00:00:06.500Z' >s.csv
	wm_sort -q --late late.csv --report r s.csv >out.csv
	printf '%s\n' ts,id,_time,_watermark '3,b,1970-01-01T00:00:03Z,1970-01-01T00:00:02Z' ',,,1970-01-01T00:00:04Z' \
		'5,a,1970-01-01T00:00:05Z,1970-01-01T00:00:04Z' ',,,1970-01-01T00:00:06Z' \
		'6,e,1970-01-01T00:00:06Z,1970-01-01T00:00:06Z' ',,,1970-01-01T00:00:06Z' ',,,1970-01-01T00:00:06.500Z' \
		'9,c,1970-01-01T00:00:09Z,1970-01-01T00:00:06.500Z' | diff - out.csv
	assert_equal "$(cat late.csv)" $'ts,id,_time,_watermark\n3,d,1970-01-01T00:00:03Z,'
	assert_equal "$(class_of r rows_in) $(class_of r rows_punctuation) $(class_of r rows_late) $(class_of r rows_out)" "7 2 1 4"
	# sorted again it is the same, and none is late
	wm_sort out.csv --late none.csv 2>err | grep -v '^,' | cut -d, -f1,2 | diff - <(grep -v '^,' out.csv | cut -d, -f1,2)
	[ ! -s err ]
	assert_equal "$(wc -l <none.csv)" 1
	# other formats of the watermark
	wm_sort -q --output-time ms s.csv | sed -n 3p | diff - <(echo ,,,4000)
	# with -m each row tells the watermark itself
	grep -v '^,' s.csv | grep -v '^3' | sort -n >ordered.csv
	wm_sort -m -q ordered.csv | tail -n +2 | head -n 2 |
		diff - <(printf '%s\n' '5,a,1970-01-01T00:00:05Z,1970-01-01T00:00:05Z' ',,,1970-01-01T00:00:05Z')
	# two of them, side by side, and the windows of both
	"$bin/wm-stamp" -q -t time -w 2d "$quakes.csv" >q1.csv
	wm_sort -q q1.csv q1.csv | "$bin/wm-window" --tumbling 1d --report w >windows.csv
	assert_equal "$(class_of w rows_late)" 0
	awk -F, 'NR > 1 { n += $3 } END { print n }' windows.csv >counted
	assert_equal "$(cat counted)" "$(class_of w rows_used)"
}

@test "rejected rows, and the report" {
	printf 'ts,a\n2,x\nno,y\n,z\n1,w\n3\n' >bad.csv
	run -1 --separate-stderr wm_sort -t ts bad.csv
	assert_output $'ts,a\n1,w\n2,x'
	[[ $stderr == *"bad.csv:3: "*"3 of 5 rows were rejected"* ]]
	wm_sort -q -t ts --rejects rejects --report r bad.csv >out.csv
	assert_equal "$(jq -r .reason rejects | paste -sd ' ')" "bad-time no-time ragged"
	assert_equal "$(class_of r rows_in) $(class_of r rows_rejected) $(class_of r rows_used)" "5 3 2"
	rm r
	run -5 wm_sort -q -t ts -w 5s --fail-late 1/10 --eof hold --report r in.csv
	jq -e 'select(.type == "report") | .windows_open == 1 and .rows_late == 2 and .rows_out == 4 and
		(.stateOperators[0] | .operatorName == "sort" and .numRowsTotal == 1 and .numRowsDroppedByWatermark == 2)' r
}

@test "a reader that goes away, a full disk" {
	seq -f '%.0f,a' 0 200000 | sed '1i ts,id' >many.csv
	for options in '' '-w 1s' -m; do
		rm -f status
		# shellcheck disable=SC2086 # words
		{ wm_sort -t ts $options many.csv 2>err || echo $? >status; } | head -n 1 >/dev/null
		[ "$(cat status)" -eq 141 ]
		[ ! -s err ]
		status=0
		# shellcheck disable=SC2086 # words
		wm_sort -t ts $options many.csv >/dev/full 2>err || status=$?
		[ "$status" -eq 3 ]
		grep -q 'standard output: No space left on device' err
	done
}

@test "--explain reads nothing" {
	run -0 --separate-stderr wm_sort -t ts -w 30s --explain nowhere.csv
	assert_line 'The watermark is the highest event time so far less 30s, moved with each row.'
	assert_line 'A row is held until the watermark has passed it, and written in its place.'
	run -0 wm_sort -t ts -m --explain a b
	assert_line --partial 'Each FILE is taken to be in order.'
	run -0 wm_sort -t ts --explain
	assert_line --partial 'without one all rows are held'
}
