#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --null: texts that stand for missing values. Results are those of the same input with the fields emptied, by hand here;
# tests/laws/nulls.py does it at random.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	cd "$BATS_TEST_TMPDIR" || return 1
	cat >in.csv <<-'END'
		ts,k,v
		1,a,3
		2,NA,NA
		3,,5
		4,"NA",7
		5,-,-
		6,a,M
	END
	cat >in.ndjson <<-'END'
		{"ts":1,"k":"a","v":3}
		{"ts":2,"k":"NA","v":"NA"}
		{"ts":3,"k":null,"v":5}
		{"ts":4,"k":"","v":-999}
		{"ts":5,"k":-999,"v":"-"}
		{"ts":6,"k":true}
	END
}

window() {
	run --separate-stderr "$bin/wm-window" -t ts --time-format s --tumbling 10s --output-time s "$@"
}

# The rows of the result without the window.
rows() {
	cut -d, -f3- <<<"$output" | tail -n +2 | paste -sd' '
}

@test "without the option nothing is guessed" {
	window -q -g k -a count,max:v in.csv
	assert_success
	assert_equal "$(rows)" ",1,5 -,1,- NA,2,NA a,2,M"
}

@test "values and keys that are in the list are missing; in quotes they are texts" {
	window -g k -a count,sum:v,max:v --null NA,-,M in.csv
	assert_success
	assert_equal "$stderr" ""
	assert_equal "$(rows)" ",3,5,5 NA,1,7,7 a,2,3,3"
	window -g k -a count,sum:v --null NA,-,M --null-quoted in.csv
	assert_equal "$(rows)" ",4,12 a,2,3"
	window -g k -a count,sum:v --null NA,-,M -o ndjson in.csv
	assert_line --index 0 '{"window_start":0,"window_end":10,"k":null,"count":3,"v_sum":5}'
	assert_line --index 1 '{"window_start":0,"window_end":10,"k":"NA","count":1,"v_sum":7}'
}

@test "an empty LIST asks that the empty field is missing in keys" {
	printf 'ts,k\n1,\n2,""\n3,a\n' >e.csv
	window -g k -o ndjson e.csv
	assert_line --index 0 --partial '"k":null,"count":2'
	join='wm-join -q -t ts --time-format s -w 10s --between=-5s,5s -k k'
	assert_equal "$("$bin"/$join e.csv e.csv | wc -l)" 6
	assert_equal "$("$bin"/$join --null '' e.csv e.csv | tail -n +2)" "3,a,3"
}

@test "JSON strings and numbers are compared by their text" {
	window -g k -a count,sum:v -o csv --null NA,-999,- in.ndjson
	assert_success
	assert_equal "$(rows)" ",3,5 ,1, a,1,3 true,1,"
	window -g k -a count,sum:v -o csv --null ,NA,-999,- in.ndjson
	assert_equal "$(rows)" ",4,5 a,1,3 true,1,"
	window -g k -a count -o csv --null -999.0,true in.ndjson
	assert_equal "$(rows)" ",1 ,1 -999,1 NA,1 a,1 true,1"
}

@test "only a comma is escaped in LIST, and a text stands for a whole field" {
	printf 'ts;k\n1;a,b\n2;\\N\n3;N\n4;\\\n5;a\n6;N/A \n' >in.txt
	window -d ';' -g k --null '\N,a\,b,\' in.txt
	assert_equal "$(cut -d';' -f3- <<<"$output" | tail -n +2 | paste -sd' ')" ";3 N;1 N/A ;1 a;1"
}

