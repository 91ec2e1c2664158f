#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-window as a user meets it: the README's words, misuse, formats, modes. What it computes is held by the oracle, the
# cases and the laws.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	data=$PWD/tests/data
	cd "$BATS_TEST_TMPDIR" || return 1
}

window() {
	"$bin/wm-window" "$@"
}

# A usage error: one line that has the words given, nothing on standard output, status 2.
refused() { # words, arguments
	local words=$1
	shift
	run -2 --separate-stderr window "$@"
	assert_equal "$output" ""
	assert_equal "${#stderr_lines[@]}" 1
	[[ $stderr == "wm-window: "*"$words"* ]] || {
		echo "no '$words' in: $stderr"
		return 1
	}
}

@test "late rows aggregated by themselves are all there" {
	window -q -t time -w 2d --tumbling 1d --late late.csv "$data/earthquakes.csv" >on-time.csv
	run -0 --separate-stderr window -t time --tumbling 1d late.csv
	assert_equal "$(awk -F, 'NR > 1 { n += $3 } END { print n }' <<<"$output")" 40
	assert_equal "$stderr" ""
}

@test "without a watermark nothing is late, and everything comes at the end" {
	run -0 --separate-stderr window -t time --tumbling 1d "$data/earthquakes.csv"
	assert_equal "$(cut -d, -f3 <<<"$output" | tr '\n' ' ')" "count 198 231 242 259 301 249 213 14 "
	assert_equal "$stderr" ""
}

@test "CSV and NDJSON of the same rows give the same windows" {
	window -q -t time -w 2d --tumbling 1d -a count,max:mag -o csv "$data/earthquakes.ndjson" >a.csv
	window -q -t time -w 2d --tumbling 1d -a count,max:mag "$data/earthquakes.csv" >b.csv
	cmp a.csv b.csv
	window -q -t time -w 2d --tumbling 1d -a count,max:mag -o ndjson "$data/earthquakes.csv" >a.ndjson
	window -q -t time -w 2d --tumbling 1d -a count,max:mag "$data/earthquakes.ndjson" >b.ndjson
	cmp a.ndjson b.ndjson
}

@test "misuse: one line that says what to do" {
	f=$data/earthquakes.csv
	refused "--tumbling: '0s': must be longer than zero" -t time --tumbling 0s "$f"
	refused "ten what? write 10s, 10m or 10h" -t time --tumbling 10 "$f"
	refused "'-5m': must be longer than zero" -t time --tumbling -5m "$f"
	refused "the slide is longer than the size" -t time --sliding 5m,10m "$f"
	refused "write SIZE,SLIDE" -t time --sliding 5m "$f"
	refused "say --tumbling SIZE, --sliding SIZE,SLIDE, --session GAP or --cumulating MAX,STEP" -t time "$f"
	refused "exclude each other" -t time --tumbling 1m --sliding 5m,1m "$f"
	refused "-w: '10': ten what?" -t time -w 10 --tumbling 1d "$f"
	refused "did you mean 'time'? there are: id, time, updated" -t tmie --tumbling 1d "$f"
	refused "did you mean 'net'?" -t time --tumbling 1d -g nte "$f"
	refused "did you mean count? there are: count, sum" -t time --tumbling 1d -a cuont "$f"
	refused "sum needs a column" -t time --tumbling 1d -a sum "$f"
	refused "the result has a column 'net' already" -t time --tumbling 1d -g net -a net=count "$f"
	refused "is NDJSON, but" -t time --tumbling 1d "$f" "$data/earthquakes.ndjson"
	refused "name the column that holds the event time with -t; these hold times: time, updated" --tumbling 1d "$f"
	refused "no fixed length" -t time --sliding 1mo,1d "$f"
}

@test "a misused run leaves files as they are" {
	echo precious >late.csv
	refused "exists and is not empty" -t time -w 1d --tumbling 1d --late late.csv "$data/earthquakes.csv"
	assert_equal "$(cat late.csv)" precious
	cp "$data/earthquakes.csv" in.csv
	refused "is also an input" -t time -w 1d --tumbling 1d --late in.csv --overwrite in.csv
	cmp in.csv "$data/earthquakes.csv"
	refused "did you mean" -t tmie -w 1d --tumbling 1d --late new.csv "$data/earthquakes.csv"
	[ ! -e new.csv ]
}

