// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "base/capability.h"
#include "base/fs.h"

#define BYTES_MAX (256u << 20) /* of one array */

#define FIELD(name) offsetof(struct bpf_prog_info, name)

/* Where count and pointer of each array are, and how large an element is (0: the field at `record` says it). */
static const struct {
	size_t count, pointer, record;
	uint32_t element;
} arrays[] = {
	{ FIELD(jited_prog_len), FIELD(jited_prog_insns), 0, 1 },
	{ FIELD(xlated_prog_len), FIELD(xlated_prog_insns), 0, 1 },
	{ FIELD(nr_map_ids), FIELD(map_ids), 0, 4 },
	{ FIELD(nr_jited_ksyms), FIELD(jited_ksyms), 0, 8 },
	{ FIELD(nr_jited_func_lens), FIELD(jited_func_lens), 0, 4 },
	{ FIELD(nr_func_info), FIELD(func_info), FIELD(func_info_rec_size), 0 },
	{ FIELD(nr_line_info), FIELD(line_info), FIELD(line_info_rec_size), 0 },
	{ FIELD(nr_jited_line_info), FIELD(jited_line_info), FIELD(jited_line_info_rec_size), 0 },
	{ FIELD(nr_prog_tags), FIELD(prog_tags), 0, 8 },
};
enum { ARRAYS = sizeof(arrays) / sizeof(*arrays) };

static uint32_t *word(struct bpf_prog_info *info, size_t offset)
{
	return (uint32_t *)(void *)((char *)info + offset);
}

static uint64_t *pointer(struct bpf_prog_info *info, size_t offset)
{
	return (uint64_t *)(void *)((char *)info + offset);
}

void rt_bpf_dump_deinit(struct rt_bpf_dump *dump)
{
	for (size_t i = 0; i < ARRAYS; i++)
		free(dump->arrays[i]);
	*dump = (struct rt_bpf_dump){ 0 };
}

int rt_bpf_prog_open(uint32_t id)
{
	int fd = bpf_prog_get_fd_by_id(id);

	return fd < 0 ? -errno : fd;
}

bool rt_bpf_prog_info(int fd, struct bpf_prog_info *ret)
{
	uint32_t size = sizeof(*ret);

	*ret = (struct bpf_prog_info){ 0 };
	return !bpf_obj_get_info_by_fd(fd, ret, &size);
}

static struct rt_error *read_arrays(int fd, uint32_t id, struct rt_bpf_dump *dump)
{
	struct bpf_prog_info numbers;
	uint32_t size = sizeof(numbers);

	if (!rt_bpf_prog_info(fd, &numbers))
		return rt_bpf_refused(errno, "cannot ask for a BPF program");
	for (size_t i = 0; i < ARRAYS; i++) {
		uint64_t count = *word(&numbers, arrays[i].count);
		uint64_t element = arrays[i].element ?: *word(&numbers, arrays[i].record);

		*word(&dump->info, arrays[i].count) = 0;
		if (arrays[i].record)
			*word(&dump->info, arrays[i].record) = (uint32_t)element;
		if (!count || !element)
			continue;
		if (count * element > BYTES_MAX)
			return rt_error_new(RT_E_LIMIT, "BPF program %u has an array of more than %u bytes", id,
					    BYTES_MAX);
		dump->arrays[i] = calloc(count, element);
		if (!dump->arrays[i])
			return rt_error_nomem();
		*word(&dump->info, arrays[i].count) = (uint32_t)count;
		*pointer(&dump->info, arrays[i].pointer) = (uint64_t)(uintptr_t)dump->arrays[i];
	}
	numbers = dump->info;
	if (bpf_obj_get_info_by_fd(fd, &dump->info, &size))
		return rt_bpf_refused(errno, "cannot ask for a BPF program");
	/* What the kernel does not show it marks by a zero pointer; counts never grow beyond what it was given. */
	for (size_t i = 0; i < ARRAYS; i++) {
		uint32_t *count = word(&dump->info, arrays[i].count);
		uint64_t *at = pointer(&dump->info, arrays[i].pointer);

		if (!*at || !dump->arrays[i])
			*at = *count = 0;
		else if (*count > *word(&numbers, arrays[i].count))
			*count = *word(&numbers, arrays[i].count);
	}
	return NULL;
}

struct rt_error *rt_bpf_dump_read(uint32_t id, struct rt_bpf_dump *ret)
{
	_cleanup_close_ int fd = rt_bpf_prog_open(id);
	struct rt_bpf_dump dump = { 0 };
	struct rt_error *err;

	if (fd == -ENOENT)
		return rt_error_new(RT_E_NOT_FOUND, "no BPF program %u", id);
	if (fd < 0)
		return rt_bpf_refused(-fd, "cannot ask for BPF programs");
	err = read_arrays(fd, id, &dump);
	if (err) {
		rt_bpf_dump_deinit(&dump);
		return err;
	}
	*ret = dump;
	return NULL;
}

struct rt_error *rt_bpf_btf_read(uint32_t id, uint8_t **ret, uint32_t *ret_size)
{
	_cleanup_close_ int fd = bpf_btf_get_fd_by_id(id);
	_cleanup_free_ uint8_t *data = NULL;
	struct bpf_btf_info info = { 0 };
	uint32_t size = sizeof(info), bytes;

	if (fd < 0 && errno == ENOENT)
		return rt_error_new(RT_E_NOT_FOUND, "no BTF %u", id);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return rt_bpf_refused(errno, "cannot ask for BTF");
	bytes = info.btf_size;
	if (bytes > BYTES_MAX)
		return rt_error_new(RT_E_LIMIT, "BTF %u has %u bytes", id, bytes);
	data = malloc(bytes ?: 1);
	if (!data)
		return rt_error_nomem();
	info = (struct bpf_btf_info){ .btf = (uint64_t)(uintptr_t)data, .btf_size = bytes };
	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return rt_bpf_refused(errno, "cannot read BTF");
	*ret_size = info.btf_size < bytes ? info.btf_size : bytes;
	*ret = rt_take(data);
	return NULL;
}

void rt_bpf_map_name_of(uint32_t id, char *name)
{
	_cleanup_close_ int fd = bpf_map_get_fd_by_id(id);
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	name[0] = 0;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return;
	memcpy(name, info.name, sizeof(info.name));
	name[sizeof(info.name)] = 0;
}

struct rt_error *rt_bpf_refused(int errnum, const char *what)
{
	if (errnum != EPERM && errnum != EACCES)
		return rt_error_errno(RT_E_KERNEL, errnum, "%s", what);
	if (rt_capable(RT_CAP_SYS_ADMIN))
		return rt_error_errno(RT_E_PRIVILEGE, errnum, "%s, though the capabilities are there", what);
	/* ids are told to nobody else */
	return rt_error_fix(rt_error_new(RT_E_PRIVILEGE, "%s: CAP_SYS_ADMIN is missing", what), "sudo reftrace bpf");
}
