#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Where results and side files go, and how they look.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	load until
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	cd "$BATS_TEST_TMPDIR" || return 1
	printf 'ts,k\n1,a\n12,b\n40,a\n3,a\n' >in.csv
}

window() {
	"$bin/wm-window" -q -t ts -w 5s --tumbling 10s "$@"
}

want=$'window_start,window_end,count
1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1
1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
1970-01-01T00:00:40Z,1970-01-01T00:00:50Z,1'

@test "--out takes the results, and refuses a file that holds something" {
	run -0 window --out out.csv in.csv
	assert_output ""
	assert_equal "$(cat out.csv)" "$want"
	run -2 window --out out.csv in.csv
	assert_output --partial "--out: out.csv exists and is not empty: say --append or --overwrite"
	window --out out.csv --append in.csv
	assert_equal "$(cat out.csv)" "$want
$(tail -n +2 <<<"$want")"
	window --out out.csv --overwrite in.csv
	assert_equal "$(cat out.csv)" "$want"
}

@test "--out and side files must be different files, and none an input" {
	run -2 window --out x.csv --late x.csv in.csv
	run -2 window --out in.csv --append in.csv
	assert_output --partial "is also an input"
	run -2 window --late in.csv --append in.csv
	assert_equal "$(wc -l <in.csv)" 5
}

@test "a header that shows misuse is status 2 while nothing is written, and 3 behind results" {
	mkfifo pipe
	printf 'ts,j\n50,a\n' >bad.csv
	run -2 window -g k bad.csv
	cat bad.csv >pipe &
	run -2 window -g k pipe
	assert_output --partial "no column 'k'"
	cat bad.csv >pipe &
	run -3 --separate-stderr window -g k --time-format s in.csv pipe
	assert_line '1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,a,1'
	[[ $stderr == *"another column 'j'"* ]]
}

@test "a file of other rows is refused before anything is said of its line end" {
	printf 'ts,k,v\n1,a,1' >late
	run -2 "$bin/wm-window" -t ts --time-format s -w 5s --tumbling 10s --late late --append in.csv
	assert_output "wm-window: --late: late begins with 'ts,k,v', and this run would add rows of 'ts,k': name another file"
	printf 'ts,k\n1,a' >late
	run -0 "$bin/wm-window" -t ts --time-format s -w 5s --tumbling 10s --late late --append --no-output-header in.csv
	assert_line 'wm-window: late: its last line had no end, and gets one before rows are added'
	assert_equal "$(cat late)" $'ts,k\n1,a\n3,a'
	printf 'x' >out
	run -0 "$bin/wm-window" -t ts --time-format s -w 5s --tumbling 10s --out out --append --no-output-header in.csv
	assert_line 'wm-window: out: its last line had no end, and gets one before rows are added'
	assert_equal "$(head -n 2 out)" $'x\n1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1'
}

@test "files that cannot be looked at are not taken for two" {
	library=$bin/tests/fault/fail_at.so
	cp in.csv want.csv
	: >both.csv
	ln both.csv other.csv
	for pair in '--out in.csv' '--late in.csv' '--late both.csv --rejects other.csv' '--out both.csv -C other.csv' \
		'-C in.csv --out out.csv' '-C st --out st.tmp'; do
		rm -f st st.* out.csv calls
		: >st.tmp
		read -r -a words <<<"$pair"
		command=("$bin/wm-window" -t ts -w 5s --tumbling 10s --append "${words[@]}" in.csv)
		run -2 env LD_PRELOAD="$library" WM_COUNT=calls ASAN_OPTIONS=verify_asan_link_order=0 "${command[@]}"
		count=$(awk '$1 == "stat" { print $2 }' calls)
		[ "$count" -ge 2 ]
		for at in $(seq 1 "$count"); do
			run env LD_PRELOAD="$library" WM_FAULT="stat:$at:5" ASAN_OPTIONS=verify_asan_link_order=0 "${command[@]}"
			assert_equal "$status" 3
			assert_output --regexp '^wm-window: [^:]+: Input/output error$'
			cmp in.csv want.csv
			[ ! -s both.csv ]
			[ ! -s st.tmp ]
		done
	done
}

