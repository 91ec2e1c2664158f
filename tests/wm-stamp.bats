#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-stamp as a user meets it: rows that pass byte for byte with what is added, punctuation, restamping, what is refused;
# and how the tools behind it find what it wrote. That they compute the same is held by tests/laws/stamp.py.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	load until
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	quakes=$PWD/tests/data/earthquakes
	cd "$BATS_TEST_TMPDIR" || return 1
	PATH=$bin:$PATH
	export LC_ALL=C
}

teardown() {
	if [ -n "${pid:-}" ]; then
		kill "$pid" 2>/dev/null || true
	fi
}

# gives INPUT OUTPUT ARGUMENT...: what wm-stamp makes of the input on its standard input, byte for byte; both are written
# as for printf %b. The delay is none where no other is given.
gives() {
	local input=$1 want=$2
	shift 2
	printf '%b' "$want" >want
	printf '%b' "$input" | wm-stamp -q "$@" >got
	cmp got want || {
		diff <(od -c got) <(od -c want)
		return 1
	}
}

# A usage error: one line, nothing on standard output, status 2.
refused() { # words, arguments
	local words=$1
	shift
	run -2 --separate-stderr wm-stamp "$@"
	assert_equal "$output" ""
	assert_equal "$stderr" "wm-stamp: $words"
}

# final REPORT MEMBER...: members of the final report, on one line.
final() {
	jq -r --args 'select(.type == "report") as $r | [$ARGS.positional[] as $name | $r[$name]] | join(" ")' "${@:2}" <"$1"
}

t0=1970-01-01T00:0

@test "CSV: columns behind the last field, everything else as it came" {
	gives 't,n\n60,a\n120,b\n' "t,n,_time,_watermark\n60,a,${t0}1:00Z,${t0}0:50Z\n120,b,${t0}2:00Z,${t0}1:50Z\n" -t t -w 10s
	gives 't,n\r\n60,a\r\n' "t,n,_time,_watermark\r\n60,a,${t0}1:00Z,${t0}1:00Z\r\n" -t t -w 0s
	gives 't,n\n60,a' "t,n,_time,_watermark\n60,a,${t0}1:00Z,${t0}1:00Z\n" -t t -w 0s
	gives '"t","n ""x"""\n"60","a\n,""b"""\n 60 , \n' \
		"\"t\",\"n \"\"x\"\"\",_time,_watermark\n\"60\",\"a\n,\"\"b\"\"\",${t0}1:00Z,${t0}1:00Z\n" \
		-t t -w 0s --rejects rejects
	gives '\xef\xbb\xbft\n60\n\n60\n' "t,_time,_watermark\n60,${t0}1:00Z,${t0}1:00Z\n60,${t0}1:00Z,${t0}1:00Z\n" -t t -w 0s
	gives 't\tn\n60\ta,b\n' "t\tn\t_time\t_watermark\n60\ta,b\t${t0}1:00Z\t${t0}1:00Z\n" -t t -w 0s
	gives 't;n\n60;a,b\n' "t;n;_time;_watermark\n60;a,b;${t0}1:00Z;${t0}1:00Z\n" -t t -w 0s -d ';'
	gives 't|n\n60|\n' "t|n|_time|_watermark\n60||${t0}1:00Z|${t0}1:00Z\n" -t t -w 0s -d '|'
	gives 't,n\n' 't,n,_time,_watermark\n' -t t -w 0s
	gives 't,n' 't,n,_time,_watermark\n' -t t -w 0s
	gives '' '' -t t -w 0s
	gives '60,a\n' "60,a,${t0}1:00Z,${t0}1:00Z\n" -t 1 -w 0s --no-header
	gives '60,a\n' "60,a,${t0}1:00Z,${t0}1:00Z\n" -t t -w 0s --columns t,n
	gives 't,n\n60,a\n' "60,a,${t0}1:00Z,${t0}1:00Z\n" -t t -w 0s --no-output-header
	gives 't,n\n60,a\n' "t,n,_time,_watermark\n60,a,60,50\n" -t t -w 10s --output-time s
	gives 't,n\n60.5,a\n' "t,n,_time,_watermark\n60.5,a,60500,50500\n" -t t -w 10s --output-time ms
}

