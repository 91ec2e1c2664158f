#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# wm-dedup as a user meets it: what makes rows the same, how long that is remembered, what becomes of the others. Random
# streams are held to a model by the laws, Spark's answers by the oracle.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	load until
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	page=$PWD/man/wm-dedup.1
	quakes=$PWD/tests/data/earthquakes
	cd "$BATS_TEST_TMPDIR" || return 1
	export LC_ALL=C
	# the deliveries of four events; e2 comes again 25 s later with a time of its own
	cat >in.csv <<-'END'
		ts,id,n
		100,e1,1
		105,e2,2
		100,e1,3
		130,e2,4
		131,e3,5
		101,e4,6
		125,e3,7
	END
}

dedup() {
	"$bin/wm-dedup" "$@"
}

# What the column n of CSV on standard input says, in one line.
numbers() {
	tail -n +2 | cut -d, -f3 | paste -sd ' '
}

# A usage error: one line that has the words given, nothing on standard output, status 2.
refused() { # words, arguments
	local words=$1
	shift
	run -2 --separate-stderr dedup "$@"
	assert_equal "$output" ""
	assert_equal "${#stderr_lines[@]}" 1
	[[ $stderr == "wm-dedup: "*"$words"* ]] || {
		echo "no '$words' in: $stderr"
		return 1
	}
}

class_of() { # report, member
	jq -r "select(.type == \"report\").$2" "$1"
}

@test "misuse: one line that says what to do" {
	refused "--within-watermark, --with-time and --forever exclude each other" -t ts -w 1s --with-time --forever in.csv
	refused "--within-watermark, --with-time and --forever exclude each other" -t ts -w 1s --within-watermark --with-time in.csv
	refused "--remember: has no effect with --with-time: leave it out" -t ts -w 1s --with-time --remember 1s in.csv
	refused "--remember: has no effect with --forever: leave it out" -t ts -w 1s --forever --remember 1s in.csv
	refused "-w 0s: a key would be forgotten as soon as it is known: say with --remember D for how long" -t ts -w 0s in.csv
	refused "--remember 0s: a key would be forgotten as soon as it is known" -t ts -w 1s --remember 0s in.csv
	refused "--late and --pass-late: late rows go to a file, or on with the others: give one of them" \
		-t ts -w 1s --late late.csv --pass-late in.csv
	refused "--remember: '10': ten what?" -t ts --remember 10 in.csv
	refused "-k: " -t ts -k id,,n in.csv
	refused "--key: 'id' is named twice" -t ts --key id,id in.csv
	refused "did you mean 'id'?" -t ts -k idd in.csv
	refused "no time column" -k id in.csv
	refused "-k: more than 256 columns" -t ts -k "$(seq -s, 1 257)" in.csv
	printf 'x\n' >dup
	refused "--duplicates: dup exists and is not empty" -t ts --duplicates dup in.csv
	refused "--duplicates" -t ts --duplicates in.csv in.csv
	refused "--duplicates" -t ts --duplicates same --late same in.csv
	[ ! -e late.csv ]
}

@test "the first row of a key passes; a key is remembered for the delay behind its time" {
	# n=4: the watermark is 130 - 20 = 110, and e2 of 105 is remembered until it is 125. n=6 and 101 is behind 131 - 20.
	run -0 dedup -q -t ts -w 20s -k id in.csv
	assert_output $'ts,id,n\n100,e1,1\n105,e2,2\n131,e3,5'
	# --remember 5s: e2 is forgotten at 110, and so is known anew
	assert_equal "$(dedup -q -t ts -w 20s --remember 5s -k id in.csv | numbers)" "1 2 4 5"
	assert_equal "$(dedup -q -t ts -w 20s --within-watermark --remember 6s -k id in.csv | numbers)" "1 2 5"
	# with its time: e2 of 105 and of 130 are two, and so are e3 of 131 and of 125
	assert_equal "$(dedup -q -t ts -w 20s --with-time -k id in.csv | numbers)" "1 2 4 5 7"
	# for ever: nothing is late at a delay of 30 s, and no key is forgotten
	assert_equal "$(dedup -q -t ts -w 30s --forever -k id in.csv | numbers)" "1 2 5 6"
	# no watermark: nothing is late
	assert_equal "$(dedup -q -t ts -k id in.csv | numbers)" "1 2 5 6"
}