@test "--late that is standard output's file is refused" {
	: >both.csv
	run -2 bash -c "'$bin/wm-window' -t ts -w 5s --tumbling 10s --late both.csv in.csv >>both.csv"
	assert_output --partial "is also standard output"
}

@test "--no-output-header leaves it out, whatever the format" {
	run -0 window --no-output-header in.csv
	assert_output "$(tail -n +2 <<<"$want")"
	run -0 window --no-output-header -o tsv in.csv
	assert_line --index 0 $'1970-01-01T00:00:00Z\t1970-01-01T00:00:10Z\t1'
}

@test "--output-time: numbers of each unit, bare in NDJSON" {
	printf 'ts\n1.5\n' >half.csv
	for pair in s:1.5,3 ms:1500,3000 us:1500000,3000000 ns:1500000000,3000000000; do
		run -0 "$bin/wm-window" -q -t ts --tumbling 1500ms --output-time "${pair%%:*}" --no-output-header half.csv
		assert_output "${pair#*:},1"
	done
	run -0 "$bin/wm-window" -q -t ts --tumbling 1500ms --output-time ms -o ndjson half.csv
	assert_output '{"window_start":1500,"window_end":3000,"count":1}'
}

@test "line ends and delimiter of results are those of the first FILE" {
	printf 'ts;k\r\n1;a\r\n' >semicolons.csv
	run -0 bash -c "'$bin/wm-window' -q -t ts --tumbling 10s -d ';' -g k semicolons.csv | od -c | head -3"
	assert_output --partial ';'
	window -d ';' -g k semicolons.csv >out
	assert_equal "$(tail -1 out)" $'1970-01-01T00:00:00Z;1970-01-01T00:00:10Z;a;1\r'
}

@test "a late file of NDJSON, and one of an input without late rows" {
	printf '{"ts":40}\n{"ts": 1, "x":[1, 2]}\n' | window --late late.ndjson >out
	assert_equal "$(cat late.ndjson)" '{"ts": 1, "x":[1, 2]}'
	printf 'ts,k\n1,a\n' | window --late none.csv >out
	assert_equal "$(cat none.csv)" 'ts,k'
}

@test "SIGHUP: side files are opened by their names again" {
	mkfifo pipe
	"$bin/wm-window" -q -t ts -w 0s --tumbling 10s --late late.csv <pipe >out &
	pid=$!
	exec 7>pipe
	printf 'ts\n100\n1\n' >&7
	until_true '[ "$(wc -l <late.csv 2>/dev/null || echo 0)" = 2 ]'
	mv late.csv late.1.csv
	kill -HUP "$pid"
	until_true '[ -e late.csv ]'
	printf '2\n' >&7
	exec 7>&-
	wait "$pid"
	assert_equal "$(cat late.1.csv)" $'ts\n1'
	assert_equal "$(cat late.csv)" $'ts\n2'
}

@test "SIGUSR1: a progress object on standard error, and the run goes on" {
	mkfifo pipe
	"$bin/wm-window" -q -t ts -w 0s --tumbling 10s <pipe >out 2>err &
	pid=$!
	exec 7>pipe
	printf 'ts\n1\n2\n' >&7
	until_true 'grep -q window_start out'
	kill -USR1 "$pid"
	until_true '[ -s err ]'
	assert_equal "$(jq -r .stateOperators[0].numRowsTotal err)" 1
	printf '3\n' >&7
	exec 7>&-
	wait "$pid"
	assert_equal "$(tail -1 out)" "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,3"
}

# What the folder holds, names and bytes; and which files there are, with what they lead to.
folder() {
	find . -printf '%p %y %l\n' | sort
	find . -type f ! -path './out' -exec sha256sum {} + | sort
}

# untouched COMMAND...: is refused with status 2 and one line, and neither makes nor changes a file.
untouched() {
	local status=0 before
	before=$(folder)
	"$@" >../said 2>&1 </dev/null || status=$?
	if [ "$status" -ne 2 ] || [ "$(wc -l <../said)" -ne 1 ] || [ "$before" != "$(folder)" ]; then
		printf '%s: status %s\n' "$*" "$status"
		cat ../said
		diff <(echo "$before") <(folder)
		return 1
	fi
}

