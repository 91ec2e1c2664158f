#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Traffic of a shop for one day, with all that happens to rows on their way, and the truth to hold a pipeline to.
#
#   traffic.sh SEED EVENTS TRUTH >traffic.csv
#
# Rows stand in the order of their arrival: arrived,time,id,host,page,ms. The same seed gives the same bytes, whichever awk
# runs this.
#
#   late          of 100 events 90 arrive within 5 seconds, 8 within 4 minutes, 2 after 30 minutes to 6 hours
#   twice         3 of 100 are sent again, with the same id, within the minute after
#   wrong clocks  1 of 200 has a time that cannot be: a day ahead, or in the first minute of 1970
#
# Nothing arrives between 5 and 30 minutes late: at a delay of 10 minutes an event is on time or late with both its copies.
#
# TRUTH is the table by minute and page of all events whose time can be, each counted once, as wm-window would write it.
# How many there were of each kind is said on standard error.
set -eu
export LC_ALL=C
if [ $# -ne 3 ]; then
	echo "usage: traffic.sh SEED EVENTS TRUTH >traffic.csv" >&2
	exit 2
fi

echo arrived,time,id,host,page,ms
awk -v seed="$1" -v events="$2" -v truth="$3" '
	# The minimal standard generator: each step is exact in the numbers of awk.
	function below(n) {
		state = state * 16807 % 2147483647
		return int(state / 2147483647 * n)
	}
	function iso(ms) {
		return sprintf("2025-11-%02dT%02d:%02d:%02d.%03dZ", 29 + int(ms / DAY), int(ms / 3600000) % 24,
			int(ms / 60000) % 60, int(ms / 1000) % 60, ms % 1000)
	}
	function minute(number) {
		return substr(iso(number * 60000), 1, 19) "Z"
	}
	function lag() {
		kind = below(100)
		return kind < 90 ? below(5000) : kind < 98 ? 5000 + below(235000) : 1800000 + below(19800000)
	}
	function send(arrived) {
		printf "%09d %s,%s,e%07d,%s,%s,%d\n", arrived, iso(arrived), time, i, host, page, ms
	}
	BEGIN {
		DAY = 86400000
		pages_count = split("/ /cart /checkout /help /item", pages, " ")
		state = seed % 2147483646 + 1
		for (i = 0; i < 20; i++)
			below(1)
		for (i = 0; i < events; i++) {
			at = int((i + below(1000) / 1000) * DAY / events)
			host = "web" (1 + below(4))
			page = pages[1 + below(pages_count)]
			ms = below(10) ? below(200) : below(3000)
			arrived = at + lag()
			late += arrived - at > 1000000
			time = iso(at)
			if (below(200) == 0) {
				wrong++
				time = below(2) ? iso(at + DAY) : sprintf("1970-01-01T00:00:%02d.%03dZ", below(60), below(1000))
			} else {
				key = int(at / 60000) " " page
				count[key]++
				sum[key] += ms
				if (ms > max[key])
					max[key] = ms
			}
			send(arrived)
			if (below(100) < 3) {
				twice++
				send(arrived + 1000 + below(59000))
			}
		}
		print "window_start,window_end,page,count,ms_sum,ms_max" >truth
		for (i = 0; i < 1440; i++)
			for (p = 1; p <= pages_count; p++) {
				key = i " " pages[p]
				if (key in count)
					printf "%s,%s,%s,%d,%d,%d\n", minute(i), minute(i + 1), pages[p], count[key], sum[key], max[key] >truth
			}
		printf "%d events, %d of them late, %d sent twice, %d with a wrong clock\n", events, late, twice, wrong >"/dev/stderr"
	}' | sort -s -n -k 1,1 | cut -d ' ' -f 2-
