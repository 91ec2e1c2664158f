#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The rules of docs/STYLE.md and docs/ARCHITECTURE.md that a program can check.

setup() {
	cd "$BATS_TEST_DIRNAME/.." || return 1
	objects=$(readlink -f "${WM_BIN:-build/release}")/lib
}

# C and C++ without comments and texts, one file a call.
code_of() {
	gcc -fpreprocessed -dD -E -P -w "$1" 2>/dev/null | sed -E 's/"([^"\\]|\\.)*"/""/g'
}

# offenders PATTERN FILE...: uses of the pattern (extended regex) in code.
offenders() {
	local pattern=$1 file
	shift
	for file in "$@"; do
		code_of "$file" | grep -nE "$pattern" | sed "s|^|$file: |"
	done
	return 0
}

# Fails, and shows it, if there is something on standard input.
nothing() {
	local found
	found=$(cat)
	if [ -n "$found" ]; then
		echo "$found"
		return 1
	fi
}

ours() {
	find lib cmd tests -name '*.[ch]' -o -name '*.cc'
}

# Everything that is kept: in a clone as git says, else all but what is built.
kept() {
	git ls-files --cached --others --exclude-standard 2>/dev/null || find . -path ./build -prune -o -type f -print
}

@test "includes point downward only" {
	# Every #include "lib/X/..." must point to a strictly lower floor, or stay in its own folder.
	rank='base=0 time=1 record=2 event=2 agg=2 state=2 op=3'
	grep -Hn '^#include "lib/' lib/*/*.[ch] lib/*/*.cc | awk -F'[/:"]' -v rank="$rank" '
		BEGIN { n = split(rank, kv, " "); for (i = 1; i <= n; i++) { split(kv[i], p, "="); r[p[1]] = p[2] } }
		{ from = $2; to = $7; if (from != to && (!(to in r) || r[to] >= r[from])) { print $0; bad = 1 } }
		END { exit bad }'
	grep -Hn '^#include "cmd/' lib/*/*.[ch] lib/*/*.cc | nothing
}

@test "an outside library is included in one file alone" {
	while read -r header file; do
		{ grep -rlE "^#include <$header>" lib cmd || true; } | { grep -vxF "$file" || true; } | nothing
	done <<-'END'
		csv.h lib/record/csv.c
		simdjson.h lib/record/ndjson.cc
		xxhash.h lib/base/hash.c
		getopt.h cmd/cli.c
	END
}

@test "exported symbols of lib begin with wm_" {
	[ -d "$objects" ] || skip "nothing is built"
	find "$objects" -name '*.o' -exec gcc-nm --defined-only --extern-only -P {} + |
		awk 'NF > 1 && $2 ~ /[TDBRC]/ && $1 !~ /^wm_/ && $1 !~ /^_Z/ { print }' | nothing
}

@test "what a header of lib declares is defined, and the other way round" {
	[ -d "$objects" ] || skip "nothing is built"
	for header in lib/*/*.h; do
		code_of "$header" | tr '\n\t' '  '
	done >"$BATS_TEST_TMPDIR/headers"
	# Static inline functions are defined where they are declared.
	grep -oE 'static inline [^({;]*[ *]wm_[a-z0-9_]+ ?\(' "$BATS_TEST_TMPDIR/headers" |
		grep -oE 'wm_[a-z0-9_]+ ?\($' | tr -d ' (' | sort -u >"$BATS_TEST_TMPDIR/inline"
	# A name before "(*" is the type of a function pointer.
	grep -oE '\bwm_[a-z0-9_]+ ?\([^*]' "$BATS_TEST_TMPDIR/headers" | sed 's/ *(.*//' | sort -u |
		comm -23 - "$BATS_TEST_TMPDIR/inline" >"$BATS_TEST_TMPDIR/declared"
	find "$objects" -name '*.o' -exec gcc-nm --defined-only --extern-only -P {} + |
		awk '$2 == "T" && $1 ~ /^wm_/ { print $1 }' | sort -u >"$BATS_TEST_TMPDIR/defined"
	comm -23 "$BATS_TEST_TMPDIR/declared" "$BATS_TEST_TMPDIR/defined" | sed 's/^/declared, not defined: /' | nothing
	comm -13 "$BATS_TEST_TMPDIR/declared" "$BATS_TEST_TMPDIR/defined" | sed 's/^/defined, not declared: /' | nothing
}

@test "no banned calls" {
	banned='\b(strcpy|strcat|strncpy|strncat|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|atof|mktemp|tmpnam|alloca) *\('
	mapfile -t files < <(find lib cmd -name '*.[ch]' -o -name '*.cc')
	offenders "$banned" "${files[@]}" | nothing
}