@test "no output is another, whatever their names: nothing is made or changed" {
	mkdir folder
	cd folder || return 1
	cp ../in.csv .
	mkdir deeper
	ln -s new.csv link # of what is not there yet
	ln -s ../new.csv deeper/link
	options=(--late --duplicates --rejects --report --out)
	for a in "${options[@]}"; do
		for b in "${options[@]}"; do
			[ "$a" != "$b" ] || continue
			for other in new.csv ./new.csv "$PWD/new.csv" deeper/../new.csv link deeper/link; do
				untouched "$bin/wm-dedup" -t ts -w 1s -k k "$a" new.csv "$b" "$other" in.csv
			done
		done
	done
	for a in "${options[@]}"; do
		untouched "$bin/wm-dedup" -t ts -w 1s -k k "$a" x.prom --metrics ./x.prom in.csv
		untouched "$bin/wm-dedup" -t ts -w 1s -k k "$a" new.csv -C ./new.csv in.csv
		for beside in .lock .tmp .prev .prev.tmp; do
			untouched "$bin/wm-dedup" -t ts -w 1s -k k "$a" "./st$beside" -C st in.csv
		done
		[ "$a" = --out ] || untouched "$bin/wm-dedup" -t ts -w 1s -k k --out o "$a" "$PWD/o.uncommitted" -C st in.csv
	done
	untouched "$bin/wm-join" -t ts -w 1s -k k --between 0s,1s --late-left new.csv --late-right ./new.csv in.csv in.csv
	# devices take all
	"$bin/wm-dedup" -q -t ts -w 1s -k k --late /dev/null --rejects /dev/null --report /dev/null in.csv >../said
}

@test "no output, and no file that goes with one, is an input" {
	mkdir folder
	cd folder || return 1
	cp ../in.csv .
	ln in.csv hard
	ln -s in.csv soft
	for option in --late --duplicates --rejects --report --out; do
		for input in in.csv ./in.csv hard soft; do
			untouched "$bin/wm-dedup" -t ts -w 1s -k k --append "$option" in.csv "$input"
		done
	done
	for beside in st.lock st.tmp st.prev st.prev.tmp o.uncommitted; do
		cp in.csv $beside
		untouched "$bin/wm-dedup" -t ts -w 1s -k k -C st --out o $beside
		rm $beside
		ln in.csv $beside
		untouched "$bin/wm-dedup" -t ts -w 1s -k k -C st --out o in.csv
		rm $beside
	done
	printf 'in.csv\0' >list
	untouched "$bin/wm-dedup" -t ts -w 1s -k k --files0-from list --overwrite --out list
	printf 'ts,k\n' >names
	untouched "$bin/wm-dedup" -t ts -w 1s -k k --columns @names --overwrite --out names in.csv
	cp in.csv out
	untouched bash -c "'$bin/wm-dedup' -t ts -w 1s -k k out >>out"
	untouched bash -c "'$bin/wm-dedup' -t ts -w 1s -k k <out >>out"
	cp in.csv in.csv.bak
	untouched "$bin/wm-merge" -k ts --last k --in-place --backup .bak in.csv in.csv.bak
}

@test "what goes with a checkpoint takes the place of nothing else" {
	mkdir folder
	cd folder || return 1
	cp ../in.csv .
	for beside in lock tmp prev prev.tmp; do
		for text in precious $'process\n' $'process 1 on x\nmore\n' $'\x89WMB'; do
			printf '%s' "$text" >st.$beside
			untouched "$bin/wm-dedup" -t ts -w 1s -k k -C st in.csv
			assert_equal "$(sed "s|$PWD/||" ../said)" "wm-dedup: -C: st.$beside, which goes with it, \
holds something else: move that away, or name another checkpoint"
		done
		rm st.$beside
		ln -s in.csv st.$beside
		untouched "$bin/wm-dedup" -t ts -w 1s -k k -C st in.csv
		rm st.$beside
		mkdir st.$beside
		untouched "$bin/wm-dedup" -t ts -w 1s -k k -C st in.csv
		rmdir st.$beside
	done
	# what a run that was killed leaves there is no hindrance, whole or in part
	"$bin/wm-dedup" -q -t ts -w 1s -k k -C st in.csv >../out
	"$bin/wm-dedup" -q -t ts -w 1s -k k -C st in.csv >>../out
	for len in 0 1 7 8 100 100000; do
		head -c $len st >st.tmp
		head -c $len st >st.prev.tmp
		head -c $len <<<"process 1 on x" >st.lock
		"$bin/wm-dedup" -q -t ts -w 1s -k k -C st in.csv >>../out
	done
	assert_equal "$(cat ../out)" $'ts,k\n1,a\n12,b\n40,a'
}

