#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command line: what is refused and in which words, the help, and that
# help, man page and completion name the same options.

bats_require_minimum_version 1.5.0

load /usr/lib/bats/bats-support/load
load /usr/lib/bats/bats-assert/load

setup() {
	cd "$BATS_TEST_DIRNAME/.." || return 1
	build=$(cd "${WM_BIN:-build/release}" && pwd)
	wm=$build/wm-window
	out=$BATS_TEST_TMPDIR/out
	err=$BATS_TEST_TMPDIR/err
}

# refuses MESSAGE ARGUMENT...: status 2, nothing on standard output, and on
# standard error the one line "wm-window: MESSAGE". A "*" at the end of MESSAGE
# stands for the rest of the line.
refuses() {
	local want="wm-window: $1" status=0
	shift
	"$wm" "$@" >"$out" 2>"$err" </dev/null || status=$?
	assert_equal "$status" 2
	assert_equal "$(wc -c <"$out")" 0
	assert_equal "$(wc -l <"$err")" 1
	assert_equal "$(tail -c 1 "$err" | od -An -c | tr -d ' ')" '\n'
	if [[ $want == *'*' ]]; then
		want=${want%'*'}
		assert_equal "$(head -c ${#want} "$err")" "$want"
	else
		assert_equal "$(cat "$err")" "$want"
	fi
}

# Windows of ten minutes; two rows, at 00:01 and 00:11.
accepts() {
	printf 'time,n\n2024-01-01T00:01:00Z,1\n2024-01-01T00:11:00Z,2\n' >"$BATS_TEST_TMPDIR/rows.csv"
	run --separate-stderr "$wm" -t time --tumbling 10m "$@" <"$BATS_TEST_TMPDIR/rows.csv"
	assert_success
}

two_windows='window_start,window_end,count
2024-01-01T00:00:00Z,2024-01-01T00:10:00Z,1
2024-01-01T00:10:00Z,2024-01-01T00:20:00Z,1'

tools() {
	sed -n 's/^TOOLS := //p' Makefile
}

# ---- names of options ----

@test "an abbreviation names the option" {
	refuses '--delim: write --delimiter in full' --delim ';'
	refuses '--time-f: write --time-format in full' --time-f=iso
	refuses '--la: write --late or --late-info in full' --la x
}

@test "a misspelt option names the nearest" {
	refuses 'no option --tumblin: did you mean --tumbling?' --tumblin 5m
	refuses 'no option --tumlbing: did you mean --tumbling?' --tumlbing=5m
	refuses 'no option --no_header: did you mean --no-header?' --no_header
	refuses 'no option --xyzzy: see --help' --xyzzy
	refuses 'no option -x: see --help' -x
	refuses 'no option -x: see --help' -qx
	refuses 'no option -5: see --help' -5m
	refuses 'no option --: see --help' --=5
}

@test "words of other tools name ours" {
	refuses 'no option --watermark: the watermark follows from the delay: write -w D (--delay)' --watermark 10m
	refuses 'no option --lateness: how late rows may come is the delay: write -w D (--delay)' --lateness 10m
	refuses 'no option --window: windows are --tumbling SIZE or --sliding SIZE,SLIDE' --window 5m
	refuses 'no option --interval: windows are --tumbling SIZE or --sliding SIZE,SLIDE' --interval 5m
	refuses 'no option --slide: write --sliding SIZE,SLIDE' --slide 1m
	refuses 'no option --session-gap: write --session GAP' --session-gap 1m
	refuses 'no option --cumulate: write --cumulating MAX,STEP' --cumulate 1h,1m
	refuses 'no option --hop: write --sliding SIZE,SLIDE' --hop 1m
	refuses 'no option --by: write -g COLUMNS (--group-by)' --by host
	refuses 'no option --group: write -g COLUMNS (--group-by)' --group host
	refuses 'no option --key: write -g COLUMNS (--group-by)' --key host
	refuses 'no option --sum: write -a LIST (--aggregate), such as -a count,max:mag' --sum bytes
	refuses 'no option --format: write -i F for the input, -o F for the output, --time-format F for times' \
		--format csv
	refuses 'no option --output: write > FILE or --out FILE; the format is -o F' --output x
	refuses 'no option --batch-size: write --trigger 1000rows, event:10s or wall:10s' --batch-size 1000
	refuses 'no option --dry-run: write --explain' --dry-run
	refuses 'no option --files-from: write --files0-from FILE; its names end in NUL bytes' --files-from list
	refuses 'no option --timezone: write --tz ZONE' --timezone UTC
	refuses 'no option --date-format: write --time-format F' --date-format %Y
	refuses 'no option --timestamp: write -t COLUMN (--time)' --timestamp ts
	refuses 'no option --separator: write -d C (--delimiter)' --separator ';'
	refuses 'no option --side-output: write --late FILE' --side-output late.csv
}

@test "what other tools have and these do in another way is answered with what to do" {
	for word in filter where limit head gzip compress color on within ttl avg lookup; do
		for tool in window join dedup sort stamp lag; do
			run -2 "$build/wm-$tool" --$word x
			assert_output --regexp "^wm-$tool: no option --$word: .*(write|wm-|-t COLUMN|-w D|--asof|leave it out)"
			refute_output --partial 'see --help'
			# the options that it names are there
			for option in $(grep -oE -- '--[a-z-]+' <<<"${output#*: *: }"); do
				"$build/wm-$tool" --help=all | grep -q -- "$option\b" || "$build/wm-join" --help=all | grep -q -- "$option\b"
			done
		done
	done
	refuses 'no option --limit: write | head -n N' --limit 5
	refuses 'no option --on: write -g COLUMNS (--group-by)' --on host
	refuses 'no option --pxll: see --help' --pxll NA
}

