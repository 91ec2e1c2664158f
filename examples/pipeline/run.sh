#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows day.sh at work: a day of traffic, what becomes of its rows, and the table beside the true one. Then the same with
# kill -9, again and again, at random moments.
#
#   run.sh [FOLDER [SEED [EVENTS [KILLS]]]]
#
# FOLDER is a new one. All that is said here stands there in files.
set -eu
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
# The tools as installed, or else as built in this clone.
PATH=$PATH:$here/../../build/release
seed=${2-1} events=${3-500000} kills=${4-8}
folder=${1-$(mktemp -d)/day}
mkdir "$folder" "$folder/killed"
cd "$folder"

# Rows of a file without its header.
rows() {
	tail -n +2 "$1" | wc -l
}

# Lines of the truth that a table does not have.
lacking() {
	diff truth.csv "$1" | grep -c '^<' || true
}

same() {
	cmp "$1" "$2" || {
		echo "run.sh: that should not be: see $folder" >&2
		exit 1
	}
}

echo "A day of a shop, in $folder:"
"$here/traffic.sh" "$seed" "$events" truth.csv 2>said >traffic.csv
echo "  $(cat said)"

began=$(date +%s%N)
"$here/day.sh" .
took=$((($(date +%s%N) - began) / 1000000))
echo "day.sh has read $(rows traffic.csv) rows in $took ms:"
echo "  $(wc -l <rejects.ndjson) rejected, as their clock was wrong (rejects.ndjson)"
echo "  $(rows again.csv) sent again and not counted (again.csv)"
echo "  $(rows late.csv) late, some of them twice (late.csv)"
echo "  $(awk -F , 'NR > 1 { sum += $4 } END { print sum }' on-time.csv) counted on time (on-time.csv)"
echo "  $(awk -F , 'NR > 1 { sum += $4 } END { print sum }' published.csv) with the late ones, each once (published.csv)"
echo "Of the $(rows truth.csv) lines of the true table"
echo "  $(lacking on-time.csv) are not in on-time.csv, as rows came late for them"
echo "  $(lacking published.csv) are not in published.csv"
same truth.csv published.csv

# The same, in a folder of its own. Each run is a group of processes, and all of them are killed at once; what a run has
# done until its last checkpoint is done for the next one.
ln traffic.csv killed/
touch killed/on-time.csv
killed=0
awk -v seed="$seed" -v kills="$kills" -v took="$took" 'BEGIN {
	srand(seed)
	while (kills-- > 0)
		printf "%.3f\n", rand() * 0.7 * took / 1000
}' >moments
while read -r moment; do
	setsid "$here/day.sh" killed &
	group=$!
	sleep "$moment"
	if kill -9 "-$group" 2>>said; then
		killed=$((killed + 1))
		echo "kill -9 after $moment s: on-time.csv has $(rows killed/on-time.csv) of $(rows on-time.csv) lines"
	fi
	wait "$group" 2>>said || true
	# The others of the group may be gone a moment later, and hold their files until then.
	looks=100
	while [ "$looks" -gt 0 ] && kill -0 "-$group" 2>>said; do
		sleep 0.05
		looks=$((looks - 1))
	done
done <moments
"$here/day.sh" killed
for table in on-time.csv published.csv late.csv again.csv rejects.ndjson; do
	same "$table" "killed/$table"
done
echo "After $killed kills and one run to the end all tables are the same, byte for byte."
