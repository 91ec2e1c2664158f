/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/uses.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/state/checkpoint.h"

/* Links that lead to one another, as the kernel counts them. */
#define LINKS_MAX 40

/* Longer than a line that says who holds a lock. */
#define LOCK_BYTES_MAX 256

enum kind {
	KIND_INPUT,
	KIND_OUTPUT,
	KIND_BESIDE, /* made, replaced or removed by the way */
};

/* One use of a file. */
struct use {
	enum kind kind;
	const char *option; /* "--late"; of KIND_BESIDE that of the file that it stands beside */
	char *path;         /* as messages name it */
	bool is_standard;   /* a descriptor, not a name */
	bool is_there;
	struct stat facts; /* where it is there */
	char *resolved;    /* where it is not: the name that it would get; NULL: it cannot be made */
};

struct uses {
	struct use *uses;
	size_t count;
	size_t capacity;
};

/* The folder of a path, with its last slash; "" where it has none. */
static char *
folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return wm_memdup(path, slash == NULL ? 0 : (size_t)(slash - path) + 1);
}

/* The path that a link leads to by its text; NULL where path is no link. */
static char *
follow(const char *path)
{
	char text[PATH_MAX];
	ssize_t len = readlink(path, text, sizeof(text) - 1);

	if (len < 0)
		return NULL;
	text[len] = '\0';
	char *folder = text[0] == '/' ? wm_memdup("", 0) : folder_of(path);
	char *target = wm_checkpoint_beside(folder, text);
	free(folder);
	return target;
}

char *
uses_resolve(const char *path)
{
	char *resolved = realpath(path, NULL), *at, *next;

	if (resolved != NULL || errno != ENOENT)
		return resolved;
	at = wm_memdup(path, strlen(path));
	for (int links = 0; links < LINKS_MAX && (next = follow(at)) != NULL; links++) {
		free(at);
		at = next;
	}
	const char *slash = strrchr(at, '/');
	char *folder = folder_of(at), *real = realpath(*folder == '\0' ? "." : folder, NULL);
	if (real != NULL) {
		char *with_slash = wm_checkpoint_beside(strcmp(real, "/") == 0 ? "" : real, "/");

		resolved = wm_checkpoint_beside(with_slash, slash == NULL ? at : slash + 1);
		free(with_slash);
	}
	free(real);
	free(folder);
	free(at);
	return resolved;
}

/* Whether the last call of stat or one of its kin, whose status is given, found a file. */
static bool
was_found(int status, const char *path)
{
	struct wm_err err;

	/* EBADF: a descriptor that is closed. */
	if (status == 0 || errno == ENOENT || errno == ENOTDIR || errno == EBADF)
		return status == 0;
	(void)wm_err_set(&err, WM_ERR_IO, "%s: %s", path, strerror(errno));
	cli_die(&err);
}

bool
uses_find(const char *path, struct stat *found)
{
	return was_found(stat(path, found), path);
}

static struct use *
add(struct uses *uses, enum kind kind, const char *option, const char *path)
{
	uses->uses = wm_grown(uses->uses, uses->count, &uses->capacity, sizeof(uses->uses[0]));
	struct use *use = &uses->uses[uses->count++];
	*use = (struct use){ .kind = kind, .option = option, .path = wm_memdup(path, strlen(path)) };
	return use;
}

static void
add_named(struct uses *uses, enum kind kind, const char *option, const char *path)
{
	if (path == NULL)
		return;
	struct use *use = add(uses, kind, option, path);
	use->is_there = uses_find(path, &use->facts);
	if (!use->is_there)
		use->resolved = uses_resolve(path);
}

static void
add_standard(struct uses *uses, enum kind kind, const char *name, int fd)
{
	struct use *use = add(uses, kind, name, name);

	use->is_standard = true;
	use->is_there = was_found(fstat(fd, &use->facts), name);
}

/* A file beside another: a link under its name would itself be replaced. */
static void
add_beside(struct uses *uses, const char *option, const char *path, const char *suffix)
{
	struct use *use = add(uses, KIND_BESIDE, option, "");

	free(use->path);
	use->path = wm_checkpoint_beside(path, suffix);
	use->is_there = was_found(lstat(use->path, &use->facts), use->path);
	if (!use->is_there)
		use->resolved = uses_resolve(use->path);
}