@test "an option with an argument is given once, with its argument" {
	refuses '--late: needs an argument: write --late FILE' --late
	refuses '-w: needs an argument: write -w D' -w
	refuses "--late: needs an argument, and '--rejects' is an option: write --late FILE" --late --rejects x
	refuses "-t: needs an argument, and '-w' is an option: write -t COLUMN" -t -w 10m
	refuses '--strict: takes no argument: write --strict alone' --strict=1
	refuses '--late: given twice: give it once' --late a --late b
	refuses '--delay: given twice: give it once' -w 1s --delay 1s
	accepts --strict --strict -q -q
	assert_output "$two_windows"
}

@test "a negative duration may stand as an argument by itself" {
	accepts --offset -5m
	assert_line --index 1 '2023-12-31T23:55:00Z,2024-01-01T00:05:00Z,1'
	accepts --offset=-5m
	assert_line --index 1 '2023-12-31T23:55:00Z,2024-01-01T00:05:00Z,1'
	refuses "-w: '-1s' is negative: write 0s or more" -w -1s
	refuses "--delay: '-1s' is negative: write 0s or more" --delay=-1s
}

@test "options may follow operands, -- ends them, POSIXLY_CORRECT changes nothing" {
	accepts - -o ndjson
	assert_line --index 0 --partial '{'
	run --separate-stderr env POSIXLY_CORRECT=1 "$wm" "$BATS_TEST_TMPDIR/rows.csv" -o ndjson -t time --tumbling 10m
	assert_success
	assert_line --index 0 --partial '{'
	cd "$BATS_TEST_TMPDIR"
	printf 'time\n2024-01-01T00:21:00Z\n' >./-V
	accepts -- -V
	assert_line --index 1 '2024-01-01T00:20:00Z,2024-01-01T00:30:00Z,1'
}

# ---- arguments ----

@test "durations, sizes and choices" {
	refuses "-w: '10': ten what? write*" -w 10
	refuses "--offset: *" --offset soon
	refuses "--record-limit: '64KB' is no size: write 64K, 512M or 2G" --record-limit 64KB
	refuses "--record-limit: '' is no size: write 64K, 512M or 2G" --record-limit=
	refuses "--record-limit: '-1' is no size: write 64K, 512M or 2G" --record-limit -1
	refuses "--record-limit: '0K' is no size: write 1 or more" --record-limit 0K
	refuses "--record-limit: '16777216T' is too large: write 64K, 512M or 2G" --record-limit 16777216T
	refuses "--record-limit: '18446744073709551616' is too large: write 64K, 512M or 2G" \
		--record-limit 18446744073709551616
	refuses "--mode: no 'apend': append, update or complete: did you mean append?" --mode apend
	refuses "--mode: no 'x': append, update or complete" --mode x
	refuses "-i: no 'json': auto, csv, tsv, ndjson, clf, logfmt or lines: did you mean ndjson?" -i json
	refuses "--eof: no '': flush, hold or trigger" --eof ''
	accepts --record-limit 1K --mode append --eof flush
	assert_output "$two_windows"
}

@test "jsonl is ndjson" {
	run --separate-stderr "$wm" -i jsonl -t time --tumbling 10m <<<'{"time":"2024-01-01T00:01:00Z"}'
	assert_success
	assert_output --partial '2024-01-01T00:10:00Z'
}

@test "columns" {
	refuses "-t: *" -t ''
	refuses "-g: *" -g a,,b
	refuses "--group-by: 'a' is named twice: name it once" --group-by a,b,a
	refuses "--columns: 'a' is named twice: name it once" --columns a,a
	refuses "--columns: '@' names no file: write @FILE" --columns @
	refuses '--columns and --no-header: both say what the columns are called: give one of them' \
		--columns a,b --no-header
}

@test "the delimiter" {
	refuses "-d: '10m': -d is the delimiter of CSV: the delay is -w 10m" -d 10m
	refuses "-d: 'ab' cannot be a delimiter: write one byte (no quote, no line end), or \\t" -d ab
	refuses "-d: '' cannot be a delimiter: write one byte (no quote, no line end), or \\t" -d ''
	refuses "-d: '\"' cannot be a delimiter: write one byte (no quote, no line end), or \\t" -d '"'
	refuses "-d: '*" -d $'\n'
	refuses "-d: '*" -d $'\r'
	refuses "-d: '*" -d $'\tx'
	refuses '-d: only CSV has a delimiter to choose: leave out -i, or write -i csv' -d ';' -i ndjson
	local delimiter
	for delimiter in '\t' $'\t'; do
		run --separate-stderr "$wm" -d "$delimiter" -t time --tumbling 10m <<<$'n\ttime\n1\t2024-01-01T00:01:00Z'
		assert_success
		assert_line --index 1 $'2024-01-01T00:00:00Z\t2024-01-01T00:10:00Z\t1'
	done
}

