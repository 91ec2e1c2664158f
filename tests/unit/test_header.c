/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/header.h"

#include <stdlib.h>

#include "lib/base/list.h"
#include "tests/unit/tap.h"

static struct wm_header
header_of(const char *list)
{
	struct wm_span names[64], rest = wm_span_of(list);
	struct wm_header header = { 0 };
	size_t count = 0;

	while (wm_list_next(&rest, ',', &names[count]))
		count++;
	wm_header_take(&header, names, count);
	return header;
}

static void
check_find(const char *list, const char *name, const char *want)
{
	struct wm_header header = header_of(list);
	struct wm_err err = { 0 };
	size_t index = 99;
	char got[1100];

	if (wm_header_find(&header, wm_span_of(name), "in.csv:1", &index, &err))
		snprintf(got, sizeof(got), "%zu", index);
	else
		snprintf(got, sizeof(got), "%s", err.message);
	tap_text(got, want, name);
	wm_header_release(&header);
}

static void
check_match(const char *stream_list, const char *input_list, const char *want)
{
	struct wm_header stream = header_of(stream_list), input = header_of(input_list);
	struct wm_err err = { 0 };
	uint32_t order[64] = { 0 };
	char got[1100] = "";

	if (!wm_header_match(&stream, "a.csv", &input, "b.csv:1", order, &err))
		snprintf(got, sizeof(got), "%s", err.message);
	for (size_t i = 0; err.code == WM_ERR_NONE && i < stream.count; i++)
		snprintf(got + i, sizeof(got) - i, "%u", order[i]);
	tap_text(got, want, input_list);
	wm_header_release(&stream);
	wm_header_release(&input);
}

int
main(void)
{
	struct wm_header header = { 0 };
	struct wm_err err;
	size_t index;

	check_find("id,time,user", "time", "1");
	check_find(
		"id,time,user", "tmie", "in.csv:1: no column 'tmie': did you mean 'time'? there are: id, time, user");
	check_find("id,time,user", "usr", "in.csv:1: no column 'usr': did you mean 'user'? there are: id, time, user");
	check_find("id,time,user", "timestamp", "in.csv:1: no column 'timestamp': there are: id, time, user");
	check_find("a,b", "c", "in.csv:1: no column 'c': there are: a, b");
	check_find("id,,user", "x", "in.csv:1: no column 'x': there are: id, , user");
	check_find("a,b,c,d,e,f,g,h,i,j", "zz", "in.csv:1: no column 'zz': there are: a, b, c, d, e, f, g, h, i, j");
	check_find("a,b,c,d,e,f,g,h,i,j,k", "zz",
		"in.csv:1: no column 'zz': there are: a, b, c, d, e, f, g, h, i, j, ... (11 in all)");
	check_find("ts,key,key,v", "key", "in.csv:1: column 'key' is there twice: give each its own name");
	check_find("k,k,k", "k", "in.csv:1: column 'k' is there several times: give each its own name");
	check_find("ts,key,key,v", "v", "3");
	check_find("na\033me", "name", "in.csv:1: no column 'name': did you mean 'na\\x1Bme'? there are: na\\x1Bme");

	check_match("a,b,c", "a,b,c", "012");
	check_match("a,b,c", "c,a,b", "120");
	check_match("a,b,a", "a,a,b", "021");
	check_match("a,b", "b", "b.csv:1: no column 'a': inputs must have the columns of a.csv");
	check_match("a,b", "a,b,c", "b.csv:1: another column 'c': inputs must have the columns of a.csv");
	check_match("a,c", "a,b", "b.csv:1: another column 'b': inputs must have the columns of a.csv");
	check_match("a,b", "a,c", "b.csv:1: no column 'b': inputs must have the columns of a.csv");
	check_match("a,b", "a,b,b", "b.csv:1: another column 'b': inputs must have the columns of a.csv");

	wm_header_number(&header, 12);
	tap_ok(header.count == 12 && wm_span_is(header.names[0], "1") && wm_span_is(header.names[11], "12"),
		"numbered columns");
	tap_ok(wm_header_find(&header, wm_span_of("12"), "x", &index, &err) && index == 11,
		"are found by their numbers");
	tap_int((int64_t)wm_header_find_twice(&header), 12, "no name stands twice");
	wm_header_release(&header);
	header = header_of("x,y,z,y,x");
	index = wm_header_find_twice(&header);
	tap_ok(index == 3 || index == 4, "a name that stands twice");
	wm_header_release(&header);
	return tap_done();
}
