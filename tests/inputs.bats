#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Which FILEs are read and in which order; what is told of them. tests/laws/inputs.py holds the models.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	earthquakes=$PWD/tests/data/earthquakes.csv
	cd "$BATS_TEST_TMPDIR" || return 1
}

counts() { # of the results on standard input
	cut -d, -f3 | tail -n +2 | tr '\n' ' '
}

@test "the earthquakes cut in two, the later half first: said at once, and put right by --order time" {
	{
		head -1 "$earthquakes"
		sed -n '855,$p' "$earthquakes"
	} >second.csv
	head -854 "$earthquakes" >first.csv
	run -0 --separate-stderr "$bin/wm-window" -t time -w 2d --tumbling 1d second.csv first.csv
	[[ ${stderr_lines[0]} == "wm-window: first.csv:2: begins "*"--order time"* ]]
	[[ $stderr == *"893 of 1707 rows were late"* ]]
	run -0 --separate-stderr "$bin/wm-window" -t time -w 2d --tumbling 1d --order time second.csv first.csv
	assert_equal "$(counts <<<"$output")" "191 226 228 247 299 249 213 14 "
	[[ $stderr == *"40 of 1707 rows were late"* && $stderr != *begins* ]]
}

@test "--files0-from names the inputs" {
	printf 'ts\n1\n' >'a b.csv'
	printf 'ts\n2\n' >c.csv
	printf '%s\0' 'a b.csv' c.csv >list
	run -0 "$bin/wm-window" -t ts --time-format s --tumbling 10s --files0-from list
	assert_equal "$(counts <<<"$output")" "2 "
	run -0 bash -c "printf '%s\0' c.csv | '$bin/wm-window' -t ts --time-format s --tumbling 10s --files0-from -"
	assert_equal "$(counts <<<"$output")" "1 "
}

@test "--columns @FILE takes the names from the first line of a file" {
	printf 'ts,key\n1,a\n' >s.csv
	run -0 bash -c "printf '2,b\n' | '$bin/wm-window' -t ts --tumbling 10s -g key --columns @s.csv"
	assert_line --index 1 "1970-01-01T00:00:00Z,1970-01-01T00:00:10Z,b,1"
}

@test "date+time joins two columns" {
	printf 'day,clock\n2024-03-01,10:30:00\n2024-03-01,11:30:00\n,\n' >in.csv
	run -1 "$bin/wm-window" -q -t day+clock --tumbling 1h in.csv
	assert_line --index 1 "2024-03-01T10:00:00Z,2024-03-01T11:00:00Z,1"
	run -2 "$bin/wm-window" -q -t day+clock+day --tumbling 1h in.csv
}

@test "date+time: a row that lacks one half has no time" {
	printf 'day,clock\n2025-01-01,10:00:00\n2025-01-01,\n,10:00:00\n' >dt.csv
	run -1 --separate-stderr "$bin/wm-window" -t day+clock --tumbling 1d dt.csv
	assert_regex "$stderr" "2 no-time"
	assert_line --index 1 '2025-01-01T00:00:00Z,2025-01-02T00:00:00Z,1'
}

@test "--repeated-hour: the earlier or the later of the two" {
	printf 't\n2025-10-26 02:30:00\n' >in.csv
	run -0 "$bin/wm-window" -q -t t --tz Europe/Berlin --tumbling 10m in.csv
	assert_line --index 1 --partial "2025-10-26T02:30:00+02:00"
	run -0 "$bin/wm-window" -q -t t --tz Europe/Berlin --repeated-hour later --tumbling 10m in.csv
	assert_line --index 1 --partial "2025-10-26T02:30:00+01:00"
}

@test "--time-reference gives the year that a format lacks" {
	printf 't\nDec 31 23:59:59\nJan  1 00:00:01\n' >in.csv
	run -2 "$bin/wm-window" -t t --time-format '%b %e %H:%M:%S' --tumbling 1d in.csv
	run -0 "$bin/wm-window" -q -t t --time-format '%b %e %H:%M:%S' --time-reference 2022-01-01 --tumbling 1d in.csv
	assert_line --index 1 --partial "2021-12-31T00:00:00Z"
	assert_line --index 2 --partial "2022-01-01T00:00:00Z"
}

@test "stamped records that are put into the layout of the first FILE stay what they are while punctuation is written" {
	printf '%s\n' ts,k,_time,_watermark 1,a-long-key,1,-2 5,b,5,2 20,c-is-a-long-key,20,17 >whole.csv
	head -c -1 whole.csv >begin.csv
	printf '%s\n' k,_watermark,ts,_time d,18,21,21 e-is-long,37.5,40,40 f,37.5,39,39 g,60,70,70 >rest.csv
	printf '%s\n' 21,d,21,18 40,e-is-long,40,37.5 39,f,39,37.5 70,g,70,60 >>whole.csv
	for line in 'wm-sort' 'wm-dedup -k k --remember 1h' 'wm-stamp --add late' 'wm-window --stamp --tumbling 10s -g k' \
		'wm-lag -g k --every 10s'; do
		read -r -a words <<<"$line"
		"$bin/${words[0]}" -q "${words[@]:1}" whole.csv >want
		grep -q c-is-a-long-key want
		grep -q e-is-long want
		"$bin/${words[0]}" -q "${words[@]:1}" begin.csv rest.csv >out
		diff want out
	done
	printf '%s\n' ts,k,_time,_watermark 1,a-long-key,1,-2 70,g,70,60 >right.csv
	"$bin/wm-join" -q -k k --between=-9s,9s --type left --stamp later whole.csv right.csv >want
	grep -q c-is-a-long-key want
	"$bin/wm-join" -q -k k --between=-9s,9s --type left --stamp later whole.csv <(head -c -1 right.csv) >out
	diff want out
}