@test "the trigger" {
	local choices='each, 1000rows, event:10s, wall:10s, column:C, file or eof'
	refuses "--trigger: no 'eahc': $choices: did you mean each?" --trigger eahc
	refuses "--trigger: no '': $choices" --trigger ''
	refuses "--trigger: no '10row': $choices" --trigger 10row
	refuses "--trigger: '1000': 1000 what? write 1000rows, event:1000s or wall:1000s" --trigger 1000
	refuses "--trigger: '10s': write event:10s (of event time) or wall:10s (of the clock)" --trigger 10s
	refuses "--trigger: '0rows': write 1rows or more" --trigger 0rows
	refuses "--trigger: '9223372036854775808rows': the number is too large" --trigger 9223372036854775808rows
	refuses "--trigger: '' is no duration: *" --trigger event:
	refuses "--trigger: '10': ten what? *" --trigger wall:10
	refuses "--trigger: '0s': must be longer than zero" --trigger wall:0s
	refuses "--trigger: '-5s' is negative: *" --trigger event:-5s
	refuses "--trigger: empty column name: name a column" --trigger column:
	local trigger
	for trigger in each 1rows 9223372036854775807rows event:1us wall:1h column:n file eof; do
		accepts --trigger "$trigger"
		assert_output "$two_windows"
	done
}

@test "compat and zone" {
	refuses "--compat: no 'flink': spark" --compat flink
	refuses "--tz: unknown time zone 'Europe/Berlim': did you mean 'Europe/Berlin'?" --tz Europe/Berlim
	accepts --tz +02:00
	assert_line --index 1 '2024-01-01T02:00:00+02:00,2024-01-01T02:10:00+02:00,1'
}

@test "times of two columns, of a year and of an hour" {
	refuses "-t: 'a+b+c' is more than two columns: write date+time (a '+' in a name is written \\+)" -t a+b+c
	refuses '-t: empty column name: name a column' -t a+
	run -0 "$wm" -t day+time --tumbling 1h <<<$'day,time\n2024-01-01,00:30:00'
	assert_line --index 1 '2024-01-01T00:00:00Z,2024-01-01T01:00:00Z,1'
	run -0 "$wm" -t 'day\+time' --tumbling 1h <<<$'day+time\n2024-01-01T00:30:00'
	assert_line --index 1 '2024-01-01T00:00:00Z,2024-01-01T01:00:00Z,1'

	refuses "--time-reference: it has a use only with a --time-format without a year, such as '%b %d %H:%M:%S'" \
		--time-reference 2024-01-01
	refuses "--time-reference: '01/02/2024': month first or day first? *" --time-reference 01/02/2024 \
		--time-format '%b %d %H:%M:%S'
	run -0 "$wm" -t t --tumbling 1h --time-format '%b %d %H:%M:%S' --time-reference 2024-01-01 \
		<<<$'t\nDec 31 23:59:59'
	assert_line --index 1 '2023-12-31T23:00:00Z,2024-01-01T00:00:00Z,1'

	refuses "--repeated-hour: no 'first': earlier or later" --repeated-hour first
	local hour
	for hour in earlier,2024-10-27T02:00:00+02:00 later,2024-10-27T02:00:00+01:00; do
		run -0 "$wm" -q -t t --tumbling 1h --tz Europe/Berlin --repeated-hour "${hour%,*}" \
			<<<$'t\n2024-10-27T02:30:00'
		assert_line --index 1 --partial "${hour#*,},"
	done
}

@test "guards" {
	refuses '--max-jump: there is no watermark that could jump: give a delay with -w' --max-jump 1h
	refuses "--max-jump: '0s': must be longer than zero" --max-jump 0s -w 1s
	refuses '--max-ahead: ahead of what? name the column of arrival times with --ingest COLUMN, or write --ingest now' \
		--max-ahead 1h
	refuses '--ingest: nothing asks for the arrival time: give --max-ahead D' --ingest now
	refuses '--ingest: empty column name: name a column' --ingest ''
	accepts --max-ahead 0s --ingest time
	assert_output "$two_windows"
}

@test "several inputs" {
	refuses "--order: no 'last': given or time" --order last
	refuses '--merge and --order time: side by side, or one after the other: give one of them' --merge --order time
	refuses '--merge and --trigger file: files read side by side do not end one after the other: give one of them' \
		--merge --trigger file
	refuses '--order time: the first event time of standard input is not known beforehand: name files' --order time
	refuses '--order time: the first event time of standard input is not known beforehand: name files' \
		--order time a.csv -
}

@test "inputs from a list" {
	local dir=$BATS_TEST_TMPDIR/list
	mkdir "$dir"
	printf 'time\n2024-01-01T00:01:00Z\n' >"$dir/a b"
	printf 'time\n2024-01-01T00:11:00Z\n' >"$dir/"$'c\nd'
	printf '%s\0' "$dir/a b" "$dir/"$'c\nd' >"$dir/names"
	run -0 "$wm" -t time --tumbling 10m --files0-from "$dir/names"
	assert_output "$two_windows"
	# the last name needs no NUL, and the list may come from a pipe
	run -0 bash -c 'printf "%s\0%s" "$1" "$2" | "$0" -t time --tumbling 10m --files0-from -' "$wm" "$dir/a b" \
		"$dir/"$'c\nd'
	assert_output "$two_windows"

	refuses "--files0-from: '/dev/null' names no file" --files0-from /dev/null
	refuses "--files0-from: '' is no file name" --files0-from ''
	refuses "--files0-from: 'x.csv' is an input too: name inputs in one place" --files0-from "$dir/names" x.csv
	printf 'a\0\0b\0' >"$dir/empty"
	refuses "--files0-from: '$dir/empty': name 2 of 3 is empty" --files0-from "$dir/empty"
	printf 'a\nb\n' >"$dir/lines"
	refuses "--files0-from: '$dir/lines' has lines: each name ends in a NUL byte: write find -print0, or tr '\\n' '\\0'" \
		--files0-from "$dir/lines"
	printf 'a\0-\0' >"$dir/dash"
	refuses '--order time: the first event time of standard input is not known beforehand: name files' \
		--order time --files0-from "$dir/dash"
	run --separate-stderr bash -c 'printf "a\0-\0" | "$0" -t time --tumbling 10m --files0-from -' "$wm"
	assert_equal "$status" 2
	assert_equal "$stderr" "wm-window: --files0-from: name 2 of 2 is '-', but standard input holds the names"
	run --separate-stderr "$wm" --files0-from "$dir/missing"
	assert_equal "$status" 3
	assert_equal "$stderr" "wm-window: $dir/missing: No such file or directory"
	run --separate-stderr "$wm" --files0-from "$dir"
	assert_equal "$status" 3
	assert_equal "$stderr" "wm-window: $dir: Is a directory"
}

