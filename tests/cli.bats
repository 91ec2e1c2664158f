#!/usr/bin/env bats
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
	local source
	for source in cmd/wm-*.c; do
		basename "$source" .c
	done
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
	refuses 'no option --allowed-lateness: how late rows may come is the delay: write -w D (--delay)' \
		--allowed-lateness=10m
	refuses 'no option --window: windows are --tumbling SIZE or --sliding SIZE,SLIDE' --window 5m
	refuses 'no option --interval: windows are --tumbling SIZE or --sliding SIZE,SLIDE' --interval 5m
	refuses 'no option --slide: write --sliding SIZE,SLIDE' --slide 1m
	refuses 'no option --hop: write --sliding SIZE,SLIDE' --hop 1m
	refuses 'no option --by: write -g COLUMNS (--group-by)' --by host
	refuses 'no option --group: write -g COLUMNS (--group-by)' --group host
	refuses 'no option --key: write -g COLUMNS (--group-by)' --key host
	refuses 'no option --sum: write -a LIST (--aggregate), such as -a count,max:mag' --sum bytes
	refuses 'no option --format: write -i F for the input, -o F for the output, --time-format F for times' \
		--format csv
	refuses 'no option --output: results go to standard output: write > FILE; their format is -o F' --output x
	refuses 'no option --timezone: write --tz ZONE' --timezone UTC
	refuses 'no option --date-format: write --time-format F' --date-format %Y
	refuses 'no option --timestamp: write -t COLUMN (--time)' --timestamp ts
	refuses 'no option --separator: write -d C (--delimiter)' --separator ';'
	refuses 'no option --side-output: write --late FILE' --side-output late.csv
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
	refuses "-i: no 'json': auto, csv, tsv or ndjson: did you mean ndjson?" -i json
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

@test "trigger, compat, zone" {
	refuses "--trigger: no 'eahc': each, file, eof or column:C: did you mean each?" --trigger eahc
	refuses "--trigger: no '1000rows': each, file, eof or column:C" --trigger 1000rows
	refuses "--trigger: *" --trigger column:
	refuses "--compat: no 'flink': spark" --compat flink
	refuses "--tz: *" --tz Europe/Berlim
	accepts --tz +02:00
	assert_line --index 1 '2024-01-01T02:00:00+02:00,2024-01-01T02:10:00+02:00,1'
}

@test "side files" {
	refuses "--late: '10m' is a duration, and this option names a file: the delay is -w (a file of that name: ./10m)" \
		--late 10m
	refuses "--rejects: '1d' is a duration, and*" --rejects 1d
	refuses "--report: '90s' is a duration, and*" --report=90s
	refuses "--late: '' is no file name" --late ''
	refuses "--late and --rejects: both name 'x': give each a file of its own" --rejects x --late x
	refuses "--rejects and --report: both name 'x': give each a file of its own" --rejects x --report x
	refuses '--late-info: there is no --late: name the file of the late rows with --late FILE' --late-info
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

# The completion's list of a tool.
list_of_completion() {
	bash -c 'source completions/wm.bash; list=_${1//-/_}_options; printf "%s" "${!list}"' - "$1"
}

@test "the man page has the options of --help=all, and no other" {
	local tool
	for tool in $(tools); do
		assert_equal "$(options_of_man "$tool" OPTIONS 'It ')" "$(options_of_help "$tool")"
		assert_equal "$(options_of_man "$tool" SYNOPSIS '(Op )?')" "$(options_of_help "$tool")"
	done
}

@test "the completion has the options of --help=all, and no other, with their choices" {
	local tool
	for tool in $(tools); do
		assert_equal "$(list_of_completion "$tool" | grep -v '^--help=all$' |
			sed -nE 's/^-([^-]) --([a-z0-9-]+).*/\1 \2/p; s/^--([a-z0-9-]+).*/- \1/p' | sort)" \
			"$(options_of_help "$tool")"
		"$build/$tool" --help=all | grep -oE -- '--[a-z0-9-]+ [a-z]+(\|[a-z]+)+' >"$out"
		assert [ -s "$out" ]
		while read -r option; do
			run list_of_completion "$tool"
			assert_line --regexp "(^|^-. )$option\$"
		done < <(sed 's/|/\\|/g' "$out")
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

@test "man pages and completions are free of lint" {
	run mandoc -T lint man/*.1
	assert_output ''
	assert_success
	run shellcheck completions/wm.bash
	assert_output ''
	assert_success
}

@test "the examples of the man pages run" {
	local tool example
	for tool in $(tools); do
		mkdir "$BATS_TEST_TMPDIR/$tool"
		cp tests/data/earthquakes.csv tests/data/earthquakes.ndjson "$BATS_TEST_TMPDIR/$tool"
		sed -n '/^\.Sh EXAMPLES/,/^\.Sh/p' "man/$tool.1" | awk -v dir="$BATS_TEST_TMPDIR/$tool" '
			/^\.Ed/ { inside = 0 }
			inside { gsub(/\\e/, "\\"); print > (dir "/example" count) }
			/^\.Bd -literal/ { inside = 1; count++ }'
		cd "$BATS_TEST_TMPDIR/$tool"
		assert [ -f example3 ]
		for example in example?; do
			PATH=$build:$PATH run --separate-stderr bash -eo pipefail "$example"
			assert_success
			assert [ -n "$output" ]
		done
		cd - >/dev/null
	done
}
