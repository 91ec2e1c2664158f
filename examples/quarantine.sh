#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Quarantine and merge: rows that come too late for their day are kept apart, and the table that is published is computed
# from the days as they were first counted and from these rows. It is never patched, so this may run as often as it likes.
#
#   quarantine.sh FOLDER
#
#   FOLDER/raw/*.csv        what arrived, in files whose names sort by arrival: time,page,ms. Each is read once; one that
#                           grows, up to its last whole line
#   FOLDER/daily.csv        days as they were counted when they were complete: lines are only ever added
#   FOLDER/late.csv         the rows that came after that
#   FOLDER/published.csv    what readers open: both together. At every moment it is the old table or the new one
#   FOLDER/rejects.ndjson   records that could not be read. It may be moved away; until then each night says that it is there
#   FOLDER/state            how far all of them have come, and the days that are not complete
#
# To begin anew, as long as all raw files are there, remove state, state.prev, daily.csv, late.csv and rejects.ndjson.
#
# For counts, sums, minima and maxima. For averages and percentiles add --partial to both runs of wm-window, and write
# it in place of --sum and --max too; or see replay.sh.
set -eu
export LC_ALL=C
if [ $# -ne 1 ]; then
	echo "usage: quarantine.sh FOLDER" >&2
	exit 2
fi
cd "$1"
exec 9>lock
flock -n 9 || {
	echo "quarantine.sh: another run is at work in $1" >&2
	exit 1
}

set -- "$1" raw/*.csv
if [ ! -e "$2" ]; then
	echo "quarantine.sh: $1/raw has no *.csv: there is nothing to count, and the table stays as it is" >&2
	exit 1
fi

by_day() {
	wm-window -q -t time --tumbling 1d -g page -a count,sum:ms,max:ms "$@"
}

# A day is complete one day after its end; those that are not are left to a later night. If a run was killed, what it wrote
# behind its last checkpoint is cut off (and kept in files *.uncommitted), and written once more.
by_day -w 1d -C state --out daily.csv --late late.csv --rejects rejects.ndjson raw/*.csv

# Between two commands stands a file, not a pipe: sh does not see that the command before a pipe has failed.
by_day late.csv >late-by-day.new
wm-merge -k window_start,window_end,page --sum count,ms_sum --max ms_max daily.csv late-by-day.new >published.new

# Onto the disk before it takes the name: else a crash of the machine could leave a table without rows.
sync published.new
mv published.new published.csv
rm late-by-day.new

if [ -s rejects.ndjson ]; then
	echo "quarantine.sh: $(wc -l <rejects.ndjson) records could not be read: see $1/rejects.ndjson" >&2
fi
for file in raw/*.csv; do
	if [ -n "$(tail -c 1 "$file")" ]; then
		echo "quarantine.sh: the last line of $1/$file has no line end, and is not counted before it has one" >&2
	fi
done
