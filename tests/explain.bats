#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --explain against what then happens: the row times that it names close the
# window that it names, and the rows that it calls late are.

bats_require_minimum_version 1.5.0

load /usr/lib/bats/bats-support/load
load /usr/lib/bats/bats-assert/load

setup() {
	build=$(cd "$BATS_TEST_DIRNAME/.." && cd "${WM_BIN:-build/release}" && pwd)
	cd "$BATS_TEST_TMPDIR" || return 1
}

# Text of the explanation as one line.
explain() {
	run -0 --separate-stderr "$build/wm-window" -t time "$@" --explain </dev/null
	assert_equal "$stderr" ''
	refute_line --regexp '.{100}' # 80 columns, and some bytes more for dashes
	text=$(tr -s '\n ' ' ' <<<"$output")
}

# A time of the explanation in microseconds, as if the zone were UTC; and back.
us_of() {
	local time=$1
	[[ $time == *T* ]] || time=2025-01-01T$time
	TZ=UTC date -d "$time" +%s%6N
}
time_of() {
	TZ=UTC date -d "@${1:0:-6}.${1: -6}" +%Y-%m-%dT%H:%M:%S.%6N
}

# Takes apart what the explanation says of its first window, into microseconds.
claim() {
	local when='[^ ]+' last
	local pattern="($when)–($when) is (written once,|forgotten) (when|at the end of the batch in which) a row of"
	pattern+=" ($when) or later comes; (after that|from the next batch on) rows before ($when) are late"
	pattern+="(, and rows from there to before ($when) partly late)?"
	[[ $text =~ $pattern ]] || fail "no claim in: $text"
	last=${BASH_REMATCH[9]:-}
	start=$(us_of "${BASH_REMATCH[1]}")
	end=$(us_of "${BASH_REMATCH[2]}")
	closing=$(us_of "${BASH_REMATCH[5]}")
	late=$(us_of "${BASH_REMATCH[7]}")
	partly=$([[ -z $last ]] || us_of "$last")
	[[ $text =~ 'A row of '([^ ]+)' counts in' ]]
	example=$(us_of "${BASH_REMATCH[1]}")
}

# window BATCH... -- ARGUMENT...: runs over batches, each a list of times in
# microseconds; batches differ in column b, and with a --trigger of file in the
# file. Leaves results in $output, late rows in late.csv, the ledger in report.
window() {
	local files=() time number=0
	rm -f rows*.csv
	while [[ $1 != -- ]]; do
		number=$((number + 1))
		local file=rows$number.csv
		[[ " $* " == *' --trigger file '* ]] || file=rows.csv
		[ -f "$file" ] || { echo time,b >"$file" && files+=("$file"); }
		for time in $1; do
			printf '%s,%s\n' "$(time_of "$time")" "$number" >>"$file"
		done
		shift
	done
	shift
	run -0 --separate-stderr "$build/wm-window" -q -t time --eof hold --overwrite --late late.csv --report report \
		"$@" "${files[@]}"
}

# The results as "START END COUNT", in microseconds.
results() {
	local from to count
	while IFS=, read -r from to count; do
		echo "$(us_of "${from:0:19}") $(us_of "${to:0:19}") $count"
	done < <(tail -n +2 <<<"$output")
}

assert_written() {
	local rows
	rows=$(results)
	grep -qxF "$start $end 1" <<<"$rows" || fail "no '$start $end 1' in: $rows"
}

refute_written() {
	local rows
	rows=$(results)
	! grep -qF "$start $end" <<<"$rows" || fail "a '$start $end' in: $rows"
}

late_rows() {
	tail -n +2 late.csv | wc -l
}

partly_late_rows() {
	grep -o '"rows_partly_late":[0-9]*' report | tail -1 | cut -d: -f2
}

# holds ARGUMENT...: what is said of each row, for the trigger "each".
holds() {
	explain "$@"
	claim
	window "$example $((closing - 1))" -- "$@"
	refute_written
	window "$example $closing" -- "$@"
	assert_written
	holds_late "$example $closing" '' "$@"
}