@test "the form of results" {
	local format
	for format in '' x %d %s %.3 %.3lf %%.3f %.100f %100f %.3f%.3f '%.3f ' ' %.3f' '%*f' %n "%'f"; do
		refuses "--ofmt: '$format' is no format of one number: write %.3f, %8.2f or %.6g" --ofmt "$format"
	done
	for format in %f %.3f %8.2f %-+08.2e %99.99G '% E' %#g; do
		accepts --ofmt "$format"
	done
	refuses "--output-time: no 'unix': iso, s, ms, us or ns" --output-time unix
	refuses "-o: no 'tabel': same, csv, tsv, ndjson or table: did you mean table?" -o tabel
	accepts --output-time s --no-output-header
	assert_output $'1704067200,1704067800,1\n1704067800,1704068400,1'
}

@test "a share of late rows" {
	local share
	refuses "--fail-late: '0.001': of what? write 1/1000 or 0.1%" --fail-late 0.001
	refuses "--fail-late: '1': of what? write 1/1000 or 0.1%" --fail-late 1
	for share in '' x % / 1/ /2 1/0 1/2/3 0.1%% 1.% .5% -1% 0.12345678901% 1/9223372036854775808 '1 %'; do
		refuses "--fail-late: '$share' is no share: write 1/1000 or 0.1%" --fail-late "$share"
	done
	for share in 2/1 101% 100.1%; do
		refuses "--fail-late: '$share' is more than all rows" --fail-late "$share"
	done
	# one of four rows is late: a quarter is not more than a quarter
	printf 't\n100\n1\n101\n102\n' >"$BATS_TEST_TMPDIR/late"
	for share in 0/1 0% 24/100 24.9999999% 1/5; do
		run "$wm" -q -t t -w 0s --tumbling 10s --fail-late "$share" "$BATS_TEST_TMPDIR/late"
		assert_equal "$status" 5
	done
	for share in 1/4 25% 25.0% 250/1000 100% 1/1; do
		run -0 "$wm" -q -t t -w 0s --tumbling 10s --fail-late "$share" "$BATS_TEST_TMPDIR/late"
	done
}

@test "side files" {
	refuses "--late: '10m' is a duration, and this option names a file: the delay is -w (a file of that name: ./10m)" \
		--late 10m
	refuses "--rejects: '1d' is a duration, and*" --rejects 1d
	refuses "--report: '90s' is a duration, and*" --report=90s
	refuses "--late: '' is no file name" --late ''
	refuses "--late and --rejects: both name 'x': give each a file of its own" --rejects x --late x
	refuses "--rejects and --report: both name 'x': give each a file of its own" --rejects x --report x
	refuses "--late and --out: both name 'x': give each a file of its own" --out x --late x
	refuses "--report and --metrics: both name 'x.prom': give each a file of its own" --metrics x.prom --report x.prom
	refuses "--late: '-' is standard output, where the results go: name a file" --late -
	refuses "--out: '-' is standard output, where the results go: name a file" --out -
	refuses "--out: '2h' is a duration, and*" --out 2h
	refuses "--metrics: 'x' does not end in .prom: the textfile collector reads no other file" --metrics x
	refuses "--progress: no 'yes': auto, bar, json or none" --progress yes
	refuses '--late-info: there is no --late: name the file of the late rows with --late FILE' --late-info
	refuses '--late-info: a line of a log has no place for more columns, and would not be input again: leave it out' \
		-i clf --late l --late-info
	refuses '--append and --overwrite: give one of them' --append --overwrite
	refuses '-q and -v: give one of them' -v -q
}

@test "whatever bytes an argument has, the message is one line of text" {
	refuses 'no option --fo\x0Ao: see --help' $'--fo\no'
	refuses "--compat: no 'a\\x1B[31m\\xFF': spark" --compat $'a\e[31m\xff'
	refuses "--late and --rejects: both name 'a\\x0Db': give each a file of its own" --late $'a\rb' --rejects $'a\rb'
	refuses '*' -a $'su\nm:x' --tumbling 1m -t time
	mkdir "$BATS_TEST_TMPDIR/"$'x\ny'
	refuses '*' --late "$BATS_TEST_TMPDIR/"$'x\ny' --tumbling 1m -t time
}

# ---- likely mistakes: each has its sentence ----

# answers STATUS MESSAGE ARGUMENT...: the first message is "wm-window: MESSAGE",
# a "*" in which stands for anything.
answers() {
	local status=0 want=$1 message=$2
	shift 2
	"$wm" "$@" >"$out" 2>"$err" </dev/null || status=$?
	assert_equal "$status" "$want"
	# shellcheck disable=SC2053 # the message is a pattern
	[[ $(head -n 1 "$err") == wm-window:\ $message ]] || fail "$(cat "$err")"
}