@test "logs: a group of a pattern, logfmt, and the fields of an access log" {
	printf '1 a 5\n2 NA -\n3 - 2\n' >in.log
	window -i lines --pattern '^([^ ]*) ([^ ]*) ([^ ]*)$' --columns ts,k,v -g k -a count,sum:v --null NA,- in.log
	assert_equal "$(rows)" ",2,2 a,1,5"
	printf 'ts=1 k=a v=5\nts=2 k=NA v=-\nts=3 k="-" v=2\nts=4 k v=1\n' >in.logfmt
	window -i logfmt -g k -a count,sum:v --null NA,- in.logfmt
	assert_equal "$(rows)" ",3,3 a,1,5"
	run -0 "$bin/wm-stamp" -q -i logfmt -t ts --time-format s -w 0s --null NA,- -o ndjson --add watermark in.logfmt
	assert_line --index 1 --partial '"k":null,"v":null,'
	run -0 "$bin/wm-stamp" -q -i lines --pattern '^([^ ]*) ([^ ]*) ([^ ]*)$' --columns ts,k,v -t ts --time-format s -w 0s \
		--null NA,- -o ndjson --add watermark in.log
	assert_line --index 1 --partial '"k":null,"v":null,'
	printf '1.1.1.1 - bob [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.0" 200 5\n' >in.clf
	run -0 "$bin/wm-window" -q -i clf --tumbling 10s -g ident,user -o ndjson --null bob in.clf
	assert_output --partial '"ident":null,"user":null,"count":1'
}

@test "a time that is missing is no time, and of date+time both halves are needed" {
	printf 'ts,k\n1,a\nNA,b\n' >t.csv
	window --null NA t.csv
	assert_equal "$status" 1
	assert_regex "$stderr" "t.csv:3: no event time in column 'ts': row rejected .no-time."
	printf 'day,clock,k\n2025-01-01,10:00:00,a\n2025-01-01,NA,b\nNA,10:00:00,c\n2025-01-01,,d\n' >dt.csv
	run -1 --separate-stderr "$bin/wm-window" -t day+clock --tumbling 1h --null NA dt.csv
	assert_regex "$stderr" "3 no-time"
	assert_line --index 1 '2025-01-01T10:00:00Z,2025-01-01T11:00:00Z,1'
}

@test "a gap that is missing is a bad gap" {
	printf 'ts,g\n1,5s\n2,NA\n' >g.csv
	run -1 --separate-stderr "$bin/wm-window" -t ts --time-format s --session column:g --null NA g.csv
	assert_regex "$stderr" "1 bad-gap"
	refute_regex "$stderr" "takes it as missing"
}

@test "a missing value fulfils no condition" {
	window -a 'ne=count:v:ne:3,eq=count:v:eq:M,sum=sum:v:if:v:ne:M' --null NA,-,M in.csv
	assert_success
	assert_equal "$(rows)" "2,0,15"
}

@test "sources, positions, arrival times and batches" {
	printf 'ts,s,at\n50,NA,50\n100,a,100\n51,,51\n' >s.csv
	run -0 --separate-stderr "$bin/wm-stamp" -q -t ts --time-format s -w 0s --source s --policy min --null NA --output-time s \
		--add watermark s.csv
	# The two without a name are one source: if they were two, the first would still hold the watermark at 50.
	assert_line --index 3 '51,,51,51'
	printf 'ts,s,at\n100,a,NA\n50,a,50\n' >i.csv
	run -1 --separate-stderr "$bin/wm-stamp" -t ts --time-format s -w 0s --ingest at --max-ahead 1s --null NA i.csv
	assert_regex "$stderr" "no arrival time in column 'at': row rejected .bad-ingest."
	printf 'ts,b\n1,NA\n9,\n3,1\n' >b.csv
	run -0 "$bin/wm-window" -q -t ts --time-format s -w 0s --trigger column:b --null NA --tumbling 1s --output-time s b.csv
	assert_equal "$(tail -n +2 <<<"$output" | paste -sd' ')" "1,2,1 9,10,1"
	printf 'ts,o\n1,5\n2,NA\n' >o.csv
	run -0 "$bin/wm-stamp" -q -t ts --time-format s -w 0s -C st --eof hold --position o --null NA o.csv
	assert_equal "$("$bin/wm-checkpoint" position st)" 5
}

