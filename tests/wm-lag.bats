#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-lag as a user meets it: misuse, tables, plot, Prometheus, notes. Its figures are held by the cases, the laws and the
# unit test.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	quakes=$PWD/tests/data/earthquakes
	cd "$BATS_TEST_TMPDIR" || return 1
	export LC_ALL=C
}

lag() {
	"$bin/wm-lag" "$@"
}

# A usage error: one line that has the words given, nothing on standard output, status 2.
refused() { # words, arguments
	local words=$1
	shift
	run -2 --separate-stderr lag "$@"
	assert_equal "$output" ""
	assert_equal "${#stderr_lines[@]}" 1
	[[ $stderr == "wm-lag: "*"$words"* ]] || {
		echo "no '$words' in: $stderr"
		return 1
	}
}

@test "misuse: one line that says what to do" {
	f=$quakes.csv
	refused "no time column" "$f"
	refused "--percentiles: 'x' is no percentage: write 50, 99 or 99.9" -t time --percentiles 50,x "$f"
	refused "--percentiles: '100.1' is no percentage" -t time --percentiles 100.1 "$f"
	refused "--percentiles: '1e1' is no percentage" -t time --percentiles 1e1 "$f"
	refused "--percentiles: '' is no percentage" -t time --percentiles 50, "$f"
	refused "--percentiles: '50.0' is named twice" -t time --percentiles 50,50.0 "$f"
	refused "--target: '1': of what? write 1/1000 or 0.1%" -t time --advise --target 1 "$f"
	refused "--target: 'x' is no share" -t time --advise --target x "$f"
	refused "--target: '1/0' is no share" -t time --advise --target 1/0 "$f"
	refused "--target: '101%' is no share" -t time --advise --target 101% "$f"
	refused "--target: '3/2' is more than all rows" -t time --advise --target 3/2 "$f"
	refused "--target: it is a part of the advice: add --advise" -t time --target 1% "$f"
	refused "--tumbling: what windows would drop is a part of the advice" -t time --tumbling 1d "$f"
	refused "--tumbling and --sliding exclude each other" -t time --advise --tumbling 1d --sliding 2d,1d "$f"
	refused "--every: '0s': must be longer than zero" -t time --every 0s "$f"
	refused "--plot: a histogram is for eyes" -t time --plot -o csv "$f"
	refused "--every: Prometheus keeps the time itself" -t time --every 1d -o prometheus "$f"
	refused "--compat: " -t time --compat spark "$f"
	refused "--max-ahead: ahead of what?" -t time --max-ahead 1d "$f"
	refused "did you mean 'updated'?" -t time --ingest updatd "$f"
	printf 'ts,count,a b,a-b,quantile\n' >names.csv
	refused "the result has a column 'count' of its own" -t ts -g count names.csv
	refused "'a-b' is a label that there is already" -t ts -g 'a b,a-b' -o prometheus names.csv
	refused "'quantile' is a label that there is already" -t ts -g quantile -o prometheus names.csv
}

@test "the table has durations, and rounds the delay to what a person would type" {
	run -0 lag -t time --ingest updated --advise --tumbling 1d -o table "$quakes.csv"
	assert_line --regexp '^lag +1707 +13h40m +1m36s +4h3m +2d6h +3d18h +6d14h +6d17h +0$'
	assert_line --regexp '^disorder +1707 +13h16m +0s +3h35m +2d5h +3d18h +6d13h +6d16h +0$'
	assert_line --regexp '^ *0s +1295 +75.9% +511 +29.9% +no delay$'
	assert_line --regexp '^ *54h +83 +4.86% +36 +2.11% +5% behind$'
	assert_line --regexp '^ *90h +17 +0.996% +16 +0.937% +the target$'
	assert_line --regexp '^ *108h +12 +0.703% +11 +0.644% +2 x p95 lag, a rule of thumb$'
	assert_line --regexp '^ *158h +1 +0.0586% +0 +0% +0.1% behind$'
	assert_line --regexp '^ *160h +0 +0% +0 +0% +none behind$'
	assert_line 'Use -w 90h to have no more than 1% of the rows behind (exactly: -w 322920.68s).'
	assert_line --partial 'Note: the rows span 7d, too short for this advice'
	assert_line --partial 'start wide, then tighten.'
}