@test "options that were forgotten or misread" {
	local quakes=tests/data/earthquakes.csv
	answers 2 'no window given: say --tumbling SIZE, --sliding SIZE,SLIDE, --session GAP or --cumulating MAX,STEP' -t time "$quakes"
	answers 2 'no time column: *-t*' --tumbling 1d "$quakes"
	answers 2 "-w: '10': ten what? write 10s, 10m or 10h" -t time -w 10 --tumbling 1d "$quakes"
	answers 2 "-d: '10m': -d is the delimiter of CSV: the delay is -w 10m" -t time -d 10m --tumbling 1d "$quakes"
	answers 2 "$quakes:1: no column 'tme': did you mean 'time'? *" -t tme --tumbling 1d "$quakes"
	answers 2 "$quakes:1: no column 'mga': did you mean 'mag'? *" -t time --tumbling 1d -a max:mga "$quakes"
	answers 2 "--tz: unknown time zone 'Europe/Berlim': did you mean 'Europe/Berlin'?" --tz Europe/Berlim "$quakes"
}

@test "times that could be two things" {
	local dir=$BATS_TEST_TMPDIR
	printf 't\n01/02/2024\n' >"$dir/day"
	answers 1 "*day:2: *'01/02/2024': month first or day first? give --time-format*" -t t --tumbling 1d "$dir/day"
	printf 't\n20240115\n' >"$dir/digits"
	answers 1 "*digits:2: *'20240115': 8 digits could be a date or a number: give --time-format %Y%m%d or s*" \
		-t t --tumbling 1d "$dir/digits"
	run -0 "$wm" -t t --tumbling 1d --time-format %Y%m%d "$dir/digits"
	assert_line --index 1 --partial 2024-01-15T00:00:00Z
	run -0 "$wm" -t t --tumbling 1d --time-format %d/%m/%Y "$dir/day"
	assert_line --index 1 --partial 2024-02-01T00:00:00Z
}

@test "all rows rejected, most rows late" {
	local quakes=tests/data/earthquakes.csv
	answers 1 "$quakes:2: no time in column 'place': *" -t place --tumbling 1d "$quakes"
	run -0 tail -n 1 "$err"
	assert_output --partial '1707 of 1707 rows were rejected'
	assert_output --partial 'column'
	# one row from another century, and 20 good ones behind it
	{
		printf 't\n2024-01-01T00:00:00Z\n2124-01-01T00:00:00Z\n'
		printf '2024-01-01T00:00:%02dZ\n' {1..20}
	} >"$BATS_TEST_TMPDIR/clock"
	answers 0 '20 of 22 rows were late*' -t t -w 1m --tumbling 1s "$BATS_TEST_TMPDIR/clock"
	run -0 cat "$err"
	assert_output --partial 'clock:3: this row, of 2124-01-01T00:00:00Z, moved the watermark'
}

# ---- help and version ----

@test "--help is one screen, --help=all has every option, both 80 columns wide" {
	local tool level
	for tool in $(tools); do
		for level in --help --help=all; do
			run --separate-stderr "$build/$tool" "$level"
			assert_success
			assert_line --index 0 --regexp "^Usage: $tool "
			refute_line --regexp '.{81}'
			assert_equal "$stderr" ''
			assert_line --regexp "^  .*$tool " # an example
		done
		assert [ "$("$build/$tool" --help | wc -l)" -le 40 ]
		assert_equal "$("$build/$tool" -h)" "$("$build/$tool" --help)"
	done
	refuses "--help: no 'foo': all" --help=foo
}

@test "--version is that of the makefile" {
	run "$wm" -V
	assert_success
	assert_output "wm-window $(sed -n 's/^VERSION := //p' Makefile)"
}

@test "help that cannot be written is status 3" {
	local option
	for option in --help --help=all --version; do
		run --separate-stderr bash -c '"$0" "$1" >/dev/full' "$wm" "$option"
		assert_equal "$status" 3
		assert_equal "$stderr" 'wm-window: standard output: No space left on device'
		run --separate-stderr bash -c '"$0" "$1" >&-' "$wm" "$option"
		assert_equal "$status" 3
	done
}

# ---- help, man page and completion are held together ----

# The options of a tool, one a line: letter (or "-") and name.
options_of_help() {
	"$build/$1" --help=all | sed -nE 's/^  -(.), --([a-z0-9-]+).*/\1 \2/p; s/^      --([a-z0-9-]+).*/- \1/p' | sort
}

# options_of_man TOOL SECTION MACRO: of lines that begin with the macro.
options_of_man() {
	sed -n "/^\.Sh $2/,/^\.Sh/p" "man/$1.1" | sed -nE "s/^\.($3)//p" | sed 's/ | /\n/g' |
		sed -nE 's/^Fl (.) , Fl -([a-z0-9-]+).*/\1 \2/p; s/^Fl -([a-z0-9-]+).*/- \1/p' | sort
}

