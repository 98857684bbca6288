/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/input.h"

#include <fcntl.h>

#include "base/fs.h"
#include "cli/kernel.h"

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

struct rt_error *rt_input_open(const char *path, struct rt_input *ret)
{
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	*ret = (struct rt_input){ .path = path ?: RT_DEFAULT_RECORDING };
	err = rt_fs_open_file(AT_FDCWD, ret->path, false, &fd);
	if (err)
		return path ? err
			    : rt_error_fix(err, "record first: reftrace record PROG ARGS; or name a file: -i FILE");
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

struct rt_error *rt_input_code(struct rt_input *input, struct rt_pipeline *pipeline)
{
	RT_TRY(rt_recording_prepare(input->recording));
	RT_TRY(rt_recording_code(input->recording, pipeline->chain));
	return rt_kernel_give(input->recording, pipeline);
}

void rt_input_close(struct rt_input *input)
{
	rt_recording_closep(&input->recording);
	rt_text_destroyp(&input->text);
	rt_fs_unmap(input->bytes);
	input->bytes = (struct rt_bytes){ 0 };
}