# holds_batch ARGUMENT...: the same where rows come in batches of two.
holds_batch() {
	explain "$@"
	claim
	window "$example $((closing - 1))" "$example $example" -- "$@"
	refute_written
	window "$example $closing" "$closing $closing" -- "$@"
	assert_written
	# the batch of the closing row is judged by the watermark from before it
	window "$closing $((late - 1))" "$closing $closing" -- "$@"
	assert_equal "$(late_rows)" 0
	holds_late "$example $closing" "$closing" "$@"
}

# holds_late BEFORE SECOND ARGUMENT...: rows behind BEFORE, with SECOND in their
# batch, at the times where being late begins and ends.
holds_late() {
	local before=$1 second=$2
	shift 2
	window "$before" "$((late - 1)) $second" -- "$@"
	assert_equal "$(late_rows)" 1
	window "$before" "$late $second" -- "$@"
	assert_equal "$(late_rows)" 0
	if [[ -n $partly ]]; then
		assert_equal "$(partly_late_rows)" 1
		window "$before" "$((partly - 1)) $second" -- "$@"
		assert_equal "$(partly_late_rows)" 1
		window "$before" "$partly $second" -- "$@"
	fi
	assert_equal "$(partly_late_rows)" 0
}

@test "the worked example" {
	explain --tumbling 5m -w 2m
	[[ $text == *'A row of 10:07 makes it 10:05.'* ]]
	[[ $text == *'10:00–10:05 is written once, when a row of 10:07 or later comes; after that rows before 10:05 are late.'* ]]
	holds --tumbling 5m -w 2m
}

@test "windows without a delay, off the grid, and of odd sizes" {
	holds --tumbling 5m -w 0s
	holds --tumbling 5m --offset -2m -w 90s
	holds --tumbling 7s -w 2m
	holds --tumbling 1h -w 1d
}

@test "sliding windows: late and partly late" {
	holds --sliding 10m,5m -w 2m
	holds --sliding 1h,7m -w 10m
	holds --sliding 10m,3m -w 0s --offset 1m
}

@test "cumulating windows" {
	holds --cumulating 10m,5m -w 2m
	holds --cumulating 1h,1m -w 0s --offset 30s
	holds --cumulating 10m,10m -w 2m
}

@test "sessions: one row is a session, and a row is late when its own span is complete" {
	local session
	for session in '--session 5m -w 2m' '--session 7s -w 1h' '--session 5m -w 2m --allowed-lateness 0s'; do
		# shellcheck disable=SC2086 # the words of it are arguments
		set -- $session
		explain "$@"
		[[ $text =~ ([0-9:]+)–([0-9:]+)' is written once, when a row of '([0-9:]+)' or later comes; after that rows of '([0-9:]+)' or before are late' ]]
		start=$(us_of "${BASH_REMATCH[1]}") end=$(us_of "${BASH_REMATCH[2]}") closing=$(us_of "${BASH_REMATCH[3]}")
		late=$(us_of "${BASH_REMATCH[4]}")
		window "$start $((closing - 1))" -- "$@"
		refute_written
		window "$start $closing" -- "$@"
		assert_written
		window "$start $closing $late" -- "$@"
		assert_equal "$(late_rows)" 1
		window "$start $closing $((late + 1))" -- "$@"
		assert_equal "$(late_rows)" 0
	done
	explain --session column:gap,s -w 2m
	[[ $text == *'each row has its own.'*'With a gap of 10m a row of 10:02 alone is the session 10:02–10:12.'* ]]
}

@test "allowed lateness: until when a late row still counts" {
	explain --tumbling 5m -w 2m --allowed-lateness 10m
	[[ $text =~ '10:00–10:05 is written when a row of '([0-9:]+)' or later comes; again when a late row has reached it, until a row of '([0-9:]+)' or later comes; after that rows before 10:05 are late. Each time it holds everything so far.' ]]
	closing=$(us_of "${BASH_REMATCH[1]}")
	local forgetting
	forgetting=$(us_of "${BASH_REMATCH[2]}")
	set -- --tumbling 5m -w 2m --allowed-lateness 10m
	window "$(us_of 10:02) $closing $(us_of 10:04)" -- "$@"
	assert_equal "$(grep -c '10:00:00Z,2025-01-01T10:05:00Z' <<<"$output")" 2
	window "$(us_of 10:02) $((forgetting - 1)) $(us_of 10:04)" -- "$@"
	assert_equal "$(late_rows)" 0
	window "$(us_of 10:02) $forgetting $(us_of 10:04)" -- "$@"
	assert_equal "$(late_rows)" 1
}

