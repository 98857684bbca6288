/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/kernel.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "elf/build_id.h"
#include "recording/kernel_names.h"

enum { KALLSYMS_MAX = 64 << 20 };

/* The build-id in /sys/kernel/notes. false: not there */
static bool running_kernel(uint8_t id[20])
{
	struct rt_build_id own;

	if (!rt_build_id_of_notes("/sys/kernel/notes", &own) || own.size != 20)
		return false;
	memcpy(id, own.id, 20);
	return true;
}

/* The kernel of a recording: by the table of build-ids or, in streams, by its mapping. */
static struct rt_recording_kernel recorded_kernel(const struct rt_recording_info *info)
{
	struct rt_recording_kernel kernel = info->kernel;
	const struct rt_perf_header *header = info->header;

	for (size_t i = 0; i < header->build_id_count && !kernel.build_id_size; i++) {
		const struct rt_perf_build_id *id = &header->build_ids[i];

		if (strcmp(id->path, "[kernel.kallsyms]") != 0 || id->size != sizeof(kernel.build_id))
			continue;
		kernel.build_id_size = id->size;
		memcpy(kernel.build_id, id->id, id->size);
	}
	return kernel;
}

/* Address of a symbol in the text of kallsyms; 0: not there. */
static uint64_t address_of(const char *text, const char *name)
{
	_cleanup_free_ char *tail = NULL;
	const char *at;
	uint64_t address;

	if (!text || asprintf(&tail, " T %s\n", name) < 0)
		return 0;
	at = strstr(text, tail);
	while (at && at > text && at[-1] != '\n')
		at--;
	return at && rt_parse_u64(at, strspn(at, "0123456789abcdef"), 16, &address) ? address : 0;
}

/*
 * Recordings of perf may have no build-id of the kernel (-z, -o -). The same release with its text at the same
 * address, which is drawn anew at each boot, is the same kernel.
 */
static bool looks_the_same(const struct rt_recording_info *info, const char *kallsyms)
{
	const char *release = info->header->osrelease;
	struct utsname name;

	if (!info->kernel.text || uname(&name) || (release && strcmp(release, name.release) != 0))
		return false;
	return info->kernel.text == address_of(kallsyms, "_text") ||
	       info->kernel.text == address_of(kallsyms, "_stext");
}

/* Who may not see them gets zeros. */
static bool has_addresses(const char *text)
{
	for (const char *line = text; line && *line; line = strchrnul(line, '\n'), line += *line == '\n')
		if (strspn(line, "0") < strcspn(line, " \n"))
			return true;
	return false;
}

struct rt_error *rt_kernel_kallsyms(char **ret, size_t *ret_size)
{
	struct rt_error *err = rt_fs_read(AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, ret, ret_size);

	/* hidden from us: as good as none */
	if (rt_error_catch(&err, RT_E_UNREADABLE) || rt_error_catch(&err, RT_E_NOT_FOUND)) {
		*ret = NULL;
		*ret_size = 0;
	} else if (!err && !has_addresses(*ret)) {
		free(rt_take(*ret));
		*ret_size = 0;
	}
	return err;
}

static struct rt_error *from_caches(const struct rt_pipeline *pipeline, const struct rt_recording_kernel *id,
				    char **ret, size_t *ret_size)
{
	for (size_t i = 0; pipeline->caches[i]; i++) {
		_cleanup_error_ struct rt_error *err = NULL;
		_cleanup_close_ int fd = -1;
		char path[32];

		err = rt_cache_get(pipeline->caches[i], id->build_id, id->build_id_size, RT_CACHE_KALLSYMS, &fd);
		if (err)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		return rt_fs_read(AT_FDCWD, path, KALLSYMS_MAX, ret, ret_size);
	}
	return NULL;
}

/* It is mapped here, by pages; its section headers stand at its end. */
struct rt_error *rt_kernel_vdso(struct rt_image **ret)
{
	unsigned long at = getauxval(AT_SYSINFO_EHDR);
	const uint8_t *start = (const uint8_t *)at; /* NOLINT(performance-no-int-to-ptr) */
	size_t size, page = (size_t)sysconf(_SC_PAGESIZE);
	ElfW(Ehdr) head;