@test "one input under two names is refused; under one name it is read twice, and that is said" {
	mkdir folder
	cd folder || return 1
	cp ../in.csv .
	ln in.csv hard
	ln -s in.csv soft
	for other in ./in.csv hard soft; do
		for tool in window sort stamp lag; do
			options=()
			[ $tool != window ] || options=(--tumbling 10s)
			untouched "$bin/wm-$tool" -t ts -w 1s "${options[@]}" in.csv $other
		done
		untouched "$bin/wm-merge" -k ts --last k in.csv $other
	done
	untouched bash -c "'$bin/wm-stamp' -t ts -w 1s - ./in.csv <in.csv"
	untouched bash -c "'$bin/wm-stamp' -t ts -w 1s - /dev/stdin <in.csv"
	untouched bash -c "cat in.csv | '$bin/wm-stamp' -t ts -w 1s - /dev/stdin"
	untouched bash -c "cat in.csv | '$bin/wm-join' -t ts -w 1s -k k --between 0s,1s - /dev/stdin"
	mkfifo pipe
	ln pipe pipe2
	untouched "$bin/wm-stamp" -t ts -w 1s pipe pipe2
	run -0 "$bin/wm-window" -t ts --tumbling 1m in.csv in.csv
	assert_line --index 0 'wm-window: in.csv is named twice: its rows are read twice'
	assert_line --partial ',8'
	# a table may be joined with itself
	run -0 --separate-stderr "$bin/wm-join" -q -t ts -w 1m -k ts --between 0s,0s in.csv ./in.csv
	assert_equal "$(wc -l <<<"$output")" 5
}

@test "--metrics .prom has no name" {
	run -2 window --metrics .prom in.csv
	assert_output "wm-window: --metrics: '.prom' has no name before .prom: write NAME.prom"
	run -2 window --metrics ./.prom in.csv
	[ ! -e .prom ]
}

@test "what is added to a file begins a line there, and that is said" {
	for tail in 16000 '1,a,' $'x\r' '"a'; do
		for last in $'ts,k\n' $'ts,k\r\n'; do
			printf '%s%s' "$last" "$tail" >late.csv
			before=$(wc -c <late.csv)
			line_end=$'\n'
			[[ $last != *$'\r\n' || $tail = *$'\r' ]] || line_end=$'\r\n'
			run -0 bash -c "'$bin/wm-window' -t ts -w 5s --tumbling 10s --late late.csv --append in.csv >out.csv"
			assert_line --partial 'late.csv: its last line had no end, and gets one before rows are added'
			tail -c +$((before + 1)) late.csv | cmp - <(printf '%s3,a\n' "$line_end")
			# whole lines are left alone
			run -0 bash -c "'$bin/wm-window' -t ts -w 5s --tumbling 10s --late late.csv --append in.csv >out.csv"
			refute_output --partial 'had no end'
			tail -c +$((before + 1)) late.csv | cmp - <(printf '%s3,a\n3,a\n' "$line_end")
		done
	done
}

@test "so it is for every output, and for >>" {
	printf 'ts,k\n1,a\n12,b\n40,a\n1,a\nx,a\n41,c\n' >in.csv
	for option in --late --duplicates --rejects --report; do
		case $option in
		--re*) printf '{"a":1}\n{"b"' >side ;;
		*) printf 'ts,k\n16000' >side ;;
		esac
		cp side before
		"$bin/wm-dedup" -q -t ts -w 20s -k k --append $option side in.csv >out || [ $? = 1 ]
		cmp <(head -c "$(wc -c <before)" side) before
		tail -c +$(($(wc -c <before) + 1)) side | head -c 1 | cmp - <(echo)
	done
	printf 'window_start,window_end,count\n16000' >side
	window --append --out side in.csv || [ $? = 1 ]
	[ "$(sed -n 2p side)" = 16000 ] && [[ $(sed -n 3p side) = 1970* ]]
	for command in "wm-window -q -t ts -w 20s --tumbling 10s" "wm-sort -q -t ts -w 20s" "wm-lag -q -t ts -o csv" \
		"wm-stamp -q -t ts -w 20s" "wm-merge -k ts --last k --state-limit 1G /dev/null"; do
		printf 'a\n16000' >side
		printf 'ts,k\n1,a\n' >one.csv
		bash -c "$bin/$command one.csv >>side" 2>err
		assert_equal "$(sed -n 2p side)" 16000
		[ "$(wc -l <side)" -gt 2 ]
	done
	# a terminal, a pipe and an empty file are left alone
	: >side
	window in.csv >>side || [ $? = 1 ]
	assert_equal "$(head -1 side)" window_start,window_end,count
}