@test "early results" {
	explain --tumbling 5m -w 2m --early 100rows --panes discarding
	[[ $text == *'Before that a window is written after each 100 rows of it. Each time it holds what is new'* ]]
	explain --tumbling 5m -w 2m --early event:1m
	[[ $text == *'when the highest event time enters a new multiple of 1m. Each time it holds everything so far.'* ]]
}

@test "windows of the calendar" {
	holds --tumbling 1d -w 6h --tz Europe/Berlin
	holds --tumbling 1w -w 2d --tz America/New_York
	holds --tumbling 3mo -w 0s --tz Asia/Kolkata
	holds --tumbling 1y -w 1h
	explain --tumbling 1d -w 6h --tz Europe/Berlin
	[[ $text == *'2025-01-01T00:00–2025-01-02T00:00 is written once, when a row of 2025-01-02T06:00 or later comes'* ]]
}

@test "the watermark has whole milliseconds" {
	explain --tumbling 5m -w 1500us
	[[ $text == *'A row of 10:05:00.001500 makes it 10:05.'* ]]
	holds --tumbling 5m -w 1500us
	explain --tumbling 5m --offset 500us -w 2m
	[[ $text == *'A row of 10:07:00.001 makes it 10:05:00.001.'*'10:00:00.000500–10:05:00.000500 is written'* ]]
}

@test "compat spark" {
	explain --tumbling 5m -w 1500us --compat spark
	[[ $text == *'A row of 10:05:00.001 makes it 10:05. It is cut to whole milliseconds.'* ]]
	holds --tumbling 5m -w 1500us --compat spark
	holds --tumbling 1w -w 2m --compat spark
}

@test "update mode forgets when it says" {
	explain --tumbling 5m -w 2m --mode update
	claim
	window "$example $closing" -- --tumbling 5m -w 2m --mode update
	assert_written
	holds_late "$example $closing" '' --tumbling 5m -w 2m --mode update
}

@test "batches: of files, of a column, of rows, of event time" {
	holds_batch --tumbling 5m -w 2m --trigger file
	holds_batch --tumbling 5m -w 2m --trigger column:b
	holds_batch --sliding 10m,5m -w 2m --trigger file
	holds_batch --tumbling 1d -w 6h --tz Europe/Berlin --trigger column:b
	holds_batch --tumbling 5m -w 2m --trigger 2rows
}

@test "a batch of event time ends with the row that is named" {
	explain --tumbling 5m -w 2m --trigger event:3m
	claim
	[[ $text =~ 'after a row of 10:02 with the first row of '([^ ]+)' or later' ]]
	local ends
	ends=$(us_of "${BASH_REMATCH[1]}")
	# the row before it ends no batch: with no delay it would close the window of a millisecond
	window "$example $((ends - 1))" -- --tumbling 1ms -w 0s --trigger event:3m
	assert_equal "$(results)" ''
	window "$example $ends" -- --tumbling 1ms -w 0s --trigger event:3m
	refute [ -z "$(results)" ]
	holds_late "$example $closing" '' --tumbling 5m -w 2m --trigger event:3m
}

@test "one batch of all input" {
	explain --tumbling 5m -w 2m --trigger eof
	[[ $text =~ '10:00–10:05 is written when the batch has ended if a row of '([^ ]+)' or later was in it. No row is late' ]]
	closing=$(us_of "${BASH_REMATCH[1]}")
	example=$(us_of 10:02) start=$(us_of 10:00) end=$(us_of 10:05)
	window "$example $((closing - 1))" -- --tumbling 5m -w 2m --trigger eof
	refute_written
	window "$closing $example" -- --tumbling 5m -w 2m --trigger eof
	assert_written
	assert_equal "$(late_rows)" 0
}

