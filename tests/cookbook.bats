#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# docs/COOKBOOK.md, run word for word: the page says what is typed and what comes out.
#
#   ```text NAME     an input, written to the file NAME
#   ```console       commands behind "$ " ("> " goes on with one), each followed by what it writes, to either output
#
# Each section of the page has a folder of its own, with earthquakes.csv in it. The scripts of examples/ are commands too.

bats_require_minimum_version 1.5.0

setup() {
	page=$BATS_TEST_DIRNAME/../docs/COOKBOOK.md
	quakes=$BATS_TEST_DIRNAME/../tests/data/earthquakes.csv
	bin=$(cd "${WM_BIN:-$BATS_TEST_DIRNAME/../build/release}" && pwd)
	PATH=$bin:$(cd "$BATS_TEST_DIRNAME/../examples" && pwd):$PATH
	export LC_ALL=C.UTF-8
	cd "$BATS_TEST_TMPDIR" || return 1
	# Folders 1, 2, ...: the inputs, and for each console block N.shown and N.script, which shows its commands and runs them.
	awk -v quakes="$(realpath "$quakes")" '
		/^## / {
			dir = ++sections
			system("mkdir " dir " && ln -s " quakes " " dir "/earthquakes.csv")
			print substr($0, 4) > (dir "/title")
		}
		/^```$/ && kind != "" { kind = ""; next }
		/^```text / {
			kind = dir "/" $2
			if ($2 ~ /\//)
				system("mkdir -p $(dirname " kind ")")
			next
		}
		/^```console$/ { kind = dir "/" ++blocks ".shown"; script = dir "/" blocks ".script"; next }
		kind == "" { next }
		{ print > kind }
		kind ~ /\.shown$/ && /^[$>] / {
			if (/^\$ /)
				command = ""
			command = command substr($0, 3) "\n"
			shown = /^\$ / ? $0 : shown "\n" $0
			if (!/[|\\]$/)
				print "cat <<\"END OF COMMAND\"\n" shown "\nEND OF COMMAND\n" command > script
		}' "$page"
}

@test "each recipe does what the page shows" {
	local dir script failed=0 count=0
	for dir in */; do
		for script in "$dir"*.script; do
			count=$((count + 1))
			# a test of its own says so
			if grep -q '^\$ parallel ' "${script%.script}.shown" && ! command -v parallel >/dev/null; then
				continue
			fi
			(cd "$dir" && bash "${script##*/}" >out 2>&1 </dev/null) || true
			diff -u "${script%.script}.shown" "$dir/out" >"$dir/diff" || {
				failed=$((failed + 1))
				echo "$(cat "$dir/title"):"
				tail -n +3 "$dir/diff"
			}
		done
	done
	[ "$(printf '%s\n' */ | wc -l)" -ge 10 ]
	[ "$count" -ge "$(printf '%s\n' */ | wc -l)" ]
	[ "$failed" -eq 0 ]
}

@test "the list at the top of the page has all recipes, in their order" {
	diff <(sed -n 's/^- \[\(.*\)\](#.*)$/\1/p' "$page") <(sed -n 's/^## //p' "$page")
	# how a heading becomes an anchor
	diff <(sed -n 's/^- \[.*\](#\(.*\))$/\1/p' "$page") \
		<(sed -n 's/^## //p' "$page" | tr '[:upper:]' '[:lower:]' | tr -d "'?,.:" | tr ' ' '-')
}

# The last row was read on the first night, came again on the second, and counts once.
@test "a reader that goes on where the last run ended says nothing, on its first night too" {
	local reader night
	mkdir bin nights
	cd nights
	# They give what there is, and note where they were to begin.
	printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho "$2" >>begun; cat rows\n' >../bin/kcat
	printf '#!/bin/sh\necho "${3-}" >>begun; cat rows\n' >../bin/journalctl
	chmod +x ../bin/*
	for reader in kcat journalctl; do
		sed -n "/^## Every night from cron/,/^## /p" "$page" | grep -B 1 "^    $reader " |
			sed 's/wm-window …/wm-window -q -t ts -w 0s --tumbling 1m -C st --position at -o csv >>minutes.csv/' >job
		[ "$(wc -l <job)" = 2 ]
		rm -f st* begun minutes.csv
		for night in '' '{"ts":60.5,"at":"17"}' '{"ts":60.5,"at":"17"}\n{"ts":121,"at":"18"}'; do
			printf "$night${night:+\\n}" >rows
			PATH=$PWD/../bin:$PATH run -0 --separate-stderr sh -e job
			[ -z "$output$stderr" ]
		done
		[ "$(cat minutes.csv)" = $'window_start,window_end,count\n1970-01-01T00:01:00Z,1970-01-01T00:02:00Z,1' ]
		case $reader in
		kcat) [ "$(cat begun)" = $'beginning\nbeginning\n17' ] ;;
		*) [ "$(cat begun)" = $'\n\n--cursor=17' ] ;;
		esac
	done
}

@test "the live pipe is live: a window comes while its input is still open" {
	local dir
	dir=$(dirname "$(grep -l '^A live pipe$' */title)")
	mkfifo rows windows
	sed -n '/^\$ /,$p' "$dir"/*.shown | sed -n 's/^[$>] //p' | sed 's/ orders\.ndjson / rows /' >live
	timeout 20 bash live >windows 2>&1 &
	exec 8<windows 7>rows
	head -n 4 "$dir/orders.ndjson" >&7
	read -r -t 10 -u 8 line
	[[ $line == *'"count":2,"total_sum":19.75}' ]]
	exec 7>&-
	wait
	exec 8<&-
}

@test "many files in parallel: states of 40 files, merged, are what one run gives" {
	command -v parallel >/dev/null || skip "GNU parallel is not installed"
	local recipe aggregates=count,avg:ms,median:ms,p95:ms,distinct:ms,first:ms,last:ms,stddev:ms,min:ms,max:ms
	mkdir logs
	# No time twice, so that first and last are told apart.
	awk 'BEGIN {
		srand(4)
		for (i = 0; i < 40000; i++) {
			file = "logs/" int(rand() * 40) ".csv"
			if (!(file in seen))
				print "time,page,ms" > file
			seen[file]
			second = int(i / 20)
			printf "2025-11-29T%02d:%02d:%02d.%03dZ,/%d,%.1f\n", second / 3600, second / 60 % 60, second % 60, i % 20,
				rand() * 5, rand() * 3000 > file
		}
	}'
	[ "$(find logs -name '*.csv' | wc -l)" -eq 40 ]
	recipe=$(sed -n 's/^\$ parallel /parallel /p' "$(dirname "$(grep -l '^Many files in parallel$' */title)")"/*.shown)
	bash -c "${recipe/count,median:ms/$aggregates}"
	wm-merge -k window_start,window_end,page --partial logs/*.states >parallel.csv
	wm-window -t time --tumbling 1m -g page -a "$aggregates" logs/*.csv | cmp - parallel.csv
	# 34 minutes, 5 pages
	[ "$(wc -l <parallel.csv)" -eq 171 ]
	[ "$(awk -F, '{ sum += $4 } END { print sum }' parallel.csv)" -eq 40000 ]
}

@test "README: the late earthquakes are folded in" {
	local readme=$BATS_TEST_DIRNAME/../README.md
	mkdir -p build tests
	ln -s "$bin" build/release
	ln -s "$(dirname "$(realpath "$quakes")")" tests/data
	# the commands, and the table behind them
	sed -n '/^    build\/release\/wm-window .*daily\.csv$/,/^[^ ]/p' "$readme" | sed -n 's/^    //p' >example
	sed '/^2018/,$d' example >commands
	bash commands >shown 2>&1
	diff <(sed -n '/^2018/,$p' example) shown
	# days of all 1707 quakes, as counted by another program
	diff <(cut -d, -f3,4 shown) - <<-'END'
		198,6.1
		231,6
		242,6
		259,5.2
		301,6.1
		249,5.3
		213,6.4
		14,3.8
	END
}

@test "README: the advice of wm-lag is what it says" {
	local readme=$BATS_TEST_DIRNAME/../README.md
	mkdir -p build tests
	ln -s "$bin" build/release
	ln -s "$(dirname "$(realpath "$quakes")")" tests/data
	# from the command to the next line that is not indented
	sed -n '/^    build\/release\/wm-lag/,/^[^ ]/p' "$readme" | sed -n 's/^    //p; /^$/p' >example
	head -n 1 example | bash >shown 2>&1
	diff -B <(tail -n +2 example) shown
}
