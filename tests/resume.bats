#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Checkpoints: stop anywhere, go on exactly. Worked histories of each tool, and what is refused. That any history ends in
# the bytes of one run is the business of tests/laws/split.py and tests/crash/crash.py.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	interrupt=$PWD/tests/fault/interrupt.py
	cd "$BATS_TEST_TMPDIR" || return 1
}

window() {
	"$bin/wm-window" -t ts -w 5s --tumbling 10s -C st "$@"
}

# is FILE LINE...: what a file holds.
is() {
	local file=$1
	shift
	assert_equal "$(cat "$file")" "$(printf '%s\n' "$@")"
}

head_of_windows=window_start,window_end,count

# ---- histories ----

@test "wm-window: a file that grows, results appended" {
	printf 'ts,k\n1,a\n12,b\n' >in.csv
	run -0 window in.csv
	assert_output --partial 'wm-window: held at the end of input: 2 open windows are kept in st'
	printf '16,a\n3,late\n29' >>in.csv # of the last line more is to come
	window -q --late late.csv in.csv >out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1
	is late.csv ts,k 3,late
	printf '9,b\n' >>in.csv
	window -q --late late.csv in.csv >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,2
	is late.csv ts,k 3,late
	window -q --eof flush in.csv >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,2 1970-01-01T00:04:50Z,1970-01-01T00:05:00Z,1
}

@test "wm-window: NDJSON, and --out" {
	printf '{"ts":1,"k":"a"}\n{"ts":12,"k":"b"}\n' >in
	window -q --out out in
	printf '{"ts":31,"k":"a"}\n' >>in
	window -q --out out in
	is out '{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","count":1}' \
		'{"window_start":"1970-01-01T00:00:10Z","window_end":"1970-01-01T00:00:20Z","count":1}'
}