@test "with a checkpoint an unfinished line is finished behind the first commit, and a kill cuts that back" {
	printf 'window_start,window_end,count\n16000' >good.csv
	cp good.csv out.csv
	run -0 "$bin/wm-window" -t ts -w 5s --tumbling 10s -C st --out out.csv in.csv
	assert_line --partial 'out.csv: its last line had no end'
	cp out.csv want.csv
	assert_equal "$(sed -n 2,3p want.csv)" $'16000\n1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1'
	for ((at = 1; at < 40; at++)); do
		rm -f st*
		cp good.csv out.csv
		LD_PRELOAD=$bin/tests/fault/kill_at.so ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} WM_KILL_AT=$at \
			"$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st --out out.csv in.csv 2>err || true
		"$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st --out out.csv in.csv
		cmp out.csv want.csv
	done
}

@test "rows of another kind are added to no file" {
	mkdir folder
	cd folder || return 1
	cp ../in.csv .
	printf 'x,y\n1,2\n' >other.csv
	printf '{"ts":1}\n' >some.ndjson
	printf 'just text\n' >text
	for option in --late --duplicates --out; do
		for file in other.csv some.ndjson text; do
			untouched "$bin/wm-dedup" -t ts -w 1s -k k --append $option $file in.csv
			untouched bash -c "cat in.csv | '$bin/wm-dedup' -t ts -w 1s -k k --append $option $file"
		done
		for file in other.csv text; do
			untouched bash -c "echo '{\"ts\":1}' | '$bin/wm-dedup' -t ts -w 1s -k k --append $option $file"
		done
	done
	for option in --rejects --report; do
		for file in other.csv text in.csv; do
			untouched "$bin/wm-dedup" -t ts -w 1s -k k --append $option ./$file ../in.csv
		done
	done
	assert_equal "$(cat ../said)" "wm-dedup: --report: ./in.csv begins with 'ts,k', and this run would add NDJSON: \
name another file"
	untouched "$bin/wm-window" -t ts -w 1s --tumbling 10s -a sum:ts --append --out other.csv in.csv
	assert_equal "$(cat ../said)" "wm-window: --out: other.csv begins with 'x,y', and this run would add rows of \
'window_start,window_end,ts_sum': name another file"
	# the same header fits, whatever its line end, and behind a byte order mark
	printf '\xEF\xBB\xBFts,k\r\n7,a\r\n' >same.csv
	"$bin/wm-dedup" -q -t ts -w 1s -k k --append --late same.csv in.csv >../said
	assert_equal "$(tail -1 same.csv)" 3,a
}

@test "two runs on one output: the second is refused, and harms nothing" {
	mkfifo pipe
	for option in --out --late --rejects --report; do
		: >side
		"$bin/wm-window" -q -t ts -w 0s --tumbling 10s --append $option side pipe >out 2>err &
		exec 7>pipe
		printf 'ts\n1\n12\n' >&7
		until_true '[ -s side ] || [ -s out ]'
		other=--rejects
		[ $option != --rejects ] || other=--late
		cp side before
		for policy in --append --overwrite; do
			run -3 window $policy $option side $other new in.csv
			assert_output 'wm-window: side: another run writes to it: wait for its end, or name another file'
			[ ! -e new ]
			cmp side before
		done
		exec 7>&-
		wait $!
		window --overwrite $option side $other new in.csv >out || [ $? = 1 ]
		rm -f new
	done
}

