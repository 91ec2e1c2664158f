#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The files of examples/ beside their scripts: a crontab, units of systemd, and that all of them are what they should be.
# What the scripts compute is held by tests/examples.py.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	examples=$(cd "$BATS_TEST_DIRNAME/../examples" && pwd)
	bin=$(cd "${WM_BIN:-$BATS_TEST_DIRNAME/../build/release}" && pwd)
	cd "$BATS_TEST_TMPDIR" || return 1
}

# A shop with rows of yesterday and the day before, as the crontab and the units expect it.
make_shop() {
	local day
	# As it is now: a test that runs over midnight still knows what it wrote.
	today=$(date -u +%F)
	yesterday=$(date -u -d "$today - 1 day" +%F)
	before=$(date -u -d "$today - 2 days" +%F)
	mkdir -p shop/visits/raw shop/latency/raw
	cp "$examples"/*.sh shop/
	for day in "$before" "$yesterday" "$today"; do
		printf 'time,page,user,ms\n%sT00:00:01Z,/,ann,10\n%sT00:00:02Z,/,bob,20\n' "$day" "$day" |
			tee "shop/visits/raw/$day.csv" >"shop/latency/raw/$day.csv"
	done
}

@test "scripts pass shellcheck and run by sh" {
	for script in "$examples"/*.sh "$examples"/*/*.sh; do
		assert_equal "$(head -n 1 "$script")" "#!/bin/sh"
		[ -x "$script" ]
		sh -n "$script"
	done
	shellcheck "$examples"/*.sh "$examples"/*/*.sh
}