@test "numbers are parsed where that belongs" {
	mapfile -t files < <(find lib cmd \( -name '*.[ch]' -o -name '*.cc' \) | grep -vE '^(lib/time/.*|lib/base/decimal\.c|cmd/cli\.c)$')
	offenders '\b(strto[a-z]+|[a-z]*scanf) *\(' "${files[@]}" | nothing
}

@test "the clock is read in cmd/stream_wait.c and cmd/report.c alone" {
	mapfile -t files < <(find lib cmd \( -name '*.[ch]' -o -name '*.cc' \) | grep -vE '^cmd/(stream_wait|report)\.c$')
	offenders '(^|[^A-Za-z0-9_.>])(clock_gettime|gettimeofday|time|clock|timespec_get) *\(' "${files[@]}" | nothing
}

@test "lib knows no locale and no environment, does not print and does not exit" {
	mapfile -t files < <(find lib -name '*.[ch]' -o -name '*.cc')
	offenders '\b(setlocale|newlocale|uselocale|getenv|secure_getenv|setenv|tzset|localtime[_r]*|mktime) *\(' "${files[@]}" | nothing
	mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vx 'lib/base/mem.c')
	offenders '\b(printf|puts|putchar|perror|exit|_exit|abort|quick_exit) *\(' "${files[@]}" | nothing
}

@test "no drawer for odds and ends, and no name twice" {
	find . -path ./build -prune -o -path ./.git -prune -o -type f -print | grep -iE '/(utils?|misc|helpers?|common)[._-][^/]*$|/(utils?|misc|helpers?|common)$' | nothing
	find lib cmd -name '*.[ch]' -o -name '*.cc' | sed 's|.*/||' | sort | uniq -d | nothing
}

@test "open work stands in no file" {
	kept | xargs grep -nIE '\b(TO''DO|FIX''ME|XX''X)\b' | nothing
}

@test "nothing speaks of where the project was written" {
	kept | xargs grep -nIE '(^|[^a-z])/wo''rk/|\.\./sha''red|DEVELO''PERS' | nothing
}

@test "every file that is not data or a document names its licence" {
	# On the first line, or on the second where the first is for the kernel or for zsh.
	kept | sed 's|^\./||' | grep -vE '^(tests/(data|golden|fuzz/corpus)/.*|LICENSE|\.gitignore|\.git/.*|.*\.(md|case|pyc))$' | while read -r file; do
		head -n 2 "$file" | sed '1 { /^#!\|^#compdef /d }' | sed -n '1 { /SPDX-License-Identifier: Apache-2\.0\( \*\/\)\?$/p }' | grep -q . ||
			echo "$file: no SPDX line"
	done | nothing
	grep -q 'Apache License' LICENSE
	grep -q 'Version 2.0, January 2004' LICENSE
}

