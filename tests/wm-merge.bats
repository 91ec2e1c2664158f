#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-merge as a user meets it: the late earthquakes, misuse, messages, formats, files rewritten in place. What it
# computes for every input is held by tests/laws/merge.py.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	data=$PWD/tests/data
	PATH=$bin:$PATH
	cd "$BATS_TEST_TMPDIR" || return 1
	printf 'k,n,m\na,1,5\nc,2,x\n' >main.csv
	printf 'k,n,m\nb,3,1\nc,4,y\n' >late.csv
}

# failed STATUS WORDS ARGUMENT...: one line that has the words, nothing on standard output.
failed() {
	local status_wanted=$1 words=$2
	shift 2
	run -"$status_wanted" --separate-stderr wm-merge "$@"
	assert_equal "$output" ""
	assert_equal "${#stderr_lines[@]}" 1
	[[ $stderr == "wm-merge: "*"$words"* ]] || {
		echo "no '$words' in: $stderr"
		return 1
	}
}

# merged LINES ARGUMENT...: what is written, each line with a blank behind it, and no message.
merged() {
	local want=$1
	shift
	run -0 --separate-stderr wm-merge "$@"
	assert_equal "$(tr '\n' ' ' <<<"$output")" "$want "
	assert_equal "$stderr" ""
}

@test "the late earthquakes folded in" {
	wm-window -q -t time -w 2d --tumbling 1d -a count,max:mag --late late "$data/earthquakes.csv" >daily.csv
	wm-window -t time --tumbling 1d -a count,max:mag late |
		wm-merge -k window_start,window_end --sum count --max mag_max daily.csv - >new.csv
	assert_equal "$(cut -d, -f3 new.csv | tr '\n' ' ')" "count 198 231 242 259 301 249 213 14 "
	assert_equal "$(cut -d, -f4 new.csv | tr '\n' ' ')" "mag_max 6.1 6 6 5.2 6.1 5.3 6.4 3.8 "
	# The same as NDJSON, and as no rows were late.
	for file in daily late-daily; do
		from=$([ $file = daily ] && echo "$data/earthquakes.ndjson" || echo late.ndjson)
		delay=$([ $file = daily ] && echo "-w 2d --late late.ndjson" || true)
		# shellcheck disable=SC2086 # several words
		wm-window -q -t time $delay --tumbling 1d -a count,max:mag "$from" >$file.ndjson
	done
	wm-merge -k window_start,window_end --sum count --max mag_max daily.ndjson late-daily.ndjson >new.ndjson
	wm-window -t time --tumbling 1d -a count,max:mag "$data/earthquakes.ndjson" | cmp - new.ndjson
	wm-window -t time --tumbling 1d -a count,max:mag "$data/earthquakes.csv" | cmp - new.csv
}

@test "rows are updated in place, put in, and put at the end" {
	merged 'k,n,m a,1,5 b,3,1 c,6,y' -k k --sum n --max m main.csv late.csv
	merged 'k,n,m a,1,5 b,3,1 c,4,x' -k k --last n --min m main.csv late.csv
	printf 'k,n,m\nz,1,1\na,1,1\n' >unordered.csv
	merged 'k,n,m b,3,1 c,4,y z,1,1 a,1,1' -k k --sum n --max m unordered.csv late.csv
	merged 'k,n,m a,1,5 c,2,x' -k k main.csv <(echo k,n,m)
	merged 'k,n,m b,6,1 c,8,y' -k k --sum n <(echo k,n,m) late.csv <(cat late.csv)
	merged 'k,n,m b,6,1 c,8,y' -k k --sum n /dev/null late.csv <(cat late.csv)
	run -0 --separate-stderr wm-merge -k k --sum n /dev/null /dev/null
	assert_equal "$output$stderr" ""
}