@test "a run that is refused creates nothing" {
	mkdir folder
	cd folder || return 1
	cp ../in.csv .
	printf 'a,b\n1,2\n' >../wrong.csv
	sides=(--out o --late l --rejects r --report p --metrics m.prom)
	untouched "$bin/wm-window" -t ts -w 0s --tumbling 10s "${sides[@]}" ../wrong.csv
	untouched bash -c "cat ../wrong.csv | '$bin/wm-window' -t ts -w 0s --tumbling 10s ${sides[*]}"
	untouched "$bin/wm-window" -t ts -w 0s --tumbling 10s "${sides[@]}" -C st ../wrong.csv
	untouched "$bin/wm-window" -t ts -w 0s "${sides[@]}" -C st in.csv
	# a pipe shows its header late: the lock alone stays, which no run removes
	before=$(folder)
	run -2 bash -c "cat ../wrong.csv | '$bin/wm-window' -t ts -w 0s --tumbling 10s --out o --late l -C st"
	rm st.lock
	assert_equal "$(folder)" "$before"
	# an output that cannot be had
	before=$(folder)
	run -3 "$bin/wm-window" -t ts -w 0s --tumbling 10s --out o --rejects none/r in.csv
	assert_equal "$(folder)" "$before"
	# what was there stays
	: >o
	run -2 bash -c "cat ../wrong.csv | '$bin/wm-window' -t ts -w 0s --tumbling 10s --out o"
	[ -e o ]
	# and the next run goes on with what it is told now
	bash -c "cat ../wrong.csv | '$bin/wm-window' -t ts -w 0s --tumbling 10s --out o -C st" 2>../said || true
	run -0 bash -c "cat in.csv | '$bin/wm-window' -q -t ts -w 5s --tumbling 10s --out o -C st"
	assert_equal "$(wc -l <o)" 3
}

# unique FILE: no name stands twice in its header.
unique() {
	[ -z "$(head -1 "$1" | tr ',' '\n' | sort | uniq -d)" ]
}

@test "no result has two columns of one name: refused with what renames, or replaced" {
	printf 'ts,window_start,window_end,_pane,_pane_index,_time,count,v,right_v,x\n1,1,1,1,1,1,1,1,1,1\n' >names.csv
	columns=(window_start window_end _pane _pane_index _time count v)
	for options in '' '--allowed-lateness 1s' '--stamp' '-a v=sum:v' '-a _pane=sum:v' '-a window_start=max:v,count'; do
		for key in "${columns[@]}"; do
			status=0
			# shellcheck disable=SC2086 # words
			"$bin/wm-window" -q -t ts -w 0s --tumbling 10s $options -g "$key" names.csv >out 2>err || status=$?
			case $status in
			0) unique out ;;
			2) grep -qE "^wm-window: --(group-by|aggregate): the result has a column '[a-z_]*' already: rename with NAME=" err ;;
			*) false ;;
			esac
		done
	done
	run -2 window -g window_start names.csv
	assert_output "wm-window: --group-by: the result has a column 'window_start' already: rename with NAME=window_start"
	run -0 window -g 'from=window_start,v,a\=b=x' names.csv
	assert_output $'window_start,window_end,from,v,a=b,count\n1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1,1,1,1'
	run -2 window -g '=v' names.csv
	assert_output "wm-window: --group-by: '=v': write COLUMN, or NAME=COLUMN"
	# the result of a run, once more
	window -g v names.csv | "$bin/wm-window" -q -t window_start -w 0s --tumbling 1m -g v -a sum:count >out
	assert_equal "$(tail -1 out)" 1970-01-01T00:00:00Z,1970-01-01T00:01:00Z,1,1
}

@test "no join has two columns of one name" {
	printf 'ts,v,right_v,left_v\n1,a,b,c\n' >left.csv
	printf 'ts,v,w,right_w\n1,d,e,f\n' >right.csv
	printf '{"ts":1,"v":"a","right_v":"b"}\n' >left.ndjson
	for left in left.csv left.ndjson; do
		run -2 "$bin/wm-join" -t ts -w 0s -k ts --between 0s,0s --out joined $left right.csv
		assert_output "wm-join: --prefix: the result would have two columns 'right_v': choose prefixes with --prefix L,R, \
as in left_,other_"
		[ ! -e joined ]
	done
	run -0 "$bin/wm-join" -q -t ts -w 0s -k ts --between 0s,0s --prefix ,r_ left.csv right.csv
	assert_output $'ts,v,right_v,left_v,r_v,w,right_w\n1,a,b,c,d,e,f'
	run -0 "$bin/wm-join" -q -t ts -w 0s -k ts --between 0s,0s --type semi left.csv right.csv
}