# list_of_completion TOOL SHELL: the completion's options, one a line: letter
# (or "-"), name, and what may stand behind it, as "a|b", FILE or nothing.
list_of_completion() {
	case $2 in
	bash)
		bash -c 'source completions/wm.bash; list=_${1//-/_}_options; printf "%s" "${!list#?}"' - "$1" |
			sed -E 's/^--/- --/; s/^-(.) /\1 /; s/ --/ /; s/ FILE.*$/ FILE/'
		;;
	zsh)
		# its function, with the lists that it takes put in their places
		awk -v begin="_${1//-/_}() {" '
			/^_wm_[a-z]+=\($/ { list = "$" substr($0, 1, length($0) - 2); next }
			/^[)}]/ { list = ""; inside = 0 }
			list != "" { lists[list] = lists[list] "\t" $0 "\n" }
			inside { for (name in lists) if (index($0, name)) printf "%s", lists[name]; print }
			$0 == begin { inside = 1 }' completions/_wm |
			sed 's/ \\$//' | sed -nE "
			s/^\t\t('\(.*\)')?\{-(.)\+?,--([a-z0-9-]+)=?\}'\[.*\](.*)'\$/\2 \3 \4/
			s/^\t\t'(\(.*\))?--([a-z0-9=-]+)\[.*\](.*)'\$/- \2 \3/
			t option
			b
			:option
			s/=( |\$)/\1/
			s/\\\\:/:/g
			s/ :[^:]+:_files\$/ FILE/
			s/ :[^:]+:\((.*)\)\$/ \1/
			s/ :.*: \$//
			p"
		;;
	fish)
		sed -E "/^for tool in.* $1( |\$)/,/^end/ s/^\tcomplete -c .tool/complete -c $1/" completions/wm.fish |
			sed -nE "s/^complete -c $1( -s (.))? -l ([a-z0-9=-]+)(.*) -d '.*'\$/\2 \3\4/p" |
			sed -E "s/^ /- /; s/ -r -F\$/ FILE/; s/ -x -a '?([^']*)'?\$/ \1/; s/ -x\$//"
		;;
	esac | awk '$2 != "help=all" { words = $3; for (i = 4; i <= NF; i++) words = words "|" $i
		print $1, $2 (words == "" || words ~ /^[A-Z,]+$/ && words != "FILE" ? "" : " " words) }' | sort
}

@test "the man page has the options of --help=all, and no other" {
	local tool
	for tool in $(tools); do
		assert_equal "$(options_of_man "$tool" OPTIONS 'It ')" "$(options_of_help "$tool")"
		assert_equal "$(options_of_man "$tool" SYNOPSIS '(Op )?')" "$(options_of_help "$tool")"
	done
}

@test "the man page has the aggregates that there are, and no other" {
	run -2 "$wm" -t time --tumbling 1d -a nothing:c
	sed 's/.*there are: //; s/, /\n/g' <<<"$output" | sort >"$out"
	sed -n '/^\.It Fl a , /,/^\.El/p' man/wm-window.1 | sed -n 's/^\.It //; s/ Ta .*//p' | sed 's/ , /\n/g' |
		sed -E 's/^Cm //; s/:.*//; s/ Ns Ar //; s/ *$//' | sort -u | diff - "$out"
	# and so has the one screen of --help
	"$wm" --help >"$BATS_TEST_TMPDIR/help"
	while read -r aggregate; do
		grep -qE -- "\b${aggregate/pNN/p95}\b" "$BATS_TEST_TMPDIR/help"
	done <"$out"
	"$build/wm-join" --help >"$BATS_TEST_TMPDIR/help"
	for option in $(options_of_help wm-join | grep -oE '(left|right)-[a-z]+'); do
		grep -q -- "--$option" "$BATS_TEST_TMPDIR/help"
	done
}

@test "the completions have the options of --help=all, and no other, with their choices and files" {
	local tool shell
	for tool in $(tools); do
		for shell in bash zsh fish; do
			list_of_completion "$tool" "$shell" >"$out"
			assert_equal "$(cut -d' ' -f1,2 "$out")" "$(options_of_help "$tool")"
			# a|b in the help is a|b in the completion, FILE is a file
			while read -r option; do
				run cat "$out"
				assert_line --regexp "^. ${option//|/\\|}\$"
			done < <("$build/$tool" --help=all |
				sed -nE 's/^  (-., |    )--([a-z0-9-]+) ([a-z]+(\|[a-z]+)+|FILE)(\.[a-z]+)?( .*)?$/\2 \3/p')
		done
		# the other words that may stand behind an option
		assert_equal "$(list_of_completion "$tool" zsh)" "$(list_of_completion "$tool" bash)"
		assert_equal "$(list_of_completion "$tool" fish)" "$(list_of_completion "$tool" bash)"
	done
}

# completes WORD...: what is offered for the last word of the command line.
completes() {
	run bash -c 'source completions/wm.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wm_window
		printf "%s\n" "${COMPREPLY[@]}"' - "$@"
	assert_success
}

@test "bash completes options, choices and files" {
	run bash -c 'source completions/wm.bash; complete -p wm-window'
	assert_output 'complete -F _wm_window wm-window'
	completes wm-window --tum
	assert_output -- '--tumbling'
	completes wm-window --mode ''
	assert_output $'append\nupdate\ncomplete'
	completes wm-window --mode = u
	assert_output 'update'
	completes wm-window -i nd
	assert_output 'ndjson'
	completes wm-window --late tests/data/earthquakes.c
	assert_output 'tests/data/earthquakes.csv'
	completes wm-window -q tests/data/earthquakes.c
	assert_output 'tests/data/earthquakes.csv'
	completes wm-window -- --tum
	assert_output ''
	completes wm-window -w ''
	assert_output ''
}