	if (!at)
		return rt_error_new(RT_E_UNSUPPORTED, "this machine has no vdso");
	memcpy(&head, start, sizeof(head));
	size = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
	return rt_image_from_bytes(rt_bytes_make(start, (size + page - 1) & ~(page - 1)), "[vdso]", ret);
}

struct rt_error *rt_kernel_put(struct rt_cache *cache, const char *name, bool *ret_new)
{
	_cleanup_(rt_image_destroyp) struct rt_image *vdso = NULL;
	struct rt_build_id id = { .size = 0 };
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int there = -1;
	struct rt_error *err;
	size_t size;

	*ret_new = false;
	if (!strcmp(name, "[vdso]")) {
		RT_TRY(rt_kernel_vdso(&vdso));
		return rt_cache_put(cache, vdso->build_id, vdso->build_id_size, name, RT_CACHE_VDSO, vdso->bytes,
				    ret_new);
	}
	(void)rt_build_id_of_notes("/sys/kernel/notes", &id);
	/* some ten megabytes: not read for nothing */
	err = rt_cache_get(cache, id.id, id.size, RT_CACHE_KALLSYMS, &there);
	if (!err)
		return NULL;
	rt_error_free(err);
	RT_TRY(rt_kernel_kallsyms(&text, &size));
	if (!size || !id.size)
		return rt_error_fix(rt_error_new(RT_E_PRIVILEGE, "the kernel does not show its names"),
				    "sudo reftrace cache add '[kernel.kallsyms]'");
	return rt_cache_put(cache, id.id, id.size, name, RT_CACHE_KALLSYMS, rt_bytes_make(text, size), ret_new);
}

/* The same kernel has the same vdso. */
static void give_vdso(struct rt_pipeline *p)
{
	if (p->vdso)
		return;
	rt_error_free(rt_kernel_vdso(&p->vdso));
	if (p->vdso)
		rt_chain_give_vdso(p->chain, p->vdso);
}

/* The kallsyms of the recording's kernel; *ret stays NULL where they cannot be had. */
static struct rt_error *find_kallsyms(const struct rt_recording *recording, struct rt_pipeline *pipeline, char **ret,
				      size_t *ret_size)
{
	struct rt_recording_info info = rt_recording_info(recording);
	struct rt_recording_kernel kernel = recorded_kernel(&info);
	_cleanup_free_ char *text = NULL;
	uint8_t running[20];
	size_t size = 0;
	bool same;

	if (!kernel.build_id_size && !kernel.text)
		return NULL;
	same = kernel.build_id_size == sizeof(running) && running_kernel(running) &&
	       !memcmp(running, kernel.build_id, sizeof(running));
	if (!same && kernel.build_id_size)
		return from_caches(pipeline, &kernel, ret, ret_size);
	RT_TRY(rt_kernel_kallsyms(&text, &size));
	if (!same && !looks_the_same(&info, text))
		return NULL;
	give_vdso(pipeline);
	*ret = rt_take(text);
	*ret_size = size;
	return NULL;
}

struct rt_error *rt_kernel_give(const struct rt_recording *recording, struct rt_pipeline *pipeline)
{
	_cleanup_free_ char *text = NULL;
	struct rt_kernel_name *names = NULL;
	struct rt_error *err = NULL;
	size_t size = 0, count = 0;

	RT_TRY(find_kallsyms(recording, pipeline, &text, &size));
	if (!text)
		return NULL;
	RT_TRY(rt_kernel_names(rt_bytes_make(text, size), NULL, &names, &count));
	for (size_t i = 0; i < count && !err; i++)
		err = rt_chain_add_code(pipeline->chain, &(struct rt_chain_code){ .start = names[i].start,
										  .end = names[i].start + names[i].size,
										  .name = names[i].name,
										  .module = "[kernel.kallsyms]" });
	rt_kernel_names_free(names, count);
	return err;
}