@test "--late-info on its own late file puts the new values where the old ones are" {
	"$bin/wm-sort" -q -t ts -w 5s --late one.csv --late-info in.csv >out
	assert_equal "$(cat one.csv)" $'ts,k,_late_by,_late_watermark\n3,a,32,1970-01-01T00:00:35Z'
	printf '50,b,1,x\n4,c,7,y\n' >>one.csv
	"$bin/wm-sort" -q -t ts -w 1s --late two.csv --late-info one.csv >out
	assert_equal "$(cat two.csv)" $'ts,k,_late_by,_late_watermark\n4,c,45,1970-01-01T00:00:49Z'
	printf '{"ts":50}\n{"ts":4,"_late_by":7,"a":[1, 2],"_late_watermark":"y"}\n{"ts":5}\n' |
		"$bin/wm-sort" -q -t ts -w 1s --late two.ndjson --late-info >out
	assert_equal "$(cat two.ndjson)" '{"ts":4,"_late_by":45,"a":[1, 2],"_late_watermark":"1970-01-01T00:00:49Z"}
{"ts":5,"_late_by":44,"_late_watermark":"1970-01-01T00:00:49Z"}'
}

@test "--partial writes what wm-merge can combine, or is refused" {
	head -3 in.csv >a.csv
	(head -1 in.csv && tail -n +4 in.csv) >b.csv
	(head -1 in.csv && tail -n +2 in.csv) >all.csv
	windows=('--tumbling 10s' '--sliding 10s,5s' '--session 10s' '--cumulating 20s,10s')
	others=('' '--fill zero' '--fill prev' '-w 0s --allowed-lateness 1s' '-w 0s --allowed-lateness 0s' '--early 1rows' '--early event:5s'
		'--mode update' '--mode complete' '--mode complete --trigger 1rows' '--stamp -w 1s' '--offset 1s')
	combined=0
	for window in "${windows[@]}"; do
		for other in "${others[@]}"; do
			status=0
			# shellcheck disable=SC2086 # words
			"$bin/wm-window" -q -t ts $window $other --partial -g k -a count,max:ts a.csv >a 2>err || status=$?
			if [ $status -eq 2 ]; then
				grep -qE '^wm-window: (--partial and )?--[a-z -]*: ' err
				[[ $other != '' && ($other != '--offset 1s' || $window = --session*) ]]
				continue
			fi
			# shellcheck disable=SC2086 # words
			"$bin/wm-window" -q -t ts $window ${other/-w 0s/} --partial -g k -a count,max:ts b.csv >b
			"$bin/wm-merge" -k window_end,window_start,k --partial a b >got
			# shellcheck disable=SC2086 # words
			"$bin/wm-window" -q -t ts $window ${other/-w 0s/} -g k -a count,max:ts all.csv >want
			cmp got want
			combined=$((combined + 1))
		done
	done
	[ $combined -ge 10 ]
}

@test "NDJSON: a column that no record had so far is named with the first result, and the nearest that there is" {
	mkfifo pipe
	"$bin/wm-window" -t ts --time-format s -w 0s --tumbling 10s -g hst -a sum:mss,max:b pipe >out 2>err &
	pid=$!
	exec 7>pipe
	printf '{"ts":1,"host":"a","ms":3,"zz":1}\n' >&7
	printf '{"ts":12,"host":"a","ms":3}\n' >&7
	until_true '[ -s out ]'
	assert_equal "$(cat err)" "wm-window: no record so far had the column 'hst': did you mean 'host'?
wm-window: no record so far had the column 'mss': did you mean 'ms'?
wm-window: no record so far had the column 'b'"
	printf '{"ts":13,"b":1}\n' >&7
	exec 7>&-
	status=0
	wait $pid || status=$?
	assert_equal "$status" 1
	# at the end what was never there
	assert_equal "$(tail -n +4 err)" "wm-window: no record had the column 'hst': did you mean 'host'?
wm-window: no record had the column 'mss': did you mean 'ms'?"
	# where the first result comes at the end it is said once, and with -q there too
	run -1 --separate-stderr "$bin/wm-window" -q -t ts --time-format s --tumbling 10s -g hst <<<'{"ts":1,"host":"a"}'
	assert_equal "$stderr" "wm-window: no record had the column 'hst': did you mean 'host'?"
	for tool in stamp sort dedup; do
		options=(--source hots)
		[ $tool != dedup ] || options=(-k hots --with-time)
		run -1 --separate-stderr "$bin/wm-$tool" -t ts --time-format s -w 0s "${options[@]}" <<<$'{"ts":1,"host":"a"}\n{"ts":9,"host":"b"}'
		[[ $stderr == *"no record so far had the column 'hots'"*"did you mean 'host'?"* ]]
	done
	run -1 --separate-stderr "$bin/wm-sort" -t tss --time-format s -w 0s <<<'{"ts":1}'
	[[ $stderr == *"no record had the column 'tss' (-t): did you mean 'ts'?"* ]]
}