@test "what does not change stays byte for byte" {
	printf 'k,n,m\r\n"a",1, "x"\r\n"b,c",02,"say ""no"""\r\n' >bytes.csv
	printf 'n,m,k\n1,"say ""no""","b,c"' >order.csv
	wm-merge -k k --sum n bytes.csv order.csv >out.csv
	printf 'k,n,m\r\n"a",1, "x"\r\n"b,c",3,"say ""no"""\r\n' | cmp - out.csv
	printf '{ "n" : 1, "k":"\\u0061", "x":[1, 2] }\n{"k":"b","n":1}' >bytes.ndjson
	printf '{"k":"a","n":"2","x":[1, 2]}\n' >late.ndjson
	wm-merge -k k --sum n bytes.ndjson late.ndjson >out.ndjson
	printf '{ "n" : 3, "k":"\\u0061", "x":[1, 2] }\n{"k":"b","n":1}\n' | cmp - out.ndjson
}

@test "a column that differs is named, with both rows" {
	failed 1 "late.csv:3: column 'm': 'y', but 'x' at main.csv:3, and no option says how to combine them" \
		-k k --sum n main.csv late.csv
	failed 1 "needs --partial or --replace" -k k --sum n main.csv late.csv
}

@test "averages, percentiles and their like are refused" {
	for name in m_avg m_p95 m_p99.9 m_median u_distinct m_stddev m_var m_ge_5_share rate m_avg_if_x_eq_1; do
		for option in --sum --min --max --last; do
			failed 2 "by its name, and two of them do not make one" -k k "$option" "$name" main.csv late.csv
		done
	done
	failed 2 "'m_p95' is a result of p95 by its name" -k k --sum m_p95 main.csv late.csv
	for name in m_sum moderate up95 m_p x_p. count_if_x_avg; do
		failed 2 "no column" -k k --sum "${name/./\\.}" main.csv late.csv
	done
}

@test "of every function that there is, the results combine or are refused by their name" {
	run wm-window -t ts --tumbling 1s -a nosuch /dev/null
	functions=${output##*there are: }
	[[ $functions == count,*share ]]
	for function in ${functions//,/ }; do
		function=${function/pNN/p95}
		for name in "$function" "m_$function" "a_b_$function" "m_${function}_2" "m_${function}_if_x_eq_1"; do
			case $function in
			count | sum | min | max | last) failed 2 "no column" -k k --sum "$name" main.csv late.csv ;;
			*) failed 2 "is a result of $function by its name" -k k --sum "$name" main.csv late.csv ;;
			esac
		done
	done
}

@test "misuse: one line that says what to do" {
	failed 2 "name MAIN, the finished table, and the late results" -k k
	failed 2 "'main.csv' is MAIN: name the late results behind it" -k k main.csv
	failed 2 "name the columns that make rows the same with -k" --sum n main.csv late.csv
	failed 2 "main.csv:1: no column 'kk': there are: k, n, m" -k kk main.csv late.csv
	failed 2 "--max: 'n' is in --sum too" -k k --sum n --max n main.csv late.csv
	failed 2 "--sum: 'k' is in -k too" -k k --sum k main.csv late.csv
	failed 2 "main.csv and ./main.csv are one file: name it once" -k k main.csv ./main.csv
	failed 2 "standard input is named twice" -k k - -
	failed 2 "leave out -k" --replace 1,2 -t k -k k main.csv late.csv
	failed 2 "name the column of the time with -t" --replace 2024-01-01,2024-01-02 main.csv late.csv
	failed 2 "write FROM,TO" --replace 2024-01-01 -t k main.csv late.csv
	failed 2 "the range is empty" --replace 2024-01-02,2024-01-01 -t k main.csv late.csv
	failed 2 "--replace: 'soon': " --replace soon,2024-01-01 -t k main.csv late.csv
	failed 2 "of --replace FROM,TO" -k k -t n main.csv late.csv
	failed 2 "states know how they combine" -k k --partial --sum n main.csv late.csv
	failed 2 "--ofmt: nothing is computed" -k k --ofmt %.3f main.csv late.csv
	failed 2 "--state-limit: '5MB' is no size" -k k --state-limit 5MB main.csv late.csv
	failed 2 "--backup: only --in-place changes a file" -k k --backup .old main.csv late.csv
	failed 2 "no column 'n': inputs must have the columns of main.csv" -k k main.csv <(echo k,x,m)
	failed 2 "is NDJSON, but" -k k main.csv <(echo '{"k":"a"}')
	failed 3 "nothing.csv: No such file" -k k main.csv nothing.csv
	run -2 --separate-stderr bash -c 'wm-merge -k k --sum n main.csv late.csv >>main.csv'
	[[ $stderr == *"main.csv is also standard output: write > new && mv new main.csv"* ]]
	assert_equal "$(wc -l <main.csv)" 3
}

