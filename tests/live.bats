#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Inputs that go on: what the clock does while nothing comes. Each waits for a result that only the clock can have
# brought, as the input is still open when it is looked at.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	load until
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	cd "$BATS_TEST_TMPDIR" || return 1
	mkfifo pipe
}

# Starts wm-window on a pipe that is held open as descriptor 7.
begin() {
	"$bin/wm-window" -q -t ts -w 0s --tumbling 10s "$@" <pipe >out &
	pid=$!
	exec 7>pipe
}

end() {
	exec 7>&-
	wait "$pid"
}

has_lines() {
	until_true "[ \"\$(wc -l <out)\" = $1 ]"
}

@test "--trigger wall: the clock ends a batch, and a batch is judged by the watermark from before it" {
	begin --trigger wall:300ms
	printf 'ts\n0\n100\n5\n' >&7
	has_lines 2
	assert_equal "$(tail -1 out)" "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,2"
	printf '7\n105\n' >&7 # 7 is late now
	end
	assert_equal "$(tail -n +3 out)" "1970-01-01T00:01:40Z,1970-01-01T00:01:50Z,2"
}

@test "--idle-close: silence lets the watermark go on with the clock" {
	begin --idle-close 200ms
	printf 'ts\n0\n9.9\n' >&7
	has_lines 2
	assert_equal "$(tail -1 out)" "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,2"
	end
	assert_equal "$(wc -l <out)" 2
}

# Runs a tool on these lines and 2.5 s of silence; tells in elapsed_ms how long that took in all, which is more than the silence.
with_silence() {
	local began
	began=$(date +%s%3N)
	{
		printf '%b' "$1"
		sleep 2.5
	} | "$bin/$2" -q --eof hold "${@:3}" >out
	elapsed_ms=$(($(date +%s%3N) - began))
}

@test "--idle-close: the watermark is ahead of the data by the silence at most, and told once a second" {
	with_silence '0,a\n50,a\n' wm-stamp --columns ts,k -t ts -w 0s --idle-close 100ms --output-time ms
	tail -n +3 out >punctuation
	[ -s punctuation ]
	assert [ "$(wc -l <punctuation)" -le "$((elapsed_ms / 1000))" ]
	while IFS=, read -r _ _ _ told_ms; do
		assert [ "$((told_ms - 50000))" -le "$elapsed_ms" ]
	done <punctuation

	# Rows leave, and windows are written, one after the other: at 0.1 s, 1 s, 1.9 s, and no more of the ten.
	rows="$(seq -s '\n' 100 0.9 109)\n"
	with_silence "$rows" wm-sort --columns ts -t ts -w 8900ms --idle-close 50ms
	[ "$(wc -l <out)" -gt 1 ]
	assert [ "$(tail -1 out | tr -d .)00" -le "$((100100 + elapsed_ms))" ]
	with_silence "$rows" wm-window --columns ts -t ts -w 8900ms --tumbling 500ms --idle-close 50ms --output-time ms
	[ "$(wc -l <out)" -gt 1 ]
	assert [ "$(tail -1 out | cut -d , -f 2)" -le "$((100100 + elapsed_ms))" ]
}

@test "--idle-close with a trigger: the clock moves the watermark between two batches, and in one waits for its end" {
	with_silence '0\n0.5\n' wm-window --columns ts -t ts -w 0s --tumbling 1s --idle-close 200ms --trigger 2rows
	assert_equal "$(tail -n +2 out)" "1970-01-01T00:00:00Z,1970-01-01T00:00:01Z,2"
	with_silence '0\n0.5\n' wm-window --columns ts -t ts -w 0s --tumbling 1s --idle-close 200ms --trigger 3rows
	assert_equal "$(tail -n +2 out)" ""
}

@test "--idle-close: a row that is rejected ends the silence" {
	{
		printf 'ts\n0\n'
		for _ in $(seq 6); do
			sleep 0.3
			echo x
		done
	} | "$bin/wm-window" -q -t ts -w 0s --eof hold --tumbling 1s --idle-close 900ms --rejects /dev/null >out
	assert_equal "$(cat out)" "window_start,window_end,count"
}

@test "waiting without a watermark or a record costs no time" {
	sleep 13 | { "$bin/wm-window" -q -t ts --tumbling 10s >out; times; } >spent
	tail -1 spent
	[ "$(tail -1 spent | tr -c '0-9\n' ' ' | awk '{ print $1 * 60000 + $2 * 1000 + $3 + $4 * 60000 + $5 * 1000 + $6 }')" -lt 300 ]
}

@test "--idle-wall: a source that is silent holds nothing back" {
	begin --source s --idle-wall 300ms
	printf 'ts,s\n0,a\n1,b\n25,a\n' >&7 # b holds the watermark at 1, and falls silent before a
	has_lines 2
	assert_equal "$(tail -1 out)" "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,2"
	end
	assert_equal "$(tail -1 out)" "1970-01-01T00:00:20Z,1970-01-01T00:00:30Z,1"
}