@test "-o table: computed fractions have 6 digits, what was chosen and what --ofmt asks for is as it is" {
	printf 'ts,v\n1,1\n2,2\n3,2\n4,0.00012345678\n' >fractions.csv
	run -0 "$bin/wm-window" -q -t ts --tumbling 10s -a avg:v,stddev:v,last:v,min:v,sum:v,rate -o table fractions.csv
	# avg 1.250030864195, stddev 0.957373014..., sum 5.00012345678
	assert_line --index 2 --regexp '1\.250031  0\.957373  0\.00012345678  0\.00012345678  5\.000123 +0\.4$'
	printf 'ts,v\n1,0.00012345678\n2,0.00012345679\n' >small.csv
	run -0 "$bin/wm-window" -q -t ts --tumbling 10s -a avg:v -o table small.csv
	assert_line --index 2 --regexp ' 0\.000123457$'
	printf 'ts,v\n1,0.9999999\n2,1\n3,-0.9999999\n4,-0.9999999\n' >round.csv
	run -0 "$bin/wm-window" -q -t ts --tumbling 2s -a avg:v -o table round.csv
	assert_line --index 2 --regexp ' 1$'
	run -0 "$bin/wm-window" -q -t ts --tumbling 10s -a avg:v -o table --ofmt %.2f fractions.csv
	assert_line --index 2 --regexp ' 1\.25$'
	run -0 "$bin/wm-window" -q -t ts --tumbling 10s -a avg:v fractions.csv
	assert_line --index 1 --regexp ',1\.250030864195$'
}

@test "--tsv-escapes none: a value that TSV cannot hold ends the run, in every tool" {
	local why="--tsv-escapes none: 'a\\x09b' holds a tab or line end, and so cannot be a field of TSV: leave the option out, or write -o csv"
	printf 'ts,k,v\n1764410400,"a\tb",1\n' >in.csv
	printf 'ts,k,v\n1764410400,"a\tb",1\n' >right.csv
	fails() {
		run -1 --separate-stderr "$bin/$1" "${@:2}" --tsv-escapes none -o tsv
		assert_equal "$stderr" "$1: $why"
	}
	fails wm-window -t ts -w 0s --tumbling 1m -g k in.csv
	fails wm-window -t ts -w 0s --tumbling 1m -a first:k in.csv
	fails wm-stamp -t ts -w 0s in.csv
	fails wm-sort -t ts -w 0s in.csv
	fails wm-dedup -t ts -w 1m -k k in.csv
	fails wm-lag -t ts -g k in.csv
	fails wm-join -t ts -w 0s -k k --between 0s,0s in.csv right.csv
	fails wm-merge -k ts,k --sum v in.csv right.csv
	# a TSV input fixes the layout of a CSV one behind it
	printf 'ts\tk\tv\n1764410399\tx\t1\n' >first.tsv
	run -1 --separate-stderr "$bin/wm-sort" -t ts -w 0s --tsv-escapes none first.tsv in.csv
	assert_equal "$stderr" "wm-sort: $why"
	# with escapes nothing is wrong
	run -0 "$bin/wm-join" -t ts -w 0s -k k --between 0s,0s -o tsv in.csv right.csv
	assert_line --index 1 $'1764410400\ta\\tb\t1\t1764410400\t1'
}
