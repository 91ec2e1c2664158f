#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What every tool must survive: odd, broken and missing inputs and outputs, and signals. Each test loops over the
# tools of the Makefile, so a new one cannot be forgotten: it needs a line in options_of() and answer_of().

setup() {
	cd "$BATS_TEST_DIRNAME/.." || return 1
	dir=$BATS_TEST_TMPDIR
	bin=$dir/bin
	mkdir "$bin"
	ln -s "$(cd "${WM_BIN:-build/release}" && pwd)"/wm-* "$bin"
	# wm-join takes two inputs: where a test names one or none, the other is empty.
	cat >"$dir/bin/join" <<-END
		#!/bin/bash
		operands=()
		[[ \${@: -1} == /* ]] || operands=(-)
		[[ \${@: -1} == /* && \${@: -2:1} == /* ]] || operands+=(/dev/null)
		exec "$bin/wm-join" "\$@" "\${operands[@]}"
	END
	chmod +x "$bin/join"
}

# A tool as the tests call it.
program_of() {
	case $1 in
	wm-join) program=$bin/join ;;
	*) program=$bin/$1 ;;
	esac
}

# wm-merge needs two tables, wm-checkpoint reads no stream; what they must survive is in their own tests.
tools() {
	sed -n 's/^TOOLS := //p' Makefile | tr ' ' '\n' | grep -vxE 'wm-merge|wm-checkpoint'
}

# The least that a tool needs to work on columns ts and key, in $options; with a delay of 0 s.
options_of() {
	program_of "$1"
	case $1 in
	wm-dedup) options=(-t ts --time-format s -w 0s -k "key,ts" --remember 10s) ;;
	wm-join) options=(-t ts --time-format s -w 0s -k key --between "0s,0s" --type left) ;;
	wm-sort) options=(-t ts --time-format s -w 0s) ;;
	wm-window) options=(-t ts --time-format s -w 0s --tumbling 10s -g key) ;;
	wm-lag) options=(-t ts --time-format s -w 0s -g key --percentiles 50) ;;
	wm-stamp) options=(-t ts --time-format s -w 0s) ;;
	*)
		echo "io.bats knows no options of $1: add them to options_of()"
		return 1
		;;
	esac
}

# What the tool writes for rows 1,a 2,b and no more, without the line ends.
answer_of() {
	case $1 in
	wm-dedup | wm-join | wm-sort) printf '%s\n' ts,key 1,a 2,b ;;
	wm-window) printf '%s\n' 'window_start,window_end,key,count' \
		'1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,a,1' '1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,b,1' ;;
	wm-stamp) printf '%s\n' 'ts,key,_time,_watermark' '1,a,1970-01-01T00:00:01Z,1970-01-01T00:00:01Z' \
		'2,b,1970-01-01T00:00:02Z,1970-01-01T00:00:02Z' ;;
	wm-lag) printf '%s\n' 'key,measure,count,avg,min,p50,max,negative' 'a,disorder,1,0,0,0,0,0' 'b,disorder,1,0,0,0,0,0' ;;
	esac
}

# What a tool has written last when a signal ends it behind rows 1,a 12,a 13,b; and what it says about the rest ("": nothing).
interrupted_of() {
	case $1 in
	# The rows that it has read; wm-sort with -w 0s holds none of them, and wm-join none when the other input has ended.
	wm-dedup | wm-join | wm-sort) last='13,b' said='' ;;
	# What was complete, and nothing of what was open.
	wm-window) last='1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,a,1' said='\b2\b.*open.*' ;;
	# What was measured so far.
	# The rows that it has read.
	wm-stamp) last='13,b,1970-01-01T00:00:13Z,1970-01-01T00:00:13Z' said='' ;;
	wm-lag) last='b,disorder,1,0,0,0,0,0' said='' ;;
	esac
}

# attempt STATUS PATTERN COMMAND...: the command ends with STATUS; its messages are lines of the tool's own, at most three,
# one of which matches PATTERN ("": there are none). Outputs are left in $dir/out and $dir/err.
attempt() {
	local want=$1 pattern=$2 got=0 fault=
	shift 2
	"$@" >"$dir/out" 2>"$dir/err" || got=$?
	if [ "$got" -ne "$want" ]; then
		fault="exit status $got, expected $want"
	elif grep -qv "^$tool: " "$dir/err"; then
		fault="a line on standard error that is not the tool's"
	elif [ "$(wc -l <"$dir/err")" -gt 3 ]; then
		fault="more than three lines on standard error"
	elif [ -z "$pattern" ] && [ -s "$dir/err" ]; then
		fault="a message where none is due"
	elif [ -n "$pattern" ] && ! grep -Eq "$pattern" "$dir/err"; then
		fault="no message that matches '$pattern'"
	fi
	if [ -n "$fault" ]; then
		echo "$*: $fault"
		echo "standard error:"
		head -c 2000 "$dir/err"
		return 1
	fi
}

# The last attempt's output is the tool's answer to the rows 1,a and 2,b; what passes keeps its quotes.
answered() {
	answer_of "$tool" >"$dir/answer"
	diff <(tr -d '\r"' <"$dir/out") "$dir/answer"
}

full_stdout() {
	"$@" >/dev/full
}

closed_stdout() {
	"$@" >&-
}

@test "empty input: no output, no message" {
	for tool in $(tools); do
		options_of "$tool"
		attempt 0 '' "$program" "${options[@]}" </dev/null
		[ ! -s "$dir/out" ]
		: >"$dir/empty.csv"
		attempt 0 '' "$program" "${options[@]}" "$dir/empty.csv"
		[ ! -s "$dir/out" ]
	done
}

@test "header only: the header of the result" {
	for tool in $(tools); do
		options_of "$tool"
		for header in 'ts,key\n' 'ts,key' 'ts,key\r\n'; do
			# shellcheck disable=SC2059 # the header is the format
			printf "$header" >"$dir/in.csv"
			attempt 0 '' "$program" "${options[@]}" "$dir/in.csv"
			[ "$(wc -l <"$dir/out")" -eq 1 ]
		done
	done
}

@test "no final newline, CRLF, a byte order mark: the same answer" {
	for tool in $(tools); do
		options_of "$tool"
		for text in 'ts,key\n1,a\n2,b' 'ts,key\r\n1,a\r\n2,b\r\n' '\xef\xbb\xbfts,key\n1,a\n2,b\n' \
			'\xef\xbb\xbf"ts","key"\r\n"1","a"\r\n"2","b"' 'ts,key\n\n1,a\n\n2,b\n\n'; do
			printf '%b' "$text" >"$dir/in.csv"
			attempt 0 '' "$program" "${options[@]}" "$dir/in.csv"
			answered
		done
		for text in '{"ts":1,"key":"a"}\n{"ts":2,"key":"b"}' '{"ts":1,"key":"a"}\r\n{"ts":2,"key":"b"}\r\n' \
			'\xef\xbb\xbf{"ts":1,"key":"a"}\n\n  \n{"ts":2,"key":"b"}\n'; do
			printf '%b' "$text" >"$dir/in.ndjson"
			attempt 0 '' "$program" "${options[@]}" -o csv "$dir/in.ndjson"
			answered
		done
	done
}

@test "NUL bytes belong to a CSV field, and are no JSON" {
	for tool in $(tools); do
		options_of "$tool"
		printf 'ts,key\n1,a\0z\n2,a\0z\n' >"$dir/in.csv"
		attempt 0 '' "$program" "${options[@]}" "$dir/in.csv"
		grep -aqP 'a\x00z' "$dir/out"
		printf '{"ts":1,"key":"a"}\n{"ts":1,"key":"\0"}\n{"ts":2,"key":"b"}\n\0\n' >"$dir/in.ndjson"
		attempt 1 "$dir/in.ndjson:2: " "$program" "${options[@]}" -o csv "$dir/in.ndjson"
		answered
	done
}

@test "ragged rows are rejected, named and counted" {
	for tool in $(tools); do
		options_of "$tool"
		printf 'ts,key\n1,a\n2\n2,b,c\n2,b\n' >"$dir/in.csv"
		attempt 1 "$dir/in.csv:3: " "$program" "${options[@]}" "$dir/in.csv"
		answered
		grep -Eq '\b2\b.*(reject|ragged)' "$dir/err"
		attempt 0 '' "$program" "${options[@]}" --rejects "$dir/rejects.$tool" -q "$dir/in.csv"
		[ "$(jq -r .reason "$dir/rejects.$tool" | uniq -c | tr -s ' ')" = ' 2 ragged' ]
		attempt 1 "$dir/in.csv:3: " "$program" "${options[@]}" --strict "$dir/in.csv"
	done
}

@test "a column name that stands twice matters only where it is used" {
	for tool in $(tools); do
		options_of "$tool"
		printf 'ts,key,x,x\n1,a,,\n2,b,,\n' >"$dir/in.csv"
		attempt 0 '' "$program" "${options[@]}" "$dir/in.csv"
		printf 'ts,key,ts\n1,a,1\n' >"$dir/in.csv"
		attempt 2 "'?ts'?" "$program" "${options[@]}" "$dir/in.csv"
		[ ! -s "$dir/out" ]
	done
}

@test "a record at the limit passes, one byte more is rejected as too long" {
	for tool in $(tools); do
		options_of "$tool"
		long=$(printf '%01022d' 0)
		printf 'ts,key\n1,%s\n2,%s\n' "$long" "$long" >"$dir/in.csv"
		attempt 0 '' "$program" "${options[@]}" --record-limit 1K "$dir/in.csv"
		grep -q "$long" "$dir/out"
		printf 'ts,key\n1,a\n1,0%s\n2,b\n' "$long" >"$dir/in.csv"
		attempt 1 "$dir/in.csv:3: " "$program" "${options[@]}" --record-limit 1K "$dir/in.csv"
		answered
		long=$(printf '%01007d' 0)
		printf '{"ts":1,"key":"%s"}\n' "$long" >"$dir/in.ndjson"
		[ "$(wc -c <"$dir/in.ndjson")" -eq 1025 ]
		attempt 0 '' "$program" "${options[@]}" --record-limit 1K -o csv "$dir/in.ndjson"
		printf '{"ts":1,"key":"a"}\n{"ts":1,"key":"0%s"}\n{"ts":2,"key":"b"}\n' "$long" >"$dir/in.ndjson"
		attempt 1 "$dir/in.ndjson:2: " "$program" "${options[@]}" --record-limit 1K -o csv "$dir/in.ndjson"
		answered
	done
}

@test "a full disk is an error, for little output and for much" {
	for tool in $(tools); do
		options_of "$tool"
		printf 'ts,key\n1,a\n2,b\n' >"$dir/in.csv"
		attempt 3 'No space left on device' full_stdout "$program" "${options[@]}" "$dir/in.csv"
		{
			echo ts,key
			seq -f '%.0f,a' 0 9 2000000
		} >"$dir/in.csv"
		attempt 3 'No space left on device' full_stdout "$program" "${options[@]}" "$dir/in.csv"
	done
}

@test "an output that fails when it is closed is an error" {
	library=$(cd "${WM_BIN:-build/release}" && pwd)/tests/fault/fail_at.so
	printf 'ts,key\n1,a\n2,b\nx,c\n' >"$dir/in.csv"
	for tool in $(tools); do
		options_of "$tool"
		inputs=("$dir/in.csv")
		[ "$tool" != wm-join ] || inputs+=(/dev/null)
		# Standard output, the rejected rows and the report, each in its turn.
		for number in 1 2 3; do
			rm -f "$dir/rejects" "$dir/report"
			attempt 3 'Input/output error' env LD_PRELOAD="$library" WM_FAULT="close:$number:5" \
				ASAN_OPTIONS=verify_asan_link_order=0 "$bin/$tool" "${options[@]}" --rejects "$dir/rejects" \
				--report "$dir/report" "${inputs[@]}"
		done
	done
}

@test "closed standard input and output are errors" {
	for tool in $(tools); do
		options_of "$tool"
		attempt 3 'Bad file descriptor' "$program" "${options[@]}" <&-
		printf 'ts,key\n1,a\n2,b\n' >"$dir/in.csv"
		attempt 3 'Bad file descriptor' closed_stdout "$program" "${options[@]}" "$dir/in.csv"
	done
}

@test "a reader that goes away ends the tool quietly" {
	for tool in $(tools); do
		options_of "$tool"
		{
			echo ts,key
			seq -f '%.0f,a' 0 9 20000000
		} >"$dir/in.csv"
		{ "$program" "${options[@]}" "$dir/in.csv" 2>"$dir/err" || echo $? >"$dir/status"; } | true
		[ "$(cat "$dir/status")" -eq 141 ]
		[ ! -s "$dir/err" ]
	done
}

@test "a reader that goes away where SIGPIPE is ignored is an error, and is said" {
	seq -f '%.0f,a' 0 9 20000000 | sed '1i ts,key' >"$dir/in.csv"
	for tool in $(tools); do
		options_of "$tool"
		{ (trap '' PIPE && exec "$program" -q "${options[@]}" "$dir/in.csv") 2>"$dir/err" || echo $? >"$dir/status"; } | true
		[ "$(cat "$dir/status")" -eq 3 ]
		[ "$(cat "$dir/err")" = "$tool: standard output: Broken pipe" ]
	done
	echo a,n >"$dir/a.csv"
	cp "$dir/a.csv" "$dir/b.csv"
	seq -f '%.0f,1' 1000000 >>"$dir/a.csv"
	{ (trap '' PIPE && exec "$bin/wm-merge" -k a --sum n "$dir/a.csv" "$dir/b.csv") 2>"$dir/err" || echo $? >"$dir/status"; } | true
	[ "$(cat "$dir/status")" -eq 3 ]
	[ "$(cat "$dir/err")" = 'wm-merge: standard output: Broken pipe' ]
}

@test "SIGTERM and SIGINT in a read that waits: it dies of the signal and says what became of the rest" {
	for tool in $(tools); do
		options_of "$tool"
		interrupted_of "$tool"
		printf 'ts,key\n1,a\n12,a\n13,b\n' >"$dir/in.csv"
		for signal in SIGTERM SIGINT; do
			status=$([ $signal = SIGTERM ] && echo 143 || echo 130)
			attempt "$status" "$said" tests/fault/interrupt.py $signal "$dir/in.csv" "$program" "${options[@]}"
			[ "$(tail -n 1 "$dir/out")" = "$last" ]
		done
	done
}

@test "a file that may not grow (ulimit -f): status 3 and a message, and the next run goes on" {
	{ echo ts,k && seq -f %g,a 100000; } >"$dir/in.csv"
	for command in 'wm-stamp -w 0s' 'wm-sort -w 1h' 'wm-dedup -w 10s -k ts'; do
		# shellcheck disable=SC2206
		words=($command)
		tool=${words[0]}
		rm -rf "$dir"/st* "$dir/rows" "$dir/size"
		"$bin/$tool" -q -t ts "${words[@]:1}" "$dir/in.csv" >"$dir/want"
		attempt 3 'File too large' bash -c \
			"ulimit -f 10; '$bin/$tool' -q -t ts ${words[*]:1} -C '$dir/st' --eof flush '$dir/in.csv' >>'$dir/rows'"
		"$bin/$tool" -q -t ts "${words[@]:1}" -C "$dir/st" --eof flush "$dir/in.csv" >>"$dir/rows"
		cmp "$dir/want" "$dir/rows"
	done
}

@test "more FILEs side by side than the soft limit lets be open; and than the hard one" {
	local i
	tool=wm-window
	for ((i = 0; i < 300; i++)); do printf 'ts\n%d\n' $i >"$dir/$i.csv"; done
	attempt 0 '' bash -c "ulimit -Sn 100; '$bin/wm-window' -q -t ts -w 0s --tumbling 1h --merge '$dir'/*.csv"
	[ "$(tail -n 1 "$dir/out")" = 1970-01-01T00:00:00Z,1970-01-01T01:00:00Z,300 ]
	attempt 3 'Too many open files: raise the limit of open files \(ulimit -Hn\), or name fewer FILEs' \
		bash -c "ulimit -n 100; '$bin/wm-window' -q -t ts -w 0s --tumbling 1h --merge '$dir'/*.csv"
}

@test "--eof flush, given, and a signal: what is open is written, then it dies of the signal" {
	printf 'ts,k\n1,a\n12,b\n13,c\n4' >"$dir/in.csv"
	printf 'ts,k\n1,a\n' >"$dir/right.csv"
	for command in 'wm-window -w 5s --tumbling 10s' 'wm-sort -w 1h' 'wm-join -w 5s -k k --between 0s,0s --type left' \
		'wm-dedup -w 1h -k k' 'wm-stamp -w 0s' 'wm-window -w 1h --tumbling 10s --trigger 100rows'; do
		# shellcheck disable=SC2206
		words=($command)
		tool=${words[0]}
		files=()
		[ "${words[0]}" != wm-join ] || files=(- "$dir/right.csv")
		head -n 4 "$dir/in.csv" | "$bin/${words[0]}" -q -t ts "${words[@]:1}" "${files[@]}" >"$dir/want"
		attempt 143 'standard input: stopped by a signal in the middle of a line, which is left' \
			tests/fault/interrupt.py SIGTERM "$dir/in.csv" "$bin/${words[0]}" -t ts "${words[@]:1}" --eof flush "${files[@]}"
		cmp "$dir/want" "$dir/out"
		! grep -E 'not written|held' "$dir/err" || return 1
	done
}

@test "--eof flush, given, and a second signal, of whatever kind: it dies at once" {
	load until
	seq -f '1,%.0f' 200000 | sed '1i ts,k' >"$dir/many.csv"
	mkfifo "$dir/slow" "$dir/more"
	for second in TERM INT; do
		# So slow that what the first one lets be written takes half a minute.
		rm -f "$dir/begun"
		python3 -c 'import os, sys, time
count = 0
while data := os.read(0, 1000):
    count += len(data)
    with open(sys.argv[1], "w") as file:
        file.write(str(count))
    time.sleep(0.01)' "$dir/begun" <"$dir/slow" &
		reader=$!
		# A shell has what it starts behind it ignore SIGINT.
		python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$bin/wm-window" -q -t ts --time-format s -w 1h --tumbling 10s -g k --eof flush "$dir/more" \
			>"$dir/slow" 2>"$dir/err" &
		pid=$!
		exec 8>"$dir/more"
		cat "$dir/many.csv" >&8
		kill -TERM $pid
		until_true '[ -s "$dir/begun" ]'
		kill -$second $pid
		status=0
		wait $pid || status=$?
		[ "$status" -eq "$([ $second = TERM ] && echo 143 || echo 130)" ]
		diff /dev/null "$dir/err"
		# Of 2.9 MB.
		[ "$(cat "$dir/begun")" -lt 1500000 ]
		exec 8>&-
		kill $reader
		wait $reader || true
	done
}

# Starts a tool whose output is a pipe that nobody reads, and waits until it waits for that.
begin_blocked() {
	exec 8<>"$dir/unread"
	"$program" "${options[@]}" "${second[@]}" "$dir/many" 8<&- >"$dir/unread" 2>"$dir/err" &
	pid=$!
	until_true "grep -q '^State:.S' /proc/$pid/status && sleep 0.2 && grep -q '^State:.S' /proc/$pid/status"
}

@test "a pipe that nobody reads: SIGUSR1 is answered, and SIGTERM ends the tool, which says what that means" {
	load until
	mkfifo "$dir/unread"
	{
		echo ts,key
		seq -f '%.0f,a' 1700000000 10 1700600000
	} >"$dir/many"
	for tool in $(tools); do
		# It has a line or two for all of that.
		[ "$tool" != wm-lag ] || continue
		options_of "$tool"
		second=()
		[ "$tool" != wm-join ] || second=("$dir/many")
		begin_blocked
		kill -USR1 "$pid"
		until_true "grep -q '\"type\":\"progress\"' '$dir/err'"
		kill -TERM "$pid"
		until_true "! kill -0 $pid"
		wait "$pid" && status=0 || status=$?
		[ "$status" = 143 ] || fail "$tool: status $status"
		grep -q "$tool: stopped by a signal while nobody reads the output" "$dir/err" || fail "$tool: $(cat "$dir/err")"
		exec 8<&-
	done
}

@test "SIGTERM among costly records and rows without end: it ends soon" {
	load until
	seq 1700000000 1700020000 >"$dir/many"
	for choice in "--sliding 9000s,1ms -w 0s" "--tumbling 10d --mode complete --trigger each -g ts -w 0s" \
		"--sliding 100000s,1s --panes discarding --allowed-lateness 1s -w 200000s"; do
		read -ra words <<<"$choice"
		"$bin/wm-window" -q --columns ts -t ts --tz UTC "${words[@]}" "$dir/many" >/dev/null &
		pid=$!
		sleep 0.5
		kill -TERM "$pid"
		until_true "! kill -0 $pid"
		wait "$pid" && status=0 || status=$?
		[ "$status" = 143 ] || fail "$choice: status $status"
	done
}

@test "inputs that are missing, a directory, or fail when read" {
	for tool in $(tools); do
		options_of "$tool"
		attempt 3 "$dir/none.csv: .*No such file" "$program" "${options[@]}" "$dir/none.csv"
		attempt 3 "$dir: .*[Ii]s a directory" "$program" "${options[@]}" "$dir"
		attempt 3 'standard input: .*[Ii]s a directory' "$program" "${options[@]}" <"$dir"
		attempt 3 '/proc/self/mem: .*Input/output error' "$program" "${options[@]}" /proc/self/mem
		printf 'ts,key\n1,a\n2,b\n' >"$dir/in.csv"
		attempt 3 "$dir/none.csv: .*No such file" "$program" "${options[@]}" "$dir/in.csv" "$dir/none.csv"
	done
}
