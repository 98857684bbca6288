/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "cli/file.h"
#include "cli/kernel.h"

static struct rt_error *convert(struct rt_bytes spool, const char *path, bool pipe, struct rt_sink *sink,
				uint8_t header[RT_PERF_HEADER_BYTES], struct rt_to_perf_result *result)
{
	struct rt_to_perf_options options = { .version = RT_VERSION,
					      .zstd_level = RT_TO_PERF_ZSTD_LEVEL,
					      .pipe = pipe };
	_cleanup_free_ char *kallsyms = NULL;
	size_t size = 0;

	RT_TRY(rt_kernel_kallsyms(&kallsyms, &size));
	options.kallsyms = rt_bytes_make(kallsyms, size);
	RT_TRY(rt_to_perf(spool, path, &options, sink, header, result));
	return rt_sink_end(sink);
}

static struct rt_error *put_header(int fd, const char *name, const uint8_t header[RT_PERF_HEADER_BYTES])
{
	if (pwrite(fd, header, RT_PERF_HEADER_BYTES, 0) == RT_PERF_HEADER_BYTES)
		return NULL;
	return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot finish %s", name);
}

struct rt_error *rt_convert_to(const char *path, int fd, const char *name, bool pipe, struct rt_to_perf_result *result,
			       uint64_t *ret_bytes)
{
	uint8_t header[RT_PERF_HEADER_BYTES];
	_cleanup_close_ int from = -1;
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	struct rt_bytes spool;
	struct rt_error *err;

	rt_sink_init_fd(&sink, fd, name);
	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &from));
	RT_TRY(rt_fs_map(from, path, &spool));
	err = convert(spool, path, pipe, &sink, header, result);
	if (!err && !pipe)
		err = put_header(fd, name, header);
	*ret_bytes = sink.written;
	rt_fs_unmap(spool);
	return err;
}

struct rt_error *rt_convert_in_place(const char *path, struct rt_to_perf_result *result, uint64_t *ret_bytes)
{
	_cleanup_free_ char *beside = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err;
	struct stat st;

	RT_TRY(rt_file_create_unnamed(path, &fd, &beside));
	err = rt_convert_to(path, fd, path, false, result, ret_bytes);
	/* the new file has the rights of the one whose place it takes */
	if (!err && !stat(path, &st))
		(void)!fchmod(fd, st.st_mode & 0777);
	if (!err)
		err = rt_file_replace(fd, beside, path);
	if (err) {
		if (beside)
			unlink(beside);
		return rt_error_fix(rt_error_wrap(err, "perf.data could not be made"),
				    "the recording is there, as a spool: reftrace report -i %s", path);
	}
	return NULL;
}