# What cron makes of the crontab: variables, then lines of five fields and a command, in which an unescaped % would end it.
@test "the crontab's commands do their work as cron would run them" {
	make_shop
	local line command variables=() count=0
	while IFS= read -r line; do
		case $line in
		'' | '#'*) continue ;;
		[A-Z]*=*) variables+=("${line/\/usr\/local\/bin/$bin}") ;;
		*)
			[[ $line =~ ^([0-9*/,-]+\ ){5}/ ]]
			command=$(cut -d ' ' -f 6- <<<"$line")
			[[ ! ${command//\\%/} == *%* ]]
			command=${command//\\%/%}
			run -0 env -i HOME="$PWD" "${variables[@]}" /bin/sh -c "${command//\/srv\/shop/$PWD/shop}"
			assert_output ""
			count=$((count + 1))
			;;
		esac
	done <"$examples/crontab"
	assert_equal "$count" 3
	grep -qx 'PATH=/usr/local/bin:/usr/bin:/bin' "$examples/crontab"
	run -0 cat shop/latency/latency.csv
	assert_line "${yesterday}T00:00:00Z,${today}T00:00:00Z,/,2,15,20,2"
	# Yesterday is complete one day after its end: not yet. The day before it is.
	run -0 cat shop/visits/published.csv
	assert_output "window_start,window_end,page,count,ms_sum,ms_max
${before}T00:00:00Z,${yesterday}T00:00:00Z,/,2,30,20"
}

@test "a crontab with a bare % is seen" {
	run grep -cE '(^|[^\\])%' <(grep -vE '^(#|$)' "$examples/crontab")
	assert_output 0
}

# Values of a key in a unit.
value_of() {
	sed -n "s/^$2=//p" "$1"
}

@test "each service has its timer, and runs a script that there is" {
	local service script
	for service in "$examples"/systemd/*.service; do
		[ -f "${service%.service}.timer" ]
		assert_equal "$(grep '^\[' "$service" | tr '\n' ' ')" "[Unit] [Service] "
		assert_equal "$(grep '^\[' "${service%.service}.timer" | tr '\n' ' ')" "[Unit] [Timer] [Install] "
		# Every other line is a comment, empty, or a key and its value.
		run ! grep -vE '^(#.*|;.*|\[[A-Za-z]+\]|[A-Za-z]+=.+|)$' "$service" "${service%.service}.timer"
		assert_equal "$(value_of "$service" Type)" oneshot
		script=$(value_of "$service" ExecStart)
		script=${script%% *}
		[ -x "$examples/${script##*/}" ]
		# The only place where the script may write is the folder that it is given.
		assert_equal "$(value_of "$service" ExecStart)" "$script $(value_of "$service" ReadWritePaths)"
		# In a unit % begins a specifier.
		run ! grep % "$service" "${service%.service}.timer"
		[[ $(value_of "${service%.service}.timer" OnCalendar) =~ ^\*-\*-\*\ [0-2][0-9]:[0-5][0-9]:00$ ]]
	done
}

@test "systemd verifies the units" {
	command -v systemd-analyze >/dev/null || skip "there is no systemd-analyze"
	make_shop
	mkdir units
	for unit in "$examples"/systemd/*; do
		sed "s|/srv/shop|$PWD/shop|" "$unit" >"units/${unit##*/}"
	done
	run -0 systemd-analyze verify units/*
	assert_output ""
	for unit in units/*.timer; do
		systemd-analyze calendar "$(value_of "$unit" OnCalendar)"
	done
	# It would have said so.
	echo 'OnCalender=daily' >>units/wm-replay.timer
	run systemd-analyze verify units/wm-replay.timer
	assert_output --partial "'OnCalender'"
}

@test "README.md shows what run.sh says" {
	PATH=$bin:$PATH run -0 --separate-stderr "$examples/pipeline/run.sh" "$PWD/day" 1 500000 0
	# Where and how fast it ran, and kills, are other ones each time.
	settled() {
		sed -e '/^kill -9/d; /^\.\.\.$/d' -e 's/, in .*:$/:/; s/ in [0-9]* ms:$/:/; s/^After [0-9]* kills/After kills/'
	}
	diff <(sed -n '/^A day of a shop/,/^After /p' "$examples/README.md" | settled) <(printf '%s\n' "$output" | settled)
	# Nothing of that is there twice.
	run -1 --separate-stderr "$examples/pipeline/run.sh" "$PWD/day"
}

# The examples of README.md, in files command1, shown1 and so on: paragraphs that begin with a tool, and those that follow.
readme_examples() {
	python3 - "$examples/../README.md" <<-'END'
		import pathlib, sys
		section = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").split("\n## Sixty seconds\n")[1].split("\n## ")[0]
		commands = []
		for paragraph in section.strip("\n").split("\n\n"):
		    if not paragraph.startswith("    "):
		        continue
		    text = "".join(line[4:] + "\n" for line in paragraph.split("\n"))
		    if text.startswith("build/release/"):
		        commands.append((text, []))
		    elif commands:
		        commands[-1][1].append(text)
		for number, (command, shown) in enumerate(commands, 1):
		    pathlib.Path(f"command{number}").write_text(command, encoding="utf-8")
		    pathlib.Path(f"shown{number}").write_text("\n".join(shown), encoding="utf-8")
	END
}

@test "README.md: each command gives what is shown, also when it is typed again" {
	readme_examples
	mkdir -p build tests
	ln -s "$bin" build/release
	ln -s "$examples/../tests/data" tests/data
	for number in 1 2 3 1 2; do
		bash -eo pipefail "command$number" >written 2>said
		diff "shown$number" written
		if [ "$number" = 1 ]; then
			grep -q '40 of 1707 rows were late' said
			assert_equal "$(wc -l <build/late.csv)" 41
		fi
	done
	[ ! -e command4 ]
}

@test "quickstart runs the first example of README.md" {
	readme_examples
	# As the shell reads both: the one in README.md without quotes, the one in quickstart with.
	local -a command
	eval "$(sed -n 's/^\tlocal -a command=(/command=(/p' "$examples/../quickstart")"
	assert_equal "${command[*]}" "$(cat command1)"
}

# Inputs of the examples that --help shows, as they are called there.
make_inputs() {
	local name
	for name in access a b orders paid events web1 web2 web3; do
		printf 'time,id,host,status,received\n' >"$name.csv"
		printf '2025-11-29T10:00:%02d.5Z,%s,web1,200,2025-11-29T10:01:00Z\n' 1 a 2 b 3 c >>"$name.csv"
	done
	printf '{"time":"2025-11-29T10:00:0%s.25Z","ts":"2025-11-29T10:00:00Z","event_id":%s,"ms":5,"received":"2025-11-29T10:01:00Z"}\n' 1 1 2 1 >events.ndjson
	printf 'window_start,window_end,count\n2025-11-29T00:00:00Z,2025-11-30T00:00:00Z,3\n' | tee daily.csv >replay.csv
	"$bin/wm-window" -t time -w 1s --tumbling 1m -C st a.csv >counted.csv
	cp st st.prev
	# It is the file that goes on, not the test.
	mkdir bin
	printf '#!/bin/sh\n[ "$1 $2 $3" = "-n +1 -F" ] || exit 9\nexec cat "$4"\n' >bin/tail
	chmod +x bin/tail
}

@test "the examples of --help run" {
	local tool line command count=0
	for tool in "$bin"/wm-*; do
		[ -x "$tool" ] || continue
		mkdir "${tool##*/}"
		cd "${tool##*/}"
		make_inputs
		if [ "${tool##*/}" = wm-merge ]; then
			cp daily.csv late.csv
		fi
		"$tool" --help | sed -n '/^Examples:/,$p' | sed 1d >examples
		[ -s examples ]
		# Without what is said of it behind three blanks or, in columns, behind the last word.
		sed -zE 's/\\\n +/ /g' examples | sed -E 's/^  //; s/ {3,}.*//; s/ what its window waits for$//' >commands
		while IFS= read -r command; do
			echo "$command" # shown if it fails
			PATH=$PWD/bin:$bin:$PATH run -0 --separate-stderr bash -eo pipefail -c "$command"
			count=$((count + 1))
		done <commands
		cd ..
	done
	[ "$count" -ge 18 ]
}

@test "README.md names all that quickstart installs for the build" {
	local package build_packages=()
	eval "$(grep '^build_packages=' "$examples/../quickstart")"
	[ ${#build_packages[@]} -gt 5 ]
	for package in "${build_packages[@]}"; do
		sed -n '/^## Build and install/,/^## /p' "$examples/../README.md" | tr -c 'a-z0-9+-' '\n' | grep -qxF -e "$package" ||
			echo "$package is not named"
	done >unnamed
	assert_equal "$(cat unnamed)" ""
}

@test "README.md lists all examples" {
	for path in "$examples"/*; do
		name=${path##*/}
		[ "$name" = README.md ] || grep -qE "\]\(${name}[/)]" "$examples/README.md"
	done
}
