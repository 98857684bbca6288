/* SPDX-License-Identifier: GPL-2.0-only */
/* struct bpf_prog_info by its parts, and from foreign bytes. */
#include <stddef.h>

#include "bpfimage/parts.h"

#define AT(field) ((uint16_t)offsetof(struct bpf_prog_info, field))

/* element is either a size or, where it has its own field, the offset of that field. */
static const struct description {
	const char *name;
	uint16_t pointer, count, element_at;
	uint8_t least; /* fixed element size, or what an element has at least */
} descriptions[RT_BPF_PARTS] = {
	[RT_BPF_JITED_INSNS] = { "jited_prog_insns", AT(jited_prog_insns), AT(jited_prog_len), 0, 1 },
	[RT_BPF_XLATED_INSNS] = { "xlated_prog_insns", AT(xlated_prog_insns), AT(xlated_prog_len), 0, 1 },
	[RT_BPF_MAP_IDS] = { "map_ids", AT(map_ids), AT(nr_map_ids), 0, 4 },
	[RT_BPF_JITED_KSYMS] = { "jited_ksyms", AT(jited_ksyms), AT(nr_jited_ksyms), 0, 8 },
	[RT_BPF_JITED_FUNC_LENS] = { "jited_func_lens", AT(jited_func_lens), AT(nr_jited_func_lens), 0, 4 },
	[RT_BPF_FUNC_INFO] = { "func_info", AT(func_info), AT(nr_func_info), AT(func_info_rec_size), 8 },
	[RT_BPF_LINE_INFO] = { "line_info", AT(line_info), AT(nr_line_info), AT(line_info_rec_size), 16 },
	[RT_BPF_JITED_LINE_INFO] = { "jited_line_info", AT(jited_line_info), AT(nr_jited_line_info),
				     AT(jited_line_info_rec_size), 8 },
	[RT_BPF_PROG_TAGS] = { "prog_tags", AT(prog_tags), AT(nr_prog_tags), 0, 8 },
};

static uint32_t get_u32(const struct bpf_prog_info *info, uint16_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)info + at, sizeof(v));
	return v;
}

uint64_t rt_bpf_part_pointer(const struct bpf_prog_info *info, enum rt_bpf_part part)
{
	uint64_t v;

	memcpy(&v, (const char *)info + descriptions[part].pointer, sizeof(v));
	return v;
}

void rt_bpf_part_set_pointer(struct bpf_prog_info *info, enum rt_bpf_part part, uint64_t value)
{
	memcpy((char *)info + descriptions[part].pointer, &value, sizeof(value));
}

uint32_t rt_bpf_part_count(const struct bpf_prog_info *info, enum rt_bpf_part part)
{
	return get_u32(info, descriptions[part].count);
}

void rt_bpf_part_set_count(struct bpf_prog_info *info, enum rt_bpf_part part, uint32_t value)
{
	memcpy((char *)info + descriptions[part].count, &value, sizeof(value));
}

uint32_t rt_bpf_part_element(const struct bpf_prog_info *info, enum rt_bpf_part part)
{
	const struct description *d = &descriptions[part];

	return d->element_at ? get_u32(info, d->element_at) : d->least;
}

uint32_t rt_bpf_part_least(enum rt_bpf_part part)
{
	return descriptions[part].least;
}

const char *rt_bpf_part_name(enum rt_bpf_part part)
{
	return descriptions[part].name;
}

/* The caller's bytes are as long as the info: reading cannot fail. */
static uint32_t next_u32(struct rt_cursor *c)
{
	uint32_t v = 0;

	return rt_cursor_u32(c, &v) ? v : 0;
}

static uint64_t next_u64(struct rt_cursor *c)
{
	uint64_t v = 0;

	return rt_cursor_u64(c, &v) ? v : 0;
}

static void next_bytes(struct rt_cursor *c, void *to, size_t size)
{
	struct rt_bytes b;

	if (rt_cursor_bytes(c, size, &b))
		memcpy(to, b.data, size);
}

void rt_bpf_info_read(struct rt_bytes bytes, bool big_endian, struct bpf_prog_info *ret)
{
	uint8_t copy[RT_BPF_INFO_BYTES] = { 0 };
	struct rt_cursor c = rt_cursor_make(rt_bytes_make(copy, sizeof(copy)), big_endian);
	struct bpf_prog_info info = { 0 };
	uint32_t bits;

	if (bytes.size)
		memcpy(copy, bytes.data, bytes.size < sizeof(copy) ? bytes.size : sizeof(copy));
	info.type = next_u32(&c);
	info.id = next_u32(&c);
	next_bytes(&c, info.tag, sizeof(info.tag));
	info.jited_prog_len = next_u32(&c);
	info.xlated_prog_len = next_u32(&c);
	info.jited_prog_insns = next_u64(&c);
	info.xlated_prog_insns = next_u64(&c);
	info.load_time = next_u64(&c);
	info.created_by_uid = next_u32(&c);
	info.nr_map_ids = next_u32(&c);
	info.map_ids = next_u64(&c);
	next_bytes(&c, info.name, sizeof(info.name));
	info.name[sizeof(info.name) - 1] = 0;
	info.ifindex = next_u32(&c);
	bits = next_u32(&c);
	info.gpl_compatible = big_endian ? bits >> 31 : bits & 1;
	info.netns_dev = next_u64(&c);
	info.netns_ino = next_u64(&c);
	info.nr_jited_ksyms = next_u32(&c);
	info.nr_jited_func_lens = next_u32(&c);
	info.jited_ksyms = next_u64(&c);
	info.jited_func_lens = next_u64(&c);
	info.btf_id = next_u32(&c);
	info.func_info_rec_size = next_u32(&c);
	info.func_info = next_u64(&c);
	info.nr_func_info = next_u32(&c);
	info.nr_line_info = next_u32(&c);
	info.line_info = next_u64(&c);
	info.jited_line_info = next_u64(&c);
	info.nr_jited_line_info = next_u32(&c);
	info.line_info_rec_size = next_u32(&c);
	info.jited_line_info_rec_size = next_u32(&c);
	info.nr_prog_tags = next_u32(&c);
	info.prog_tags = next_u64(&c);
	info.run_time_ns = next_u64(&c);
	info.run_cnt = next_u64(&c);
	info.recursion_misses = next_u64(&c);
	info.verified_insns = next_u32(&c);
	info.attach_btf_obj_id = next_u32(&c);
	info.attach_btf_id = next_u32(&c);
	*ret = info;
}