@test "--replace: a range may be open to one side, and ends with the year 9999" {
	printf 'day,n\n0001-01-01,1\n2025-11-29,2\n2025-11-30,3\n9999-12-31,4\n' >days.csv
	merged 'day,n 0001-01-01,1 2025-11-30,7' --replace 2025-11-29, -t day days.csv <(printf 'day,n\n2025-11-30,7\n')
	merged 'day,n 0001-01-01,7 2025-11-30,3 9999-12-31,4' --replace ,2025-11-30 -t day days.csv \
		<(printf 'day,n\n0001-01-01,7\n')
	merged 'day,n 0001-01-01,1 2025-11-29,2 2025-11-30,3 9999-12-31,7' --replace 9999-12-31,10000-01-01 -t day days.csv \
		<(printf 'day,n\n9999-12-31,7\n')
	# The end of the last window is such a time in a column too.
	printf 'end,n\n2025-12-01,3\n10000-01-01T00:00:00Z,4\n' >ends.csv
	merged 'end,n 2025-12-01,3 10000-01-01T00:00:00Z,7' --replace 9999-12-31T00:00:01, -t end ends.csv \
		<(printf 'end,n\n10000-01-01T00:00:00Z,7\n')
	failed 1 "2025-11-28T00:00:00Z is outside of the range that is replaced, from 2025-11-29T00:00:00Z: compute" \
		--replace 2025-11-29, -t day days.csv <(printf 'day,n\n2025-11-28,7\n')
	failed 1 "2025-11-30T00:00:00Z is outside of the range that is replaced, to before 2025-11-30T00:00:00Z: compute" \
		--replace ,2025-11-30 -t day days.csv <(printf 'day,n\n2025-11-30,7\n')
	failed 2 "'2025' could be a date or a number: write it as 2025-11-29" --replace 2025,2026 -t day days.csv late.csv
	failed 2 "the range has no end at all" --replace , -t day days.csv late.csv
	failed 2 "outside of the years 1 to 9999" --replace 2025-11-29,10000-01-01T00:00:01 -t day days.csv late.csv
}

@test "--in-place with what counts twice names the recipe" {
	for options in "--sum n" --partial --keep-partial; do
		# shellcheck disable=SC2086 # two words
		failed 2 'wm-merge ... daily.csv - > new && mv new daily.csv' -k k $options --in-place main.csv late.csv
	done
	failed 2 "MAIN is standard input" -k k --in-place - late.csv
	failed 2 "leave out -o" -k k --in-place -o ndjson main.csv late.csv
	failed 2 "is no end of a file name" -k k --in-place --backup ../x main.csv late.csv
}

@test "data that cannot be merged: nothing is written, and nothing changed" {
	cp main.csv before.csv
	printf 'k,n,m\na,1,5\nb,1,5\na,1,5\n' >twice.csv
	failed 1 "twice.csv:4: the key stands in line 2 already" -k k --max n twice.csv <(printf 'k,n,m\na,2,5\n')
	printf 'k,n,m\na,1,5\na,1,6\n' >twice.csv
	failed 1 "twice.csv:3: the key stands in line 2 already" -k k --max n twice.csv late.csv
	printf 'k,n,m\nb,1,1\nd,x,1\n' >bad.csv
	failed 1 "standard input:3: column 'n': 'x' is no number" -k k --sum n main.csv - <bad.csv
	printf 'k,n,m\na,1,5\nc,2\n' >ragged.csv
	failed 1 "ragged.csv:3: 2 fields, the header has 3: nothing was merged" -k k --max n ragged.csv late.csv
	failed 1 "ragged.csv:3: 2 fields, the header has 3: nothing was merged" -k k --max n late.csv ragged.csv
	printf 'k,n,m\na,1,5\n"c"x,2,1\n' >malformed.csv
	failed 1 "malformed.csv:3: text behind a closing quote" -k k --max n malformed.csv late.csv
	failed 1 "main.csv:3: column 'm': 'x' is no number" -k k --sum m --last n main.csv <(printf 'k,n,m\nc,1,1\n')
	for options in "-k k --max n" "--replace 2024-01-01,2024-01-02 -t k"; do
		# shellcheck disable=SC2086 # several words
		run -1 --separate-stderr wm-merge $options --in-place --backup .old main.csv late.csv
		cmp main.csv before.csv
	done
	assert_equal "$(find . -name '.*csv*' -o -name '*.old')" ""
}

