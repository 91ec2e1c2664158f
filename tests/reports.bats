#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Progress objects, the final report, metrics and the summary, as docs/REPORTS.md has them.

bats_require_minimum_version 1.5.0

setup_file() {
	# A strict reader of Prometheus' text format, and of what the textfile collector asks of it: prints FAMILY TYPE lines, or
	# with -v "SAMPLE VALUE" lines.
	cat >"$BATS_FILE_TMPDIR/prometheus.py" <<-'END'
		import re, sys

		NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
		LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
		SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} (-?[0-9]+(?:\.[0-9]+)?)")

		def parse(data):
		    """({family: type}, {(name, labels): value}), or ValueError."""
		    text = data.decode("utf-8")
		    if not text.endswith("\n"):
		        raise ValueError("no line end at the end")
		    types, samples, helped, family = {}, {}, None, None
		    for line in text[:-1].split("\n"):
		        if match := re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line):
		            helped = match[1]
		            if helped in types:
		                raise ValueError(f"{helped} comes twice")
		            if family is not None and not any(name == family for name, _ in samples):
		                raise ValueError(f"{family} has no samples")
		        elif match := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line):
		            family = match[1]
		            if family != helped or family in types:
		                raise ValueError(f"TYPE of {family} is not behind its HELP, or comes twice")
		            types[family] = match[2]
		            if (match[2] == "counter") != family.endswith("_total"):
		                raise ValueError(f"{family} is a {match[2]}")
		        elif match := SAMPLE.fullmatch(line):
		            if match[1] != family:
		                raise ValueError(f"a sample of {match[1]} among those of {family}")
		            labels = dict(re.findall(LABEL, match[2]))
		            if len(labels) != len(re.findall(LABEL, match[2])):
		                raise ValueError(f"a label twice: {line}")
		            key = (family, tuple(sorted(labels.items())))
		            if key in samples:
		                raise ValueError(f"twice: {line}")
		            samples[key] = match[match.lastindex]
		        else:
		            raise ValueError(f"no line of the format: {line!r}")
		    return types, samples

		def main():
		    types, samples = parse(open(sys.argv[-1], "rb").read())
		    if sys.argv[1] != "-v":
		        for family, kind in types.items():
		            print(family, kind)
		    for (family, labels), value in samples.items() if sys.argv[1] == "-v" else ():
		        more = [f"{name}={text}" for name, text in labels if name not in ("tool", "name")]
		        print(" ".join([family, *more, value]))

		if __name__ == "__main__":
		    main()
	END
	# The members of the objects in a file, as docs/REPORTS.md writes them.
	cat >"$BATS_FILE_TMPDIR/members.py" <<-'END'
		import json, sys

		def members(value, path=""):
		    if isinstance(value, dict):
		        for name, inner in value.items():
		            inner_path = f"{path}.{name}" if path else name
		            yield from ["rejected.REASON"] if path == "rejected" else members(inner, inner_path)
		    elif isinstance(value, list):
		        for inner in value:
		            yield from members(inner, path + "[]")
		    else:
		        yield path

		kind = sys.argv[1]
		found = set()
		for line in open(sys.argv[2], encoding="utf-8"):
		    item = json.loads(line, parse_constant=lambda name: sys.exit(f"{name} is no JSON"))
		    if item["type"] == kind:
		        found.update(members(item))
		print("\n".join(sorted(found)))
	END
}

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	data=$PWD/tests/data
	reports=$PWD/docs/REPORTS.md
	cd "$BATS_TEST_TMPDIR" || return 1
}

window() {
	"$bin/wm-window" "$@"
}

metrics() { # -v | -t, FILE
	python3 "$BATS_FILE_TMPDIR/prometheus.py" "$@"
}

# The first column of the table below a heading of docs/REPORTS.md.
documented() { # heading
	awk -v heading="## $1" '/^## / { inside = $0 == heading } inside && /^\| `/ { gsub(/^\| `|` .*/, ""); print }' "$reports"
}