@test "the example of the man page does what it says" {
	local count=0 time id watermark what
	sed -n '/^An example/,/^\.El/p' "$page" | sed -nE 's/^\.It ([0-9:]+) Ta ([a-z]) Ta ([0-9:]+) Ta ([a-z]+)$/\1 \2 \3 \4/p' >told
	echo ts,id,n >example.csv
	while read -r time id watermark what; do
		count=$((count + 1))
		[ ${#time} -eq 8 ] || time=$time:00
		[ ${#watermark} -eq 8 ] || watermark=$watermark:00
		echo "2024-01-01T${time}Z,$id,$what" >>example.csv
		rm -f report
		dedup -q -t ts -w 10m -k id --duplicates dup --late late --overwrite --report report example.csv >passes
		case $what in
		passes) assert_equal "$(tail -n 1 passes)" "$(tail -n 1 example.csv)" ;;
		duplicate) assert_equal "$(tail -n 1 dup)" "$(tail -n 1 example.csv)" ;;
		late) assert_equal "$(tail -n 1 late)" "$(tail -n 1 example.csv)" ;;
		esac
		assert_equal "$(class_of report eventTime.watermark)" "2024-01-01T${watermark}Z"
	done <told
	assert_equal "$count" 8
	assert_equal "$(cat passes dup late | grep -c '^2024')" 8
}

@test "batches are judged by the watermark from before them" {
	# three rows a batch: with 20 s 85 is in force from the fourth row on, with 1 s 104, and 130 from the seventh
	assert_equal "$(dedup -q -t ts -w 20s -k id --trigger 3rows --late late.csv in.csv | numbers)" "1 2 5 6"
	assert_equal "$(cat late.csv)" "ts,id,n"
	dedup -q -t ts -w 1s -k id --trigger 3rows --late late.csv --overwrite in.csv >out.csv
	assert_equal "$(numbers <out.csv)" "1 2 5"
	assert_equal "$(numbers <late.csv)" "6 7"
}

@test "side files: late rows and duplicates as they came, with the header, which may stand alone" {
	dedup -q -t ts -w 20s -k id --late late.csv --duplicates dup.csv --report r in.csv >out.csv
	assert_equal "$(cat late.csv)" $'ts,id,n\n101,e4,6'
	assert_equal "$(cat dup.csv)" $'ts,id,n\n100,e1,3\n130,e2,4\n125,e3,7'
	# each row in one place, and in one class
	diff <(tail -qn +2 out.csv late.csv dup.csv | sort) <(tail -n +2 in.csv | sort)
	assert_equal "$(class_of r rows_in) $(class_of r rows_used) $(class_of r rows_duplicate) $(class_of r rows_late)" "7 3 3 1"
	assert_equal "$(class_of r rows_out)" 3
	# they are inputs again, and --append has no second header
	dedup -q -t ts -k id --duplicates dup.csv --append dup.csv in.csv 2>err >/dev/null && return 1
	grep -q 'dup.csv' err
	cp dup.csv again.csv
	dedup -q -t ts -k id --duplicates dup.csv --append again.csv again.csv >/dev/null
	assert_equal "$(grep -c ts dup.csv)" 1
	assert_equal "$(wc -l <dup.csv)" 7
	head -n 3 in.csv | dedup -t ts -w 20s -k id --late l --duplicates d >out.csv
	assert_equal "$(cat l d)" $'ts,id,n\nts,id,n'
	dedup -t ts -w 20s -k id --late l2 --duplicates d2 /dev/null
	[ ! -s l2 ] && [ ! -s d2 ]
}

@test "--late-info tells how late" {
	dedup -q -t ts -w 20s -k id --late late.csv --late-info in.csv >out.csv
	assert_equal "$(cat late.csv)" $'ts,id,n,_late_by,_late_watermark\n101,e4,6,10,1970-01-01T00:01:51Z'
}

@test "--pass-late marks late rows and passes them" {
	run -0 dedup -q -t ts -w 20s -k id --pass-late --report r in.csv
	assert_output $'ts,id,n,_late\n100,e1,1,0\n105,e2,2,0\n131,e3,5,0\n101,e4,6,1'
	assert_equal "$(class_of r rows_late) $(class_of r rows_out)" "1 4"
	run -5 dedup -q -t ts -w 20s -k id --pass-late --fail-late 1/10 in.csv
	# a late row is neither looked up nor remembered
	run -0 dedup -q -t ts -w 5s -k id --pass-late <<<$'ts,id\n10,a\n20,b\n11,a\n11,c\n20,c'
	assert_output $'ts,id,_late\n10,a,0\n20,b,0\n11,a,1\n11,c,1\n20,c,0'
	# in the place that the column has, if it has one; and in NDJSON
	run -0 dedup -q -t ts -w 5s -k id --pass-late <<<$'ts,_late,id\n10,7,a\n20,,b\n11,0,a'
	assert_output $'ts,_late,id\n10,0,a\n20,0,b\n11,1,a'
	run -0 dedup -q -t ts -w 5s -k id --pass-late <<<$'{"ts":10,"id":"a"}\n{"ts":20, "id":"b" }\n{"ts":11}'
	assert_output $'{"ts":10,"id":"a","_late":0}\n{"ts":20, "id":"b" ,"_late":0}\n{"ts":11,"_late":1}'
}

@test "null and missing keys are one key, other than the empty text; 1 and \"1\" are two; numbers are compared as texts" {
	cat >in.ndjson <<-'END'
		{"ts":1,"id":null}
		{"ts":2,"id":""}
		{"ts":3}
		{"ts":4,"id":"1"}
		{"ts":5,"id":1}
		{"ts":6,"id":1.0}
		{"ts":7,"id":"1"}
		{"ts":8,"id":1}
		{"ts":9,"id":""}
		{"ts":10,"id":"\u0031"}
		{"ts":11,"id":true}
		{"ts":12,"id":"true"}
		{"ts":13,"id":[1, 2]}
		{"ts":14,"id":[1, 2]}
	END
	dedup -q -t ts -k id in.ndjson >out.ndjson
	assert_equal "$(jq -r .ts out.ndjson | paste -sd ' ')" "1 2 4 5 6 11 12 13"
	# of an object within
	run -0 dedup -q -t ts -k user.id <<<$'{"ts":1,"user":{"id":7}}\n{"ts":2,"user":{"x":1,"id":7}}\n{"ts":3,"user.id":7}'
	assert_output '{"ts":1,"user":{"id":7}}'
}

@test "keys of several columns do not run together" {
	cat >keys.csv <<-'END'
		ts,a,b,n
		1,ab,c,1
		2,a,bc,2
		3,"a,b",c,3
		4,a,"b,c",4
		5,ab,c,5
		6,,x,6
		7,x,,7
		8,"ab","c",8
		9,,x,9
		10,"a""b",c,10
		11,"a""b","c",11
	END
	assert_equal "$(dedup -q -t ts -k a,b keys.csv | sed 's/.*,//' | tail -n +2 | paste -sd ' ')" "1 2 3 4 6 7 10"
	assert_equal "$(dedup -q -t ts -k b,a keys.csv | sed 's/.*,//' | tail -n +2 | paste -sd ' ')" "1 2 3 4 6 7 10"
	# many columns, one of which differs
	local columns
	columns=$(seq -s, 1 30)
	{
		echo "ts,$columns"
		echo "1,$columns"
		echo "2,$columns"
		echo "3,${columns/17/71}"
	} >wide.csv
	assert_equal "$(dedup -q -t ts -k "$columns" wide.csv | cut -d, -f1 | paste -sd ' ')" "ts 1 3"
}

@test "without -k the whole record, byte for byte, but for wm's own columns and the line end" {
	printf 'ts,a\n1,x\n1,"x"\n1,x\r\n1,x \n1,x\n' >rows.csv
	dedup -q -t ts rows.csv >out.csv
	printf 'ts,a\n1,x\n1,"x"\n1,x \n' | cmp - out.csv
	local own
	for own in _time _watermark _lag _late _ingest _window_start _window_end _pane _pane_index _late_by _late_watermark; do
		printf 'ts,%s,a\n1,1,x\n1,2,x\n1,"2",x\n1,2,y\n' $own >own.csv
		assert_equal "$(dedup -q -t ts --watermark-column none own.csv | sed 's/.*,//' | paste -sd ' ')" "a x y"
		printf '{"ts":1,"%s":1,"a":"x"}\n{"ts":1,"a":"x","%s":2}\n{"ts":1,"a":"x"}\n{"ts":1,"a":"y"}\n' $own $own >own.ndjson
		assert_equal "$(dedup -q -t ts --watermark-column none own.ndjson | jq -r .a | paste -sd ' ')" "x y"
	done
	# a name that begins so, and is none of them, counts; so do the order of members and blanks
	printf '{"ts":1,"_id":1}\n{"ts":1,"_id":2}\n{"_id":2,"ts":1}\n{"_id":2, "ts":1}\n{"_id":2,"ts":1}\r\n' >rows.ndjson
	dedup -q -t ts rows.ndjson >out.ndjson
	assert_equal "$(wc -l <out.ndjson)" 4
	# as awk would do it, on a file of which a tenth comes twice
	awk '{ print } NR > 1 && NR % 10 == 0 { print }' "$quakes.csv" >twice.csv
	dedup -q -t time twice.csv | cmp - <(awk '!seen[$0]++' twice.csv)
}

@test "a model in another language: the first of each key and time" {
	for key in net mag,net place; do
		dedup -q -t time --forever -k "$key" "$quakes.csv" >out.csv
		python3 - "$quakes.csv" "$key" >want.csv <<-'END'
			import csv, sys
			lines = open(sys.argv[1]).read().splitlines()
			seen = set()
			print(lines[0])
			for line, row in zip(lines[1:], csv.DictReader(lines)):
			    key = tuple(row[name] for name in sys.argv[2].split(","))
			    if key not in seen:
			        print(line)
			    seen.add(key)
		END
		cmp out.csv want.csv
	done
}

@test "rows pass byte for byte: CRLF, quotes, a missing final newline, TSV" {
	printf 'ts,a,b\r\n1,"x, ""y""", z \r\n2,"two\r\nlines",\r\n1,"x, ""y""", z \r\n3,,"last"' >in
	dedup -q -t ts -k a in >out
	printf 'ts,a,b\r\n1,"x, ""y""", z \r\n2,"two\r\nlines",\r\n3,,"last"\r\n' | cmp - out
	printf 'ts\ta\n1\tx,\n2\tx,\n3\t y\n' >in
	dedup -q -t ts -k a in >out
	printf 'ts\ta\n1\tx,\n3\t y\n' | cmp - out
	printf '{ "ts":1.50, "a" : "\\u0041" , "n":1e3}\n{"ts":2,"a":"A"}' >in
	dedup -q -t ts -k a in >out
	printf '{ "ts":1.50, "a" : "\\u0041" , "n":1e3}\n' | cmp - out
	printf 'ts;a\n1;x\n2;x\n' >in
	dedup -q -t ts -k a -d ';' in >out
	printf 'ts;a\n1;x\n' | cmp - out
	# no header: columns are numbers, or named
	printf '1,x\n2,x\n3,y\n' >in
	dedup -q -t 1 -k 2 --no-header in | cmp - <(printf '1,x\n3,y\n')
	dedup -q -t ts -k a --columns ts,a in | cmp - <(printf '1,x\n3,y\n')
	printf 'ts,a\n1,x\n2,x\n' | dedup -q -t ts -k a --no-output-header >out
	printf '1,x\n' | cmp - out
}

@test "a key in the last column of many lines, which end in CRLF or LF: each passes once" {
	awk 'BEGIN { print "time,key"; for (i = 0; i < 20000; i++) print 1700000000 + i ",k" i % 500 }' >lf.csv
	sed 's/$/\r/' lf.csv >crlf.csv
	head -n 501 lf.csv >want
	for end in lf crlf; do
		dedup -q -t time -w 100h -k key $end.csv >$end
		dedup -q -t time -w 100h -k key,time $end.csv | cmp - $end.csv
		tr -d '\r' <$end | cmp - want
	done
}

@test "empty input, a header alone, an empty FILE among others" {
	assert_equal "$(dedup -t ts -k a </dev/null 2>&1)" ""
	assert_equal "$(printf 'ts,a\n' | dedup -t ts -w 1s -k a 2>&1)" "ts,a"
	printf 'ts,a\n1,x\n' >one
	: >empty
	run -0 dedup -q -t ts -k a empty one empty one
	assert_output $'ts,a\n1,x'
}

@test "lines of logs pass as they came" {
	cat >access.log <<-'END'
		192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 5
		192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 5
		192.0.2.2 - - [10/Oct/2000:13:55:37 -0700] "GET /a HTTP/1.0" 200 5
	END
	dedup -q -i clf access.log | cmp - <(sed 2d access.log)
	dedup -q -i clf -k path access.log | cmp - <(head -n 1 access.log)
	run -0 dedup -q -i clf -k host -o csv access.log
	assert_line --index 1 '192.0.2.1,,,10/Oct/2000:13:55:36 -0700,GET,/a,,HTTP/1.0,200,5,,,GET /a HTTP/1.0,'
	assert_equal "${#lines[@]}" 3
	# _late needs a column
	run -0 dedup -q -i clf -k host -w 1h --pass-late access.log
	assert_line --index 1 '192.0.2.1,,,10/Oct/2000:13:55:36 -0700,GET,/a,,HTTP/1.0,200,5,,,GET /a HTTP/1.0,,0'
	printf 'ts=3 a=x\nts=4 a="x" b="y z"\nts=5 a=w\n' >in.log
	dedup -q -i logfmt -t ts -k a in.log | cmp - <(sed 2d in.log)
	printf '1 x\n2 x\nnonsense\n' >in.log
	dedup -q -i lines --pattern '^([0-9]+) (.*)$' --columns ts,a --unmatched skip -t ts -k a in.log | cmp - <(head -n 1 in.log)
}

@test "other formats" {
	run -0 dedup -q -t ts -w 20s -k id -o ndjson in.csv
	assert_line --index 0 '{"ts":100,"id":"e1","n":1}'
	assert_equal "${#lines[@]}" 3
	run -0 dedup -q -t ts -w 20s -k id -o tsv in.csv
	assert_line --index 1 $'100\te1\t1'
	run -0 dedup -q -t ts -w 20s -k id -o table in.csv
	assert_line --regexp '^100 +e1 +1$'
	printf '{"ts":1,"a":"x,y"}\n{"ts":2,"a":"x,y"}\n{"ts":3,"a":null}\n{"ts":4,"a":5,"b":6}\n' >in.ndjson
	run -1 --separate-stderr dedup -t ts -w 20s -k a -o csv in.ndjson
	assert_output $'ts,a\n1,"x,y"\n3,'
	[[ $stderr == *"in.ndjson:4: 'b' is no column of the result"*"new-column"* ]]
	run -0 dedup -q -t ts -w 20s -k a -o csv --columns ts,a,b in.ndjson
	assert_output $'ts,a,b\n1,"x,y",\n3,,\n4,5,6'
	# the first record tells the columns, though it may not pass
	run -0 dedup -q -t ts -w 20s -k a -o csv --trigger 1rows <<<$'{"ts":1,"a":"x"}\n{"ts":100,"a":"y"}\n{"ts":2,"a":"z"}'
	assert_output $'ts,a\n1,x\n100,y'
}

@test "several FILEs: one stream, or side by side" {
	printf 'ts,a\n1,x\n10,y\n' >one
	printf 'a,ts\r\nx,2\r\nz,3\r\n' >two
	run -0 dedup -q -t ts -w 20s -k a one two
	assert_output $'ts,a\n1,x\n10,y\n3,z'
	# side by side: x of 2 s, x of 1 s, then the one that is at 1 s, then the other, of which nothing is late
	run -0 dedup -q -t ts -w 1s -k a --remember 20s --merge two one
	assert_output $'a,ts\r\nx,2\r\ny,10\r\nz,3\r'
	run -0 --separate-stderr dedup -t ts -w 5s -k a one two
	[[ ${stderr_lines[0]} == *"two:2: begins 3s behind the watermark that the FILE before it left"* ]]
	mkfifo p1 p2
	cat one >p1 &
	cat two >p2 &
	run -0 dedup -q -t ts -w 20s -k a p1 p2
	assert_output $'ts,a\n1,x\n10,y\n3,z'
	wait
}

@test "a stamped input: punctuation and rows pass as they came, --remember is required" {
	printf 'ts,id,_time,_watermark\n%s\n%s\n%s\n%s\n%s\n' '1,a,1970-01-01T00:00:01Z,' '2,a,1970-01-01T00:00:02Z,1970-01-01T00:00:01.500Z' \
		',,,1970-01-01T00:00:05Z' '6,a,1970-01-01T00:00:06Z,' '4,b,1970-01-01T00:00:04Z,1970-01-01T00:00:03Z' >s.csv
	refused "--remember: the watermark comes in band, and nothing tells the delay behind it: say for how long a key is remembered" -k id s.csv
	# a is remembered until 1 s + 4 s; b of 4 s is behind the 5 s that punctuation told
	run -0 dedup -q -k id --remember 4s --late late.csv --report r s.csv
	assert_output "$(sed -n '1,2p;4,5p' s.csv)"
	assert_equal "$(cat late.csv)" $'ts,id,_time,_watermark\n4,b,1970-01-01T00:00:04Z,'
	assert_equal "$(class_of r rows_punctuation) $(class_of r rows_in) $(class_of r rows_out)" "1 5 2"
	run -0 dedup -q -k id --remember 4001ms s.csv
	assert_output "$(sed -n '1,2p;4p' s.csv)"
	run -0 dedup -q -k id --with-time s.csv
	assert_output "$(sed -n '1,5p' s.csv)"
	run -0 dedup -q -k id --forever s.csv
	assert_output "$(sed -n '1,2p;4p' s.csv)"
	# a watermark of its own, or none
	run -0 dedup -q -t ts -w 1s -k id s.csv
	assert_line --index 1 '1,a,1970-01-01T00:00:01Z,'
	run -0 --separate-stderr dedup -t ts --watermark-column none -k id s.csv
	[[ $stderr == *"without a watermark no key is forgotten"* ]]
	refute_output --partial '00:00:06Z'
	# the same as one tool with a delay
	"$bin/wm-stamp" -q -t time -w 2d "$quakes.ndjson" | dedup -q -k net,mag --remember 2d --late late.ndjson |
		sed 's/, *"_time".*/}/' >piped
	dedup -q -t time -w 2d -k net,mag "$quakes.ndjson" >direct
	cmp piped <(sed 's/ *}$/}/' direct)
}

@test "rejected rows, and the report" {
	printf 'ts,id\n1,a\nx,a\n,b\n2\n2,a\n3,b\n' >bad.csv
	run -1 --separate-stderr dedup -t ts -w 10s -k id bad.csv
	assert_output $'ts,id\n1,a\n3,b'
	[[ $stderr == *"bad.csv:3: "*"3 of 6 rows were rejected"* ]]
	dedup -q -t ts -w 10s -k id --rejects rejects --report r bad.csv >out.csv
	assert_equal "$(jq -r .reason rejects | paste -sd ' ')" "bad-time no-time ragged"
	assert_equal "$(class_of r rows_in) $(class_of r rows_rejected) $(class_of r rows_duplicate) $(class_of r rows_used)" "6 3 1 2"
	run -1 dedup -q -t ts -w 10s -k id --strict bad.csv
	# keys in state: b and c at the end; a, of 1 s, is forgotten at 11 s
	printf 'ts,id\n1,a\n5,b\n6,b\n22,c\n' >keys.csv
	rm r
	dedup -q -t ts -w 10s -k id --report r keys.csv >out.csv
	jq -e 'select(.type == "report").stateOperators[0] | .operatorName == "dedup" and .numRowsTotal == 2 and
		.numRowsUpdated == 3 and .numRowsRemoved == 1 and .numRowsDroppedByWatermark == 0 and .memoryUsedBytes > 0' r
}

@test "memory without end is said once, and only then" {
	run -0 --separate-stderr dedup -t ts --time-format s -k id in.csv
	assert_equal "$stderr" "wm-dedup: without a watermark no key is forgotten: memory grows with the number of keys; set a delay with -w"
	run -0 --separate-stderr dedup -t ts --time-format s -w 30s --forever -k id in.csv
	assert_equal "$stderr" "wm-dedup: --forever: every key is remembered: memory grows with the number of keys"
	run -0 --separate-stderr dedup -q -t ts --time-format s --forever -k id in.csv
	assert_equal "$stderr" ""
	run -0 --separate-stderr dedup -t ts --time-format s -w 30s -k id in.csv
	assert_equal "$stderr" ""
}

@test "live: a row passes at once; SIGTERM loses nothing that was read" {
	mkfifo pipe
	dedup -q -t ts -w 10s -k id <pipe >out &
	pid=$!
	exec 7>pipe
	printf 'ts,id\n1,a\n1,a\n2,b\n' >&7
	until_true '[ "$(cat out)" = "ts,id
1,a
2,b" ]'
	printf '3,b\n3,c\n' >&7
	until_true '[ "$(tail -n 1 out)" = 3,c ]'
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	exec 7>&-
	[ "$status" -eq 143 ]
	[ "$(wc -l <out)" -eq 4 ]
}

@test "a reader that goes away, a full disk" {
	seq -f '%.0f,a' 0 200000 | sed '1i ts,id' >many.csv
	{ dedup -q -t ts --with-time -w 10s many.csv 2>err || echo $? >status; } | head -n 1 >/dev/null
	[ "$(cat status)" -eq 141 ]
	[ ! -s err ]
	status=0
	dedup -q -t ts -w 10s -k id --duplicates /dev/full --append many.csv >/dev/null 2>err || status=$?
	[ "$status" -eq 3 ]
	grep -q '/dev/full: No space left on device' err
}

@test "--explain reads nothing" {
	run -0 --separate-stderr dedup -t ts -k id -w 10m --explain nowhere.csv
	assert_line --partial 'The first row of each id passes'
	assert_line --partial 'forgotten when the watermark is 10m past the time of its first row'
	run -0 dedup -t ts --with-time -w 10m --explain
	assert_line --partial 'The first row of each record and event time passes'
	run -0 dedup -t ts --forever -w 10m --explain
	assert_line --partial 'No key is ever forgotten'
	run -0 dedup -t ts --pass-late -w 10m --explain
	assert_line 'Rows behind the watermark pass, with _late = 1.'
}