@test "NDJSON: members before the closing brace, blanks and order as they came" {
	gives '{"t":60,"n":"a"}\n' "{\"t\":60,\"n\":\"a\",\"_time\":\"${t0}1:00Z\",\"_watermark\":\"${t0}0:50Z\"}\n" -t t -w 10s
	gives ' { "n" : [1, {}] , "t" : 60 }\t\r\n\n{"t":1e2}' \
		" { \"n\" : [1, {}] , \"t\" : 60 ,\"_time\":60,\"_watermark\":50}\t\r\n{\"t\":1e2,\"_time\":100,\"_watermark\":90}\r\n" \
		-t t -w 10s --output-time s
	gives '{"t":60}\n{}\n{"t":null}\n{"t":70}\n' '{"t":60,"_time":60}\n{"t":70,"_time":70}\n' \
		-t t --add time --output-time s --rejects rejects
	assert_equal "$(jq -r '"\(.line) \(.reason)"' rejects)" $'2 no-time\n3 no-time'
	gives '{"m":{"t":60,"_time":1}}\n' '{"m":{"t":60,"_time":1},"_time":60}\n' -t m.t --add time --output-time s
	gives '{"t":60,"n":1.50,"n":2}\n' '{"t":60,"n":1.50,"n":2,"_time":60}\n' -t t --add time --output-time s
}

@test "several FILEs: another order of columns, delimiter and line end are put right" {
	printf 't,n\r\n60,"a"\r\n' >1.csv
	printf 'n\tt\nb,\\tc\t70' >2.csv
	printf 't,n\n80,d\n' >3.csv
	run -0 wm-stamp -q -t t -w 0s --output-time s 1.csv 2.csv 3.csv
	assert_output $'t,n,_time,_watermark\r\n60,"a",60,60\r\n70,"b,\tc",70,70\r\n80,d,80,80\r'
}

@test "stamped again, the columns are replaced where they stand" {
	gives '_watermark,t,_time,n\n5,60,,"a"\n"6",120,x,\n' '_watermark,t,_time,n\n50,60,60,"a"\n110,120,120,\n' \
		-t t -w 10s --output-time s
	gives 't,_time,n\n60,,"a"\r\n' 't,_time,n,_watermark\n60,60,"a",50\r\n' -t t -w 10s --output-time s
	gives '{"_watermark":5,"t":60}\n{ "t":70, "_time" : "x" ,"n":1}\n{"t":80}\n' \
		'{"_watermark":50,"t":60,"_time":60}\n{ "t":70, "_time" : 70 ,"n":1,"_watermark":60}\n{"t":80,"_time":80,"_watermark":70}\n' \
		-t t -w 10s --output-time s
	# to stamp twice is to stamp once, punctuation and all
	local trigger format
	for trigger in each 7rows event:1d column:net; do
		for format in csv ndjson; do
			wm-stamp -q -t time -w 1d --trigger "$trigger" "$quakes.$format" >once
			wm-stamp -q once | cmp - once
			wm-stamp -q -t time -w 3d --trigger "$trigger" "$quakes.$format" >three
			wm-stamp -q -t time -w 3d --trigger "$trigger" once | cmp - three
		done
	done
}

@test "a column that is added by name: each word and its value" {
	# the delay is 10 s, the window a minute; arrival a quarter of a second late, and once early
	printf 't,in\n65,65.25\n130,129.5\n90,200\n' >rows
	run -0 wm-stamp -q -t t -w 10s --output-time s --ingest in --tumbling 1m \
		--add window,late,lag,ingest,watermark,time rows
	assert_output 't,in,_window_start,_window_end,_late,_lag,_ingest,_watermark,_time
65,65.25,60,120,0,0.25,65.25,55,65
130,129.5,120,180,0,-0.5,129.5,120,130
90,200,60,120,1,110,200,120,90'
	gives '{"t":65}\n' '{"t":65,"_late":0,"_window_start":60,"_window_end":120}\n' \
		-t t -w 0s --output-time s --add late,window --tumbling 1m
	# without a watermark nothing is late, and the watermark is empty: null
	gives 't\n65\n5\n' 't,_late,_watermark\n65,0,\n5,0,\n' -t t --add late,watermark
	gives '{"t":65}\n' '{"t":65,"_late":0,"_watermark":null}\n' -t t --add late,watermark
	# a calendar day in a zone, told in UTC
	gives 't\n2025-03-30T12:00:00Z\n' \
		't,_window_start,_window_end\n2025-03-30T12:00:00Z,2025-03-29T23:00:00Z,2025-03-30T22:00:00Z\n' \
		-t t --add window --tumbling 1d --tz Europe/Berlin
	# the watermark is cut to the millisecond toward the past; the lag is exact
	gives 't,in\n1.000999,1.001000\n' 't,in,_watermark,_lag\n1.000999,1.001000,0,0.000001\n' \
		-t t -w 1s --add watermark,lag --ingest in --output-time s
	# arrival by the clock: later than a time of long ago
	run -0 wm-stamp -q -t t --add lag --ingest now rows
	assert [ "$(cut -d, -f3 <<<"${lines[1]}" | cut -d. -f1)" -gt 1700000000 ]
	# with --compat spark a row at the watermark is behind, and there is a watermark from 1970 on
	gives 't\n10\n10\n0\n' 't,_late,_watermark\n10,0,0\n10,0,0\n0,1,0\n' \
		-t t -w 10s --compat spark --add late,watermark --output-time s
}

