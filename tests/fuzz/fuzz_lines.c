/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_lines - bytes as lines of text in each format, held to four laws:
 *
 *   - a line is told of as a record or as malformed, never lost;
 *   - what a column says is no longer than the line;
 *   - the reader gives the same in reads of any size;
 *   - skipping what is malformed leaves the same records.
 *
 * The first byte of the input chooses the format and the pattern, the second
 * the size of the reads; the rest is the text.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "lib/record/lines.h"
#include "lib/record/reader.h"
#include "tests/fuzz/expect.h"

/* Every column of every line. */
static void
hold_lines(enum wm_format format, const char *pattern, struct wm_span text)
{
	struct wm_header none = { 0 };
	struct wm_err err;
	struct wm_lines *lines = wm_lines_new(format, pattern, &none, &err);
	size_t columns_count;

	expect(lines != NULL, "the pattern is good");
	columns_count = wm_lines_columns(lines)->count;
	if (format == WM_FORMAT_LOGFMT)
		columns_count = wm_lines_want(lines, wm_span_of("a")) + 1;
	while (text.len > 0) {
		const char *line_feed = memchr(text.data, '\n', text.len);
		size_t len = line_feed == NULL ? text.len : (size_t)(line_feed - text.data), sum = 0;
		/* Of its own size, so that a byte too much is seen. */
		char *line = wm_memdup(text.data, len);

		line = wm_reallocarray(line, len, 1);
		if (len > 0 && wm_lines_read(lines, wm_span(line, len)) == NULL) {
			for (size_t i = 0; i < columns_count; i++) {
				struct wm_value value = wm_lines_field(lines, i);

				for (size_t k = 0; k < value.text.len; k++)
					sum += (unsigned char)value.text.data[k];
				expect(value.text.len <= len && sum <= 256 * len * columns_count,
					"a column says no more than the line");
			}
		}
		free(line);
		len += line_feed != NULL;
		text = wm_span(text.data + len, text.len - len);
	}
	wm_lines_free(lines);
}

/* All that comes out of a text; records and lines that were rejected or skipped are counted. */
static void
read_all(const struct wm_reader_options *options, const char *want, struct wm_span text, struct wm_buf *out,
	size_t *wrong)
{
	struct wm_record rec;
	struct wm_reject reject;
	struct wm_column column;
	struct wm_err err;
	struct wm_reader *reader = wm_reader_new(options, &err);
	int fd = memfd_create("input", MFD_CLOEXEC);
	enum wm_read_result result;

	expect(reader != NULL && fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len, "an input");
	lseek(fd, 0, SEEK_SET);
	expect(wm_column_parse(wm_span_of(want), &column, &err), "a column");
	wm_reader_want(reader, &column);
	wm_column_release(&column);
	wm_reader_open(reader, fd, "in");
	*wrong = 0;
	while ((result = wm_reader_next(reader, &rec, &reject, &err)) != WM_READ_END) {
		if (result == WM_READ_MORE) {
			expect(wm_reader_fill(reader, &err), "the input can be read");
		} else if (result == WM_READ_FAILED) {
			wm_buf_add_text(out, err.message);
			break;
		} else if (result == WM_READ_REJECTED) {
			*wrong += 1;
		} else {
			wm_buf_addf(out, "%llu %d:", (unsigned long long)rec.line, (int)rec.fields[0].kind);
			if (rec.fields[0].text.len > 0)
				wm_buf_add(out, rec.fields[0].text.data, rec.fields[0].text.len);
			wm_reader_render(reader, &rec, out);
		}
	}
	*wrong += wm_reader_counts(reader).lines_unmatched;
	wm_reader_free(reader);
}

static void
hold_reads_to_whole(struct wm_reader_options options, const char *want, struct wm_span text, size_t read_bytes_max)
{
	struct wm_buf whole, parts;
	size_t wrong, wrong_in_parts;

	wm_buf_init(&whole, WM_BUF_UNBOUNDED);
	wm_buf_init(&parts, WM_BUF_UNBOUNDED);
	read_all(&options, want, text, &whole, &wrong);
	options.read_bytes_max = read_bytes_max;
	options.skips_unmatched = true;
	read_all(&options, want, text, &parts, &wrong_in_parts);
	expect(wm_span_equal(wm_buf_span(&whole), wm_buf_span(&parts)) && wrong == wrong_in_parts,
		"reads of any size, and skipping, give the same records");
	wm_buf_release(&whole);
	wm_buf_release(&parts);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		enum wm_format format;
		const char *pattern;
		const char *want;
	} ways[] = {
		{ WM_FORMAT_CLF, NULL, "path" },
		{ WM_FORMAT_LOGFMT, NULL, "a" },
		{ WM_FORMAT_LINES, "@kubectl", "message" },
		{ WM_FORMAT_LINES, "@syslog", "program" },
		{ WM_FORMAT_LINES, "@haproxy", "server" },
		{ WM_FORMAT_LINES, "^([a-z]+)? ?(.*)$", "2" },
	};

	if (size < 2)
		return 0;
	struct wm_span text = { (const char *)data + 2, size - 2 };
	size_t way = (data[0] & 15) % (sizeof(ways) / sizeof(*ways));
	struct wm_reader_options options = {
		.format = ways[way].format,
		.pattern = ways[way].pattern,
		.record_bytes_max = (data[0] & 16) != 0 ? 40 : 0,
	};

	hold_lines(options.format, options.pattern, text);
	hold_reads_to_whole(options, ways[way].want, text, 1 + data[1] % 64);
	return 0;
}
