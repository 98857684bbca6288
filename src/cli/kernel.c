/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/kernel.h"

#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "recording/kernel_names.h"

enum { KALLSYMS_MAX = 64 << 20, NOTES_MAX = 1 << 16 };

/* The build-id in /sys/kernel/notes. false: not there */
static bool running_kernel(uint8_t id[20])
{
	_cleanup_free_ char *notes = NULL;
	_cleanup_error_ struct rt_error *err = NULL;
	struct rt_cursor c;
	size_t size;

	err = rt_fs_read(AT_FDCWD, "/sys/kernel/notes", NOTES_MAX, &notes, &size);
	if (err)
		return false;
	c = rt_cursor_make(rt_bytes_make(notes, size), false);
	for (;;) {
		uint32_t name_size, desc_size, type;
		struct rt_bytes name, desc;

		if (!rt_cursor_u32(&c, &name_size) || !rt_cursor_u32(&c, &desc_size) || !rt_cursor_u32(&c, &type) ||
		    !rt_cursor_bytes(&c, name_size, &name) || !rt_cursor_align(&c, 4) ||
		    !rt_cursor_bytes(&c, desc_size, &desc) || !rt_cursor_align(&c, 4))
			return false;
		if (type == 3 && name.size == 4 && !memcmp(name.data, "GNU", 4) && desc.size == 20) {
			memcpy(id, desc.data, 20);
			return true;
		}
	}
}

static const struct rt_perf_build_id *recorded_kernel(const struct rt_perf_header *header)
{
	for (size_t i = 0; i < header->build_id_count; i++) {
		if (!strcmp(header->build_ids[i].path, "[kernel.kallsyms]") && header->build_ids[i].size == 20)
			return &header->build_ids[i];
	}
	return NULL;
}

struct rt_error *rt_kernel_kallsyms(char **ret, size_t *ret_size)
{
	struct rt_error *err = rt_fs_read(AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, ret, ret_size);

	/* hidden from us: as good as none */
	if (rt_error_catch(&err, RT_E_UNREADABLE) || rt_error_catch(&err, RT_E_NOT_FOUND)) {
		*ret = NULL;
		*ret_size = 0;
	}
	return err;
}

static struct rt_error *from_caches(const struct rt_pipeline *pipeline, const struct rt_perf_build_id *id, char **ret,
				    size_t *ret_size)
{
	for (size_t i = 0; pipeline->caches[i]; i++) {
		_cleanup_error_ struct rt_error *err = NULL;
		_cleanup_close_ int fd = -1;
		char path[32];

		err = rt_cache_get(pipeline->caches[i], id->id, id->size, RT_CACHE_KALLSYMS, &fd);
		if (err)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		return rt_fs_read(AT_FDCWD, path, KALLSYMS_MAX, ret, ret_size);
	}
	return NULL;
}

struct rt_error *rt_kernel_give(const struct rt_recording *recording, struct rt_pipeline *pipeline)
{
	const struct rt_perf_build_id *id = recorded_kernel(rt_recording_info(recording).header);
	_cleanup_free_ char *text = NULL;
	struct rt_kernel_name *names = NULL;
	struct rt_error *err = NULL;
	size_t size = 0, count = 0;
	uint8_t running[20];

	if (!id)
		return NULL;
	if (running_kernel(running) && !memcmp(running, id->id, sizeof(running)))
		RT_TRY(rt_kernel_kallsyms(&text, &size));
	else
		RT_TRY(from_caches(pipeline, id, &text, &size));
	RT_TRY(rt_kernel_names(rt_bytes_make(text, size), NULL, &names, &count));
	for (size_t i = 0; i < count && !err; i++)
		err = rt_chain_add_code(pipeline->chain, &(struct rt_chain_code){ .start = names[i].start,
										  .end = names[i].start + names[i].size,
										  .name = names[i].name,
										  .module = "[kernel.kallsyms]" });
	rt_kernel_names_free(names, count);
	return err;
}