@test "late rows pass and are counted; --drop-late takes them out" {
	printf 't,n\r\n60,a\r\n50,"b"\r\n49,"c"\r\n' >rows
	run -0 --separate-stderr wm-stamp -t t --time-format s -w 10s --add late rows
	assert_equal "$(tr -d '\r' <<<"$output")" $'t,n,_late\n60,a,0\n50,"b",0\n49,"c",1'
	assert_equal "${stderr_lines[0]}" 'wm-stamp: 1 of 3 rows was behind the watermark, and passed on (33%)'
	run -5 wm-stamp -q -t t --time-format s -w 10s --fail-late 1/4 rows
	run -0 wm-stamp -q -t t --time-format s -w 10s --fail-late 1/3 rows

	run -0 --separate-stderr wm-stamp -t t --time-format s -w 10s --add late --drop-late --late late rows
	assert_equal "$(tr -d '\r' <<<"$output")" $'t,n,_late\n60,a,0\n50,"b",0'
	assert_equal "$(od -c late)" "$(printf 't,n\r\n49,"c"\r\n' | od -c)"
	run -0 wm-stamp -q -t t --time-format s -w 10s --add late --drop-late rows
	assert_equal "${#lines[@]}" 3
	run -0 wm-stamp -q -t t --time-format s -w 10s --drop-late --late late --late-info --overwrite rows
	assert_equal "$(tr -d '\r' <late)" $'t,n,_late_by,_late_watermark\n49,"c",1,1970-01-01T00:00:50Z'
}

@test "late rows of a stamped input go without their watermark" {
	printf 't,_watermark,_time,n\n60,60,60,a\n1,"60",1,"b"\n' >rows
	run -0 wm-stamp -q --drop-late --late late rows
	assert_equal "$(cat late)" $'t,_watermark,_time,n\n1,,1,"b"'
	printf '{"_time":60,"_watermark":60}\n{ "_time":1 , "_watermark" : 60, "n":1 }\n{"_time":2}\n' >rows
	run -0 wm-stamp -q --drop-late --late late --overwrite rows
	assert_equal "$(cat late)" $'{ "_time":1 , "_watermark" : null, "n":1 }\n{"_time":2}'
	# so they are an input again, in which they are not late
	run -0 wm-window --tumbling 10s late
	assert_output '{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","count":2}'
	# other tools do the same
	printf '_time,_watermark\n60,60\n1,60\n' | wm-window -q --tumbling 10s --late late --overwrite
	assert_equal "$(cat late)" $'_time,_watermark\n1,'
	# and so with -w, where the watermark was reckoned anew
	printf '_time,_watermark\n60,60\n1,60\n' | wm-window -q -t _time -w 0s --tumbling 10s --late late --overwrite
	assert_equal "$(cat late)" $'_time,_watermark\n1,'
}

@test "event times out of bounds are rejected, and move nothing" {
	printf 't\n100\n99.999999\n200\n200.000001\n150\n' >rows
	run -0 wm-stamp -q -t t -w 10s --output-time s --not-before 1970-01-01T00:01:40Z --not-after 1970-01-01T00:03:20 \
		--rejects rejects rows
	assert_output $'t,_time,_watermark\n100,100,90\n200,200,190\n150,150,190'
	assert_equal "$(jq -r '"\(.line) \(.reason) \(.detail)"' rejects)" \
		"3 implausible-time event time before --not-before in column 't': '99.999999'
5 implausible-time event time after --not-after in column 't': '200.000001'"
	run -0 wm-stamp -q -t t --add time --output-time s --not-after 200 --rejects rejects --overwrite rows
	assert_equal "$(wc -l <rejects)" 1
	# a bound without a zone is in --tz
	run -0 wm-stamp -q -t t --add time --output-time s --not-before '1970-01-01 01:02:30' --tz +01:00 \
		--rejects rejects --overwrite rows
	assert_output $'t,_time\n200,200\n200.000001,200.000001\n150,150'
}