@test "wm-window: each file of a spool once" {
	mkdir spool
	printf 'ts\n1\n' >spool/1.csv
	window -q spool/*.csv >>out.csv
	printf 'ts\n12\n' >spool/2.csv
	window -q spool/*.csv >>out.csv
	printf 'ts\n25\n' >spool/3.csv
	window -q spool/*.csv >>out.csv
	window -q spool/*.csv >>out.csv
	window -q --eof flush spool/*.csv >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1 1970-01-01T00:00:20Z,1970-01-01T00:00:30Z,1
}

@test "wm-window: a file that was rotated is found under its new name" {
	printf 'ts\n1\n2\n' >log
	window -q log >>out.csv
	printf '3\n' >>log
	mv log log.1
	printf 'ts\n30\n' >log
	run -0 --separate-stderr window log.1 log
	assert_output "$head_of_windows
1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,3"
	printf 'ts\n31\n' >log.2
	mv log log.0
	run -0 window log.1 log.0 log.2
	refute_output --partial 1970-01-01T00:00:00Z
	rm -f st*
	printf 'ts\n1\n' >log
	window -q log
	cp log copy
	printf 'ts\n99\n' >log
	run -0 window copy log
	assert_output --partial 'copy: is taken for what was'
}

@test "wm-window: a pipe goes on, in the middle of a line too" {
	printf 'ts,k\n1,a\n1' | window -q >>out.csv
	printf '2,b\n31,' | window -q >>out.csv
	is out.csv $head_of_windows
	printf 'a\n' | window -q >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
}

@test "a pipe that goes on may repeat its header: what was kept before it is a record" {
	printf 'ts,k\n1,a\n12,b' | window -q >>out.csv
	printf 'ts,k\n31,a\n' | window -q >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
}

# The first tool is killed: its last line may be cut off anywhere. A filter between two others takes it for a record, unless
# it holds; what it passed would else be no beginning of what it passes in the next run.
@test "a pipe of three that is cut off in the middle of a line, and comes whole" {
	printf 'id,ts\nb,72\nc,144.5\nd,216\n' | "$bin/wm-stamp" -q -t ts -w 5s >rows
	dedup() {
		"$bin/wm-dedup" -q -k id --with-time --eof hold
	}
	follow() {
		"$bin/wm-window" -q --tumbling 10s -C st --resume replay "$@" >>out.csv
	}
	local cut from to
	from=$(head -n 2 rows | wc -c)
	to=$(head -n 3 rows | wc -c)
	for ((cut = from; cut <= to; cut++)); do
		rm -f st* out.csv
		head -c "$cut" rows | dedup | follow
		dedup <rows | follow --eof flush
		is out.csv $head_of_windows 1970-01-01T00:01:10Z,1970-01-01T00:01:20Z,1 \
			1970-01-01T00:02:20Z,1970-01-01T00:02:30Z,1 1970-01-01T00:03:30Z,1970-01-01T00:03:40Z,1
	done
}

@test "a last line without line end is left, and that is said" {
	printf 'ts,k\n1,a\n31,b' >in.csv
	run -0 --separate-stderr window in.csv
	assert_output "$head_of_windows"
	assert_regex "$stderr" 'wm-window: in.csv: its last line has no line end and may not be whole: it is left for the next run'
	printf 'bb\n' >>in.csv
	run -0 --separate-stderr window in.csv
	assert_output "$head_of_windows"$'\n'1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1
	refute_regex "$stderr" 'may not be whole'
	for eof in flush trigger; do
		run -0 bash -c "printf 'ts,k\n1,a\n31,b' | '$bin/wm-dedup' -t ts --time-format s -w 5s -k ts --eof $eof"
		assert_output $'ts,k\n1,a\n31,b'
	done
	run -0 --separate-stderr bash -c "printf 'ts,k\n1,a\n31,b' | '$bin/wm-dedup' -t ts --time-format s -w 5s -k ts --eof hold"
	assert_output $'ts,k\n1,a'
	assert_equal "$stderr" 'wm-dedup: standard input: its last line has no line end and may not be whole: it is left'
}

@test "--resume replay: a pipe brings everything again, and has to" {
	printf 'ts\n1\n12\n' | window -q --resume replay >>out.csv
	printf 'ts\n1\n12\n31\n' | window -q --resume replay >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
	cp out.csv before
	printf 'ts\n2\n12\n31\n' >other
	run -3 window --resume replay <<<"$(cat other)"
	run -3 bash -c "cat other | '$bin/wm-window' -t ts -w 5s --tumbling 10s -C st --resume replay >>out.csv"
	assert_output --partial 'standard input: does not begin as before: --resume replay needs the same input from its first byte'
	cmp out.csv before
}

@test "--resume replay: all that was read has to come again, byte for byte" {
	{ echo ts,k && seq -f %g,a 1000; } >rows
	replay() {
		"$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st --resume replay
	}
	replay <<<"$(cat rows)" >want
	rm st*
	# The last line is not whole: it was read all the same.
	head -n 901 rows >part
	printf '901,' >>part
	cat part | replay >>out.csv
	cp out.csv before
	local other
	for other in 's/^890,a/890,b/' 's/^898,a/0898,a/'; do
		run -0 cmp before out.csv
		run -3 bash -c "sed '$other' rows | '$bin/wm-window' -t ts -w 5s --tumbling 10s -C st --resume replay >>out.csv"
		assert_output --partial 'standard input: is not what it was, up to byte '
	done
	run -3 bash -c "head -c -2 part | '$bin/wm-window' -t ts -w 5s --tumbling 10s -C st --resume replay >>out.csv"
	assert_output --regexp "standard input: ends at byte [0-9]+, and was read up to byte $(wc -c <part) before"
	# Nothing of that counts.
	cat rows | replay >>out.csv
	cmp want out.csv
	cat rows | replay >>out.csv
	cmp want out.csv
}

@test "--position: rows up to the last one are skipped when they come again" {
	printf 'ts,offset\n1,7\n12,8\n' | window -q --position offset >>out.csv
	printf 'ts,offset\n12,8\n31,9\n' | window -q --position offset --report r >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
	run -0 jq -c 'select(.type == "report") | [.rows_in, .run.rows_in]' r
	assert_output '[3,1]'
}

# Offsets of a topic count in each partition by itself.
@test "--position with --source: the last value of each source" {
	positioned() {
		"$bin/wm-window" -t ts -w 0s --tumbling 10s --source p -g p -C st --position offset "$@"
	}
	printf 'ts,p,offset\n1.5,0,100\n2,1,7\n3,0,101\n4,,1\n' | positioned -q >>out.csv
	run -0 --separate-stderr positioned <<<$'ts,p,offset\n2,1,7\n5,1,8\n3,0,101\n6,0,102\n4,,1\n7,,2\n31,0,103\n31,1,9\n31,,3' --out out.csv
	assert_regex "$stderr" 'wm-window: 3 rows came again and were skipped, by the last offset \(--position\)'
	is out.csv window_start,window_end,p,count 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,,2 \
		1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,0,3 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1,2
	for source in 0=103 1=9 =3; do
		run -0 "$bin/wm-checkpoint" position st "${source%=*}"
		assert_output "${source#*=}"
		run -0 "$bin/wm-checkpoint" position st - "${source%=*}"
		assert_output "${source#*=}"
	done
	run -2 "$bin/wm-checkpoint" position st
	assert_output 'wm-checkpoint: position: st has 3 sources: name one of 0, 1, '
	run -2 "$bin/wm-checkpoint" position st 7
	assert_output "wm-checkpoint: position: '7' is no input of st, and no source that has come: see wm-checkpoint show"
	run -2 "$bin/wm-checkpoint" position st - 7
	assert_output "wm-checkpoint: position: '7' is no source of -: see wm-checkpoint show"
	run -0 "$bin/wm-checkpoint" show st
	assert_output --partial ', positions 0: 103, 1: 9, : 3'
	run -0 bash -c "'$bin/wm-checkpoint' dump st | jq -c 'select(.source != null and .position != null) | [.source, .position]'"
	assert_output $'["0","103"]\n["1","9"]\n["","3"]'
}

# What is read from the pipe does not depend on the other partitions: held to each partition read by itself.
@test "--position with --source: any interleaving of partitions, from where each reader was" {
	python3 - "$bin" <<-'END'
		import collections, random, subprocess, sys
		tool = [sys.argv[1] + "/wm-stamp", "-q", "-t", "ts", "-w", "1h", "--source", "p", "--position", "o", "-C", "st", "--out", "out"]
		for seed in range(12):
		    rng = random.Random(seed)
		    subprocess.run(["rm", "-f", "st", "st.prev", "out"], check=True)
		    made = collections.Counter()
		    log = {p: [] for p in "abc"}
		    for _ in range(4):
		        rows = []
		        for p in log:
		            # the reader begins up to three rows too early
		            again = log[p][max(0, len(log[p]) - rng.randrange(4)):]
		            new = [f"{1000 + rng.randrange(90)}.{rng.randrange(1000):03d},{p},{len(log[p]) + i}" for i in range(rng.randrange(4))]
		            log[p] += new
		            rows.append(again + new)
		        text = "ts,p,o\n"
		        while any(rows):
		            text += rng.choice([r for r in rows if r]).pop(0) + "\n"
		        subprocess.run([*tool, "--resume", "auto"], input=text.encode(), check=True)
		    got = sorted(line.rsplit(",", 2)[0] for line in open("out").read().splitlines()[1:])
		    want = sorted(row for rows in log.values() for row in rows)
		    assert got == want, (seed, got, want)
	END
}

@test "wm-dedup remembers, wm-sort holds, wm-stamp goes on, wm-lag adds up" {
	printf 'ts,id\n10,x\n12,y\n' >in.csv
	"$bin/wm-dedup" -q -t ts -w 5s -k id -C dedup in.csv >>dedup.csv
	"$bin/wm-sort" -q -t ts -w 5s -C sort in.csv >>sort.csv
	"$bin/wm-stamp" -q -t ts -w 5s -C stamp in.csv >>stamp.csv
	"$bin/wm-lag" -q -t ts -C lag in.csv >lag.csv
	printf '14,x\n11,z\n30,x\n' >>in.csv
	"$bin/wm-dedup" -q -t ts -w 5s -k id -C dedup in.csv >>dedup.csv
	"$bin/wm-sort" -q -t ts -w 5s -C sort in.csv >>sort.csv
	"$bin/wm-stamp" -q -t ts -w 5s -C stamp in.csv >>stamp.csv
	"$bin/wm-lag" -q -t ts -C lag in.csv >lag.csv
	is dedup.csv ts,id 10,x 12,y 11,z 30,x
	is sort.csv ts,id 10,x 11,z 12,y 14,x
	is stamp.csv ts,id,_time,_watermark 10,x,1970-01-01T00:00:10Z,1970-01-01T00:00:05Z \
		12,y,1970-01-01T00:00:12Z,1970-01-01T00:00:07Z 14,x,1970-01-01T00:00:14Z,1970-01-01T00:00:09Z \
		11,z,1970-01-01T00:00:11Z,1970-01-01T00:00:09Z 30,x,1970-01-01T00:00:30Z,1970-01-01T00:00:25Z
	run -0 cut -d, -f1-2,10 lag.csv
	assert_line 'disorder,5,0'
}

@test "wm-join waits for the other side from run to run" {
	printf 'ts,k,l\n10,a,1\n12,b,2\n' >left.csv
	printf 'ts,k,r\n9,b,1\n' >right.csv
	join=("$bin/wm-join" -q -t ts -w 1s -k k --between "-5s,5s" --type left -C st left.csv right.csv)
	"${join[@]}" >>out.csv
	is out.csv ts,k,l,right_ts,r 12,b,2,9,1
	printf '11,a,2\n30,z,3\n' >>right.csv
	printf '40,z,3\n' >>left.csv
	"${join[@]}" >>out.csv
	is out.csv ts,k,l,right_ts,r 12,b,2,9,1 10,a,1,11,2
	printf '60,y,4\n' >>right.csv
	"${join[@]}" >>out.csv
	is out.csv ts,k,l,right_ts,r 12,b,2,9,1 10,a,1,11,2 40,z,3,,
	run -3 "${join[@]}" -o ndjson
	assert_output --partial 'was made with --output-format same, and this run is with --output-format ndjson'
}

@test "a state of many pieces: texts longer than a piece, items over its ends" {
	python3 - <<-'END'
		rows = [(i * 7919 % 3000, f"k{i}", chr(97 + i % 26) * (90000 if i % 100 == 0 else i % 700)) for i in range(3000)]
		def put(name, rows):
		    with open(name, "w") as file:
		        file.write("ts,k,v\n" + "".join(f"{t},{k},{v}\n" for t, k, v in rows))
		put("in.csv", rows[:2900])
		put("all.csv", rows)
		put("sorted.csv", sorted(rows))
		put("unique.csv", rows)
		put("twice.csv", rows[:2900] + rows)
		with open("pairs.csv", "w") as file:
		    file.write("ts,k,v,right_ts,right_v\n" + "".join(f"{t},{k},{v},{t},{v}\n" for t, k, v in rows))
		with open("firsts.csv", "w") as file:
		    file.write("window_start,window_end,k,v_first,v_max\n")
		    for k, v in sorted((k, v) for _, k, v in rows):
		        file.write(f"1970-01-01T00:00:00Z,1970-01-01T01:00:00Z,{k},{v},{v}\n")
	END
	common=(-t ts --time-format s -w 1h -q)
	"$bin/wm-sort" "${common[@]}" -C sort.st in.csv >sort.out
	cp all.csv in.csv
	"$bin/wm-sort" "${common[@]}" -C sort.st --eof flush in.csv >>sort.out
	cmp sort.out sorted.csv
	head -n 2901 all.csv >in.csv
	"$bin/wm-dedup" "${common[@]}" -k k,v -C dedup.st in.csv >dedup.out
	cp twice.csv in.csv
	"$bin/wm-dedup" "${common[@]}" -k k,v -C dedup.st in.csv >>dedup.out
	cmp dedup.out unique.csv
	for windows in '--tumbling 1h' '--session 1h'; do
		head -n 2901 all.csv >in.csv
		# shellcheck disable=SC2086
		"$bin/wm-window" "${common[@]}" $windows -g k -a first:v,max:v -C window.st in.csv >window.out
		cp all.csv in.csv
		# shellcheck disable=SC2086
		"$bin/wm-window" "${common[@]}" $windows -g k -a first:v,max:v -C window.st --eof flush in.csv >>window.out
		if [ "$windows" = '--tumbling 1h' ]; then
			cmp window.out firsts.csv
		else
			# A session of one row begins with it.
			cut -d, -f3- window.out | sort | cmp - <(cut -d, -f3- firsts.csv | sort)
		fi
		rm window.st*
	done
	head -n 2901 all.csv >left.csv
	: >right.csv
	"$bin/wm-join" "${common[@]}" -k k --between 0s,0s -C join.st left.csv right.csv >join.out
	cp all.csv right.csv
	cp all.csv left.csv
	"$bin/wm-join" "${common[@]}" -k k --between 0s,0s -C join.st --eof flush left.csv right.csv >>join.out
	sort join.out | cmp - <(sort pairs.csv)
}

@test "FILEs side by side: one that was finished and has not grown holds nothing back" {
	printf 'ts\n1\n2\n' >a
	printf 'ts\n40\n50\n' >b
	window -q --merge a b >>out.csv
	is out.csv $head_of_windows
	printf '60\n' >>b
	window -q --merge a b >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,2 \
		1970-01-01T00:00:40Z,1970-01-01T00:00:50Z,1
}

@test "FILEs side by side: what is left behind one that has ended is said" {
	printf 'ts\n1\n2\n' >a
	printf 'ts\n40\n50\n' >b
	run -0 window --time-format s --merge a b
	assert_output --partial 'wm-window: b: the rest, from line 3 on, is left for the next run: a FILE that is behind it has ended, and may grow'
	run -0 window --time-format s --merge a b
	refute_output --partial 'is left for the next run'
	run -0 window --time-format s --merge --eof flush a b
	refute_output --partial 'is left for the next run'
}

# ---- the ends of runs ----

@test "a flush closes the checkpoint" {
	printf 'ts\n1\n12\n' >in.csv
	window -q --eof flush in.csv >>out.csv
	cp out.csv before
	run -0 window --eof flush in.csv
	assert_output 'wm-window: st: is closed, and there is no new input: nothing was done'
	printf '13\n' >>in.csv
	run -3 window --eof flush in.csv
	assert_output --partial 'wm-window: st: is closed: all was written at the end of the run before'
	cmp out.csv before
}

@test "without a watermark: flush, each run by itself; or nothing" {
	printf 'ts\n1\n12\n' >in.csv
	run -2 "$bin/wm-window" -t ts --tumbling 10s -C st in.csv
	assert_output --partial '-C: without a watermark what is held would never be written'
	run -2 "$bin/wm-sort" -t ts -C st in.csv
	assert_output --partial '-C: without a watermark what is held would never be written'
	run -2 "$bin/wm-join" -t ts -k ts --type left --between 0s,1s --left-delay 1s -C st in.csv in.csv
	assert_output --partial '-C: without a watermark what is held would never be written'
	rm -f st*
	"$bin/wm-window" -q -t ts --tumbling 10s --eof flush -C st in.csv >>out.csv
	printf '13\n' >>in.csv
	"$bin/wm-window" -q -t ts --tumbling 10s --eof flush -C st in.csv >>out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1 1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
}

@test "a signal: what was read is processed, and the next run goes on" {
	printf 'ts\n1\n12\n3' >rows
	run -143 "$interrupt" SIGTERM rows "$bin/wm-window" -t ts -w 5s --tumbling 10s -C st --out out.csv
	assert_output --partial 'stopped by a signal: 2 open windows are kept in st'
	printf '1\n' | window -q --out out.csv
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
}

# A pipeline that is stopped as a whole: what wrote the pipe dies of the signal too, and may have written half a line.
@test "a signal as a pipe ends: the unfinished last line is kept, and is no record" {
	local tool eof resume
	printf 'ts,k\n1,a\n2,a\n12' >part
	printf 'ts,k\n1,a\n2,a\n12345,a\n' >whole
	: >none
	declare -A commands=(
		[stamp]="wm-stamp -t ts -w 0s" [dedup]="wm-dedup -t ts -w 1h -k ts" [sort]="wm-sort -t ts -w 0s"
		[window]="wm-window -t ts -w 0s --tumbling 1s" [join]="wm-join -t ts -w 0s -k k --between 0s,0s --type left - none"
	)
	for tool in "${!commands[@]}"; do
		# shellcheck disable=SC2206
		local command=(${commands[$tool]})
		command[0]=$bin/${command[0]}
		"${command[@]}" -q <whole >want
		for eof in '' '--eof flush' '--eof trigger'; do
			for resume in auto replay; do
				rm -f st* out
				# shellcheck disable=SC2086
				run -143 "$interrupt" SIGTERM,end part "${command[@]}" -q -C st $eof --resume $resume --out out
				if [ $resume = auto ]; then tail -c +16 whole; else cat whole; fi |
					"${command[@]}" -q -C st --eof flush --resume $resume --out out
				cmp want out || { echo "$tool $eof $resume" && return 1; }
			done
		done
	done
}

# The batches of the left are 1, 2, 3, 5, those of the right 1, 3, 4, 5: some of one side alone, and one of many rows.
common_batches() {
	printf '%s\n' n,ts,k,x 1,1,a,p 1,2,b,q 2,12,a,r 3,25,a,s 3,21,b,t 3,26,c,u 5,60,a,v 5,61,b,w >left.csv
	printf '%s\n' n,ts,k,y 1,2,a,P 1,3,c,Q 3,24,a,R 3,1,a,late 3,27,b,S 4,50,c,T 5,58,a,U 5,62,a,V >right.csv
}

@test "wm-join: a signal anywhere in the batches that both inputs share" {
	join() {
		wm-join -q -t ts -w 5s -k k --between -5s,5s --type full --trigger column:n "$@"
	}
	PATH=$bin:$PATH
	common_batches
	join left.csv right.csv >want
	# pairs, and rows that found none: left ones first, at the end of a batch
	[ "$(wc -l <want)" -gt 12 ]
	local side rows at
	for side in left right; do
		if [ $side = left ]; then inputs=(- right.csv); else inputs=(left.csv -); fi
		rows=$(wc -l <$side.csv)
		for ((at = 1; at <= rows; at++)); do
			rm -f st st.* out
			head -n $at $side.csv >part
			run -143 "$interrupt" SIGTERM part "$bin/wm-join" -q -t ts -w 5s -k k --between -5s,5s --type full \
				--trigger column:n -C st --out out "${inputs[@]}"
			tail -n +$((at + 1)) $side.csv | join -C st --eof flush --out out "${inputs[@]}"
			cmp want out || { echo "$side stopped behind line $at" && return 1; }
		done
	done
}

@test "wm-join: a signal behind each row of an input, in a batch that both share" {
	common_batches
	local side at options
	for options in '--type full' '--type left --compat spark' '--type semi --compat spark' '--type inner --stamp later'; do
		# shellcheck disable=SC2086
		join() {
			"$bin/wm-join" -q -t ts -w 5s -k k --between -5s,5s $options --trigger column:n "$@"
		}
		join left.csv right.csv >want
		for side in left right; do
			if [ $side = left ]; then inputs=(- right.csv); else inputs=(left.csv -); fi
			rm -f st st.* out
			for ((at = 1; at <= $(wc -l <$side.csv); at++)); do
				sed -n ${at}p $side.csv >part
				# shellcheck disable=SC2086
				run -143 "$interrupt" SIGTERM part "$bin/wm-join" -q -t ts -w 5s -k k --between -5s,5s $options \
					--trigger column:n -C st --out out "${inputs[@]}"
			done
			join -C st --eof flush --out out "${inputs[@]}" </dev/null
			cmp want out || { echo "$side, $options" && return 1; }
		done
	done
}

@test "wm-join: the state limit anywhere in the batches that both inputs share" {
	join() {
		"$bin/wm-join" -q -t ts -w 5s -k k --between -5s,5s --type full --trigger column:n "$@"
	}
	awk -v seed=1 'BEGIN { srand(seed); print "n,ts,k,x"
		for (n = 0; n < 30; n++) for (i = rand() * 9; i > 1; i--) printf "%d,%d,%d,l%d\n", n, n * 9 + rand() * 20, rand() * 5, j++ }' >left.csv
	awk -v seed=2 'BEGIN { srand(seed); print "n,ts,k,y"
		for (n = 0; n < 30; n++) for (i = rand() * 9; i > 1; i--) printf "%d,%d,%d,r%d\n", n, n * 9 + rand() * 20, rand() * 5, j++ }' >right.csv
	join left.csv right.csv >want
	local limit status stopped=0
	for ((limit = 1000; limit < 12000; limit += 150)); do
		rm -f st st.* out
		status=0
		join -C st --eof flush --state-limit $limit --out out left.csv right.csv 2>/dev/null || status=$?
		if [ $status -eq 4 ]; then
			stopped=$((stopped + 1))
			join -C st --eof flush --out out left.csv right.csv
		fi
		cmp want out || { echo "stopped at $limit" && return 1; }
	done
	[ $stopped -gt 10 ]
}

@test "SIGHUP: a side file that was moved away is not cut back" {
	mkfifo pipe
	"$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st --late late.csv --out out.csv pipe 3>&- &
	exec 9>pipe
	printf 'ts\n100\n1\n' >&9
	for _ in {1..100}; do [ -s late.csv ] || sleep 0.05; done
	mv late.csv late.1
	kill -HUP $!
	for _ in {1..100}; do [ -s late.csv ] || sleep 0.05; done
	printf '2\n' >&9
	exec 9>&-
	wait $!
	is late.1 ts 1
	is late.csv ts 2
}

@test "SIGHUP: --out that was moved away begins anew with its header; a pipe stays" {
	local kept
	for kept in '' '-C st'; do
		rm -rf pipe st* out*
		mkfifo pipe
		# shellcheck disable=SC2086
		"$bin/wm-window" -q -t ts -w 0s --tumbling 10s $kept --eof hold --out out.csv pipe 3>&- &
		exec 9>pipe
		printf 'ts\n1\n12\n' >&9
		for _ in {1..100}; do [ "$(cat out.csv 2>/dev/null | wc -l)" = 2 ] && break || sleep 0.05; done
		mv out.csv out.1
		kill -HUP $!
		for _ in {1..100}; do [ -s out.csv ] && break || sleep 0.05; done
		printf '25\n36\n' >&9
		exec 9>&-
		wait $!
		is out.1 $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1
		is out.csv $head_of_windows 1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1 \
			1970-01-01T00:00:20Z,1970-01-01T00:00:30Z,1
	done
	# What passes, and what has not moved.
	rm -f pipe
	mkfifo pipe
	"$bin/wm-stamp" -q -t ts -w 0s --add late --out out.pipe.csv pipe 3>&- &
	exec 9>pipe
	printf 'ts\n1\n' >&9
	for _ in {1..100}; do [ "$(cat out.pipe.csv 2>/dev/null | wc -l)" = 2 ] && break || sleep 0.05; done
	kill -HUP $!
	sleep 0.2
	printf '2\n' >&9
	exec 9>&-
	wait $!
	is out.pipe.csv ts,_late 1,0 2,0
	rm -f pipe out.pipe
	mkfifo pipe out.pipe
	cat out.pipe >got 3>&- &
	"$bin/wm-stamp" -q -t ts -w 0s --add late --out out.pipe pipe 3>&- &
	exec 9>pipe
	printf 'ts\n1\n' >&9
	for _ in {1..100}; do [ "$(wc -l <got)" = 2 ] && break || sleep 0.05; done
	kill -HUP $!
	sleep 0.2
	printf '2\n' >&9
	exec 9>&-
	wait
	is got ts,_late 1,0 2,0
}

@test "wm-lag: stopped at the state limit, the table is left to the run that goes on" {
	awk 'BEGIN { print "ts,k"; for (i = 0; i < 20000; i++) printf "%d.25,%d\n", i, i % 4000 }' >in.csv
	"$bin/wm-lag" -q -t ts -g k in.csv >want
	run -4 bash -c "'$bin/wm-lag' -q -t ts -g k -C st --state-limit 200K in.csv >>out"
	assert_output --partial 'the checkpoint is good'
	run -4 bash -c "'$bin/wm-lag' -q -t ts -g k -C st --state-limit 300K in.csv >>out"
	"$bin/wm-lag" -q -t ts -g k -C st --state-limit none in.csv >>out
	cmp want out
}

# From its last call back to the one that opens the side file again.
@test "SIGHUP: killed at any moment of it, the next run goes on by itself" {
	LD_PRELOAD=$bin/tests/fault/kill_at.so "$bin/wm-window" --version >/dev/null 2>&1 ||
		skip "a build that lets no library be loaded before its own"
	printf 'ts\n100\n1\n2\n' >all
	mkfifo pipe
	run_it() {
		exec "$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st --resume replay --late late.csv --out out.csv "$@"
	}
	local at killed=0 calls=1000
	trap '' PIPE
	for ((at = calls; at > 0; at--)); do
		rm -f st* *.csv late.1 count
		LD_PRELOAD=$bin/tests/fault/kill_at.so WM_COUNT=count WM_KILL_AT=$at run_it pipe 3>&- &
		exec 9>pipe
		printf 'ts\n100\n1\n' >&9
		for _ in {1..500}; do [ -s late.csv ] || sleep 0.01; done
		mv late.csv late.1 || return 1
		kill -HUP $!
		for _ in {1..500}; do [ ! -s late.csv ] && kill -0 $! 2>/dev/null && sleep 0.01; done
		printf '2\n' >&9 2>/dev/null || true
		exec 9>&-
		status=0
		wait $! || status=$?
		if ((status == 0)); then
			[ "$at" -lt $calls ] || at=$(($(cat count) + 1))
			continue
		fi
		[ $status = 137 ] || return 1
		[ -e late.csv ] || break # in SIGHUP, but before the file was opened again
		killed=$((killed + 1))
		cat all >pipe &
		run -0 run_it --eof flush pipe
		cat late.1 late.csv | grep -v ts | sort -u | tr '\n' ' ' >got
		assert_equal "$(cat got)" '1 2 '
	done
	[ $killed -gt 5 ]
}

@test "the state limit: status 4, and the state is kept" {
	awk 'BEGIN { print "ts,k"; for (i = 0; i < 30000; i++) printf "%d,key-%d\n", i % 10, i }' >in.csv
	run -4 window -g k --state-limit 1M in.csv
	assert_output --partial 'stopped (the checkpoint is good): raise --state-limit, or bound it with a shorter -w or fewer keys (-g)'
	window -q -g k --state-limit none --eof flush in.csv >>out.csv
	"$bin/wm-window" -q -t ts -w 5s --tumbling 10s -g k in.csv | cmp - out.csv
	run -4 "$bin/wm-sort" -t ts -w 1h --state-limit 64K in.csv
	assert_output --partial 'stopped: raise --state-limit, or bound it with a shorter -w'
}

# limited ADVICE COMMAND...: what the command is told when its state is too large.
limited() {
	local advice=$1 words=
	shift
	run -4 --separate-stderr "$@"
	[ -z "$advice" ] || words=", or bound it with $advice"
	assert_equal "$(sed -n 's/.*stopped: raise --state-limit//p' <<<"$stderr")" "$words"
}

@test "the state limit: the advice names options that bound this run, and no other" {
	local limit=(--state-limit 40K)
	awk 'BEGIN { print "ts,k"; for (i = 0; i < 30000; i++) printf "%d.25,key-%d\n", i, i }' >in.csv
	"$bin/wm-stamp" -q -t ts -w 1h in.csv >stamped.csv
	cp in.csv other.csv
	limited 'a shorter -w or fewer keys (-g)' "$bin/wm-window" -q -t ts -w 9h --tumbling 10h -g k "${limit[@]}" in.csv
	limited 'a shorter -w' "$bin/wm-window" -q -t ts -w 9h --tumbling 1s "${limit[@]}" in.csv
	limited 'a delay (-w)' "$bin/wm-window" -q -t ts --tumbling 1s "${limit[@]}" in.csv
	limited 'fewer keys (-g)' "$bin/wm-window" -q -t ts -w 0s --tumbling 10h -g k "${limit[@]}" in.csv
	limited 'fewer keys (-g)' "$bin/wm-window" -q -t ts -w 1s --tumbling 1s -g k --mode complete "${limit[@]}" in.csv
	limited 'a shorter -w of what stamps the input or fewer keys (-g)' "$bin/wm-window" -q --tumbling 10h -g k "${limit[@]}" stamped.csv
	limited 'a delay (-w)' "$bin/wm-dedup" -q -t ts -k k "${limit[@]}" in.csv
	limited 'a shorter -w' "$bin/wm-dedup" -q -t ts -w 9h -k k "${limit[@]}" in.csv
	limited 'a shorter -w or a shorter --remember' "$bin/wm-dedup" -q -t ts -w 9h --remember 9h -k k "${limit[@]}" in.csv
	limited '--remember D instead of --forever' "$bin/wm-dedup" -q -t ts -w 9h --forever -k k "${limit[@]}" in.csv
	limited 'a delay (-w)' "$bin/wm-sort" -q -t ts "${limit[@]}" in.csv
	limited 'a delay (-w) or a closer --between' "$bin/wm-join" -q -t ts -k k --between 0s,9h "${limit[@]}" in.csv other.csv
	limited 'a shorter -w or a closer --between' "$bin/wm-join" -q -t ts -w 1s -k k --between 0s,9h "${limit[@]}" in.csv other.csv
	limited 'fewer keys (-g)' "$bin/wm-lag" -q -t ts -g k "${limit[@]}" in.csv
}

# All rows stand in one read.
@test "the state limit: looked at between reads too, and a higher one goes on" {
	awk 'BEGIN { print "ts,k"; for (i = 0; i < 20000; i++) printf "%d,%d\n", i % 9, i; print "99,a" }' >in.csv
	run -4 window -q -g k --state-limit 100K --report report --out out.csv in.csv
	assert_output --regexp 'the state takes [0-9]+ KiB, and 100 KiB are allowed: stopped'
	run -0 jq -s '.[-1].rows_in < 9000' report
	assert_output true
	for limit in 100K 300K 600K; do
		run -4 window -q -g k --state-limit $limit --out out.csv in.csv
	done
	run -0 window -q -g k --state-limit 64M --eof flush --out out.csv in.csv
	"$bin/wm-window" -q -t ts -w 5s --tumbling 10s -g k in.csv | cmp - out.csv
	# What was kept is no larger than what may be loaded; a lower limit says so, and changes nothing.
	rm -f st* out.csv
	run -4 window -q -g k --state-limit 300K --out out.csv in.csv
	cp st before
	run -4 window -q -g k --state-limit 10K --out out.csv in.csv
	assert_output --partial 'raise --state-limit'
	cmp st before
}

# over: how many KiB over the limit of a message.
over() {
	[[ $output =~ 'the state takes '([0-9]+)' KiB, and '([0-9]+)' KiB are allowed' ]] || return 1
	[ "$(grep -c 'the state takes' <<<"$output")" -eq 1 ] || return 1
	echo $((BASH_REMATCH[1] - BASH_REMATCH[2]))
}

@test "the state limit: rows that cost much are looked at more often" {
	awk 'BEGIN { print "ts,k"; for (i = 0; i < 20000; i++) printf "%d,%d\n", i % 50, i }' >in.csv
	# Each row is in 600 windows, that is 100 KiB: the 2000 of a read would be 200 MiB.
	run -4 "$bin/wm-window" -t ts -w 1h --sliding 10m,1s -g k --early 1rows --state-limit 10M in.csv
	# no more than what one row adds where all tables double
	[ "$(over)" -lt 10240 ]
	# Each row is 64 KiB: 16 of them are a read.
	awk 'BEGIN { x = "x"; while (length(x) < 65536) x = x x; print "ts,k"; for (i = 0; i < 100; i++) print i "," i x }' >large.csv
	run -4 "$bin/wm-sort" -t ts -w 1h --state-limit 2M large.csv
	[ "$(over)" -lt 70 ]
	run -4 "$bin/wm-dedup" -t ts -w 1h --state-limit 2M large.csv
	[ "$(over)" -lt 70 ]
	# memory for keys is taken in larger and larger pieces
	run -4 "$bin/wm-window" -t ts -w 1h --tumbling 1h -g k --state-limit 2M large.csv
	[ "$(over)" -lt 400 ]
	# It is said once, whichever input it is.
	run -4 "$bin/wm-join" -t ts -w 1h -k k --between 0s,1h --state-limit 2M large.csv large.csv
	[ "$(over)" -lt 200 ]
}

@test "a source that the clock had made idle speaks in a run that knows no idleness" {
	printf 'ts,k\n10,a\n11,b\n' >in.csv
	mkfifo pipe
	"$bin/wm-window" -q -t ts -w 0s --tumbling 10s --source k --idle-wall 100ms -C st --out out pipe 3>&- &
	exec 9>pipe
	cat in.csv >&9
	sleep 0.5
	printf '25,a\n' >&9
	# a alone takes part: its window of 10 s is written.
	for _ in {1..100}; do [ ! -s out ] || break && sleep 0.05; done
	kill -TERM $!
	wait $! || true
	exec 9>&-
	printf '26,b\n41,a\n42,b\n' |
		"$bin/wm-window" -q -t ts -w 0s --tumbling 10s --source k -C st --eof flush --out out
	is out $head_of_windows 1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,2 1970-01-01T00:00:20Z,1970-01-01T00:00:30Z,2 \
		1970-01-01T00:00:40Z,1970-01-01T00:00:50Z,2
}

@test "counters are of all runs, run has this one's" {
	printf 'ts\n1\nx\n12\n' >in.csv
	run -1 window --report r in.csv
	printf '31\n' >>in.csv
	run -0 window --report r in.csv
	run -0 jq -c 'select(.type == "report") | [.rows_in, .rows_rejected, .rejected, .run.rows_in, .run.rows_rejected]' r
	assert_output '[3,1,{"bad-time":1},3,1]
[4,1,{"bad-time":1},1,0]'
}

# ---- what is refused ----

@test "options that change the meaning of the state" {
	printf 'ts,k\n1,a\n12,a\n' >in.csv
	window -q in.csv >out.csv
	run -3 "$bin/wm-window" -t ts -w 5s --tumbling 20s -C st in.csv
	assert_output --partial 'wm-window: st: was made with --tumbling 10s, and this run is with --tumbling 20s: the state would change its meaning'
	run -3 window -g k in.csv
	run -3 window -a sum:ts in.csv
	run -3 window --trigger 5rows in.csv
	run -3 "$bin/wm-window" -t ts -w 4s --tumbling 10s -C st in.csv
	assert_output --partial 'was made with --delay 5s, and this run is with --delay 4s'
	run -3 "$bin/wm-stamp" -t ts -w 5s -C st in.csv
	assert_output --partial 'st: is a checkpoint of wm-window: name another for wm-stamp'
	# The same in other words, a longer delay, another form.
	run -0 "$bin/wm-window" -q -t ts -w 5000ms --tumbling 'PT10S' -a count --mode append -C st in.csv
	run -0 "$bin/wm-window" -q -t ts -w 1m --tumbling 10s -C st --output-time ms -o ndjson in.csv
}

@test "a damaged file, and the way back" {
	printf 'ts\n1\n12\n' >in.csv
	window -q in.csv >>out.csv
	printf '31\n' >>in.csv
	window -q in.csv >>out.csv
	cp out.csv want.csv
	cp st good
	for at in 9 60 100 400 -3; do
		cp good st
		python3 - "$at" <<-'END'
			import sys
			data = bytearray(open("st", "rb").read())
			data[int(sys.argv[1])] ^= 1
			open("st", "wb").write(data)
		END
		run -3 window in.csv
		assert_output --partial '; --resume prev goes back to'
		cmp out.csv want.csv
	done
	head -c 200 good >st
	run -3 window in.csv
	rm st
	run -3 window in.csv
	assert_output --partial 'st: is gone, but '
	run -0 bash -c "'$bin/wm-window' -q -t ts -w 5s --tumbling 10s -C st --resume prev in.csv >>out.csv"
	cmp out.csv want.csv
}

@test "two runs at once: the second ends" {
	mkfifo pipe
	"$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st pipe >out.csv 3>&- &
	exec 9>pipe
	for _ in {1..100}; do [ -e st ] || sleep 0.05; done
	printf 'ts\n1\n' >in.csv
	run -3 window in.csv
	assert_output --partial "wm-window: st: another run has it (process $! on "
	exec 9>&-
	wait
}

@test "an output that is not as it was written" {
	printf 'ts\n1\n12\n' >in.csv
	window -q --out out.csv in.csv
	printf '31\n' >>in.csv
	killed=(env LD_PRELOAD="$bin/tests/fault/kill_at.so" ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}")
	command=("$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st)
	cp st st.good
	cp out.csv out.good
	# Killed behind its first commit: the output is unfinished.
	for ((at = 1; at < 60; at++)); do
		status=0
		"${killed[@]}" WM_KILL_AT=$at "${command[@]}" --out out.csv in.csv 2>/dev/null || status=$?
		[ $status -eq 137 ] || break
		cmp -s st st.good || break
	done
	[ $status -eq 137 ]
	echo more >>out.csv
	run -3 window -q in.csv
	assert_output --partial 'the run before did not finish its output'
	head -c 20 out.good >out.csv
	run -3 window -q --out out.csv in.csv
	assert_output --partial 'out.csv: has 20 bytes, and '
	tr w v <out.good >out.csv
	run -3 window -q --out out.csv in.csv
	assert_output --partial 'out.csv: is not what was written'
	cp out.good out.csv
	echo more >>out.csv
	window -q --out out.csv in.csv
	is out.csv.uncommitted more
	is out.csv $head_of_windows 1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1 \
		1970-01-01T00:00:10Z,1970-01-01T00:00:20Z,1
}

@test "an output that was emptied or cut since the run that finished it is said" {
	printf 'ts\n1.25\n12\n' >in.csv
	window -q in.csv >out.csv
	held=$(wc -c <out.csv)
	printf '31\n' >>in.csv
	run -0 bash -c "'$bin/wm-window' -t ts -w 5s --tumbling 10s -C st in.csv >out.csv"
	assert_line "wm-window: $PWD/out.csv: held $held bytes when the run before ended, and is now empty: was >> meant, which adds to a file?"
	held=$(wc -c <out.csv)
	head -n 2 out.csv >some && cat some >out.csv
	printf '51\n' >>in.csv
	run -0 window --out out.csv in.csv
	assert_line "wm-window: $PWD/out.csv: held $held bytes when the run before ended, and now has $(wc -c <some): results go behind them"
	# Moved away, appended to by others, quiet; and results that take the place of those before.
	mv out.csv out.1
	run -0 window --out out.csv in.csv
	refute_output --partial 'when the run before ended'
	echo more >>out.csv
	run -0 window --out out.csv in.csv
	refute_output --partial 'when the run before ended'
	run -0 bash -c "'$bin/wm-window' -q -t ts -w 5s --tumbling 10s -C st in.csv >out.csv"
	assert_output ''
	"$bin/wm-lag" -q -t ts -C lag in.csv >lag.csv
	run -0 bash -c "'$bin/wm-lag' -t ts -C lag in.csv >lag.csv"
	refute_output --partial 'when the run before ended'
}

# Copies of what is cut off would go where somebody else wants them.
@test "a symbolic link at OUTPUT.uncommitted is not followed" {
	LD_PRELOAD=$bin/tests/fault/kill_at.so "$bin/wm-window" --version >/dev/null 2>&1 ||
		skip "a build that lets no library be loaded before its own"
	printf 'ts\n1\n12\n' >in.csv
	local at status
	for ((at = 1; at < 60; at++)); do
		rm -f st* out.csv*
		status=0
		LD_PRELOAD=$bin/tests/fault/kill_at.so WM_KILL_AT=$at "$bin/wm-window" -q -t ts -w 5s --tumbling 10s -C st \
			--out out.csv in.csv 2>/dev/null || status=$?
		[ $status -eq 137 ] && [ ! -e st ] || break
	done
	[ $status -eq 137 ]
	echo 'not ours' >victim
	cp victim before
	ln -s victim out.csv.uncommitted
	echo more >>out.csv
	run -3 window -q --out out.csv in.csv
	assert_output --partial 'out.csv.uncommitted: cannot create: Too many levels of symbolic links'
	cmp before victim
	tail -n 1 out.csv | grep -qx more # nothing was cut
	rm out.csv.uncommitted
	window -q --out out.csv in.csv
	is out.csv.uncommitted more
}

@test "options of checkpoints need one" {
	run -2 "$bin/wm-window" -t ts -w 5s --tumbling 10s --resume prev in.csv
	assert_output 'wm-window: --resume: there is no checkpoint: name one with -C FILE'
	run -2 window --overwrite in.csv
	assert_output 'wm-window: -C and --overwrite: outputs go on where the last run ended: leave out --overwrite'
	run -2 window --checkpoint-every 10 in.csv
	assert_output "wm-window: --checkpoint-every: '10': write 1000000rows, or 30s of wall time"
	run -2 window --state-limit 10x in.csv
	assert_output "wm-window: --state-limit: '10x' is no size: write 64K, 512M or 2G, or none"
}

@test "standard output as a pipe: said once" {
	printf 'ts\n1\n' >in.csv
	run -0 bash -c "'$bin/wm-window' -t ts -w 5s --tumbling 10s -C st in.csv | cat"
	assert_output --partial '-C: standard output is a pipe'
	run -0 bash -c "'$bin/wm-window' -t ts -w 5s --tumbling 10s -C st in.csv >>out.csv"
	refute_output --partial 'is a pipe'
}