# Three batches of a tumbling window of 10 s and a delay of 5 s: late rows, a partly used batch, rejected rows.
batches() {
	printf 'ts,k\n1,a\n2,a\n3,b\n14,a\n' >1.csv # watermark 9
	printf 'ts,k\n4,b\n26,a\nx,a\n' >2.csv      # watermark 21: 0-10 and 10-20 go
	printf 'ts,k\n5,a\n9,b\n27,b\n28,b\n' >3.csv
	options=(-t ts -w 5s --tumbling 10s -g k --trigger file --eof trigger)
}

# An input that is written slowly: a row of each time given, one every 0.4 s.
slowly() {
	local time
	echo ts
	for time in "$@"; do
		echo "$time"
		sleep 0.4
	done
}

@test "progress counts what Spark counts, batch by batch" {
	batches
	window "${options[@]}" -q --rejects rejects --report report 1.csv 2.csv 3.csv >out.csv
	run -0 jq -r 'select(.type == "progress") | [.batchId, .numInputRows, .eventTime.min[11:19], .eventTime.max[11:19],
		.eventTime.avg[11:19], .eventTime.watermark[11:19], (.stateOperators[0] | .numRowsTotal, .numRowsUpdated,
		.numRowsRemoved, .numRowsDroppedByWatermark), .sink.numOutputRows, .lateShare] | map(. // "-") | join(" ")' report
	assert_output - <<-'END'
		0 4 00:00:01 00:00:14 00:00:05 - 3 3 0 0 0 0
		1 3 00:00:04 00:00:26 00:00:15 00:00:09 1 2 3 0 3 0
		2 4 00:00:05 00:00:28 00:00:17 00:00:21 2 1 0 2 0 0.5
	END
	run -0 jq -r 'select(.type == "report") | [.numInputRows, .eventTime.min[11:19], .eventTime.max[11:19],
		.eventTime.avg[11:19], .eventTime.watermark[11:19], (.stateOperators[0] | .operatorName, .numRowsTotal, .numRowsUpdated,
		.numRowsRemoved, .numRowsDroppedByWatermark), .sink.numOutputRows, .lateShare, .status] | join(" ")' report
	assert_output "11 00:00:01 00:00:28 00:00:11 00:00:23 windowing 2 6 3 2 3 0.18181818181818182 0"
}

@test "every line is JSON, and jq finds what it should" {
	batches
	window "${options[@]}" --progress json --rejects rejects --report report 1.csv 2.csv 3.csv >out.csv 2>err
	grep '^{' err >objects
	for file in report objects; do
		python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$file"
	done
	run -0 jq -r '.eventTime.watermark' objects
	assert_output "$(printf '%s\n' null 1970-01-01T00:00:09Z 1970-01-01T00:00:21Z)"
	run -0 jq -r '.stateOperators[0].numRowsDroppedByWatermark' objects
	assert_output "$(printf '%s\n' 0 0 2)"
	assert_equal "$(jq -c 'select(.type == "progress") | del(.timestamp)' report | wc -l)" 3
}

@test "docs/REPORTS.md has every member, and no other" {
	batches
	printf 'ts,k\n' >4.csv
	seq -f '%.0f,a' 29 48 >>4.csv
	echo 99999,a >>4.csv
	window "${options[@]}" -q --max-jump 1h --rejects rejects --report report [1-4].csv >out.csv
	run -0 python3 "$BATS_FILE_TMPDIR/members.py" progress report
	assert_output "$(documented "The progress object" | sort)"
	run -0 python3 "$BATS_FILE_TMPDIR/members.py" report report
	assert_output "$(documented "The final report" | sort)"
	window "${options[@]}" -q --max-jump 1h --rejects rejects2 --metrics m.prom [1-4].csv >out.csv
	run -0 metrics -t m.prom
	assert_output "$(awk -F'[|` ]+' '/^\| `wm_/ { print $2, $3 }' "$reports")"
}