static void
add_inputs(struct uses *uses, const struct cli_common *common)
{
	for (size_t i = 0; i < common->files_count; i++) {
		if (strcmp(common->files[i], "-") == 0)
			add_standard(uses, KIND_INPUT, "standard input", STDIN_FILENO);
		else
			add_named(uses, KIND_INPUT, NULL, common->files[i]);
	}
	if (common->files_count == 0)
		add_standard(uses, KIND_INPUT, "standard input", STDIN_FILENO);
}

/* What goes with the checkpoint, and what of the outputs it knows it may cut off. */
static void
add_kept(struct uses *uses, const struct cli_common *common)
{
	static const char *const suffixes[] = { ".lock", ".tmp", ".prev", ".prev.tmp" };
	size_t outputs_count = uses->count;
	char stdout_path[32];

	if (common->checkpoint == NULL)
		return;
	snprintf(stdout_path, sizeof(stdout_path), "/proc/self/fd/%d", STDOUT_FILENO);
	for (size_t i = 0; i < outputs_count; i++) {
		const struct use use = uses->uses[i];

		if (use.kind != KIND_OUTPUT || (use.is_there && !S_ISREG(use.facts.st_mode)))
			continue;
		char *path = uses_resolve(use.is_standard ? stdout_path : use.path);
		if (path != NULL)
			add_beside(uses, use.option, path, ".uncommitted");
		free(path);
	}
	char *path = uses_resolve(common->checkpoint);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && path != NULL; i++)
		add_beside(uses, "-C", path, suffixes[i]);
	free(path);
	add_named(uses, KIND_OUTPUT, "-C", common->checkpoint);
}

static void
add_outputs(struct uses *uses, const struct cli_common *common, bool writes_stdout)
{
	char suffix[32];

	add_named(uses, KIND_OUTPUT, common->has_sides ? "--late-left" : "--late", common->late_path);
	add_named(uses, KIND_OUTPUT, "--late-right", common->late_right_path);
	add_named(uses, KIND_OUTPUT, "--duplicates", common->duplicates_path);
	add_named(uses, KIND_OUTPUT, "--rejects", common->rejects_path);
	add_named(uses, KIND_OUTPUT, "--report", common->report_path);
	add_named(uses, KIND_OUTPUT, "--out", common->out_path);
	if (common->out_path == NULL && writes_stdout)
		add_standard(uses, KIND_OUTPUT, "standard output", STDOUT_FILENO);
	add_kept(uses, common);
	add_named(uses, KIND_OUTPUT, "--metrics", common->metrics_path);
	if (common->metrics_path != NULL) {
		snprintf(suffix, sizeof(suffix), ".tmp-%ld", (long)getpid());
		add_beside(uses, "--metrics", common->metrics_path, suffix);
	}
}

/* Whether both uses are of one file. */
static bool
is_same(const struct use *a, const struct use *b)
{
	if (a->is_there && b->is_there)
		return a->facts.st_dev == b->facts.st_dev && a->facts.st_ino == b->facts.st_ino;
	return !a->is_there && !b->is_there && a->resolved != NULL && b->resolved != NULL &&
		strcmp(a->resolved, b->resolved) == 0;
}

/* Whether it may have one use alone: a file, or a pipe with a name. What stands below /dev and /proc are devices and open descriptors. */
static bool
is_exclusive(const struct use *use)
{
	if (!use->is_there || S_ISREG(use->facts.st_mode))
		return true;
	return S_ISFIFO(use->facts.st_mode) && !use->is_standard && strncmp(use->path, "/dev/", 5) != 0 &&
		strncmp(use->path, "/proc/", 6) != 0;
}

static bool
is_of_checkpoint(const struct use *use)
{
	return use->option != NULL && strcmp(use->option, "-C") == 0;
}

/* Files of one checkpoint may be links to each other: a run that was killed leaves some. */
static bool
is_clash(const struct use *a, const struct use *b)
{
	return !(is_of_checkpoint(a) && is_of_checkpoint(b)) && is_exclusive(a) && is_exclusive(b) && is_same(a, b);
}

static _Noreturn void
refuse_outputs(const struct use *a, const struct use *b)
{
	if (b->is_standard || a->is_standard)
		cli_misuse("%s: %s is also standard output: name another file", a->is_standard ? b->option : a->option,
			a->is_standard ? b->path : a->path);
	if (strcmp(a->path, b->path) == 0)
		cli_misuse("%s and %s: both name '%s': give each a file of its own", a->option, b->option, a->path);
	cli_misuse("%s and %s: '%s' and '%s' are one file: give each a file of its own", a->option, b->option, a->path,
		b->path);
}

