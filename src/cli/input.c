/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/sink.h"
#include "cli/kernel.h"
#include "report/words.h"

enum { BPF_LOST_SAID = 3 };

/* Text, by its first bytes: no control characters but blanks. */
static bool is_text(struct rt_bytes bytes)
{
	size_t n = bytes.size < 4096 ? bytes.size : 4096;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = bytes.data[i];

		if (c < 0x20 && c != '\n' && c != '\t' && c != '\r')
			return false;
	}
	return true;
}

/* Standard input, kept in a file without a name: readers go back and forth, a pipe does not. */
static struct rt_error *keep_stdin(int *ret_fd)
{
	const char *folder = getenv("TMPDIR") ?: "/tmp";
	_cleanup_(rt_sink_deinit) struct rt_sink sink = { 0 };
	_cleanup_close_ int fd = -1;
	uint8_t part[64 << 10];
	ssize_t n;

	fd = openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return rt_error_fix(rt_error_errno(RT_E_UNWRITABLE, errno, "cannot keep standard input in %s", folder),
				    "set TMPDIR to a folder with room, or write a file and name it: -i FILE");
	rt_sink_init_fd(&sink, fd, folder);
	do {
		n = read(STDIN_FILENO, part, sizeof(part));
		if (n < 0 && errno != EINTR)
			return rt_error_errno(RT_E_UNREADABLE, errno, "cannot read standard input");
		if (n > 0)
			rt_sink_write(&sink, part, (size_t)n);
	} while (n && !sink.err);
	RT_TRY(rt_sink_end(&sink));
	*ret_fd = rt_take_fd(&fd);
	return NULL;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

struct rt_error *rt_input_open(const char *path, struct rt_input *ret)
{
	bool piped = path && !strcmp(path, "-");
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	*ret = (struct rt_input){ .path = piped ? "standard input" : path ?: RT_DEFAULT_RECORDING };
	err = piped ? keep_stdin(&fd) : rt_fs_open_file(AT_FDCWD, ret->path, false, &fd);
	if (err && !path)
		return rt_error_fix(err, "record first: reftrace record PROG ARGS; or name a file: -i FILE");
	if (err && is_folder(path))
		return rt_error_fix(err, "a folder is what perf record --threads writes: record without it");
	RT_TRY(err);
	RT_TRY(rt_fs_map(fd, ret->path, &ret->bytes));
	err = rt_recording_open(ret->bytes, ret->path, &ret->recording);
	if (!err)
		return NULL;
	if (err->code != RT_E_FORMAT || !ret->bytes.size || !is_text(ret->bytes))
		return rt_error_fix(err, "record one: reftrace record -o FILE -- PROG ARGS");
	rt_error_free(err);
	return rt_error_wrap(rt_text_create((const char *)ret->bytes.data, ret->bytes.size, ret->path, &ret->text),
			     "neither a recording nor an .events text");
}

error_t rt_input_name(struct rt_options *options, const char *path)
{
	if (options->input)
		return rt_vec_push(&options->more_inputs, path) ? 0 : rt_option_fault(options, rt_error_nomem());
	options->input = path;
	return 0;
}

struct rt_error *rt_input_open_all(const struct rt_options *options, struct rt_input *ret)
{
	size_t count = options->more_inputs.len;

	RT_TRY(rt_input_open(options->input, ret));
	if (!count)
		return NULL;
	ret->more = calloc(count, sizeof(*ret->more));
	if (!ret->more)
		return rt_error_nomem();
	for (; ret->more_count < count; ret->more_count++) {
		struct rt_input *next = &ret->more[ret->more_count];
		struct rt_error *err = rt_input_open(options->more_inputs.data[ret->more_count], next);

		if (!err && (ret->text || next->text))
			err = rt_error_new(RT_E_USAGE, "%s: several files are those of one recording",
					   next->text ? next->path : ret->path);
		if (err) {
			rt_input_close(next);
			return err;
		}
	}
	return NULL;
}

struct joined {
	struct rt_recording_sink sink;
	struct rt_recording_sink *to;
	struct rt_part_join join;
};

static struct rt_error *take_joined(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct joined *j = (struct joined *)(void *)self;
	bool belongs;

	RT_TRY(rt_part_join_record(&j->join, record, &belongs));
	return belongs ? j->to->wire(j->to, record) : NULL;
}

struct rt_error *rt_input_drain(struct rt_input *input, struct rt_recording_sink *sink)
{
	struct joined j = { .sink = { .wire = take_joined }, .to = sink };

	if (!input->more_count)
		return rt_recording_drain(input->recording, sink);
	for (size_t i = 0; i <= input->more_count; i++) {
		struct rt_input *one = i ? &input->more[i - 1] : input;
		struct rt_error *err = rt_part_join_file(&j.join, i < input->more_count);

		if (!err)
			err = rt_recording_drain(one->recording, &j.sink);
		if (err && err->code == RT_E_FORMAT)
			err = rt_error_fix(rt_error_wrap(err, "%s", one->path),
					   "name the files of one recording in their order: reftrace report FILE.*");
		RT_TRY(err);
	}
	return NULL;
}

const char *rt_input_damage(const struct rt_input *input)
{
	const char *damage = rt_recording_damage(input->recording);

	for (size_t i = 0; i < input->more_count && !damage; i++)
		damage = rt_recording_damage(input->more[i].recording);
	return damage;
}

bool rt_input_status(const struct rt_input *input, int *ret)
{
	const struct rt_input *last = input->more_count ? &input->more[input->more_count - 1] : input;

	return rt_recording_status(last->recording, ret);
}

static void say_bpf_lost(const struct rt_input *input)
{
	const char *const *texts;
	struct rt_arena arena = { 0 };
	size_t count = rt_recording_bpf_lost(input->recording, &texts);

	for (size_t i = 0; i < count && i < BPF_LOST_SAID; i++)
		fprintf(stderr, "reftrace: %s: not all of a BPF program was kept: %s\n", rt_clean(&arena, input->path),
			rt_clean(&arena, texts[i]));
	if (count > BPF_LOST_SAID)
		fprintf(stderr, "reftrace: %s: and of %zu more BPF programs\n", rt_clean(&arena, input->path),
			count - BPF_LOST_SAID);
	rt_arena_deinit(&arena);
}

struct rt_error *rt_input_code(struct rt_input *input, struct rt_pipeline *pipeline)
{
	RT_TRY(rt_recording_prepare(input->recording));
	RT_TRY(rt_recording_code(input->recording, pipeline->chain));
	say_bpf_lost(input);
	return rt_kernel_give(input->recording, pipeline);
}

void rt_input_say_stacks(const struct rt_input *input)
{
	const struct rt_unwound stacks = rt_recording_unwound(input->recording);
	const char *notes[RT_UNWOUND_NOTES];
	struct rt_arena arena = { 0 };
	size_t n = rt_unwound_notes(&arena, &stacks, notes);

	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "reftrace: %s\n", notes[i]);
	rt_arena_deinit(&arena);
}

void rt_input_close(struct rt_input *input)
{
	for (size_t i = 0; i < input->more_count; i++)
		rt_input_close(&input->more[i]);
	free(rt_take(input->more));
	input->more_count = 0;
	rt_recording_closep(&input->recording);
	rt_text_destroyp(&input->text);
	rt_fs_unmap(input->bytes);
	input->bytes = (struct rt_bytes){ 0 };
}
