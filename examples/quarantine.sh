#!/bin/sh
# Quarantine and merge: rows that come too late for their day are kept apart, and the table that is published is computed
# from the days as they were first counted and from these rows. It is never patched, so this may run as often as it likes.
#
#   quarantine.sh FOLDER
#
#   FOLDER/raw/*.csv        what arrived, in files whose names sort by arrival: time,page,ms
#   FOLDER/daily.csv        days as they were counted when they were complete: lines are only ever added
#   FOLDER/late.csv         the rows that came after that
#   FOLDER/published.csv    what readers open: both together. At every moment it is the old table or the new one
#   FOLDER/rejects.ndjson   records that could not be read
#
# For counts, sums, minima and maxima. For averages and percentiles add --partial to both runs of wm-window, and write
# it in place of --sum and --max too; or see replay.sh.
set -eu
export LC_ALL=C
cd "$1"
exec 9>lock
flock -n 9 || {
	echo "quarantine.sh: another run is at work in $1" >&2
	exit 1
}

by_day() {
	wm-window -q -t time --tumbling 1d -g page -a count,sum:ms,max:ms "$@"
}

# A day is complete one day after its end; those that are not are left to a later night. Between two commands stands a
# file, not a pipe: sh does not see that the command before a pipe has failed.
by_day -w 1d --eof hold --late late.new --rejects rejects.ndjson --overwrite raw/*.csv >daily.new
by_day late.new >late-by-day.new
wm-merge -k window_start,window_end,page --sum count,ms_sum --max ms_max daily.new late-by-day.new >published.new

# Onto the disk before it takes the name: else a crash of the machine could leave a table without rows.
sync published.new
mv daily.new daily.csv
mv late.new late.csv
mv published.new published.csv
rm late-by-day.new

if [ -s rejects.ndjson ]; then
	echo "quarantine.sh: $(wc -l <rejects.ndjson) records could not be read: see $1/rejects.ndjson" >&2
fi