@test "late results that never came: a command before the pipe has failed" {
	failed 1 "no late results came, not even a header" -k k --sum n main.csv /dev/null
	failed 1 "no late results came, not even a header" -k k --max n,m --in-place main.csv /dev/null /dev/null
	assert_equal "$(tr '\n' ' ' <main.csv)" "k,n,m a,1,5 c,2,x "
	# A header alone is an answer, and so is nothing where there is no header.
	merged 'k,n,m a,1,5 c,2,x' -k k --sum n main.csv <(echo k,n,m)
	merged 'k,n,m a,1,5 b,3,1 c,6,y' -k k --sum n --max m main.csv /dev/null late.csv
	merged 'a,1' -k 1 --sum 2 --no-header <(echo a,1) /dev/null
	merged '{"k":1}' -k k <(echo '{"k":1}') /dev/null
	run ! bash -o pipefail -c 'wm-window -t no-such-column --tumbling 1d late.csv 2>/dev/null | wm-merge -k k --sum n main.csv -'
	assert_output --partial "no late results came"
}

@test "columns of NDJSON that no record has" {
	echo '{"k":1,"n":1}' >main.ndjson
	failed 1 "main.ndjson: no record has the column 'nn' of --sum" -k k --sum nn main.ndjson <(cat main.ndjson)
	failed 1 "late results: no record has the column 'k' of -k" -k k --sum n main.ndjson <(echo '{"n":1}')
	failed 2 "only whole members of NDJSON can change" -k k --sum a.b main.ndjson <(cat main.ndjson)
	echo '{"k":{"a":1},"n":1}' >main.ndjson
	merged '{"k":{"a":1},"n":2}' -k k.a --sum n main.ndjson <(cat main.ndjson)
}

@test "the limit of late rows" {
	seq -f '%.0f,1,1' 1 50000 | sed '1i k,n,m' >many.csv
	failed 4 "raise it with --state-limit" -k k --sum n --state-limit 1M main.csv many.csv
	run -0 wm-merge -k k --sum n --state-limit 16M main.csv many.csv
	assert_equal "${#lines[@]}" 50003
	# MAIN does not count.
	run -0 wm-merge -k k --sum n --state-limit 64K many.csv late.csv
	assert_equal "${#lines[@]}" 50003
}

@test "--replace puts rows in place of a range" {
	printf 't,v\n2024-01-01,a\n2024-01-02,b\n2024-01-02T23:59:59Z,c\n2024-01-03,d\n' >main.csv
	printf 't,v\n2024-01-02T01:00:00Z,x\n2024-01-02,y\n' >late.csv
	range="--replace 2024-01-02,2024-01-03 -t t"
	# shellcheck disable=SC2086 # several words
	merged 't,v 2024-01-01,a 2024-01-02T01:00:00Z,x 2024-01-02,y 2024-01-03,d' $range main.csv late.csv
	# shellcheck disable=SC2086
	merged 't,v 2024-01-01,a 2024-01-03,d' $range main.csv <(echo t,v)
	# shellcheck disable=SC2086
	failed 1 "nothing came in place of the rows" $range main.csv /dev/null
	failed 1 "late.csv:2: 2024-01-02T01:00:00Z is outside of the range that is replaced, from 2024-01-01T00:00:00Z" \
		--replace 2024-01-01,2024-01-02 -t t main.csv late.csv
	printf 't,v\n2024-01-01,a\nsoon,b\n' >bad.csv
	# shellcheck disable=SC2086
	failed 1 "bad.csv:3: column 't': 'soon': " $range bad.csv late.csv
	printf 't,v\n1,a\n3,x\n100,b\n' >seconds.csv
	printf 't,v\n5,c\n' >late.csv
	merged 't,v 1,a 5,c 100,b' --replace 2,6 -t t --time-format s seconds.csv late.csv
	merged 't,v 1,a 5,c 100,b' --replace 1970-01-01T00:00:02Z,1970-01-01T01:00:06+01:00 -t t --time-format s \
		seconds.csv late.csv
}

