# SPDX-License-Identifier: Apache-2.0
# bash completion of the wm tools; needs nothing but bash.
#
# A tool is a list of its options, one a line: letter, name, argument. An
# argument in lower case is what may stand there, one that begins with FILE is a
# file, and any other has nothing to offer. The tests hold the lists to each
# tool's --help=all.

# shellcheck shell=bash

# What the tools that read streams share; and what those share that take any number of inputs.
_wm_common_options='-i --input-format auto|csv|tsv|ndjson|clf|logfmt|lines
-d --delimiter C
--columns NAMES
--no-header
--pattern @kubectl|@syslog|@haproxy
--unmatched reject|skip
--tsv-escapes backslash|none
--null LIST
--null-quoted
--record-limit SIZE
-t --time COLUMN
--time-format auto|iso|s|ms|us|ns|clf|rfc2822
--tz ZONE
--time-reference T
--repeated-hour earlier|later
-w --delay D
--watermark-column none
--policy min|max
--idle-wall D
--max-jump D
--trigger each|1000rows|event:|wall:|column:|file|eof
--eof flush|hold|trigger
--compat spark
--late-info
--rejects FILE
--append
--overwrite
--strict
--fail-late SHARE
--report FILE
--metrics FILE.prom
--progress auto|bar|json|none
-q --quiet
-v --verbose
--explain
--output-time iso|s|ms|us|ns
--ofmt FORMAT
--no-output-header
--out FILE
-C --checkpoint FILE
--checkpoint-every 30s|1000000rows
--resume auto|replay|prev
--position COLUMN
--max-file-age D
--new-output
--state-limit none
-h --help
--help=all
-V --version
'
_wm_stream_options=$_wm_common_options'--order given|time
--merge
--files0-from FILE
--source COLUMN
--sources NAMES
--idle D
--idle-close D
--max-ahead D
--late FILE
'

_wm_window_options='
--tumbling SIZE
--sliding SIZE,SLIDE
--session GAP
--cumulating MAX,STEP
--offset D
-g --group-by COLUMNS
-a --aggregate LIST
--mode append|update|complete
--allowed-lateness D
--panes accumulating|discarding
--early 100rows|event:
--fill zero|null|prev
--partial
--stamp
--ingest now
-o --output-format same|csv|tsv|ndjson|table
'$_wm_stream_options

_wm_stamp_options='
--add time,watermark|time,watermark,lag|time,watermark,late
--tumbling SIZE
--drop-late
--not-before T
--not-after T
--ingest now
-o --output-format same|csv|tsv|ndjson|table
'$_wm_stream_options

_wm_lag_options='
--ingest now
-g --group-by COLUMNS
--every SIZE
--percentiles LIST
--advise
--target SHARE
--tumbling SIZE
--sliding SIZE,SLIDE
--plot
-o --output-format same|csv|tsv|ndjson|table|prometheus
'$_wm_stream_options

_wm_dedup_options='
-k --key COLUMNS
--within-watermark
--with-time
--remember D
--forever
--pass-late
--duplicates FILE
--ingest now
-o --output-format same|csv|tsv|ndjson|table
'$_wm_stream_options

_wm_sort_options='
-m --merge-sorted
--ingest now
-o --output-format same|csv|tsv|ndjson|table
'$_wm_stream_options

_wm_join_options='
--type inner|left|right|full|semi|anti
-k --key COLUMNS
--left-key COLUMNS
--right-key COLUMNS
--between LO,HI
--tumbling SIZE
--asof backward
--tolerance D
--left-time COLUMN
--right-time COLUMN
--left-delay none
--right-delay none
--late-left FILE
--late-right FILE
--eager
--prefix L,R
--stamp later|left|right
-o --output-format same|csv|tsv|ndjson|table
'$_wm_common_options

_wm_merge_options='
-k --key COLUMNS
--sum COLUMNS
--min COLUMNS
--max COLUMNS
--last COLUMNS
--partial
--keep-partial
--replace FROM,TO
-t --time COLUMN
--time-format auto|iso|s|ms|us|ns|clf|rfc2822
--tz ZONE
--state-limit none
-i --input-format auto|csv|tsv|ndjson
-d --delimiter C
--columns NAMES
--no-header
--tsv-escapes backslash|none
--null LIST
--null-quoted
--record-limit SIZE
--in-place
--backup SUFFIX
-o --output-format same|csv|tsv|ndjson
--ofmt FORMAT
--no-output-header
-h --help
--help=all
-V --version
'

_wm_checkpoint_options='
-h --help
--help=all
-V --version
'

# _wm_argument OPTIONS WORD: the argument of option WORD; nothing if it has none.
_wm_argument() {
	local line name words

	while read -r line; do
		read -ra words <<<"$line"
		for name in "${words[@]}"; do
			if [[ $name != -* ]]; then
				break
			elif [[ $name == "$2" && ${words[-1]} != -* ]]; then
				printf '%s\n' "${words[-1]}"
				return
			fi
		done
	done <<<"$1"
}

# _wm_complete OPTIONS: fills COMPREPLY for the word at the cursor.
_wm_complete() {
	local options=$1 word=${COMP_WORDS[COMP_CWORD]} before='' argument='' at

	COMPREPLY=()
	if ((COMP_CWORD > 0)); then
		before=${COMP_WORDS[COMP_CWORD - 1]}
	fi
	# readline cuts --name=value into three words
	if [[ $word == '=' ]]; then
		word=''
	elif [[ $before == '=' ]] && ((COMP_CWORD > 1)); then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	for ((at = 1; at < COMP_CWORD; at++)); do
		if [[ ${COMP_WORDS[at]} == -- ]]; then
			before=''
			options=''
		fi
	done

	if [[ $before == -* ]]; then
		argument=$(_wm_argument "$options" "$before")
	fi
	if [[ -z $argument && $word == -* && -n $options ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(tr ' ' '\n' <<<"$options" | grep '^-')" -- "$word")
	elif [[ -z $argument || $argument == FILE* ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	elif [[ $argument == [[:lower:]]* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${argument//|/ }" -- "$word")
	fi
}

_wm_window() {
	_wm_complete "$_wm_window_options"
}

complete -F _wm_window wm-window

_wm_stamp() {
	_wm_complete "$_wm_stamp_options"
}

complete -F _wm_stamp wm-stamp

_wm_lag() {
	_wm_complete "$_wm_lag_options"
}

complete -F _wm_lag wm-lag

_wm_dedup() {
	_wm_complete "$_wm_dedup_options"
}

complete -F _wm_dedup wm-dedup

_wm_sort() {
	_wm_complete "$_wm_sort_options"
}

complete -F _wm_sort wm-sort

_wm_join() {
	_wm_complete "$_wm_join_options"
}

complete -F _wm_join wm-join

_wm_merge() {
	_wm_complete "$_wm_merge_options"
}

complete -F _wm_merge wm-merge

# The first word says what to do, the others are files.
_wm_checkpoint() {
	if ((COMP_CWORD == 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W 'show verify dump watermark position why' -- "${COMP_WORDS[1]}")
	else
		_wm_complete "$_wm_checkpoint_options"
	fi
}

complete -F _wm_checkpoint wm-checkpoint
