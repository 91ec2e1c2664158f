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