@test "zsh completes options, choices and files" {
	command -v zsh >/dev/null || skip "zsh is not installed"
	zsh -n completions/_wm
	# A shell in a terminal of its own: what it makes of the tabs, it runs.
	cat >"$BATS_TEST_TMPDIR/tabs" <<-'END'
		zmodload zsh/zpty
		zpty shell 'TERM=dumb zsh -f -i'
		zpty -w shell "PS1=''; fpath=($PWD/completions \$fpath); autoload -U compinit; compinit -u -D
			wm-window() { print -r -- \"GO""T:\$*:\" }; print REA""DY"
		zpty -r -m shell seen '*READY*'
		zpty -w -n shell $'wm-window --tumb\t5m --mode ap\t-i nd\t--trigger ea\t--late tests/data/earthquakes.c\t-g x tests/data/earthquakes.n\t\n'
		zpty -r -m shell seen '*GOT:*:*'
		print -r -- "$seen"
		zpty -d shell
	END
	run timeout 20 zsh -f "$BATS_TEST_TMPDIR/tabs"
	assert_output --partial 'GOT:--tumbling=5m --mode append -i ndjson --trigger each --late tests/data/earthquakes.csv -g x tests/data/earthquakes.ndjson:'
}

@test "fish completes options, choices and files" {
	command -v fish >/dev/null || skip "fish is not installed"
	fish -n completions/wm.fish
	offers() {
		XDG_CONFIG_HOME=$BATS_TEST_TMPDIR XDG_DATA_HOME=$BATS_TEST_TMPDIR run -0 fish -c \
			"source completions/wm.fish; complete -C '$1' | cut -f1"
		assert_output "$2"
	}
	offers 'wm-window --tumb' '--tumbling'
	offers 'wm-window --mode ' $'append\ncomplete\nupdate'
	offers 'wm-window -i nd' 'ndjson'
	offers 'wm-window --late tests/data/earthquakes.c' 'tests/data/earthquakes.csv'
	offers 'wm-window -q tests/data/earthquakes.c' 'tests/data/earthquakes.csv'
	offers 'wm-window -w ' ''
}

@test "man pages and completions are free of lint" {
	# pages that are not installed are looked up here
	run bash -c 'mandoc -T lint "$@" 2>&1 | grep -v "manual not found: Xr wm-"' - man/*.[1-9]
	assert_output ''
	local name section
	while read -r _ name section _; do
		assert [ -f "man/$name.$section" ]
	done < <(grep -h '^\.Xr wm-' man/*.[1-9])
	run shellcheck completions/wm.bash
	assert_output ''
	assert_success
}

@test "the examples of the man pages run" {
	local page dir example
	for page in man/*.[17]; do
		dir=$BATS_TEST_TMPDIR/${page##*/}
		mkdir "$dir"
		cp tests/data/earthquakes.csv tests/data/earthquakes.ndjson "$dir"
		sed -n '/^\.Sh EXAMPLES/,/^\.Sh/p' "$page" | awk -v dir="$dir" '
			/^\.Ed/ { inside = 0 }
			inside { gsub(/\\e/, "\\"); print > (dir "/example" count) }
			/^\.Bd -literal/ { inside = 1; count++ }'
		cd "$dir"
		assert [ -f example3 ]
		for example in example?; do
			PATH=$build:$PATH run --separate-stderr bash -eo pipefail "$example" </dev/null
			assert_success
			assert [ -n "$output" ]
		done
		cd - >/dev/null
	done
}