@test "clocks: rates follow from rows and durations" {
	before=$(date +%s)
	slowly 1 2 3 | window -t ts -w 0s --tumbling 10s --trigger eof -q --report report >out.csv
	run -0 jq -r --argjson before "$before" --argjson after "$(date +%s)" '
		(.timestamp | sub("\\..*"; "Z") | fromdate) as $time |
		if $time < $before or $time > $after then "timestamp \(.timestamp)"
		elif .batchDuration > 600 then "batchDuration \(.batchDuration): waiting counts"
		elif .inputRowsPerSecond < 1 or .inputRowsPerSecond > 5 then "inputRowsPerSecond \(.inputRowsPerSecond)"
		elif .processedRowsPerSecond <= .inputRowsPerSecond then "processed no faster than it came"
		else empty end' report
	assert_output ""
}

@test "SIGUSR1 asks for an object" {
	mkfifo in
	"$bin/wm-window" -t ts -w 0s --tumbling 10s -q <in >out.csv 2>err &
	pid=$!
	exec 7>in
	printf 'ts\n1\n2\n' >&7
	# Before it is caught it would kill.
	until ((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$pid/status") & 0x200)); do
		sleep 0.02
	done
	for _ in {1..100}; do
		kill -USR1 "$pid"
		sleep 0.05
		[ "$(jq -rs 'last | .numInputRows // 0' err)" -eq 2 ] && break
	done
	exec 7>&-
	wait "$pid"
	assert_equal "$(jq -rs 'last | [.type, .numInputRows, .eventTime.watermark] | join(" ")' err)" \
		"progress 2 1970-01-01T00:00:02Z"
}

@test "metrics say what the report says" {
	batches
	window "${options[@]}" -q --rejects rejects --report report --metrics m.prom 1.csv 2.csv 3.csv >out.csv
	run -0 metrics -v m.prom
	refute_line --regexp '^wm_last_update_timestamp_seconds 0'
	assert_equal "$(grep -v -e wm_last -e wm_state_bytes <<<"$output")" "$(cat <<-'END'
		wm_rows_total class=punctuation 0
		wm_rows_total class=rejected 1
		wm_rows_total class=late 2
		wm_rows_total class=duplicate 0
		wm_rows_total class=used 8
		wm_rejected_rows_total reason=bad-time 1
		wm_partly_late_rows_total 0
		wm_windows_missed_total 2
		wm_unconfirmed_rows_total 0
		wm_output_rows_total 3
		wm_watermark_timestamp_seconds 23
		wm_event_time_max_timestamp_seconds 28
		wm_disorder_max_seconds 21
		wm_state_groups 2
	END
	)"
	now=$(date +%s)
	written=$(sed -n 's/^wm_last_update_timestamp_seconds \([0-9]*\).*/\1/p' <<<"$output")
	[ "$written" -ge $((now - 30)) ] && [ "$written" -le "$now" ]
}

@test "metrics of an input without a row" {
	window -t ts -w 5s --tumbling 10s --metrics m.prom </dev/null
	run -0 metrics -v m.prom
	assert_line "wm_rows_total class=used 0"
	refute_line --partial wm_watermark
	refute_line --partial wm_rejected
}

@test "metrics: the name of the file is a label, whatever bytes it has" {
	name=$(printf 'a"b\\c\nd\377')
	echo ts | window -t ts -w 5s --tumbling 10s --metrics "$name.prom"
	run -0 metrics -t "$name.prom"
	grep -qF 'name="a\"b\\c\nd'$'\xef\xbf\xbd"' "$name.prom"
}

@test "metrics: readable by all, nothing is left over, the file is replaced" {
	echo old >m.prom
	ln m.prom other
	(
		umask 077
		echo ts | window -t ts -w 5s --tumbling 10s --metrics m.prom
	)
	assert_equal "$(stat -c %a m.prom)" 644
	assert_equal "$(cat other)" old
	assert_equal "$(echo *)" "m.prom other"
}

@test "metrics that cannot be written: an error with the file and why" {
	echo ts >in.csv
	run -3 --separate-stderr window -t ts -w 5s --tumbling 10s --metrics no/m.prom in.csv
	[[ $stderr == *"no/m.prom: No such file or directory"* ]]
	mkdir m.prom
	run -2 --separate-stderr window -t ts -w 5s --tumbling 10s --metrics m.prom in.csv
	[[ $stderr == "wm-window: --metrics: m.prom is no regular file"* ]]
}

@test "metrics: who reads during the run never sees a part" {
	slowly {1..10} | window -t ts -w 0s --tumbling 1s --metrics m.prom >out.csv &
	run -0 env PYTHONPATH="$BATS_FILE_TMPDIR" PYTHONDONTWRITEBYTECODE=1 python3 - <<-'END'
		import os, time
		import prometheus

		seen, until = {}, time.monotonic() + 20
		while time.monotonic() < until:
		    try:
		        data = open("m.prom", "rb").read()
		    except FileNotFoundError:
		        continue
		    _, samples = prometheus.parse(data)
		    value = lambda name, **more: next(float(v) for (f, labels), v in samples.items() if f == name and more.items() <= dict(labels).items())
		    seen[value("wm_last_update_timestamp_seconds")] = value("wm_rows_total", **{"class": "used"})
		    if seen and list(seen.values())[-1] == 10:
		        break
		    time.sleep(0.001)
		times, rows = list(seen), list(seen.values())
		# The last writing is that of the end.
		short = [b - a for a, b in zip(times, times[1:-1]) if b - a < 0.9]
		print(rows == sorted(rows), rows[-1], len(rows) >= 4, short)
	END
	wait
	assert_output "True 10.0 True []"
}

@test "metrics of a live input are brought up to date while it is silent" {
	mkfifo in
	"$bin/wm-window" -t ts -w 0s --tumbling 1s --metrics m.prom <in >out.csv &
	pid=$!
	exec 7>in
	printf 'ts\n1\n' >&7
	sleep 0.3
	printf '2\n3\n' >&7
	for _ in {1..100}; do
		[ -e m.prom ] && [ "$(metrics -v m.prom | sed -n 's/^wm_rows_total class=used //p')" = 3 ] && break
		sleep 0.1
	done
	run -0 metrics -v m.prom
	exec 7>&-
	wait "$pid"
	assert_line "wm_rows_total class=used 3"
}

@test "--fail-late: status 5 above the share, exactly, with complete results" {
	# 1 row of 4 is late, 1 of 8.
	printf 'ts\n1\n20\n2\n21\n' >in.csv
	window -t ts -w 0s --tumbling 10s -q in.csv >want.csv
	run -5 --separate-stderr window -t ts -w 0s --tumbling 10s --fail-late 1/5 --report report in.csv
	assert_equal "$output" "$(cat want.csv)"
	[[ $stderr == *"1 of 4 rows was late and dropped (25%, more than --fail-late 1/5 allows)"* ]]
	assert_equal "$(jq 'select(.type == "report") | .status' report)" 5
	run -0 window -t ts -w 0s --tumbling 10s -q --fail-late 1/4 in.csv
	run -0 window -t ts -w 0s --tumbling 10s -q --fail-late 25% in.csv
	run -5 window -t ts -w 0s --tumbling 10s -q --fail-late 24.999% in.csv
	run -0 window -t ts -w 30s --tumbling 10s -q --fail-late 0/1 in.csv
	run -0 window -t ts -w 0s --tumbling 10s --fail-late 0% </dev/null
	# Partly late rows count too.
	printf 'ts\n1\n12\n9\n' >part.csv
	run -5 window -t ts -w 0s --sliding 10s,5s -q --fail-late 1/4 part.csv
	run -0 window -t ts -w 0s --sliding 10s,5s -q --fail-late 1/3 part.csv
}

@test "the summary: what was lost first, then what late rows mean, three lines at most" {
	run -0 --separate-stderr window -t time -w 2d --tumbling 1d "$data/earthquakes.csv"
	# The greatest disorder in the file is 575377.336 s: 159.8 hours.
	assert_equal "$stderr" "wm-window: 40 of 1707 rows were late and dropped (2.3%): --late FILE keeps such rows
wm-window: late rows grow in number: the source runs later than the delay of 2d; a delay of 6d16h would have dropped nothing"
	batches
	run -1 --separate-stderr window "${options[@]}" 1.csv 2.csv 3.csv
	assert_equal "$(sed -n 's/^wm-window: \([0-9]* of 11 rows [^:]*\):.*/\1/p' <<<"$stderr")" "1 of 11 rows was rejected (1 bad-time)
2 of 11 rows were late and dropped (18%)"
	# with -q what the status says too
	run -1 --separate-stderr window "${options[@]}" -q 1.csv 2.csv 3.csv
	assert_equal "$stderr" "wm-window: 1 of 11 rows was rejected (1 bad-time): --rejects FILE keeps such rows"
	run -0 --separate-stderr window -v -t ts --time-format s -w 10s --tumbling 10s 1.csv
	assert_equal "$stderr" "wm-window: 4 rows, none late: a delay of 0s would have dropped nothing, so 10s may be longer than needed"
}

@test "advice: the delay that was given is never said to have dropped nothing where something was dropped" {
	printf 'ts,v\n20.5,a\n15.5,b\n21,c\n' >in.csv
	run -0 --separate-stderr "$bin/wm-sort" --compat spark -t ts --time-format s -w 5s in.csv
	assert_equal "$stderr" "wm-sort: 1 of 3 rows was late and dropped (33%): --late FILE keeps such rows
wm-sort: the delay of 5s is short for this source; a delay of 5s1ms would have dropped nothing"
	run -0 --separate-stderr "$bin/wm-sort" -v --compat spark -t ts --time-format s -w 5s1ms in.csv
	assert_regex "$stderr" "3 rows, none late: a delay of 5s1ms would have dropped nothing"
	# The clock has moved the watermark, which says nothing of a delay.
	run -0 --separate-stderr bash -c "{ printf 'ts\n20.5\n'; sleep 3; echo 20.2; } |
		'$bin/wm-sort' -t ts --time-format s -w 1s --idle-close 200ms"
	assert_equal "$stderr" "wm-sort: 1 of 2 rows was late and dropped (50%): --late FILE keeps such rows
wm-sort: the delay of 1s is short for this source"
}

@test "--source: a limit on the state counts them, and one too many ends the run with all that was read" {
	awk 'BEGIN { print "ts,s"; for (i = 0; i < 65540; i++) print 1000 + i ",host" i }' >many.csv
	run -4 --separate-stderr "$bin/wm-stamp" -t ts --time-format s -w 0s --source s -C st --out out many.csv
	assert_equal "$stderr" "wm-stamp: many.csv:65538: more than 65536 sources: stopped (the checkpoint is good): is s the column that tells them apart (--source)?"
	assert_equal "$(wc -l <out)" 65537
	assert_equal "$(tail -1 out | cut -d , -f 1,2)" "66535,host65535"
	# The next run begins with the very record.
	sed -i 's/host65536/host1/' many.csv
	run -4 --separate-stderr "$bin/wm-stamp" -t ts --time-format s -w 0s --source s -C st --out out many.csv
	assert_equal "$(tail -1 out | cut -d , -f 1,2)" "66536,host1"
	run -4 --separate-stderr "$bin/wm-stamp" -t ts --time-format s -w 0s --source s --state-limit 1M many.csv
	assert_regex "$stderr" "KiB are allowed: stopped: raise --state-limit, or bound it with a --source that has fewer values"
}