static _Noreturn void
refuse_input(const struct use *output, const struct use *input)
{
	const char *path = input->path;

	if (output->is_standard && input->is_standard)
		cli_misuse("standard input is also standard output: write > new, and mv new to its name");
	if (output->is_standard)
		cli_misuse("%s is also standard output: write > new && mv new %s", path, path);
	if (input->is_standard)
		cli_misuse("%s: %s is also the input: name another file", output->option, output->path);
	cli_misuse("%s: %s is also an input%s%s: name another file", output->option, output->path,
		strcmp(output->path, input->path) == 0 ? "" : ", as ",
		strcmp(output->path, input->path) == 0 ? "" : path);
}

static _Noreturn void
refuse_beside(const struct use *beside, const struct use *other)
{
	const char *what = other->kind != KIND_INPUT ? other->option : other->is_standard ? "the input" : "an input";

	cli_misuse("%s: %s, which goes with it, is also %s: name another file", beside->option, beside->path, what);
}

static _Noreturn void
refuse_pair(const struct use *a, const struct use *b)
{
	const struct use *output = a->kind == KIND_OUTPUT ? a : b;

	if (a->kind == KIND_BESIDE || b->kind == KIND_BESIDE)
		refuse_beside(a->kind == KIND_BESIDE ? a : b, a->kind == KIND_BESIDE ? b : a);
	if (a->kind == KIND_INPUT || b->kind == KIND_INPUT)
		refuse_input(output, output == a ? b : a);
	refuse_outputs(a, b);
}

/* Outputs and what stands beside them, with each other and with the inputs, which begin at inputs_at. */
static void
check_outputs(const struct uses *uses, size_t inputs_at)
{
	for (size_t i = 0; i < uses->count; i++)
		for (size_t j = 0; j < i && j < inputs_at; j++)
			if (is_clash(&uses->uses[j], &uses->uses[i]))
				refuse_pair(&uses->uses[j], &uses->uses[i]);
}

static int
compare_inputs(const void *a, const void *b)
{
	const struct use *one = *(const struct use *const *)a, *other = *(const struct use *const *)b;

	if (one->facts.st_dev != other->facts.st_dev)
		return one->facts.st_dev < other->facts.st_dev ? -1 : 1;
	if (one->facts.st_ino != other->facts.st_ino)
		return one->facts.st_ino < other->facts.st_ino ? -1 : 1;
	return (one > other) - (one < other); /* as they were named */
}

/* Whether what is read from it under one name is gone under another. Of devices terminals alone: /dev/null gives nothing, however often. */
static bool
gives_once(const struct use *use)
{
	return S_ISCHR(use->facts.st_mode) ? use->is_standard && isatty(STDIN_FILENO)
					   : use->is_standard || is_exclusive(use);
}

/* Two inputs that are one file. */
static void
check_twice(const struct cli_common *common, const struct use *a, const struct use *b)
{
	bool is_named_alike = strcmp(a->path, b->path) == 0;

	if (a->is_standard && b->is_standard)
		cli_misuse("standard input is named twice: name it once");
	/* Two readers of one file: as in a join of a table with itself. */
	if (common->has_sides && S_ISREG(a->facts.st_mode))
		return;
	if (a->is_standard || b->is_standard)
		cli_misuse(
			"%s is standard input, which is named too: name it once", a->is_standard ? b->path : a->path);
	if (!is_named_alike || !S_ISREG(a->facts.st_mode))
		cli_misuse("%s and %s are one file: name it once", a->path, b->path);
	if (!common->quiet)
		cli_warn("%s is named twice: its rows are read twice", a->path);
}

static void
check_inputs(const struct cli_common *common, const struct use *inputs, size_t count)
{
	const struct use **sorted = wm_reallocarray(NULL, count, sizeof(sorted[0]));
	size_t sorted_count = 0;

	for (size_t i = 0; i < count; i++)
		if (inputs[i].is_standard || (inputs[i].is_there && !S_ISDIR(inputs[i].facts.st_mode)))
			sorted[sorted_count++] = &inputs[i];
	qsort(sorted, sorted_count, sizeof(sorted[0]), compare_inputs);
	for (size_t i = 1; i < sorted_count; i++) {
		const struct use *a = sorted[i - 1], *b = sorted[i];

		if ((a->is_standard && b->is_standard) || (is_same(a, b) && (gives_once(a) || gives_once(b))))
			check_twice(common, a, b);
	}
	free(sorted);
}