@test "with a batch the rows carry the watermark from before it, and punctuation follows when it moves" {
	printf 't,n\n60,a\n70,b\n65,c\n66,d\n90,e\n' >rows
	run -0 wm-stamp -q -t t -w 10s --trigger 2rows --output-time s rows
	assert_output 't,n,_time,_watermark
60,a,60,
70,b,70,
,,,60
65,c,65,60
66,d,66,60
90,e,90,60
,,,80'
	run -0 wm-stamp -q -t t -w 10s --trigger 2rows --output-time s --eof hold rows
	assert_line --index 6 '90,e,90,60'
	assert_equal "${#lines[@]}" 7
	run -0 wm-stamp -q -t t -w 10s --trigger eof --output-time s -o ndjson rows
	assert_line --index 4 '{"t":90,"n":"e","_time":90,"_watermark":null}'
	assert_line --index 5 '{"_watermark":80}'
	gives '{"t":60}\n{"t":70}\n' '{"t":60,"_watermark":null}\n{"_watermark":60}\n{"t":70,"_watermark":60}\n{"_watermark":70}\n' \
		-t t -w 0s --trigger 1rows --add watermark --output-time s
	# without the watermark among the stamps there is nothing to tell
	gives 't\n60\n70\n' 't,_time\n60,60\n70,70\n' -t t -w 0s --trigger 1rows --add time --output-time s
	# a table is for eyes
	run -0 wm-stamp -q -t t -w 0s --trigger 1rows --output-time s -o table rows
	assert_equal "${#lines[@]}" 7
	refute_line --regexp '^ *60 *$'
}

@test "punctuation is no data, and is found as programs write it" {
	printf 't,n,_time,_watermark\n60,a,60,50\n,,,55\n"",,"","56"\n65,b,65,\n,,,200\n' >rows.csv
	printf '{"t":60,"n":"a","_time":60,"_watermark":50}\n{"_watermark":55}\n{"t":null,"n":"","_watermark":56,"_time":null}\n{"_time":65}\n {"_watermark":200} \n' >rows.ndjson
	local format
	for format in csv ndjson; do
		run -0 wm-window --tumbling 10s -o csv --output-time s --report report --overwrite rows.$format
		assert_output $'window_start,window_end,count\n60,70,2'
		assert_equal "$(final report rows_in rows_punctuation rows_used rows_late)" '5 3 2 0'
		# it moves the watermark, and is no row of a batch
		run -0 wm-window --tumbling 10s -o csv --output-time s --trigger 2rows --report report --overwrite rows.$format
		assert_equal "$(jq -r 'select(.type == "report").eventTime.watermark' report)" '1970-01-01T00:00:56Z'
		run -0 wm-lag --percentiles 50 -o csv rows.$format
		assert_line --index 1 'disorder,2,0,0,0,0,0'
		# with another watermark it is still no data, and wm-stamp leaves it out
		run wm-stamp -q -t t -w 0s --report report --overwrite rows.$format
		# the row of 65 has a t in CSV alone
		assert_equal "$(final report rows_in rows_punctuation rows_used)" "5 3 $([ $format = csv ] && echo 2 || echo 1)"
		run -0 wm-stamp -q -w 0s --report report --overwrite rows.$format --add time --output-time s
		assert_equal "$(final report rows_in rows_punctuation rows_used rows_rejected)" '5 3 2 0'
		assert_equal "${#lines[@]}" "$([ $format = csv ] && echo 3 || echo 2)"
		run -0 wm-stamp -q --watermark-column none --report report --overwrite rows.$format
		assert_equal "$(final report rows_in rows_punctuation rows_used rows_rejected)" '5 3 2 0'
	done
	# a filter may leave nothing but punctuation
	run -0 wm-window --tumbling 10s -g k <<<'{"_watermark":5}'
	assert_output ''
	# a watermark beside a value is a row, and one without event time
	printf 't,n,_time,_watermark\n60,a,60,50\n,x,,55\n' >rows.csv
	run -1 wm-window -q --tumbling 10s --report report --overwrite rows.csv
	assert_equal "$(final report rows_punctuation rows_rejected)" '0 1'
}

@test "silence: punctuation tells that the watermark goes on with the clock" {
	mkfifo pipe
	wm-stamp -q -t t -w 0s --idle-close 200ms --output-time s <pipe >out &
	pid=$!
	exec 7>pipe
	printf 't,n\n60,a\n' >&7
	until_true '[ "$(wc -l <out)" -ge 3 ]'
	run -0 cat out
	assert_line --index 1 '60,a,60,60'
	assert_line --index 2 --regexp '^,,,6[1-9](\.[0-9]+)?$'
	printf '61,b\n' >&7
	exec 7>&-
	wait "$pid"
	pid=
	# one a second, and the row that came after all is stamped with what was told
	assert [ "$(grep -c '^,,,' out)" -le 10 ]
	assert_equal "$(tail -n 1 out | cut -d, -f4)" "$(grep '^,,,' out | tail -n 1 | cut -d, -f4)"
}

@test "a tool behind gets its windows from the silence" {
	mkfifo pipe
	wm-stamp -q -t t -w 0s --idle-close 200ms <pipe | wm-window --tumbling 1s --output-time s >out &
	exec 7>pipe
	printf 't,n\n60,a\n' >&7
	until_true '[ "$(wc -l <out)" -ge 2 ]'
	assert_equal "$(tail -n 1 out)" '60,61,1'
	exec 7>&-
	wait
}