@test "what the table tells is what runs with these delays do" {
	lag -t time --advise --ingest updated --tumbling 1d -o table "$quakes.csv" |
		sed -nE 's/^ *([0-9]+[hs]) +([0-9]+) +[0-9.]+% +([0-9]+) .*/\1 \2 \3/p' | sort -u >told
	[ "$(wc -l <told)" -eq 7 ]
	while read -r delay behind dropped; do
		"$bin/wm-window" -q -t time -w "$delay" --tumbling 1d --report r "$quakes.csv" >out
		[ "$(jq -r 'select(.type == "report").rows_late' r)" = "$dropped" ]
		rm r
		lag -q -t time -w "$delay" --late late --report r "$quakes.csv" >out
		[ "$(jq -r 'select(.type == "report").rows_late' r)" = "$behind" ]
		[ "$(wc -l <late)" -eq $((behind + 1)) ]
		rm r late
	done <told
}

@test "a delay of one's own is in the curve, and its rows are counted as late" {
	run -0 --separate-stderr lag -t time -w 2d --advise --late late.csv "$quakes.csv"
	assert_line --partial 'given,172800,1707,139,'
	assert_equal "$(wc -l <late.csv)" 140
	[[ $stderr == *"wm-lag: 139 of 1707 rows were behind the watermark, and measured all the same (8.1%): in late.csv"* ]]
	run -5 lag -q -t time -w 2d --fail-late 1/100 "$quakes.csv"
}

@test "by key and by window of event time" {
	printf 'ts,k\n5,b\n1,a\n12,a\n3,b\n' >in.csv
	run -0 lag -t ts --time-format s -g k --every 10s --percentiles 50 in.csv
	assert_output 'window_start,window_end,k,measure,count,avg,min,p50,max,negative
1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,a,disorder,1,4,4,4,4,0
1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,b,disorder,2,4.5,0,0,9,0
1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,a,disorder,1,0,0,0,0,0'
	run -0 lag -t ts --time-format s -g k --every 10s --percentiles 50 --output-time s -o ndjson in.csv
	assert_line --index 0 '{"window_start":0,"window_end":10,"k":"a","measure":"disorder","count":1,"avg":4,"min":4,"p50":4,"max":4,"negative":0}'
}

@test "days are those of --tz" {
	printf 'ts\n2024-03-30T23:30:00Z\n2024-03-31T21:30:00Z\n2024-03-31T22:30:00Z\n' >in.csv
	run -0 lag -t ts --tz Europe/Berlin --every 1d --percentiles 50 in.csv
	assert_line --index 1 --partial '2024-03-31T00:00:00+01:00,2024-04-01T00:00:00+02:00,disorder,2,'
	assert_line --index 2 --partial '2024-04-01T00:00:00+02:00,2024-04-02T00:00:00+02:00,disorder,1,'
}

@test "groups without end are said once, at 100000" {
	for count in 99999 100000 150000; do
		(echo ts && seq 1700000000 $((1700000000 + count - 1)) && echo 1700000000) >many.csv
		for options in '--every 1s' '-g ts' '--every 1s -g ts' '--every 1s -w 1s -q'; do
			# shellcheck disable=SC2086 # words
			run -0 --separate-stderr lag -t ts --time-format s -o csv $options many.csv
			case $count$options in
			99999* | *-q) [[ $stderr != *"100000 groups"* ]] ;;
			*) [ "$(grep -c '^wm-lag: 100000 groups are measured by themselves, and none is forgotten' <<<"$stderr")" = 1 ] ;;
			esac
		done
	done
}