/* Whether a text is what a lock holds, one line, or as much of it as a run that was killed had written. */
static bool
is_lock_text(struct wm_span text)
{
	static const char begin[] = "process ";
	size_t begin_len = sizeof(begin) - 1;
	const char *line_end = memchr(text.data, '\n', text.len);

	return text.len < LOCK_BYTES_MAX &&
		memcmp(text.data, begin, text.len < begin_len ? text.len : begin_len) == 0 &&
		(line_end == NULL || line_end == text.data + text.len - 1);
}

/* Reads how a file begins; what cannot be read ends the run. */
static size_t
read_begin(const char *path, char *bytes, size_t len_max)
{
	size_t len;
	struct wm_err err;
	int fd = cli_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);

	/* Another run may have taken its temporary file away. */
	if (fd == -1 && errno == ENOENT)
		return 0;
	if (fd == -1 || !wm_checkpoint_read(&wm_checkpoint_system, fd, bytes, len_max, 0, &len, path, &err)) {
		wm_err_set(&err, WM_ERR_IO, "%s: %s", path, strerror(errno));
		cli_die(&err);
	}
	close(fd);
	return len;
}

/* Whether a file beside a checkpoint was made by a run: what it holds is no loss. */
static bool
is_ours(const struct use *use)
{
	char bytes[LOCK_BYTES_MAX];

	if (!S_ISREG(use->facts.st_mode))
		return false;
	if (use->facts.st_size == 0)
		return true;
	struct wm_span begin = wm_span(bytes, read_begin(use->path, bytes, sizeof(bytes)));
	size_t path_len = strlen(use->path);
	bool is_lock = path_len > 5 && strcmp(use->path + path_len - 5, ".lock") == 0;
	return begin.len == 0 || (is_lock ? is_lock_text(begin) : wm_checkpoint_begins(begin));
}

static void
check_neighbours(const struct uses *uses)
{
	for (size_t i = 0; i < uses->count; i++) {
		const struct use *use = &uses->uses[i];

		if (use->kind == KIND_BESIDE && is_of_checkpoint(use) && use->is_there && !is_ours(use))
			cli_misuse("-C: %s, which goes with it, holds something else: move that away, or name "
				   "another checkpoint",
				use->path);
	}
}

/* A side file that holds something has to be told what to do with. */
static void
check_side(const struct cli_common *common, const struct use *use)
{
	bool is_kept = is_of_checkpoint(use) || strcmp(use->option, "--metrics") == 0;

	if (use->kind != KIND_OUTPUT || use->is_standard || !use->is_there)
		return;
	if (S_ISDIR(use->facts.st_mode) && !is_kept)
		cli_misuse("%s: %s is a directory: name a file", use->option, use->path);
	if (!is_kept && S_ISREG(use->facts.st_mode) && use->facts.st_size > 0 && !common->append &&
		!common->overwrite && common->checkpoint == NULL)
		cli_misuse("%s: %s exists and is not empty: say --append or --overwrite, or name another file",
			use->option, use->path);
}

void
uses_check(const struct cli_common *common, bool writes_stdout)
{
	struct uses uses = { 0 };

	add_outputs(&uses, common, writes_stdout);
	size_t inputs_at = uses.count;
	add_inputs(&uses, common);
	size_t inputs_count = uses.count - inputs_at;
	if (common->files0_from != NULL && strcmp(common->files0_from, "-") != 0)
		add_named(&uses, KIND_INPUT, NULL, common->files0_from);
	if (common->columns != NULL && common->columns[0] == '@')
		add_named(&uses, KIND_INPUT, NULL, common->columns + 1);
	check_outputs(&uses, inputs_at);
	check_inputs(common, uses.uses + inputs_at, inputs_count);
	check_neighbours(&uses);
	for (size_t i = 0; i < inputs_at; i++)
		check_side(common, &uses.uses[i]);
	for (size_t i = 0; i < uses.count; i++) {
		free(uses.uses[i].path);
		free(uses.uses[i].resolved);
	}
	free(uses.uses);
}