@test "FILEs side by side: the watermark of all, also in what was stamped and in punctuation" {
	printf 't,n\n60,a\n100,b\n' >1.csv
	printf 't,n\n61,c\n70,d\n90,e\n' >2.csv
	run -0 wm-stamp -q -t t -w 0s --merge --output-time s 1.csv 2.csv
	assert_output 't,n,_time,_watermark
60,a,60,
61,c,61,60
100,b,100,61
70,d,70,70
90,e,90,90
,,,100'
	# stamped by themselves, each with punctuation behind its rows
	wm-stamp -q -t t -w 0s --trigger 1rows --output-time s 1.csv >1.stamped
	wm-stamp -q -t t -w 0s --trigger 1rows --output-time s 2.csv >2.stamped
	run -0 wm-stamp -q --merge --output-time s 1.stamped 2.stamped
	assert_output 't,n,_time,_watermark
60,a,60,
61,c,61,
,,,60
100,b,100,60
,,,61
70,d,70,61
,,,70
90,e,90,70
,,,90
,,,100'
	# of no row it is said that it was late
	run -0 bash -c 'wm-stamp -q --merge 1.stamped 2.stamped | wm-window --tumbling 1s -v 2>&1 >windows'
	assert_output 'wm-window: 10 rows, none late'
}

@test "what is found in a stamped input, and what is refused" {
	printf 't,_time,_watermark\n60,60,60\n1,1,60\n' >rows.csv
	printf '{"t":60,"_time":60,"_watermark":60}\n{"t":1,"_time":1,"_watermark":null}\n' >rows.ndjson
	local format
	for format in csv ndjson; do
		run -0 --separate-stderr wm-window -q --tumbling 10s --report report --overwrite rows.$format
		assert_equal "$(final report rows_late)" 1
		run -2 --separate-stderr wm-window -t t --tumbling 10s rows.$format
		assert_equal "$output" ''
		assert_equal "$stderr" "wm-window: -t t: the watermark in this input (_watermark) speaks of _time alone: leave out -t; or give -w to reckon one here, or --watermark-column"
		for arguments in '-t _time' '--watermark-column _watermark -t t' '--watermark-column _watermark'; do
			# shellcheck disable=SC2086 # words
			run -0 wm-window -q $arguments --tumbling 10s --report report --overwrite rows.$format
			assert_equal "$(final report rows_late)" 1
		done
		for arguments in '--watermark-column none' '--watermark-column none -t t' '-t t -w 1m' '-w 1m'; do
			# shellcheck disable=SC2086 # words
			run -0 wm-window -q $arguments --tumbling 10s --report report --overwrite rows.$format
			assert_equal "$(final report rows_late)" 0
		done
	done
	# a watermark in a column of another name, and in a member further in
	printf 't,until\n60,60\n1,60\n,70\n' >rows.csv
	run -0 wm-stamp -q -t t --watermark-column until --output-time s rows.csv
	assert_output $'t,until,_time,_watermark\n60,60,60,60\n1,60,1,60\n,,,70'
	printf '{"t":60,"m":{"w":60}}\n{"t":1}\n' >rows.ndjson
	run -0 wm-stamp -q -t t --watermark-column m.w --output-time s --add late rows.ndjson
	assert_output $'{"t":60,"m":{"w":60},"_late":0}\n{"t":1,"_late":1}'
	run -2 --separate-stderr wm-window -q -t t --watermark-column untl --tumbling 1s rows.csv
	assert_equal "$stderr" "wm-window: rows.csv:1: no column 'untl': did you mean 'until'? there are: t, until"
	# NDJSON: the first record decides
	printf '{"t":60}\n{"t":1,"_time":1,"_watermark":50}\n{"t":2}\n' >rows.ndjson
	run -0 wm-stamp -q -t t --add late rows.ndjson
	assert_output $'{"t":60,"_late":0}\n{"t":1,"_time":1,"_watermark":50,"_late":0}\n{"t":2,"_late":0}'
}

@test "a watermark that cannot be read rejects its row; one that goes back counts as none" {
	printf '_time,_watermark\n60,50\n1,x\n2,40\n3,\n70,60\n' >rows
	run -0 wm-stamp -q --output-time s --rejects rejects --report report rows
	assert_output $'_time,_watermark\n60,50\n2,50\n3,50\n70,60'
	assert_equal "$(jq -r '"\(.line) \(.reason) \(.column)"' rejects)" '3 bad-watermark _watermark'
	assert_equal "$(final report rows_in rows_rejected rows_late rows_used)" '5 1 2 2'
	# that of a row that is rejected for another reason counts
	printf '_time,_watermark\n60,50\nx,55\n54,\n' >rows
	run -1 --separate-stderr wm-stamp -q --output-time s --add watermark rows
	assert_output $'_time,_watermark\n60,50\n54,55'
	for value in true '{}' '[]'; do
		printf '{"_time":60,"_watermark":50}\n{"_time":61,"_watermark":%s}\n' "$value" >rows
		run -0 wm-stamp -q --rejects rejects --overwrite rows
		assert_equal "$(jq -r .reason rejects)" bad-watermark
	done
}