@test "--in-place keeps mode and link, and --backup the old table" {
	mkdir real
	mv main.csv real/
	ln -s real/main.csv link.csv
	chmod 640 real/main.csv
	cp real/main.csv before.csv
	run -0 --separate-stderr wm-merge -k k --max n,m --in-place --backup .old link.csv late.csv
	assert_equal "$output$stderr" ""
	[ -L link.csv ]
	assert_equal "$(stat -c %a real/main.csv)" 640
	assert_equal "$(tr '\n' ' ' <real/main.csv)" "k,n,m a,1,5 b,3,1 c,4,y "
	cmp before.csv real/main.csv.old
	cp real/main.csv once.csv
	wm-merge -k k --max n,m --in-place --backup .old link.csv late.csv
	cmp once.csv real/main.csv
	cmp once.csv real/main.csv.old
	assert_equal "$(find real -type f | sort | tr '\n' ' ')" "real/main.csv real/main.csv.old "
}

@test "--in-place: a folder that takes no file" {
	[ "$(id -u)" != 0 ] || skip "root may write anywhere"
	mkdir real
	mv main.csv real/
	chmod 555 real
	failed 3 "Permission denied" -k k --max n,m --in-place real/main.csv late.csv
}

@test "inputs whose lines end in CR alone" {
	printf 'k,n\ra,1\r"b\rc",2\r' >main.csv
	printf 'k,n\r"b\rc",4\rd,8\r' >late.csv
	run -0 wm-merge -k k --sum n main.csv late.csv
	assert_output $'k,n\na,1\n"b\rc",6\nd,8'
	run -0 wm-merge -k k --sum n -o ndjson main.csv late.csv
	assert_output $'{"k":"a","n":1}\n{"k":"b\\rc","n":6}\n{"k":"d","n":8}'
	run -0 wm-merge -k k --sum n -o tsv main.csv late.csv
	assert_output $'k\tn\na\t1\nb\\rc\t6\nd\t8'
}

@test "formats: CSV, TSV and NDJSON into each other" {
	merged '{"k":"a","n":1,"m":5} {"k":"b","n":3,"m":1} {"k":"c","n":6,"m":"y"}' -k k --sum n --max m -o ndjson \
		main.csv late.csv
	wm-merge -k k --sum n --max m -o tsv main.csv late.csv >out.tsv
	printf 'k\tn\tm\na\t1\t5\nb\t3\t1\nc\t6\ty\n' | cmp - out.tsv
	merged 'k,n,m a,2,5 b,6,1 c,12,y' -k k --sum n --max m -o csv out.tsv <(cat out.tsv)
	wm-merge -k k --sum n --max m -o ndjson main.csv late.csv >out.ndjson
	merged 'k,n,m,z a,1,5, b,3,1, c,6,y, d,,,7' -k k -o csv out.ndjson <(echo '{"k":"d","z":7}')
	merged 'a,1,5 b,3,1 c,6,y' -k k --sum n --max m --no-output-header main.csv late.csv
	merged 'a;2' -k 1 --sum 2 --no-header -d ';' <(echo 'a;1') <(echo 'a;1')
	merged 'a,2' -k x --sum y --columns x,y <(echo a,1) <(echo a,1)
	echo x,y >names
	merged 'a,2' -k x --sum y --columns @names <(echo a,1) <(echo a,1)
}

@test "states: results of all rows, or states again" {
	head=window_start,window_end,k,n,m_avg,rate
	window=1970-01-01T00:00:00Z,1970-01-01T00:00:10Z
	printf '%s\n' $head "$window,a,1:count:3,1:avg:2:1.5,1:rate:3" >a.csv
	printf '%s\n' $head "$window,a,1:count:4,1:avg:1:3,1:rate:4" "$window,b,1:count:1,1:avg:0:0,1:rate:1" >b.csv
	merged "$head $window,a,7,1.5,0.7 $window,b,1,,0.1" -k window_start,window_end,k --partial a.csv b.csv
	merged "$head $window,a,3,0.75,0.3" -k window_start,window_end,k --partial a.csv
	merged "$head $window,a,3,0.750,0.300" -k window_start,window_end,k --partial --ofmt %.3f a.csv
	wm-merge -k window_start,window_end,k --keep-partial b.csv a.csv >both.csv
	merged "$head $window,a,10,1.2,1 $window,b,1,,0.1" -k window_start,window_end,k --partial a.csv both.csv
	failed 1 "main.csv:2: " -k k --partial main.csv
	failed 1 "all columns are keys" -k k,n,m --partial main.csv
}