@test "--append and --overwrite do as they say" {
	for _ in 1 2; do
		window -q -t time -w 2d --tumbling 1d --late late.csv --append "$data/earthquakes.csv" >out.csv
	done
	assert_equal "$(wc -l <late.csv)" 81
	assert_equal "$(grep -c ^id, late.csv)" 1
	window -q -t time -w 2d --tumbling 1d --late late.csv --overwrite "$data/earthquakes.csv" >out.csv
	assert_equal "$(wc -l <late.csv)" 41
}

@test "--late-info says by how much, in CSV and NDJSON" {
	printf 'ts,v\n100,a\n50,"b,c"\n' | window -q -t ts -w 10s --tumbling 10s --late late.csv --late-info >out.csv
	assert_equal "$(tail -1 late.csv)" '50,"b,c",40,1970-01-01T00:01:30Z'
	assert_equal "$(head -1 late.csv)" 'ts,v,_late_by,_late_watermark'
	printf '{"ts":100}\n{"ts":50, "v":1 }\n' |
		window -q -t ts -w 10s --tumbling 10s --late late.ndjson --late-info >out.ndjson
	assert_equal "$(cat late.ndjson)" '{"ts":50, "v":1 ,"_late_by":40,"_late_watermark":"1970-01-01T00:01:30Z"}'
}

@test "--rejects takes the record with its place and reason, and the status is 0" {
	printf 'ts,v\n1,2\nx,3\n2,y\n3\n' >in.csv
	run -0 --separate-stderr window -t ts --tumbling 10s -a sum:v --rejects rejects in.csv
	assert_equal "${lines[1]}" "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,2"
	assert_equal "$(jq -r '[.reason, .line, .column, .time, .raw] | join(" ")' rejects)" \
		"bad-time 3 ts  x,3
bad-number 4 v 1970-01-01T00:00:02Z 2,y
ragged 5   3"
	printf 'ts\n\377\n' | window -q -t ts --tumbling 10s --rejects rejects2
	assert_equal "$(jq -r .raw_base64 rejects2)" "/w=="
}

@test "--strict stops at the first rejected record" {
	printf 'ts\n1\nx\n2\n' >in.csv
	run -1 --separate-stderr window -t ts --tumbling 10s --strict in.csv
	[[ $stderr == *"in.csv:3: "*"stopped, as --strict asks"* ]]
	[[ $stderr == *"1 open window was not written"* ]]
}

@test "the report closes the ledger" {
	window -q -t time -w 2d --tumbling 1d --report report "$data/earthquakes.csv" >out.csv
	run -0 jq -r 'select(.type == "report") | [.rows_in, .rows_used, .rows_late, .rows_rejected, .status] | @csv' report
	assert_output "1707,1667,40,0,0"
}

@test "update writes what changed, complete writes everything once" {
	printf 'ts,k\n1,a\n2,a\n11,b\n' >in.csv
	run -0 window -t ts --time-format s --tumbling 10s -g k --mode update in.csv
	assert_equal "$(cut -d, -f3- <<<"$output" | tr '\n' ' ')" "k,count a,1 a,2 b,1 "
	run -0 window -t ts --time-format s --tumbling 10s -g k --mode complete in.csv
	assert_equal "$(cut -d, -f3- <<<"$output" | tr '\n' ' ')" "k,count a,2 b,1 "
}

@test "--eof hold says what it keeps back" {
	printf 'ts\n1\n21\n' >in.csv
	run -0 --separate-stderr window -t ts -w 0s --tumbling 10s --eof hold in.csv
	assert_equal "${#lines[@]}" 2
	[[ $stderr == *"held at the end of input: 1 open window was not written"* ]]
}

@test "calendar windows follow the zone" {
	printf 't\n2025-10-26T12:00:00Z\n' >in.csv
	run -0 window -t t --tumbling 1d --tz Europe/Berlin in.csv
	assert_equal "${lines[1]}" "2025-10-26T00:00:00+02:00,2025-10-27T00:00:00+01:00,1"
	run -0 window -t t --tumbling 1mo in.csv
	assert_equal "${lines[1]}" "2025-10-01T00:00:00Z,2025-11-01T00:00:00Z,1"
	run -0 window -t t --tumbling 1w in.csv
	assert_equal "${lines[1]}" "2025-10-20T00:00:00Z,2025-10-27T00:00:00Z,1"
}