@test "logs are CSV when stamped, logfmt by the keys of its first record" {
	printf '%s\n' '::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.0" 200 2326 "-" "a \"b\", c"' nonsense >log
	run -0 wm-stamp -q -i clf -w 0s --rejects rejects log
	assert_output 'host,ident,user,time,method,path,query,protocol,status,bytes,referrer,agent,request,extra,_time,_watermark
::1,,,10/Oct/2000:13:55:36 -0700,GET,/a,b,HTTP/1.0,200,2326,,"a ""b"", c",GET /a?b HTTP/1.0,,2000-10-10T20:55:36Z,2000-10-10T20:55:36Z'
	assert_equal "$(jq -r .reason rejects)" malformed-line
	wm-stamp -q -i clf -w 0s --unmatched skip log | wm-window --tumbling 1m -g agent -o ndjson >out
	assert_equal "$(cat out)" '{"window_start":"2000-10-10T20:55:00Z","window_end":"2000-10-10T20:56:00Z","agent":"a \"b\", c","count":1}'

	printf '%s\n' 'ts=60 level=info msg="a b"' 'level=warn ts=70' 'ts=80 level=x code=5' 'ts=90' >log
	run -1 --separate-stderr wm-stamp -i logfmt -t ts -w 0s --output-time s log
	assert_output 'ts,level,msg,_time,_watermark
60,info,a b,60,60
70,warn,,70,70
90,,,90,90'
	assert_equal "${stderr_lines[0]}" "wm-stamp: log:3: 'code' is no column of the result, which the first record told: -o ndjson has room for all: row rejected (new-column)"
	run -0 wm-stamp -q -i logfmt -t ts -w 0s --output-time s -o ndjson log
	assert_line --index 2 '{"ts":80,"level":"x","code":5,"_time":80,"_watermark":80}'
	run -0 wm-stamp -q -i lines --pattern '^([0-9]+) (.*)$' --columns t,rest -t t --add time --output-time s <<<'60 a,b'
	assert_output $'t,rest,_time\n60,"a,b",60'
}

@test "another format: columns by the header, or by the first object" {
	printf 't,n,f\n60,,007\n70,"x ""y""",1.50\n' >rows.csv
	run -0 wm-stamp -q -t t -w 0s --output-time s -o ndjson rows.csv
	assert_output '{"t":60,"n":null,"f":"007","_time":60,"_watermark":60}
{"t":70,"n":"x \"y\"","f":1.50,"_time":70,"_watermark":70}'
	run -0 wm-stamp -q -t t -w 0s --output-time s -o tsv rows.csv
	assert_output $'t\tn\tf\t_time\t_watermark\n60\t\t007\t60\t60\n70\tx "y"\t1.50\t70\t70'
	run -0 wm-stamp -q -t t -w 0s --output-time s -o table rows.csv
	assert_line --index 0 --regexp '^ *t +n +f +_time +_watermark$'
	assert_line --index 3 --regexp '^ *70 +x "y" +1.50 +70 +70$'

	printf '{"t":60,"n":"a,b"}\n{"n":null,"t":70}\n{"t":80,"x":1}\n{"t":85,"x":1,"n":{"y":[]}}\n{"t":90}\n' >rows.ndjson
	run -1 --separate-stderr wm-stamp -t t -w 0s --output-time s -o csv --report report rows.ndjson
	assert_output $'t,n,_time,_watermark\n60,"a,b",60,60\n70,,70,70\n90,,90,90'
	assert_equal "${stderr_lines[0]}" "wm-stamp: rows.ndjson:3: 'x' is no column of the result, which the first record told: --columns names all: row rejected (new-column)"
	assert_equal "$(jq -c 'select(.type == "report").rejected' report)" '{"new-column":2}'
	run -0 wm-stamp -q -t t -w 0s --output-time s -o csv --columns x,t,n rows.ndjson
	assert_output $'x,t,n,_time,_watermark\n,60,"a,b",60,60\n,70,,70,70\n1,80,,80,80\n1,85,"{""y"":[]}",85,85\n,90,,90,90'
	# a rejected row has not moved the watermark
	printf '{"t":60}\n{"t":100,"x":1}\n{"t":61}\n' >rows.ndjson
	run -1 --separate-stderr wm-stamp -q -t t -w 0s --output-time s -o csv rows.ndjson
	assert_output $'t,_time,_watermark\n60,60,60\n61,61,61'
}

