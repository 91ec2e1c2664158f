#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nightly replay: the last days are computed again from all that has arrived by now, without a watermark, and take the
# place of what the table has of them, as a whole or not at all. Right for everything: averages, percentiles, distinct
# counts. It may run as often as it likes.
#
#   replay.sh FOLDER             the last 8 days, today not included
#   replay.sh FOLDER FROM TO     days from FROM to before TO: 2025-11-01 2025-12-01
#
#   FOLDER/raw/DAY.csv      what arrived on that day, such as raw/2025-11-29.csv: time,page,user,ms
#   FOLDER/latency.csv      the table
#   FOLDER/rejects.ndjson   records that could not be read
#
# What is older than the range stays as it is. The raw files of the range, and of all days since, must still be there.
set -eu
export LC_ALL=C
day='[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'
# The pattern is to be one.
# shellcheck disable=SC2254
case $#,${2-},${3-} in
1,,) ;;
3,$day,$day) ;;
*)
	echo "usage: replay.sh FOLDER [FROM TO], days such as 2025-11-01 2025-12-01" >&2
	exit 2
	;;
esac
from=${2-$(date -u -d '8 days ago' +%F)}
to=${3-$(date -u +%F)}
cd "$1"
exec 9>lock
flock -n 9 || {
	echo "replay.sh: another run is at work in $1" >&2
	exit 1
}
# Of a run that was killed.
rm -f .latency.csv.*
trap 'rm -f raw.new files.new all.new range.new' EXIT

# Nothing arrives before it happens, so older files have no row of the range. These have rows of other days too: of the
# results those of the range are taken. Their times are ISO 8601 in UTC, and compare as texts. Between two commands
# stands a file, not a pipe: sh does not see that the command before a pipe has failed.
find raw -name '*.csv' >raw.new
sort raw.new | awk -v from="raw/$from" '$0 "" >= from' | tr '\n' '\0' >files.new
if [ ! -s files.new ]; then
	echo "replay.sh: $1/raw has no file of $from or later: the table stays as it is" >&2
	exit 1
fi
wm-window -q -t time --tumbling 1d -g page -a count,avg:ms,p95:ms,distinct:user --files0-from files.new \
	--rejects rejects.ndjson --overwrite >all.new
awk -F , -v from="$from" -v to="$to" 'NR == 1 || ($1 "" >= from && $1 "" < to)' all.new >range.new
if [ "$(wc -l <range.new)" -lt 2 ]; then
	echo "replay.sh: $1/raw has no rows from $from to before $to: the table stays as it is" >&2
	exit 1
fi

if [ -e latency.csv ]; then
	wm-merge --replace "$from,$to" -t window_start --in-place latency.csv range.new
else
	sync range.new
	mv range.new latency.csv
fi

if [ -s rejects.ndjson ]; then
	echo "replay.sh: $(wc -l <rejects.ndjson) records could not be read: see $1/rejects.ndjson" >&2
fi