@test "wm-stamp and wm-sort: what passes stays as it came, but for null in NDJSON made of CSV" {
	for tool in 'wm-stamp --add watermark' wm-sort; do
		run -0 bash -c "'$bin'/$tool -q -t ts --time-format s -w 0s --null NA,-,M in.csv | cut -d, -f1-3"
		assert_output "$(cat in.csv)"
		run -0 "$bin"/$tool -q -t ts --time-format s -w 0s --null NA,M -o ndjson in.csv
		assert_line --index 1 --partial '{"ts":2,"k":null,"v":null'
		assert_line --index 3 --partial '{"ts":4,"k":"NA","v":7'
		assert_line --index 4 --partial '{"ts":5,"k":"-","v":"-"'
		run -0 "$bin"/$tool -q -t ts --time-format s -w 0s --null NA,M -o tsv in.csv
		assert_line --index 2 --partial $'2\tNA\tNA'
		run -0 "$bin"/$tool -q -t ts --time-format s -w 0s --null NA -o csv in.ndjson
		assert_line --index 2 --partial '2,NA,NA'
	done
}

@test "late and rejected rows stay as they came" {
	printf 'ts,v\n100,1\n1,NA\n101,x\n' >l.csv
	run -0 "$bin/wm-window" -q -t ts --time-format s -w 0s --tumbling 10s -a sum:v --null NA --late late --rejects rejects l.csv
	assert_equal "$(cat late)" $'ts,v\n1,NA'
}

@test "wm-dedup: rows with a missing key are duplicates of each other" {
	run -0 "$bin/wm-dedup" -q -t ts --time-format s -w 10s -k k --null NA,- in.csv
	assert_output $'ts,k,v\n1,a,3\n2,NA,NA\n4,"NA",7'
	run -0 "$bin/wm-dedup" -q -t ts --time-format s -w 10s -k k in.csv
	assert_output $'ts,k,v\n1,a,3\n2,NA,NA\n3,,5\n5,-,-'
}

@test "wm-join: a missing key matches nothing, on either side" {
	printf 'ts,k,x\n1,a,1\n2,NA,NA\n3,,2\n4,-,4\n' >right.csv
	join='wm-join -q -t ts --time-format s -w 10s --between=-5s,5s --type full -k k'
	run -0 "$bin"/$join --null NA,- in.csv right.csv
	assert_equal "$(sort <<<"$output")" "$(sort <<-'END'
		ts,k,v,right_ts,x
		1,a,3,1,1
		2,NA,NA,,
		3,,5,,
		4,"NA",7,,
		5,-,-,,
		6,a,M,1,1
		,NA,,2,NA
		,,,3,2
		,-,,4,4
	END
	)"
	run -0 "$bin"/$join --null NA,- -o ndjson in.csv right.csv
	assert_line '{"ts":2,"k":null,"v":null,"right_ts":null,"x":null}'
	assert_line '{"ts":null,"k":null,"v":null,"right_ts":2,"x":null}'
	assert_line '{"ts":4,"k":"NA","v":7,"right_ts":null,"x":null}'
	# The right may be read before the left has a header.
	run -0 bash -c "'$bin'/$join --null NA,- <(sleep 0.3; cat in.csv) right.csv --eager"
	assert_line ',NA,,2,NA'
	run -0 "$bin"/$join --null NA,-999,- in.csv in.ndjson
	assert_line ',NA,,2,NA'
	assert_line ',-999,,5,-'
}

@test "wm-lag: keys and times" {
	run -1 --separate-stderr "$bin/wm-lag" -q -t ts --time-format s -g k --null NA,-,1 in.csv
	assert_equal "$(cut -d, -f1-3 <<<"$output" | paste -sd' ')" "k,measure,count ,disorder,3 NA,disorder,1 a,disorder,1"
}

