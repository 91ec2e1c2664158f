/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/record.h"

#include <stdlib.h>

#include "lib/base/list.h"
#include "lib/base/shown.h"

/* The bytes of buf as a C string of its own. */
static char *
take(struct wm_buf *buf, size_t *len)
{
	char *text = wm_memdup(buf->data, buf->len);

	*len = buf->len;
	wm_buf_reset(buf);
	return text;
}

bool
wm_column_parse(struct wm_span text, struct wm_column *column, struct wm_err *err)
{
	struct wm_buf buf;
	struct wm_span rest = text, part;

	if (text.len == 0)
		return wm_err_set(err, WM_ERR_USAGE, "empty column name: name a column");
	wm_buf_init(&buf, WM_BUF_UNBOUNDED);
	*column = (struct wm_column){ 0 };
	wm_list_unescape(text, &buf);
	column->name = take(&buf, &column->name_len);
	while (wm_list_next(&rest, '.', &part)) {
		if (part.len == 0)
			goto fail;
		size_t count = column->path_count++;
		column->path = wm_reallocarray(column->path, count + 1, sizeof(*column->path));
		column->path_len = wm_reallocarray(column->path_len, count + 1, sizeof(*column->path_len));
		wm_list_unescape(part, &buf);
		column->path[count] = take(&buf, &column->path_len[count]);
	}
	wm_buf_release(&buf);
	return true;

fail:
	wm_shown(text, &buf);
	wm_err_set(err, WM_ERR_USAGE, "column '%.*s' has an empty part: write '\\.' for a dot that belongs to a name",
		(int)buf.len, buf.data);
	wm_buf_release(&buf);
	wm_column_release(column);
	return false;
}

void
wm_column_release(struct wm_column *column)
{
	for (size_t i = 0; i < column->path_count; i++)
		free(column->path[i]);
	free(column->path);
	free(column->path_len);
	free(column->name);
	*column = (struct wm_column){ 0 };
}