@test "--every with -w: windows are written as the watermark passes them, and what comes later stands without one" {
	printf 'ts,k\n1,a\n5,a\n12,a\n11,b\n31,a\n2,a\n13,b\n33,b\n3,\n45.5,a\n' >in.csv
	late() {
		lag -t ts --time-format s -w 3s --every 10s -g k --percentiles 50 "$@"
	}
	run -0 --separate-stderr late in.csv
	assert_output 'window_start,window_end,k,measure,count,avg,min,p50,max,negative
1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,a,disorder,2,0,0,0,0,0
1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,a,disorder,1,0,0,0,0,0
1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,b,disorder,1,1,1,1,1,0
1970-01-01T00:00:30Z,1970-01-01T00:00:40Z,a,disorder,1,0,0,0,0,0
1970-01-01T00:00:30Z,1970-01-01T00:00:40Z,b,disorder,1,0,0,0,0,0
1970-01-01T00:00:40Z,1970-01-01T00:00:50Z,a,disorder,1,0,0,0,0,0
,,,disorder,1,30,30,30,30,0
,,a,disorder,1,29,29,29,29,0
,,b,disorder,1,18,18,18,18,0'
	[[ $stderr == *'3 rows came when the window of --every had been written: measured by key, without a window; a longer -w'* ]]
	run -0 late -o ndjson -q in.csv
	assert_line '{"window_start":null,"window_end":null,"k":"b","measure":"disorder","count":1,"avg":18,"min":18,"p50":18,"max":18,"negative":0}'
	# Without -w all of them belong to their windows.
	run -0 lag -t ts --time-format s --every 10s --percentiles 50 -q in.csv
	assert_line --index 1 '1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,disorder,4,14.75,0,0,30,0'
	assert_equal "${#lines[@]}" 5
	# Side by side, the watermark is that of the input that is furthest behind.
	printf 'ts,k\n1,a\n14,a\n' >slow.csv
	printf 'ts,k\n2,b\n39,b\n3,b\n' >fast.csv
	run -0 --separate-stderr late --merge --out out slow.csv fast.csv
	assert_equal "$(cut -d, -f1-5 out)" 'window_start,window_end,k,measure,count
1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,a,disorder,1
1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,b,disorder,1
1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,a,disorder,1
1970-01-01T00:00:30Z,1970-01-01T00:00:40Z,b,disorder,1
,,b,disorder,1'
}

@test "--every with -w: a window is there before the input ends, and the next run goes on with those that are open" {
	mkfifo pipe
	"$bin/wm-lag" -q -t ts --time-format s -w 1s --every 10s --percentiles 50 pipe >out 2>err &
	pid=$!
	exec 7>pipe
	printf 'ts\n5\n3\n12\n' >&7
	for _ in $(seq 100); do
		grep -q 00:00:10Z out && break
		sleep 0.05
	done
	exec 7>&-
	wait "$pid"
	assert_equal "$(tail -n +2 out)" '1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,disorder,2,1,0,0,2,0
1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,disorder,1,0,0,0,0,0'
	kept() {
		lag -t ts --time-format s -w 1s --every 10s --percentiles 50 -C st "$@"
	}
	printf 'ts\n5\n3\n12\n' >in.csv
	run -0 --separate-stderr kept in.csv --out again
	[[ $stderr == *'held at the end of input: 1 group is kept in st'* ]]
	run -0 "$bin/wm-checkpoint" show st
	assert_line --partial '1 group'
	printf '2\n13\n' >>in.csv
	run -0 kept -q --eof flush --out again in.csv
	assert_equal "$(tail -n +2 again)" '1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,disorder,2,1,0,0,2,0
1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,disorder,2,0,0,0,0,0
,,disorder,1,10,10,10,10,0'
	# In a table too, where widths are those of what came first.
	run -0 lag -q -t ts --time-format s -w 1s --every 10s -g ts --percentiles 50 -o table --plot in.csv
	assert_equal "$(grep -c window_start <<<"$output")" 2
	assert_line 'ts=2, without a window:'
}

@test "--every with -w: windows that were written are forgotten" {
	seq -f '%.1f' 0 0.5 99999 | sed '1i ts' >in.csv
	run -0 --separate-stderr lag -t ts --time-format s -w 9s --every 1s --state-limit 256K in.csv
	assert_equal "${#lines[@]}" 100001
	assert_equal "$stderr" ''
	run -4 --separate-stderr lag -t ts --time-format s --every 1s --state-limit 256K in.csv
	[[ $stderr == *'raise --state-limit'* ]]
}