@test "sessions of several files that overlap or touch are one" {
	# a: 1-4, 9-11; b: 3.5-6, and from 20 on; x stands apart
	printf 'ts,k,v\n1,a,p\n2.5,a,q\n9,a,r\n9,x,y\n' >a.csv
	printf 'ts,k,v\n3.5,a,s\n4,a,t\n6.000001,a,u\n20,a,w\n' >b.csv
	for part in a b; do
		wm-window -t ts --time-format s --session 2000ms -g k -a count,last:v --partial $part.csv >$part.states
	done
	[ "$(head -1 a.states)" = window_start,window_end,k,count,v_last,_gap ]
	[ "$(grep -c ',2s$' a.states)" = 3 ]
	: the one of b from 3.5 to 6 touches neither 6.000001 nor, at its end, 9, but the first of a
	head=window_start,window_end,k,count,v_last t=1970-01-01T00:00:
	merged "$head ${t}01Z,${t}06Z,a,4,t ${t}06.000001Z,${t}08.000001Z,a,1,u ${t}09Z,${t}11Z,a,1,r ${t}09Z,${t}11Z,x,1,y \
${t}20Z,${t}22Z,a,1,w" -k window_end,window_start,k --partial a.states b.states
	: states again keep the gap, and come in the order of the keys
	wm-merge -k k,window_start,window_end --keep-partial a.states b.states >both.states
	[ "$(grep -c ',2s$' both.states)" = 5 ]
	cmp <(cut -d, -f3 both.states | tail -n +2) <(printf 'a\na\na\na\nx\n')
	wm-merge -k window_end,window_start,k --partial -o ndjson both.states | grep -q '"v_last":"t"}$'
	failed 1 "a.states:2: these are sessions, which are joined by their bounds: name window_start and window_end in -k too" \
		-k window_start,k --partial both.states a.states
	wm-window -t ts --time-format s --session 3s -g k -a count,last:v --partial b.csv >wide.states
	failed 1 "sessions of different gaps are not joined" -k window_start,window_end,k --partial a.states wide.states
	failed 4 "the sessions, of MAIN too, take more than the limit" -k window_start,window_end,k --partial --state-limit 1K a.states b.states
	: a key of that name is a key
	printf 'ts,_gap\n1,a\n' | wm-window -t ts --time-format s --tumbling 10s -g _gap --partial >key.states
	merged "window_start,window_end,_gap,count ${t}00Z,${t}10Z,a,2" -k window_start,window_end,_gap --partial key.states <(cat key.states)
}

@test "output that cannot be written" {
	run -3 --separate-stderr bash -c 'wm-merge -k k --max n,m main.csv late.csv >/dev/full'
	assert_equal "$stderr" "wm-merge: standard output: No space left on device"
	seq -f '%.0f,1,1' 1 200000 | sed '1i k,n,m' >many.csv
	run -0 bash -c 'wm-merge -k k --max n,m many.csv late.csv | head -n 1; [ "${PIPESTATUS[0]}" = 141 ]'
	assert_output k,n,m
}

@test "a killed rewrite leaves no file behind but for SIGKILL" {
	seq -f '%.0f,1,1' 1 400000 | sed '1i k,n,m' >many.csv
	cp many.csv before.csv
	for signal in INT TERM HUP; do
		env --default-signal=INT wm-merge -k k --max n,m --in-place many.csv late.csv &
		sleep 0.1
		kill -$signal $! 2>/dev/null || true
		wait $! || true
		assert_equal "$(find . -name '.many*')" ""
	done
	assert_equal "$(sort many.csv late.csv | uniq | wc -l)" "$(sort before.csv late.csv | uniq | wc -l)"
}