@test "--source: a first row that is rejected ends a batch without a source" {
	printf 'src,ts\na,x\na,1\na,1.5\n' >in.csv
	for policy in min max; do
		run -1 "$bin/wm-stamp" -q -t ts --time-format s --output-time us -w 0s --policy "$policy" --trigger 1rows --source src in.csv
		assert_line 'a,1,1000000,'
		assert_line 'a,1.5,1500000,1000000'
	done
}

@test "--max-jump with --source: a source takes part from its first confirmation, one that is named from the beginning" {
	{
		printf 'src,ts\n'
		for number in {1..20}; do
			printf 'good,%d\n' "$((1700000000 + number))"
		done
		printf 'wrong,5\ngood,1700000021\n'
	} >in.csv
	stamped=("$bin/wm-stamp" -q -t ts --time-format s --output-time s -w 0s --max-jump 1m --source src)
	run -0 "${stamped[@]}" in.csv
	assert_line 'good,1700000021,1700000021,1700000021'
	run -0 "${stamped[@]}" --sources good,wrong in.csv
	assert_line 'good,1700000021,1700000021,'
}

@test "--max-jump without a confirmation: no watermark, and that is said" {
	printf 'ts\n1\n100000\n5\n' >in.csv
	run -0 --separate-stderr "$bin/wm-window" -t ts -w 1s --max-jump 10s --tumbling 10s in.csv
	assert_equal "${#lines[@]}" 3
	[[ $stderr == *--max-jump* ]]
}

@test "a compressed, encoded or differently shaped input: the command that helps" {
	printf 'ts\n1\n' >in.csv
	gzip -c in.csv >in.csv.gz
	run -2 "$bin/wm-window" -t ts --tumbling 1s in.csv.gz
	assert_output --partial zcat
	iconv -f UTF-8 -t UTF-16 in.csv >in16.csv
	run -2 "$bin/wm-window" -t ts --tumbling 1s in16.csv
	assert_output --partial iconv
	printf '[{"ts":1},{"ts":2}]\n' >array.json
	run -2 "$bin/wm-window" -t ts --tumbling 1s array.json
	assert_output --partial "jq -c"
	printf '{\n  "ts": 1\n}\n' >pretty.json
	run -2 "$bin/wm-window" -t ts --tumbling 1s pretty.json
	assert_output --partial "jq -c"
	printf '2024-01-01T10:00:00Z,a\n' >lost.csv
	run -2 "$bin/wm-window" -t ts --tumbling 1s lost.csv
	assert_output --partial header
}

@test "a header in the middle is skipped and counted" {
	printf 'ts,k\n1,a\nts,k\n2,a\n' >in.csv
	run -0 "$bin/wm-window" -q -t ts --tumbling 10s --report report in.csv
	assert_equal "$(counts <<<"$output")" "2 "
	assert_equal "$(jq .headers_repeated report)" 1
}

@test "without a header, a first record that is rejected: the next one says how many columns there are" {
	# In every tool that passes records, as they came and in another format; and when all are rejected.
	for first in '"c"x,1' '""x'; do
		printf '%s\n1700000000,a\n1700000002,b\n' "$first" >in.csv
		for tool in wm-stamp wm-sort wm-dedup; do
			run -1 --separate-stderr "$bin/$tool" --no-header -t 1 -w 3s -o ndjson in.csv
			assert_equal "${#lines[@]}" 2
			assert_line --index 1 --partial '{"1":1700000002,"2":"b"'
			run -1 --separate-stderr "$bin/$tool" --no-header -t 1 -w 3s -o table in.csv
			assert_line --index 3 --partial '1700000002  b'
		done
	done
	printf '1700000000,x\n' >right.csv
	for files in 'in.csv right.csv' 'right.csv in.csv' 'in.csv in.csv'; do
		# shellcheck disable=SC2086 # two names
		run -1 --separate-stderr "$bin/wm-join" --no-header -t 1 -w 3s --between=0s,0s -o ndjson $files
		assert_line --index 0 --regexp '^\{"1":1700000000,"2":"[ax]","right_1":1700000000,"right_2":"[ax]"\}$'
	done
	printf '"c"x,1\n' >in.csv
	for tool in wm-stamp wm-sort wm-dedup; do
		run -1 --separate-stderr "$bin/$tool" --no-header -t 1 -w 3s -o ndjson in.csv
		assert_output ''
	done
}