@test "formats: as the input, or as asked" {
	run -0 lag -t time --ingest updated "$quakes.ndjson"
	assert_line --index 0 --partial '{"measure":"lag","count":1707,"avg":49229.27703925015,"min":95.526,'
	lag -t time --ingest updated -o csv "$quakes.ndjson" >a.csv
	lag -t time --ingest updated "$quakes.csv" >b.csv
	cmp a.csv b.csv
	lag -t time --ingest updated --out c.csv "$quakes.csv" >nothing
	cmp b.csv c.csv
	[ ! -s nothing ]
	lag -t time --ingest updated --out t -o table "$quakes.csv" >nothing
	grep -q '^lag .*13h40m' t
	[ ! -s nothing ]
}

@test "Prometheus: promtool would take it" {
	run -0 lag -t time --ingest updated --advise -o prometheus "$quakes.csv"
	assert_line '# TYPE wm_lag_seconds summary'
	assert_line 'wm_lag_seconds{quantile="0.999"} 570115.03'
	assert_line 'wm_lag_seconds_count 1707'
	assert_line 'wm_lag_seconds_sum 84034375.906'
	assert_line 'wm_lag_negative_rows 0'
	assert_line 'wm_disorder_seconds{quantile="0.5"} 12897.997'
	assert_line 'wm_advised_delay_seconds 322920.68'
	# each family once, before its samples
	[ -z "$(grep '^# TYPE' <<<"$output" | sort | uniq -d)" ]
	printf 'ts,k\n1,"a""b\\c\nd"\n' >in.csv
	run -0 lag -t ts -g k -o prometheus in.csv
	assert_line 'wm_disorder_seconds_count{k="a\"b\\c\nd"} 1'
}

@test "the plot: all rows, and nothing but ASCII where the locale is not UTF-8" {
	run -0 lag -t time --ingest updated --plot "$quakes.csv"
	assert_line --regexp '^ +to 3d +294  #{65}$'
	[ "$(sed -n '/rows by size/,$p' <<<"$output" | awk '/^ / { for (i = 1; i < NF; i++) if ($i ~ /^[0-9]+$/) n += $i } END { print n }')" -eq 1707 ]
	refute_output --regexp '[^[:print:][:space:]]'
	refute_output --partial $'\033'
	export LC_ALL=C.UTF-8
	run -0 lag -t time --ingest updated --plot "$quakes.csv"
	assert_line --regexp '^ +to 3d +294  █{65}$'
	printf 'ts,at\n100,95\n100,100\n100,101\n' >in.csv
	run -0 lag -t ts --ingest at --plot in.csv
	assert_line --regexp '^ *negative  1  '
	assert_line --regexp '^ *0s  1  '
	assert_line --regexp '^ *to 1s  1  '
	# A year, and a second more.
	printf 'ts,at\n0,31536000\n0,31536001\n' >in.csv
	run -0 lag -t ts --ingest at --plot in.csv
	assert_line --regexp '^ *to 365d  1  '
	assert_line --regexp '^ *> 365d  1  '
}

@test "on a terminal: a table of its width, colours unless NO_COLOR" {
	terminal() { # columns, environment
		local columns=$1
		shift
		script -qec "stty cols $columns; env $* $bin/wm-lag -t time --ingest updated --advise --plot $quakes.csv" /dev/null </dev/null
	}
	for columns in 80 200; do
		for locale in C C.UTF-8; do
			terminal $columns TERM=xterm NO_COLOR=1 LC_ALL=$locale >shown
			[ "$(tr -d '\r' <shown | LC_ALL=C.UTF-8 wc -L)" -le $columns ]
			! grep -q $'\033' shown
			grep -q '^lag .*13h40m' shown
		done
	done
	terminal 80 TERM=xterm LC_ALL=C >shown
	grep -q $'\033\[36m' shown
	terminal 80 TERM=dumb LC_ALL=C >shown
	! grep -q $'\033' shown
}