@test "a row that runs far ahead is named" {
	{
		echo ts
		seq 0 60 600
		echo 86400
		seq 660 60 1200
	} >in.csv
	run -0 --separate-stderr window -t ts -w 60s --tumbling 60s in.csv
	[[ $stderr == *"in.csv:13: this row, of 1970-01-02T00:00:00Z, moved the watermark on by "*"is its clock right?"* ]]
}

@test "several FILEs are one stream; another order of columns is put right" {
	printf 'ts,v\n1,a\n' >a.csv
	printf 'v,ts\r\nb,100\r\nc,2\r\n' >b.csv
	run -0 window -q -t ts -w 10s --tumbling 10s -a count,max:v --late late.csv a.csv b.csv
	assert_equal "$(cut -d, -f3- <<<"$output" | tr '\n' ' ')" "count,v_max 1,a 1,b "
	assert_equal "$(cat late.csv)" "$(printf 'ts,v\n2,c')"
	printf 'ts,w\n1,2\n' >c.csv
	refused "c.csv:1: " -t ts --tumbling 10s a.csv c.csv
}

@test "errors and their share by minute are awk's" {
	awk 'BEGIN {
		srand(7)
		print "ts,status,ms"
		for (i = 0; i < 5000; i++) {
			split("200 200 200 301 404 500 503", codes, " ")
			printf "%d,%s,%d\n", i / 7, codes[1 + int(rand() * 7)], rand() * 1000
		}
	}' >log.csv
	awk -F, 'NR > 1 {
		minute = int($1 / 60); n[minute]++
		if ($2 >= 500) { errors[minute]++; slow[minute] += $3 }
	} END {
		for (m = 0; m in n; m++) printf "%d,%d,%d,%.6f,%d\n", m * 60, n[m], errors[m], errors[m] / n[m], slow[m]
	}' log.csv >want
	window -t ts --tumbling 1m --output-time s --no-output-header --ofmt %.6f log.csv \
		-a 'count,errors=count:status:ge:500,err_share=share:status:ge:500,slow=sum:ms:if:status:ge:500' |
		cut -d, -f1,3- >got
	diff got want
	[ "$(wc -l <got)" = 12 ]
}

@test "conditions: an empty field fulfils none, and a number is compared with numbers alone" {
	printf 'ts,s,v\n1,500,1\n2,,2\n3,abc,4\n4,99,8\n' >in.csv
	run -0 window -q -t ts --tumbling 10s -a 'a=count:s:ge:100,b=sum:v:if:s:eq:abc,c=share:s:lt:100,d=count:s' in.csv
	assert_equal "${lines[1]}" "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,1,4,0.3333333333333333,3"
}

@test "zstd, tail's file names and a directory of mistakes: each a line that helps" {
	printf '\050\265\057\375rest' >in.zst
	refused "zstdcat" -t ts --tumbling 1s in.zst
	printf '==> a.log <==\nts\n1\n' >tailed.csv
	refused "tail -q" -t ts --tumbling 1s tailed.csv
}

@test "--fill: the empty windows between two of a key" {
	printf 't,k,v\n1,a,7\n41,a,9\n41,b,1\n' >in.csv
	run -0 --separate-stderr "$bin/wm-window" -t t --time-format s -w 0s --tumbling 10s -g k -a count,sum:v --fill zero in.csv
	assert_equal "$stderr" ""
	assert_equal "$(cut -d, -f1,3- <<<"$output" | tail -n +2)" "1970-01-01T00:00:00Z,a,1,7
1970-01-01T00:00:10Z,a,0,0
1970-01-01T00:00:20Z,a,0,0
1970-01-01T00:00:30Z,a,0,0
1970-01-01T00:00:40Z,a,1,9
1970-01-01T00:00:40Z,b,1,1"
	run -0 "$bin/wm-window" -t t --time-format s -w 0s --tumbling 10s -g k -a count,sum:v --fill null in.csv
	assert_line --partial "1970-01-01T00:00:20Z,a,,"
	run -0 "$bin/wm-window" -t t --time-format s -w 0s --tumbling 10s -g k -a count,sum:v --fill prev in.csv
	assert_line --partial "1970-01-01T00:00:40Z,a,1,7"
}

