/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits - every maximum of the project, each with its reason.
 *
 * Passing one is an error that names it: nothing is cut, split or skipped in
 * silence. Each is tested at its value and one above.
 */
#ifndef WM_BASE_LIMITS_H
#define WM_BASE_LIMITS_H

/* Longest record unless --record-limit says otherwise: above any sane log line, far below memory. */
#define WM_RECORD_BYTES_DEFAULT ((size_t)64 << 20)

/* Highest such limit: offsets within a record are 32 bits wide, and so are those of a buffer twice as long. */
#define WM_RECORD_BYTES_HIGHEST ((size_t)1 << 30)

/* A record of CSV of more lines is told of: people write texts of some lines, and a stray quote makes longer ones. */
#define WM_RECORD_LINES_TOLD 64

/* Longest line that a --pattern is tried on: the regular expressions of libc take memory and time with its length. */
#define WM_PATTERN_LINE_BYTES_MAX ((size_t)64 << 10)

/* Read at once, and the first size of the read buffer: past this, larger reads gain nothing. */
#define WM_READ_BYTES ((size_t)1 << 20)

/* Parentheses of a --pattern one within the other, and its length once {n} is written out: libc goes one call deeper for each of the one, and takes
   memory for the square of the other. */
#define WM_PATTERN_DEPTH_MAX 100
#define WM_PATTERN_SIZE_MAX 10000

/* Columns of one CSV header: an index of a field fits 16 bits. */
#define WM_COLUMNS_MAX 65535

/* Nesting of JSON: enough for real events, and a bound for the recursion that walks it. */
#define WM_JSON_DEPTH_MAX 64

/* Aggregates and keys of one command: bits of a mask, and a line that a person can read. */
#define WM_AGGREGATES_MAX 1024
#define WM_KEYS_MAX 256

/* Sources with a watermark of their own: hosts, partitions or files, not keys. */
#define WM_SOURCES_MAX 65536

/* Windows that a row is in: each is written, and an hour by the millisecond is meant by nobody who knows. Beyond the second it is said. */
#define WM_WINDOWS_A_ROW_MAX 10000000
#define WM_WINDOWS_A_ROW_MANY 100000

/* Years that a time may have; before and after, ISO 8601 has no agreed spelling. */
#define WM_YEAR_MIN 1
#define WM_YEAR_MAX 9999

/* Longest duration: 10 000 years, so that time + duration cannot leave int64_t. */
#define WM_DURATION_US_MAX INT64_C(315576000000000000)

/* Digits after the point that sum exactly, and digits before it. */
#define WM_FRACTION_DIGITS_MAX 18
#define WM_WHOLE_DIGITS_MAX 38

/* Rows that a table for eyes looks at before it fixes its columns: more than anybody has on a screen. */
#define WM_DISPLAY_ROWS_MAX 1000

/* What messages show of a text from the data. */
#define WM_SHOWN_BYTES_MAX 80

#endif
