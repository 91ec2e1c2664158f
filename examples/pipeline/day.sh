#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A day of traffic becomes a table by minute and page, in one pipe. It may be killed at any moment and run again, as often
# as it takes: the tables end up the same, byte for byte.
#
#   day.sh FOLDER
#
#   FOLDER/traffic.csv      the day as it arrived: arrived,time,id,host,page,ms
#   FOLDER/rejects.ndjson   rows whose clock was wrong, and why
#   FOLDER/again.csv        rows that were sent again
#   FOLDER/late.csv         rows that came after more than 10 minutes, some of them twice
#   FOLDER/on-time.csv      the table of all other rows: each minute was written once, when it was complete
#   FOLDER/published.csv    the same with the late rows folded in
#   FOLDER/state            how far on-time.csv has come: the checkpoint of wm-window
set -eu
export LC_ALL=C
if [ $# -ne 1 ]; then
	echo "usage: day.sh FOLDER" >&2
	exit 2
fi
cd "$1"
exec 9>lock
# Of a run that was killed a process may still be at work for a moment. All of them hold the lock.
flock -w 10 9 || {
	echo "day.sh: another run is at work in $1" >&2
	exit 1
}
rm -f failed

by_minute() {
	wm-window -q --tumbling 1m -g page -a count,sum:ms,max:ms "$@"
}

# wm-stamp reckons the watermark of all rows, and writes it into them. A clock that is ahead would push it, and make late
# what is not: a row cannot have happened an hour after it arrived, nor in another year.
stamp() {
	wm-stamp -q -t time -w 10m --ingest arrived --max-ahead 1h --not-before 2025-01-01 \
		--rejects rejects.ndjson --overwrite traffic.csv
}

# The day is over when all of it has been read: a last row that is nothing but a watermark says so, and completes the
# last minutes. If wm-stamp fails it does not come, and they stay open until the next run.
stamp_day() {
	if stamp; then
		echo ,,,,,,,2025-11-30T00:00:00Z
	else
		touch failed
	fi
}

# Of a row that is behind the watermark it cannot be told whether its id was there before: it goes to late.csv. If wm-stamp
# is killed in the middle of a line, --eof hold leaves that line.
pass_once() {
	wm-dedup -q -k id --with-time --eof hold --duplicates again.csv --late late.csv --overwrite || touch failed
}

# The last command alone keeps a checkpoint. The others begin at the first row in each run, and their files with them;
# wm-window passes over what it has processed, and goes on behind what on-time.csv has of it.
stamp_day | pass_once | by_minute -C state --resume replay --checkpoint-every 20000rows >>on-time.csv

# sh sees the status of the last command of a pipe, and of no other.
if [ -e failed ]; then
	echo "day.sh: not all of $1/traffic.csv was read: the next run goes on" >&2
	exit 1
fi

# There is no watermark in what came late: its rows are all there, and counted at the end.
wm-dedup -q -k id --forever late.csv >late-once.new
by_minute late-once.new >late.new
wm-merge -k window_start,window_end,page --sum count,ms_sum --max ms_max on-time.csv late.new >published.new
sync published.new
mv published.new published.csv
rm late-once.new late.new