@test "honest notes" {
	seq -f '%.0f' 1 2000 | sed '1i ts' >in-order.csv
	run -0 --separate-stderr lag -t ts --time-format s --advise in-order.csv
	assert_line 'target,0,2000,0,0,nothing-late'
	assert_equal "$stderr" "wm-lag: note: the rows are in order: -w 0s would lose none of them"
	run -0 --separate-stderr lag -q -t ts --time-format s --advise in-order.csv
	assert_equal "$stderr" ""
	run -0 --separate-stderr lag -t ts --time-format s --advise --target 1/1000 in-order.csv
	assert_line 'target,0,2000,0,0,few-rows nothing-late'
	[[ $stderr == *"2000 rows are too few to tell a share of 1/1000: it takes 10000"* ]]
	run -0 --separate-stderr lag -t ts --time-format s --advise <<<$'ts\n1'
	[[ $stderr == *"1 row is too few to tell a share of 1%: it takes 1000"* ]]
	printf 'ts,at\n100,101\n200,140\n201,202\n' >future.csv
	run -0 --separate-stderr lag -t ts --time-format s --ingest at --advise future.csv
	[[ $stderr == *"1 row arrived before its event time, by up to 1m"* ]]
	run -0 --separate-stderr lag -q -t ts --time-format s --ingest at --max-ahead 30s --advise --rejects r future.csv
	assert_line 'target,0,2,0,0,few-rows nothing-late'
	assert_equal "$(jq -r .reason r)" implausible-time
}

@test "more than a million values: approximate, and said so" {
	awk 'BEGIN { print "ts"; for (i = 0; i < 1000000; i++) printf "%d\n%d\n", 10 * i + 5, 10 * i }' >in.csv
	run -0 --separate-stderr lag -t ts --time-format s in.csv
	assert_equal "$stderr" ""
	assert_line 'disorder,2000000,2.5,0,0,5,5,5,5,0'
	printf '9999999\n9999998\n' >>in.csv
	run -0 --separate-stderr lag -t ts --time-format s in.csv
	assert_equal "$stderr" "wm-lag: note: approximate: of more than 1000000 values percentiles and counts are within 0.4% of a value"
	run -0 --separate-stderr lag -q -t ts --time-format s --advise in.csv
	assert_line --regexp '^no-delay,0,2000002,1000001,0.5,approximate$'
	assert_line --regexp '^none-behind,5,2000002,0,0,approximate$'
	assert_line --regexp '^target,5,2000002,0,0,approximate$'
	run -0 lag -t ts --time-format s -o table in.csv
	assert_line --partial 'Note: approximate: '
}

@test "arrival now: the clock" {
	now=$(date +%s)
	printf 'ts\n%d\n' $((now - 100)) | lag -t ts --ingest now --percentiles 50 >out
	awk -F, '$1 == "lag" && $4 >= 100 && $4 < 130 { found = 1 } END { exit !found }' out
}

@test "arrivals that are none are rejected, and a column that nobody has is told" {
	printf 'ts,at\n1,2\n1,x\n1,\n' >in.csv
	run -1 --separate-stderr lag -t ts --ingest at in.csv
	assert_line --index 1 --partial 'lag,1,1,'
	[[ $stderr == *"in.csv:3: no arrival time in column 'at': 'x'"* ]]
	printf '{"ts":1}\n' >in.ndjson
	run -1 --separate-stderr lag -t ts -g who in.ndjson
	[[ $stderr == *"no record had the column 'who'"* ]]
}

@test "a signal: what was read has been measured" {
	mkfifo pipe
	"$bin/wm-lag" -t ts --percentiles 50 pipe >out 2>err &
	pid=$!
	exec 7>pipe
	printf 'ts\n5\n3\n' >&7
	for _ in $(seq 50); do
		kill -USR1 $pid
		sleep 0.05
		grep -q '"numInputRows":2' err && break
	done
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	exec 7>&-
	[ "$status" -eq 143 ]
	grep -qx 'disorder,2,1,0,0,2,0' out
}

@test "a full disk is an error, a reader that goes away is not told" {
	for format in csv table prometheus; do
		status=0
		lag -t time -o $format "$quakes.csv" >/dev/full 2>err || status=$?
		[ "$status" -eq 3 ]
		grep -q 'wm-lag: standard output: No space left on device' err
	done
}

@test "--explain reads nothing" {
	run -0 --separate-stderr lag -t time --explain --advise --target 1/1000 -g net nowhere.csv
	assert_line --partial 'no more than 1/1000 of the rows'
	assert_equal "$stderr" ""
}
