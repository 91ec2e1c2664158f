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

@test "--idle-wall: a source that is silent holds nothing back" {
	begin --source s --idle-wall 300ms
	printf 'ts,s\n0,a\n1,b\n25,a\n' >&7 # b holds the watermark at 1, and falls silent before a
	has_lines 2
	assert_equal "$(tail -1 out)" "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,2"
	end
	assert_equal "$(tail -1 out)" "1970-01-01T00:00:20Z,1970-01-01T00:00:30Z,1"
}