# The tables of wm-watermark(7), a line a row: options|rows|watermark|last row|written
boundaries() {
	sed -n '/^\.Sh BOUNDARIES/,/^\.Sh/p' man/wm-watermark.7 | sed -nE '
		/^\.Fl .* :$/ { s/^\.//; s/Fl /-/g; s/Cm //g; s/ :$//; h; }
		/^\.It [0-9]/ { s/^\.It //; s/ Ta /|/g; s/\\\(en/-/; G; s/(.*)\n(.*)/\2|\1/; p; }'
}

@test "what wm-watermark(7) says of equal times is so" {
	local options rows watermark last written time last_time count=0
	cd "$BATS_TEST_TMPDIR"
	while IFS='|' read -r options rows watermark last written; do
		count=$((count + 1))
		echo "$options: $rows" # shown where it is not so
		{
			echo time,source
			for time in $rows; do
				[[ $time == */* ]] || time=$time/
				echo "2025-01-01T${time/\//,}"
			done
		} >rows.csv
		# shellcheck disable=SC2086 # options are words
		run -0 --separate-stderr "$wm" -q -t time $options --eof hold --overwrite --late late.csv --report report rows.csv

		local is_late=counts
		last_time=${rows##* }
		[ "$(tail -n 1 late.csv | cut -d, -f1)" != "2025-01-01T${last_time%/*}" ] || is_late=late
		! grep -q '"rows_partly_late":1' report || is_late='partly late'
		assert_equal "$is_late" "$last"

		assert_equal "$(tail -n 1 report | sed -E 's/.*"watermark":("[^"]*"|null).*/\1/
			s/^null$/none/; s/"2025-01-01T([^"]*)Z"/\1/; s/^(..:..):00$/\1/')" "$watermark"

		assert_equal "$(sed -n '2,$s/2025-01-01T\(..:..\):00Z,2025-01-01T\(..:..\):00Z,1/\1-\2/p' <<<"$output")" \
			"${written/none/}"
		[[ $written != none ]] || assert_equal "${#lines[@]}" 1
	done < <(cd "$OLDPWD" && boundaries)
	assert_equal "$count" "$(grep -c '^\.It [0-9]' "$OLDPWD/man/wm-watermark.7")"
	assert [ "$count" -gt 20 ]
}

# The table of panes in wm-window(1), a line a row: row|window|pane|index|accumulating|discarding
panes() {
	sed -n '/^\.Sh WINDOWS THAT ARE WRITTEN MORE/,/^\.Sh/p' man/wm-window.1 | sed -nE '
		/^\.It [0-9]/ { s/^\.It //; s/ Ta /|/g; s/\\\(en/-/g; s/count //g; p; }'
}

@test "what wm-window(1) says of panes is so" {
	local panes
	panes >"$BATS_TEST_TMPDIR/table"
	cd "$BATS_TEST_TMPDIR"
	sed '1i time
		s/|.*//; s/^/2025-01-01T/' table >rows.csv
	assert_equal "$(wc -l <rows.csv)" 8
	for panes in accumulating discarding; do
		run -0 --separate-stderr "$wm" -q -t time -w 0s --tumbling 10m --allowed-lateness 5m --panes $panes \
			--late late.csv --overwrite rows.csv
		assert_equal "$(sed -n 's/2025-01-01T12:00:00Z,2025-01-01T12:10:00Z,/12:00-12:10,/p' <<<"$output")" \
			"$(awk -F'|' -v OFS=, -v count="$([ $panes = accumulating ] && echo 5 || echo 6)" \
				'$3 ~ /on-time|late/ { print $2, $count, $3, $4 }' table)"
		assert_equal "$(cat late.csv)" $'time\n2025-01-01T12:09:30'
	done
}

# The table of sessions there: row|watermark|what happens
@test "what wm-window(1) says of sessions is so" {
	local time watermark what count=0
	sed -n '/^\.Sh SESSIONS/,/^\.Sh/p' man/wm-window.1 | sed -nE '
		/^\.It [0-9]/ { s/^\.It //; s/ Ta /|/g; s/\\\(en/-/g; p; }' >"$BATS_TEST_TMPDIR/table"
	cd "$BATS_TEST_TMPDIR"
	echo time >rows.csv
	while IFS='|' read -r time watermark what; do
		count=$((count + 1))
		echo "2025-01-01T00:0$time" >>rows.csv
		"$wm" -q -t time -w 0s --session 5s --late late.csv --report report --overwrite rows.csv >written
		run -0 jq -r 'select(.type == "report").eventTime.watermark' report
		assert_output "2025-01-01T00:0${watermark}Z"
		assert_equal "$(wc -l <late.csv)" "$([[ $what == late:* ]] && echo 2 || echo 1)"
		# the session that a line ends with is the last there is
		[[ ! $what =~ ([0-9:]+)-([0-9:]+)$ ]] ||
			assert_equal "$(tail -n 1 written | cut -d, -f1,2)" \
				"2025-01-01T00:0${BASH_REMATCH[1]}Z,2025-01-01T00:0${BASH_REMATCH[2]}Z"
	done <table
	assert_equal "$count" 4
}

# ---- exit statuses ----

# of_tool NAME COLUMN INPUT OPTION...: runs it with what it needs at least, and with COLUMN where a column may be named.
of_tool() {
	local tool=$1 column=$2 input=$3
	shift 3
	case $tool in
	window) set -- --tumbling 10s -g "$column" "$@" ;;
	dedup) set -- -k "$column" "$@" ;;
	join) set -- -k "$column" --between 0s,1s "$@" "$input" ;;
	lag) set -- -g "$column" "$@" ;;
	*) set -- --source "$column" "$@" ;;
	esac
	"$build/wm-$tool" -t ts -w 1s "$@" "$input"
}

@test "a status other than 0 has a line that says why, with -q too, in every tool" {
	cd "$BATS_TEST_TMPDIR" || return 1
	printf 'ts,k\n100,a\n1,a\n101,a\nx,a\n102,a\n' >in.csv
	grep -v x in.csv >good.csv
	printf '{"ts":100,"k":1}\n{"ts":101,"k":1}\n' >in.ndjson
	awk 'BEGIN { print "ts,k"; for (i = 0; i < 30000; i++) printf "%d,key-%d\n", i % 3, i }' >many.csv
	# what the line says, the status, column, input, options
	causes=(
		'rejected (.*bad-time)|1|k|in.csv|'
		'stopped, as --strict asks|1|k|in.csv|--strict'
		"no record had the column 'none'|1|none|in.ndjson|"
		"no column 'none'|2|none|in.csv|"
		'no option --nonsense|2|k|in.csv|--nonsense'
		'none.csv: No such file|3|k|none.csv|'
		'No space left on device|3|k|good.csv|--out /dev/full'
		'stopped: raise --state-limit|4|k|many.csv|--state-limit 64K'
		'more than --fail-late 1/1000 allows|5|k|good.csv|--fail-late 1/1000'
		'more than --fail-late 1/1000 allows|5|k|in.csv|--fail-late 1/1000'
	)
	for tool in stamp window dedup join sort lag; do
		for cause in "${causes[@]}"; do
			IFS='|' read -r says want column input options <<<"$cause"
			case $want$tool in
			4stamp | 4lag) continue ;; # hold next to nothing
			esac
			for loud in -q '' -v; do
				status=0
				# shellcheck disable=SC2086 # words
				of_tool $tool "$column" "$input" $loud $options >out 2>err || status=$?
				if [ "$status" -ne "$want" ] || ! grep -q -- "$says" err; then
					echo "$tool $column $input $loud $options: status $status, and not $want with '$says'"
					cat err
					return 1
				fi
			done
		done
		# where all is well there is none
		of_tool $tool k good.csv -q --rejects "rejects.$tool" >out 2>err
		[ ! -s err ]
	done
}