@test "earthquakes: as many rows are late as wm-lag says, and with a millisecond less one more" {
	local delay count format
	for format in csv ndjson; do
		while read -r delay count; do
			wm-stamp -q -t time -w "$delay" --add late -o csv "$quakes.$format" >out
			assert_equal "$(grep -c ',1$' out)" "$count"
			assert_equal "$(wc -l <out)" 1708
		done <<<$'322920.68s 17\n322920.679s 18\n0s 1295'
	done
}

@test "the ledger closes; a filter in between only delays" {
	wm-stamp -q -t time -w 2d --trigger 100rows --report 1 "$quakes.csv" |
		wm-stamp -q --add time,watermark,late --report 2 |
		wm-window -q --tumbling 1d --report 3 >windows
	local behind
	# a row of a batch is judged by the highest time before the batch, less two days
	behind=$(jq -s --argjson delay 172800000 '[range(0; length; 100) as $from | ([.[:$from][].time] | max) as $highest |
		.[$from:$from + 100][] | select($from > 0 and .time < $highest - $delay)] | length' "$quakes.ndjson")
	assert_equal "$(final 1 rows_in rows_punctuation rows_late rows_used rows_out)" "1707 0 $behind $((1707 - behind)) 1707"
	for report in 1 2 3; do
		jq -e 'select(.type == "report") | .rows_in == .rows_punctuation + .rows_rejected + .rows_late + .rows_duplicate + .rows_used' $report
	done
	assert [ "$(final 3 rows_punctuation)" -gt 0 ]
	assert_equal "$(final 2 rows_punctuation)" "$(final 3 rows_punctuation)"
	wm-window -q -t time -w 2d --trigger 100rows --tumbling 1d --report 4 "$quakes.csv" >same
	assert_equal "$(final 4 rows_late rows_used)" "$(final 3 rows_late rows_used)"
	cmp windows same
	# the networks that are kept are judged by the watermark of all
	wm-stamp -q -t time -w 2d --add time,watermark,late "$quakes.csv" >all
	{ head -n 1 all; grep ',pr,' all; } | wm-window -q --tumbling 1ms --report 5 >windows
	assert_equal "$(final 5 rows_late)" "$(grep ',pr,' all | grep -c ',1$')"
}

@test "of a stamped stream nobody can say which delay would have been long enough" {
	# the row that pushed the watermark was taken out
	wm-stamp -q -t time -w 6h "$quakes.ndjson" | grep '"net": "pr"' >rows
	run -0 --separate-stderr bash -c 'wm-window --tumbling 1ms <rows 2>&1 >windows'
	assert_line --index 0 --regexp '^wm-window: [0-9]+ of 62 rows were late and dropped \([0-9.]+%\): --late FILE keeps such rows$'
	assert_line --index 1 'wm-window: the delay that the stream was stamped with is short for this source'
	assert_equal "${#lines[@]}" 2
	run -0 --separate-stderr bash -c 'tac rows | wm-window --tumbling 1ms 2>&1 >windows'
	assert_line --index 1 'wm-window: most rows were late: are they still in the order in which they were stamped?'
}

@test "metrics and progress know punctuation" {
	printf '_time,_watermark\n60,50\n,55\n,60\n' | wm-window -q --tumbling 10s --metrics m.prom >out
	run -0 grep '^wm_rows_total.*punctuation' m.prom
	assert_output --partial '} 2'
}

@test "--strict stops, and what was read before has passed" {
	printf 't\n60\nx\n70\n' >rows
	run -1 --separate-stderr wm-stamp -t t --add time --output-time s --strict rows
	assert_output $'t,_time\n60,60'
	assert_equal "${stderr_lines[0]}" "wm-stamp: rows:3: no time in column 't': 'x': no time (bad-time): stopped, as --strict asks"
}

@test "--out is an output like any other" {
	printf 't\n60\n' >rows
	wm-stamp -q -t t --add time --output-time s --out out rows
	assert_equal "$(cat out)" $'t,_time\n60,60'
	run -2 --separate-stderr wm-stamp -q -t t --out out rows
	run -2 --separate-stderr wm-stamp -q -t t --out rows rows
	assert_equal "$(cat rows)" $'t\n60'
}

@test "--explain says what is written" {
	run -0 wm-stamp -t t -w 10s --add time,window --tumbling 1m --explain
	assert_line --index 0 'Every row passes on as it came, with the columns _time, _window_start, _window_end at its end, or in their places where it has them.'
	assert_line --index 1 'The watermark is the highest event time so far less 10s, moved with each row.'
	assert_line --index 2 'Rows behind the watermark are counted as late, and pass on.'
	run -0 wm-stamp -t t --add late --drop-late --explain
	assert_line --index 0 'Every row passes on as it came, with the column _late at its end, or in its place where it has it.'
	assert_line --index 1 'There is no -w: the watermark is the one that the rows carry, or none.'
	assert_line --index 2 'Rows behind the watermark are dropped and counted; --late FILE keeps them.'
}