@test "--fill: a gap of more than 100000 windows is left out, and that is said" {
	printf 't\n1\n100002\n' >in.csv # 100000 empty ones between
	run -0 --separate-stderr "$bin/wm-window" -t t --time-format s -w 0s --tumbling 1s --fill zero in.csv
	assert_equal "$stderr" ""
	assert_equal "${#lines[@]}" 100003
	printf 't\n1\n100003\n' >in.csv
	run -0 --separate-stderr "$bin/wm-window" -t t --time-format s -w 0s --tumbling 1s --fill zero in.csv
	assert_equal "${#lines[@]}" 3
	assert_equal "$stderr" "wm-window: --fill: 1 gap of more than 100000 empty windows was not filled"
}

@test "windows longer than the years: they begin and end at times that can be read" {
	printf 'ts,v\n1960-01-01,1\n2025-01-01T00:00:00.5Z,2\n' >in.csv
	for options in '--tumbling 10000y' '--tumbling 87600000h' '--sliding 3600000d,3600000d'; do
		# shellcheck disable=SC2086 # some words
		run -0 --separate-stderr window -q -t ts $options -a sum:v in.csv
		assert_line --index 1 --partial '0000-01-01T00:00:00Z,1970-01-01T00:00:00Z,1'
		assert_line --index 2 --partial '1970-01-01T00:00:00Z,10000-01-01T00:00:00Z,2'
	done
	# what they say as stamps, too
	window -q -t ts --tumbling 10000y --stamp -w 0s -a sum:v in.csv | "$bin/wm-sort" --report r >sorted
	assert_equal "$(jq .rows_rejected r)" 0
	run -0 --separate-stderr window -q -t ts --session 3650000d -a sum:v in.csv
	assert_line --index 1 1960-01-01T00:00:00Z,10000-01-01T00:00:00Z,3
	run -0 --separate-stderr window -q -t ts --tumbling 10000y --tz America/New_York --output-time s -a sum:v in.csv
	assert_line --index 2 18000,253402300800,2
}

@test "windows by the million for each row are a slip of the unit: said, and refused where they cannot be written" {
	run "$bin/wm-window" -t ts -w 0s --sliding 365d,1us empty
	[ "$status" = 2 ]
	assert_output "wm-window: --sliding: '365d,1us': each row would be in 31536000000000 windows, and each is written: 10000000 are the most: is a unit wrong?"
	run "$bin/wm-window" -t ts -w 0s --cumulating 1d,1ms empty
	[ "$status" = 2 ]
	run "$bin/wm-window" -t ts -w 0s --sliding 100001s,1s --panes discarding --allowed-lateness 1s empty
	[ "$status" = 2 ]
	assert_output --partial "each row would be in 100001 windows, and --panes discarding takes a step for each: 100000 are the most"
	: >empty
	run "$bin/wm-window" -t ts -w 0s --sliding 10000000us,1us empty
	[ "$status" = 0 ]
	assert_output "wm-window: --sliding: each row is in 10000000 windows, and each of these is written"
	run "$bin/wm-window" -t ts -w 0s --sliding 100000us,1us empty
	[ "$status" = 0 ]
	assert_output ""
}

@test "a row with several faults: its time, then its arrival, then its numbers" {
	printf '%s\n' ts,at,v x,y,z 2025-11-29T10:00:00.5Z,y,z 2025-11-29T10:00:01Z,2025-11-28T10:00:00Z,z \
		2025-11-29T10:00:02Z,2025-11-29T10:00:02Z,z 2025-11-29T10:00:03Z,2025-11-29T10:00:03Z,1 >in.csv
	run -0 window -q -t ts --ingest at --max-ahead 1h --tumbling 1m -a sum:v --rejects rejects --report r in.csv
	assert_equal "$(jq -r .reason rejects | xargs)" "bad-time bad-ingest implausible-time bad-number"
	run -0 window -q -t ts --ingest at --max-ahead 1h --session column:v,s --rejects rejects --overwrite --report r in.csv
	assert_equal "$(jq -r .reason rejects | xargs)" "bad-time bad-ingest implausible-time bad-gap"
	# of a row that is rejected for a number nothing counts, not its time either
	printf '%s\n' ts,v 2025-11-29T10:00:00.5Z,1 2025-11-29T11:00:00Z,x 2025-11-29T10:00:01Z,2 >in.csv
	run -0 window -q -t ts -w 0s --tumbling 1m -a sum:v --rejects rejects --overwrite in.csv
	assert_line --index 1 2025-11-29T10:00:00Z,2025-11-29T10:01:00Z,3
}
