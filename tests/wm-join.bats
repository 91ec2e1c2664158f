#!/usr/bin/env bats
# wm-join as a user meets it: which rows come out, in which form, from files, pipes and live inputs. Random inputs are
# held to a model by the laws.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	load until
	bin=$(cd "${WM_BIN:-build/release}" && pwd)
	cd "$BATS_TEST_TMPDIR" || return 1
	export LC_ALL=C
	printf '%s\n' ts,k,a 100,x,1 103,y,2 110,x,3 120,z,4 130,y,5 >left.csv
	printf '%s\n' ts,k,b 100,x,A 104,x,B 105,y,C 112,x,D 140,w,E >right.csv
}

wm_join() {
	"$bin/wm-join" "$@"
}

# A usage error: one line that has the words given, nothing on standard output, status 2.
refused() { # words, arguments
	local words=$1
	shift
	run -2 --separate-stderr wm_join "$@"
	assert_equal "$output" ""
	assert_equal "${#stderr_lines[@]}" 1
	[[ $stderr == "wm-join: "*"$words"* ]] || {
		echo "no '$words' in: $stderr"
		return 1
	}
}

@test "misuse: one line that says what to do" {
	local both=(-t ts -w 5s left.csv right.csv)
	refused "name two inputs, LEFT and RIGHT; one of them may be - for standard input" -t ts
	refused "name two inputs, LEFT and RIGHT" -t ts left.csv
	refused "name two inputs, LEFT and RIGHT" "${both[@]}" left.csv
	refused "standard input is named twice" -t ts - -
	refused "no 'outer': inner, left, right, full, semi or anti" --type outer "${both[@]}"
	for type in left right full semi anti; do
		refused "--type $type: a row would wait for ever to be matched: bound its wait with --between LO,HI, --tumbling SIZE or --asof backward" \
			--type $type "${both[@]}"
	done
	for type in left full semi anti; do
		refused "--type $type: a row would wait for ever" --type $type --between 0s, "${both[@]}"
	done
	for type in right full; do
		refused "--type $type: a row would wait for ever" --type $type --between ,5s "${both[@]}"
	done
	refused "--between: '5s,1s': LO is greater than HI: nothing would match" --between 5s,1s "${both[@]}"
	for range in 5s 1s,2s,3s '' '()'; do
		refused "--between: '$range': write LO,HI, as in -5m,1h; an end left empty is open, one in round brackets strict" \
			--between "$range" "${both[@]}"
	done
	refused "--between: '5': five what?" --between 5,10s "${both[@]}"
	refused "--between, --tumbling and --asof exclude each other" --between 0s,1s --tumbling 5s "${both[@]}"
	refused "--between, --tumbling and --asof exclude each other" --asof backward --tumbling 5s "${both[@]}"
	refused "--tolerance: is for --asof" --tolerance 5s --tumbling 5s "${both[@]}"
	refused "--asof: no 'forward': backward" --asof forward "${both[@]}"
	for type in right full semi anti; do
		refused "--asof: is for --type inner and left" --asof backward --type $type "${both[@]}"
	done
	refused "--tumbling: '1w': windows of the calendar cannot be joined: write a number of hours" --tumbling 1w "${both[@]}"
	refused "--tumbling: '1mo': windows of the calendar" --tumbling 1mo "${both[@]}"
	refused "--tumbling: '1d': windows of the calendar" --tumbling 1d --tz Europe/Berlin "${both[@]}"
	refused "-k, or --left-key and --right-key: the keys have one name, or two" -k k --left-key k "${both[@]}"
	refused "--left-key and --right-key: give both" --left-key k "${both[@]}"
	refused "--left-key and --right-key: name as many columns on both sides" --left-key k,a --right-key k "${both[@]}"
	refused "--policy: each side has its own watermark; one for both is for --compat spark" --policy max "${both[@]}"
	refused "--late-left and --late-right: both name 'l': give each a file of its own" --late-left l --late-right l "${both[@]}"
	refused "--eager and --idle-wall: nothing is waited for with --eager: give one of them" --eager --idle-wall 5s "${both[@]}"
	refused "--prefix: 'l_': write L,R, as in left_,right_; one may be empty" --prefix l_ "${both[@]}"
	refused "--prefix: 'a_,a_': both are the same: columns could not be told apart" --prefix a_,a_ "${both[@]}"
	refused "--left-delay: '5': five what?" --left-delay 5 "${both[@]}"
	refused "--right-delay: '-5s': a delay is not negative" --right-delay=-5s "${both[@]}"
	refused "--stamp: results may be of any time before: close the range with --between LO,HI" --stamp left "${both[@]}"
	refused "--stamp: results may be of any time before" --stamp left --between 0s, "${both[@]}"
	refused "--stamp: results may be of any time before" --stamp right --between ,0s "${both[@]}"
	refused "--stamp right: with --asof the right row may be of any time before: give --tolerance D" \
		--stamp right --asof backward "${both[@]}"
	refused "--late: write --late-left or --late-info in full" --late l "${both[@]}"
	refused "no option --merge" --merge "${both[@]}"
	refused "no time column" -w 5s left.csv right.csv
	refused "left.csv:1: no column 'tss': did you mean 'ts'?" -t tss left.csv right.csv
	refused "right.csv:1: no column 'a'" -t ts --between 0s,1s -k a left.csv right.csv
	refused "right.csv:1: no column 'time'" -t ts --right-time time --between 0s,1s left.csv right.csv
}