@test "every source is in the Makefile, and every module has its unit test" {
	lists=$(tr -s '[:space:]' '\n' <Makefile)
	for file in lib/*/*.c lib/*/*.cc; do
		module=${file#lib/}
		grep -qx "${module%.*}" <<<"$lists" || echo "$file is in no list of the Makefile"
		name=$(basename "${file%.*}")
		[ -f "tests/unit/test_$name.c" ] || echo "$file has no tests/unit/test_$name.c"
		grep -qx "$name" <<<"$lists" || echo "test_$name is in no list of the Makefile"
		[ -f "${file%.*}.h" ] || echo "$file has no header"
	done | nothing
	for file in cmd/*.c; do
		grep -qx "$(basename "$file" .c)" <<<"$lists" || echo "$file is in no list of the Makefile"
	done | nothing
	for file in tests/unit/test_*.c; do
		name=$(basename "$file" .c)
		compgen -G "lib/*/${name#test_}.[hc]*" >/dev/null || [ -f "cmd/${name#test_}.c" ] || echo "$file tests no module"
	done | nothing
}

@test "flags given to make are added to those that the build needs" {
	make -n -B V=1 VARIANT=dev CPPFLAGS=-DGIVEN_CPP CFLAGS=-DGIVEN_C CXXFLAGS=-DGIVEN_CXX LDFLAGS=-LGIVEN_LD LDLIBS=-lGIVEN tests |
		grep -E '^(gcc|g\+\+) ' >"$BATS_TEST_TMPDIR/commands"
	awk '
		/ -c / && !/ -I\. .* -DGIVEN_CPP/ { print "CPPFLAGS: " $0 }
		/ -c / && /^gcc / && !/ -std=c17 .* -DGIVEN_C / { print "CFLAGS: " $0 }
		/ -c / && /^g\+\+ / && !/ -std=c\+\+17 .* -DGIVEN_CXX / { print "CXXFLAGS: " $0 }
		!/ -c / && !/ -LGIVEN_LD / { print "LDFLAGS: " $0 }
		!/ -c / && !/ -shared / && !/ -lgmp .*-lGIVEN$/ { print "LDLIBS: " $0 }
		{ n++ }
		END { if (n < 100) print n " commands" }' "$BATS_TEST_TMPDIR/commands" | cut -c 1-300 | nothing
}

@test "CHANGELOG.md has its three sections on top, each with a line" {
	awk '/^## / { n++ } n == 1' CHANGELOG.md >"$BATS_TEST_TMPDIR/unreleased"
	grep -qx '## Unreleased' "$BATS_TEST_TMPDIR/unreleased"
	for section in Added Changed Fixed; do
		awk -v head="### $section" '/^#/ { on = $0 == head } on && /^- ./ { n++ } END { exit !n }' "$BATS_TEST_TMPDIR/unreleased" ||
			echo "nothing under ### $section"
	done | nothing
}

@test "each mutant of tests/mutants/table.py still fits its file" {
	tests/mutants/mutants.py --check
}

@test "every tool has its man page and its tests" {
	for file in cmd/wm-*.c; do
		tool=$(basename "$file" .c)
		for path in "man/$tool.1" "tests/$tool.bats"; do
			[ -f "$path" ] || echo "$path is missing"
		done
	done | nothing
}

@test "man pages are clean" {
	for page in man/*; do
		mandoc -T lint -W warning "$page"
	done 2>&1 | nothing
}

@test "man pages fit 80 columns" {
	# As man does it at MANWIDTH=80, and with mandoc: groff says where a table is too wide for the page.
	for page in man/*; do
		groff -mandoc -Tutf8 -P-c -P-b -P-u -rLL=78n "$page" >"$BATS_TEST_TMPDIR/groff" 2>"$BATS_TEST_TMPDIR/torn"
		mandoc -T utf8 -O width=78 "$page" >"$BATS_TEST_TMPDIR/mandoc"
		sed 's/^/groff: /' "$BATS_TEST_TMPDIR/torn"
		python3 - "$page" "$BATS_TEST_TMPDIR/groff" "$BATS_TEST_TMPDIR/mandoc" <<-'END'
			import re, sys
			for path in sys.argv[2:]:
			    for line in open(path, encoding="utf-8"):
			        line = re.sub(".\b", "", line.rstrip("\n"))
			        if len(line) > 80:
			            print(f"{sys.argv[1]}: more than 80 columns: {line}")
		END
	done | nothing
}

@test "no word of a man page is a macro by accident" {
	# Inside a line of macros `In band` is an include, and `At the end` a version of Unix: `\&In band` is text.
	grep -nE '^\.[A-Z][A-Za-z] (.* )?(Ad|An|Ap|At|Bx|Cd|Dv|Dx|Er|Ex|Fa|Fd|Fn|Fo|Ft|Fx|In|Lb|Lk|Ms|Mt|Nx|Ot|Ox|Rv|St|Tg|Tn|Ud|Ux|Vt)( |$)' man/* | nothing
}

@test "code is formatted" {
	[[ $(clang-format --version) =~ version\ 14\. ]] || skip "other versions of clang-format than 14 differ"
	mapfile -t files < <(ours)
	clang-format --dry-run -Werror "${files[@]}" 2>&1 | grep -E 'error:|warning:' | head -n 20 | nothing
}

@test "scripts pass shellcheck" {
	shellcheck quickstart .ci/run
	# bats itself sets status, output and stderr.
	shellcheck -s bats -S warning -e SC2154 tests/*.bats
}

@test "python compiles, and needs the standard library alone" {
	mapfile -t files < <(find tests -name '*.py' ! -path 'tests/bench/*'; echo tests/run)
	python3 - "${files[@]}" <<-'END'
		import ast, pathlib, sys
		own = {path.stem for path in pathlib.Path("tests").rglob("*.py")}
		for name in sys.argv[1:]:
		    for node in ast.walk(ast.parse(pathlib.Path(name).read_text(encoding="utf-8"), name)):
		        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
		        for module in names:
		            if module.split(".")[0] not in sys.stdlib_module_names | own:
		                sys.exit(f"{name}: imports {module}")
	END
}

@test "all headers can be included together, before and behind each other" {
	local order
	for order in '' -r; do
		find lib -name '*.h' | LC_ALL=C sort $order | sed 's|.*|#include "&"|' >"$BATS_TEST_TMPDIR/all.c"
		gcc -std=c17 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only "$BATS_TEST_TMPDIR/all.c"
	done
}

@test "clang has no warning either" {
	command -v clang >/dev/null || skip "clang is not installed"
	find cmd lib tests -name '*.c' -print0 | xargs -0 -n 8 -P 2 clang -std=c17 -D_GNU_SOURCE -DWM_VERSION='""' -I. -Wall -Wextra \
		-Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only
}