@test "wm-merge: keys and values" {
	printf 'k,n,m\na,1,-\nNA,NA,2\nb,2,x\n' >main.csv
	printf 'k,n,m\n,4,NA\nb,-,y\na,5,3\nc,NA,-\n' >late.csv
	run -1 "$bin/wm-merge" -k k --sum n --max m main.csv late.csv
	assert_output "wm-merge: late.csv:3: column 'n': '-' is no number, and --sum needs one: --null - takes it as missing"
	run -1 "$bin/wm-merge" -k k --sum n --max m --null - main.csv late.csv
	assert_output "wm-merge: late.csv:5: column 'n': 'NA' is no number, and --sum needs one: --null -,NA takes it as missing"
	run -0 "$bin/wm-merge" -k k --sum n --max m --null NA,- main.csv late.csv
	assert_output $'k,n,m\na,6,3\nNA,4,2\nb,2,y\nc,NA,-'
	run -0 "$bin/wm-merge" -k k --sum n --max m --null NA,- -o ndjson main.csv late.csv
	assert_line --index 1 '{"k":null,"n":4,"m":2}'
	assert_line --index 3 '{"k":"c","n":null,"m":null}'
	# A text in quotes that takes the place of another stays one.
	printf 'k,l\na,x\nb,y\n' >texts.csv
	printf 'k,l\na,"NA"\nb,NA\n' >more.csv
	run -0 "$bin/wm-merge" -k k --last l --null NA texts.csv more.csv
	assert_output $'k,l\na,"NA"\nb,y'
	# A column without a rule must be the same: two words for nothing are.
	printf 'k,n\na,NA\n' >one.csv
	printf 'k,n\na,\n' >two.csv
	run -1 "$bin/wm-merge" -k k one.csv two.csv
	run -0 "$bin/wm-merge" -k k --null NA one.csv two.csv
	assert_output $'k,n\na,NA'
	printf 't,n\n1,1\nNA,2\n' >range.csv
	run -1 "$bin/wm-merge" --replace 0,5 -t t --time-format s --null NA range.csv range.csv
	assert_output --partial "column 't': ''"
}

@test "wm-merge --partial: the states of two files, with keys that are missing" {
	for i in 1 2; do
		grep -v '"' in.csv | "$bin/wm-window" -q -t ts --time-format s --tumbling 10s -g k -a count,sum:v,max:v --partial --null NA,-,M >p$i.csv
	done
	run -0 "$bin/wm-merge" --partial -k window_start,window_end,k --null NA,-,M p1.csv p2.csv
	assert_line --partial 'Z,,6,10,5'
}

@test "a row that is rejected because of a usual word says once how it is taken as missing" {
	printf 'ts,v\n1,1\n2,NA\n3,NA\n4,\\N\n5,"None"\n6,foo\n' >h.csv
	window -a sum:v h.csv
	assert_equal "$status" 1
	assert_equal "$(grep -c 'takes it as missing' <<<"$stderr")" 3
	assert_regex "$stderr" "wm-window: 'NA' in column v is no number: --null NA takes it as missing"
	assert_regex "$stderr" "'.N' in column v is no number: --null '.N' takes it as missing"
	assert_regex "$stderr" "'None' in column v is no number: --null None --null-quoted takes it as missing"
	window -a sum:v --null NA h.csv
	assert_regex "$stderr" "--null 'NA,.N' takes it as missing"
	window -q -a sum:v h.csv
	refute_regex "$stderr" "takes it as missing"
	for word in NA N/A NULL null None nan NaN '\N' - -- M; do
		printf 'ts,v\n1,1\n2,%s\n' "$word" >w.csv
		window -a sum:v w.csv
		assert_equal "$status" 1
		assert_regex "$stderr" "takes it as missing"
		window -a count,sum:v --null "$word" w.csv
		assert_success
		assert_equal "$(rows)" "2,1"
	done
	printf 'day,clock\n2025-01-01,10:00\n2025-01-01,-\n' >d.csv
	run -1 --separate-stderr "$bin/wm-window" -t day+clock --tumbling 1d d.csv
	assert_regex "$stderr" "'-' in column day.clock is no time: --null - takes it as missing"
}