@test "a watermark that is asked for, and no delay that it follows from" {
	local warning='wm-stamp: without a delay _watermark stays empty, and what follows it waits for the end of the input: set one with -w (0s for input in order), or leave it out with --add time'
	printf 't\n60\n' >rows
	run -0 --separate-stderr wm-stamp -t t --time-format s rows
	assert_equal "$output" "t,_time,_watermark
60,${t0}1:00Z,"
	assert_equal "$stderr" "$warning"
	printf 't,_watermark\n60,\n' >stamped
	for args in '-q -t t --time-format s rows' '-t t --time-format s --add time,late rows' '-t t --time-format s -w 0s rows' '-t t --time-format s --watermark-column none stamped'; do
		# shellcheck disable=SC2086 # words
		run -0 --separate-stderr wm-stamp $args
		assert_equal "$stderr" ""
	done
}

@test "misuse: one line that says what to do" {
	local f=$quakes.csv
	refused "--add: no 'tme': time, watermark, lag, late, ingest, window: did you mean time?" -t time --add time,tme "$f"
	refused "--add: no 'delay': time, watermark, lag, late, ingest, window" -t time --add delay "$f"
	refused "--add: no '': time, watermark, lag, late, ingest, window" -t time --add '' "$f"
	refused "--add: 'late' stands twice" -t time --add late,time,late "$f"
	refused '--add lag: needs the arrival time: name its column with --ingest COLUMN, or write --ingest now' -t time --add lag "$f"
	refused '--add ingest: needs the arrival time: name its column with --ingest COLUMN, or write --ingest now' -t time --add ingest "$f"
	refused '--ingest: nothing asks for the arrival time: --add lag or ingest, or give --max-ahead D' -t time --ingest updated "$f"
	refused '--add window: of what size? give --tumbling SIZE' -t time --add window "$f"
	refused '--tumbling: is for --add window, which is not asked for' -t time --tumbling 1d "$f"
	refused '--late: rows behind the watermark pass on with the others: say --drop-late to take them out' -t time -w 1d --late late "$f"
	refused '--not-before, --not-after: no time is between them' -t time --not-before 2018-02-01 --not-after 2018-01-31 "$f"
	refused "--not-after: '20251129' is no time: write 2025-11-29 or 2025-11-29T12:00:00Z" -t time --not-after 20251129 "$f"
	refused "--not-before: 'soon' is no time: write 2025-11-29 or 2025-11-29T12:00:00Z" -t time --not-before soon "$f"
	refused '-w and --watermark-column: the watermark is reckoned here, or comes in band: give one of them' -w 1d --watermark-column time "$f"
	run -2 --separate-stderr wm-stamp "$f"
	assert_equal "$stderr" 'wm-stamp: no time column: name the column that holds the event time with -t; these hold times: time, updated'
	run -2 --separate-stderr wm-stamp -t tme "$f"
	assert_equal "$stderr" "wm-stamp: $f:1: no column 'tme': did you mean 'time'? there are: id, time, updated, net, mag, mag_type, type, status, longitude, latitude, ... (12 in all)"
	assert [ ! -e late ]
}

@test "a watermark of the year 0 passes to the next tool, in every unit" {
	printf 'ts,v\n0001-01-01T00:00:00Z,1\n0001-01-01T00:30:00.25Z,2\n0001-01-01T02:00:00Z,3\n' >in.csv
	want=$'window_start,window_end,v_sum\n0001-01-01T00:00:00Z,0001-01-01T01:00:00Z,3\n0001-01-01T02:00:00Z,0001-01-01T03:00:00Z,3'
	for unit in iso s ms us ns; do
		# shellcheck disable=SC2016 # for the shell that is run
		run -0 --separate-stderr bash -c 'wm-stamp -t ts -w 90m --output-time "$1" in.csv | tee stamped |
			wm-window --tumbling 1h -a sum:v' - "$unit"
		assert_equal "$output" "$want"
		assert_equal "$stderr" ""
	done
	wm-stamp -t ts -w 90m in.csv >stamped
	assert_equal "$(sed -n 2p stamped)" 0001-01-01T00:00:00Z,1,0001-01-01T00:00:00Z,0000-12-31T22:30:00Z
	# A delay as long as all years: nearest to what can be read.
	wm-stamp -t ts -w 100000d in.csv >stamped
	assert_equal "$(sed -n 2p stamped)" 0001-01-01T00:00:00Z,1,0001-01-01T00:00:00Z,0000-01-01T00:00:00Z
	wm-sort --report r stamped >sorted
	assert_equal "$(jq .rows_rejected r)" 0
}
