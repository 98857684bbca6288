// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/describe.h"

#include "bpfimage/bpfimage.h"

/* The kernel cuts names to this. */
#define NAME_CUT 15

/* Where the kernel's name was cut, BTF has the whole one. */
static void find_full_name(struct rt_bpf_entry *e, const struct bpf_prog_info *info, struct rt_bytes btf)
{
	_cleanup_(rt_bpf_image_destroyp) struct rt_bpf_image *image = NULL;
	_cleanup_free_ uint8_t *data = NULL, *asked = NULL;
	struct rt_error *err = NULL;
	uint32_t asked_size = 0;
	size_t size = 0;

	if (strlen(e->name) < NAME_CUT || !info->btf_id)
		return;
	if (!btf.size) {
		err = rt_bpf_btf_read(info->btf_id, &asked, &asked_size);
		btf = rt_bytes_make(asked, asked_size);
	}
	if (!err)
		err = rt_bpf_image_encode(info, &data, &size);
	if (!err)
		err = rt_bpf_image_decode(rt_bytes_make(data, size), btf, false, &image);
	if (!err && image->function_count && !strncmp(image->functions[0].name, e->name, NAME_CUT))
		e->full_name = strdup(image->functions[0].name);
	rt_error_free(err);
}

static void describe_maps(struct rt_bpf_entry *e, const struct bpf_prog_info *info, const struct rt_bpf_copy *copy)
{
	const uint32_t *ids = (const uint32_t *)(uintptr_t)info->map_ids;
	char name[BPF_OBJ_NAME_LEN + 1];

	if (!info->nr_map_ids || !ids)
		return;
	e->map_ids = calloc(info->nr_map_ids, sizeof(*e->map_ids));
	e->map_names = calloc(info->nr_map_ids, sizeof(*e->map_names));
	for (uint32_t i = 0; e->map_ids && e->map_names && i < info->nr_map_ids; i++) {
		if (copy && i < copy->maps.len)
			snprintf(name, sizeof(name), "%.16s", copy->maps.data[i].name);
		else
			rt_bpf_map_name_of(ids[i], name);
		e->map_ids[i] = ids[i];
		e->map_names[i] = strdup(name);
		if (!e->map_names[i])
			return;
		e->maps = i + 1;
	}
}

void rt_bpf_entry_describe(struct rt_bpf_entry *e, const struct bpf_prog_info *info, struct rt_bytes btf,
			   const struct rt_bpf_copy *copy)
{
	e->type = info->type;
	memcpy(e->tag, info->tag, sizeof(e->tag));
	memcpy(e->name, info->name, sizeof(info->name));
	e->functions = info->nr_jited_ksyms ?: info->nr_func_info ?: 1;
	e->jited_bytes = info->jited_prog_len;
	e->xlated_bytes = info->xlated_prog_len;
	e->lines = info->nr_line_info;
	e->btf = info->btf_id;
	e->btf_bytes = (uint32_t)btf.size;
	e->uid = info->created_by_uid;
	e->load_boot_ns = info->load_time;
	describe_maps(e, info, copy);
	find_full_name(e, info, btf);
}