@test "a column of numbers and texts names the option" {
	window -a max:v in.csv
	assert_regex "$stderr" "texts rank behind all numbers; the first is 'NA' .in.csv:3.: --null NA takes it as missing"
	printf 'ts,v\n1,1\n2,"n a"\n' >m.csv
	window -a max:v m.csv
	assert_regex "$stderr" "the first is 'n a' .m.csv:3.: --null 'n a' --null-quoted takes it as missing"
	printf 'ts,v\n1,1\n2,"it'"'"'s"\n' >m.csv
	window -a max:v m.csv
	assert_regex "$stderr" "--null LIST --null-quoted takes it as missing"
}

@test "lines with CRLF, a field at the end of a line and of the input" {
	printf 'ts,k\r\n1,NA\r\n2,a\r\n3,NA' >crlf.csv
	window -g k --null NA crlf.csv
	assert_equal "$(tr -d '\r' <<<"$output" | cut -d, -f3- | tail -n +2 | paste -sd' ')" ",2 a,1"
}

@test "the list belongs to the state: another one is refused, the same in another spelling goes on" {
	head -3 in.csv >grows.csv
	run -0 "$bin/wm-window" -q -t ts --time-format s -w 0s --tumbling 100s -g k --null NA,- -C st grows.csv
	run -3 "$bin/wm-window" -q -t ts --time-format s -w 0s --tumbling 100s -g k --null NA -C st grows.csv
	assert_output --partial "--null"
	run -3 "$bin/wm-window" -q -t ts --time-format s -w 0s --tumbling 100s -g k -C st grows.csv
	assert_output --partial "--null"
	run -3 "$bin/wm-window" -q -t ts --time-format s -w 0s --tumbling 100s -g k --null NA,- --null-quoted -C st grows.csv
	assert_output --partial "--null-quoted"
	cp in.csv grows.csv
	run -0 "$bin/wm-window" -q -t ts --time-format s -w 0s --tumbling 100s -g k --null -,NA,NA -C st --eof flush grows.csv
	assert_equal "$(cut -d, -f3- <<<"$output" | paste -sd' ')" "k,count ,3 NA,1 a,2"
	for tool in 'wm-stamp' 'wm-dedup -k k' 'wm-lag -g k'; do
		run -0 "$bin"/$tool -q -t ts --time-format s -w 10s -C "state of ${tool%% *}" --null NA grows.csv
		run -3 "$bin"/$tool -q -t ts --time-format s -w 10s -C "state of ${tool%% *}" --null - grows.csv
		assert_output --partial "--null"
	done
}

@test "a command that makes no sense is refused, and --explain says what is missing" {
	for tool in wm-window wm-stamp wm-dedup wm-sort wm-lag wm-merge; do
		run -2 "$bin/$tool" -t ts --null-quoted in.csv in.csv
		assert_output "$tool: --null-quoted: no text is a missing value: name some with --null LIST"
	done
	run -2 "$bin/wm-window" -t ts --tumbling 1s --na-values NA in.csv
	assert_output "wm-window: no option --na-values: write --null LIST, as in --null 'NA,NULL,-'"
	run -0 "$bin/wm-window" -t ts --tumbling 1s --explain --null 'NA,\N' in.csv
	assert_regex "$(tr -s ' \n' ' ' <<<"$output")" "The empty field, 'NA' and '.N' are no value, in keys too; in quotes of CSV they are texts."
	run -0 "$bin/wm-dedup" -t ts -w 1s --explain --null ,NA --null-quoted in.csv
	assert_line "The empty field and 'NA' are no value, in keys too, and so is the empty string of JSON, with or without quotes in CSV."
	run -0 "$bin/wm-sort" -t ts -w 1s --explain --null '' in.csv
	assert_line "The empty field is no value, in keys too, and so is the empty string of JSON."
}