@test "without a watermark, and in complete mode, nothing is late" {
	example=$(us_of 10:02) start=$(us_of 10:00) end=$(us_of 10:05)
	explain --tumbling 5m
	[[ $text == *'None, as there is no -w: no row is late.'*'All windows are written at the end of the input.'* ]]
	window "$(us_of 23:00) $example" -- --tumbling 5m
	refute_written
	assert_equal "$(late_rows)" 0
	# but for what the rows carry
	run -0 "$build/wm-window" --tumbling 5m --explain
	assert_line --partial "Column '_time', which wm-stamp writes."
	text=$(tr -s '\n ' ' ' <<<"$output")
	[[ $text == *"As it comes with the rows, in column '_watermark'. Where that is missing there is none, as there is no -w"*"written when the watermark in the rows has reached its end"* ]]
	run -0 "$build/wm-window" -t time --watermark-column until --tumbling 5m --explain
	[[ $(tr -s '\n ' ' ' <<<"$output") == *"As it comes with the rows, in column 'until'. "* ]]
	run -0 "$build/wm-window" --watermark-column none --tumbling 5m --explain
	refute_output --partial 'comes with the rows'
	run -0 "$build/wm-window" -q -t time --tumbling 5m rows.csv
	assert_written
	explain --tumbling 5m --mode complete -w 0s
	[[ $text == *'At the end of the input all windows are written, changed or not. No row is late'* ]]
	window "$(us_of 23:00) $example" -- --tumbling 5m --mode complete -w 0s
	assert_written
	assert_equal "$(late_rows)" 0
}

@test "several files: each has a watermark of its own with --merge" {
	explain --tumbling 5m -w 2m --merge a b
	[[ $text == *'10:00–10:05 is written once, when each file has ended or shown a row of 10:07 or later; after that'* ]]
	printf 'time\n2025-01-01T10:02:00Z\n2025-01-01T10:06:59Z\n' >a
	printf 'time\n2025-01-01T10:07:00Z\n2025-01-01T10:07:00Z\n' >b
	run -0 "$build/wm-window" -q -t time --tumbling 5m -w 2m --merge --late late.csv a b
	assert_line '2025-01-01T10:00:00Z,2025-01-01T10:05:00Z,1'
	assert_equal "$(late_rows)" 0
}

@test "sources: each value of a column has a watermark of its own" {
	explain --tumbling 5m -w 2m --source host --idle 1h
	[[ $text == *"Each value of column 'host' has one"*'10:00–10:05 is written once, when each source has shown a row of 10:07 or later'* ]]
	printf 'time,host\n2025-01-01T10:02:00Z,a\n2025-01-01T10:00:00Z,b\n2025-01-01T10:07:00Z,a\n' >in.csv
	run -0 "$build/wm-window" -q -t time --tumbling 5m -w 2m --source host --eof hold in.csv
	refute_line --partial '10:05:00Z'
	printf '2025-01-01T10:07:00Z,b\n' >>in.csv
	run -0 "$build/wm-window" -q -t time --tumbling 5m -w 2m --source host --eof hold in.csv
	assert_line '2025-01-01T10:00:00Z,2025-01-01T10:05:00Z,2'
	explain --tumbling 5m -w 2m,web2=10m --source host --policy max
	[[ $text == *'its highest event time so far less 2m (web2: 10m), moved'*'The one that counts is the greatest'*'when a row of 10:07 or later comes'* ]]
}

@test "sources with a delay of their own, and those known beforehand" {
	explain --tumbling 5m -w 2m,web2=10m,a\\,b=90s --source host --sources web1,web2
	[[ $text == *'so far less 2m (web2: 10m, a,b: 1m30s), moved with each row'* ]]
	[[ $text == *'web1 and web2 hold it back from the start, until each has spoken (--sources).'* ]]
	[[ $text == *'10:00–10:05 is written once, when each source has shown a row of 10:07 or later, by the difference earlier or later where its delay is another; after that'* ]]
	# so it is: web2 has to show a row of 10:15
	for last in 10:14:59 10:15:00; do
		printf 'time,host\n2025-01-01T10:02:00Z,web1\n2025-01-01T10:07:00Z,web1\n2025-01-01T%sZ,web2\n' $last >in.csv
		run -0 "$build/wm-window" -q -t time --tumbling 5m -w 2m,web2=10m --source host --sources web1,web2 --eof hold in.csv
		[ "$last" = 10:14:59 ] || assert_line '2025-01-01T10:00:00Z,2025-01-01T10:05:00Z,1'
		[ "$last" = 10:15:00 ] || refute_line --partial '10:05:00Z,1'
	done
	explain --tumbling 5m -w 2m --source host --sources web1 --idle 1h
	[[ $text == *'web1 holds it back from the start, until it has spoken or is left out (--sources).'* ]]
}

@test "sliding windows that tumble, empty windows, states" {
	explain --sliding 5m,5m -w 2m
	[[ $text == *'Windows 5m each, one after the other.'* ]]
	explain --tumbling 5m -w 2m --fill zero
	[[ $text == *'The empty windows between two are written too (--fill zero), with 0 for counts and sums and no other value.'* ]]
	explain --tumbling 5m -w 2m --fill null -g host
	[[ $text == *'The empty windows between two of one value are written too (--fill null), without a value.'* ]]
	explain --tumbling 5m -w 2m --fill prev
	[[ $text == *'(--fill prev), with the values of the window before.'* ]]
	explain --tumbling 5m --partial
	[[ $text == *'Not values are written but states, which wm-merge --partial combines with those of other runs.'* ]]
	explain --tumbling 5m
	[[ $text != *'--fill'* && $text != *'states'* ]]
}

@test "what is said of inputs, keys, side files and guards" {
	explain --tumbling 5m -w 2m -g host,b -a count,avg:ms --late l.csv --rejects r.ndjson --max-jump 1h a b c d
	[[ $text == 'Input a, b and 2 more, one after the other, as named'* ]]
	[[ $text == *'For each window and each value of host,b: count,avg:ms, to standard output.'* ]]
	[[ $text == *'Late rows Go to l.csv as they came.'*'go to r.ndjson.'* ]]
	[[ $text == *'A row more than 1h ahead of the highest event time counts in its windows'* ]]
	explain --tumbling 5m --max-ahead 1h --ingest now --out x.csv --strict -
	[[ $text == 'Input Standard input.'* || $text == 'Input standard input.'* ]]
	[[ $text == *', to x.csv.'*'A row more than 1h ahead of the clock, is rejected.'* ]]
	explain --tumbling 5m --order time a b
	[[ $text == *'a and b, one after the other, in the order of their first event times.'* ]]
	explain --tumbling 5m --tsv-escapes none a
	[[ $text == *'In TSV a backslash is a letter: each tab and each line end parts.'* ]]
	explain --tumbling 5m -w 0s --files0-from list --merge
	[[ $text == 'Input The files that list names, side by side'* ]]
	explain --tumbling 5m -w 0s --fail-late 1/1000
	[[ $text == *'The status is 5 if more than 1/1000 of the rows were late.'* ]]
}

@test "nothing is read or written" {
	mkdir empty
	cd empty
	explain --tumbling 5m -w 2m --late l.csv --rejects r --report p --metrics m.prom --out o missing.csv
	assert_equal "$(ls)" ''
	# standard input that never ends
	mkfifo never
	exec 9<>never
	run -0 timeout 5 "$build/wm-window" --tumbling 5m -t time --explain <&9
	exec 9>&-
}

@test "names from the command line cannot steer a terminal" {
	run -0 --separate-stderr "$build/wm-window" -t $'a\e[31m' --tumbling 5m --explain $'b\a'
	refute_output --regexp $'[\e\a]'
	assert_output --partial 'a\x1B[31m'
}

@test "texts of any length" {
	local zeros
	zeros=$(printf '%05000d' 0)
	run -0 --separate-stderr "$build/wm-window" -t time --tumbling "${zeros}5m" -w "${zeros}2m" --fail-late "${zeros}1/9" \
		-g "$zeros" --explain
	[[ $(tr -s '\n ' ' ' <<<"$output") == *'05m each, one after the other.'* ]]
}

@test "windows at the ends of the calendar" {
	explain --tumbling 9000y -w 9000d
	[[ $text == *'is written at the end of the input: no time of the years 1 to 9999 completes it.'* ]]
	explain --sliding 10000d,10d -w 0s
	explain --tumbling 1us -w 3650000d --mode update
}

@test "an explanation that cannot be written is status 3" {
	run --separate-stderr bash -c '"$0" -t time --tumbling 5m --explain >/dev/full' "$build/wm-window"
	assert_equal "$status" 3
	assert_equal "$stderr" 'wm-window: standard output: No space left on device'
}
