// SPDX-License-Identifier: GPL-2.0-only
/*
 * A copied load as the kernel itself would have told it: bpf_prog_info and its
 * arrays. The instructions in memory are those that the verifier left; the
 * kernel shows them with maps as ids and without its private opcodes, and so do we.
 */
#include "bpfprog/copy.h"

#define TAIL_CALL 12 /* BPF_FUNC_tail_call */
/* Opcodes that exist only inside the kernel (linux/filter.h). */
#define OP_TAIL_CALL (BPF_JMP | 0xf0)
#define OP_CALL_ARGS (BPF_JMP | 0xe0)
#define MODE_PROBE_MEM 0x20   /* BPF_MODE: loads that may fault */
#define MODE_PROBE_MEM32 0xa0 /* accesses to an arena */

/* The arrays of rt_bpf_dump, in the order in which their pointers are freed. */
enum { JIT, XLATED, MAP_IDS, KSYMS, LENS, FUNC_INFO, LINE_INFO, JITED_LINE, TAGS };

/* An array of count elements of size bytes; the pointer and count fields of info are set. */
static void *array(struct rt_bpf_dump *dump, int which, uint64_t count, size_t size, uint32_t *ret_count,
		   __u64 *ret_pointer)
{
	void *data = count ? calloc(count, size) : NULL;

	if (data) {
		dump->arrays[which] = data;
		*ret_count = (uint32_t)count;
		*ret_pointer = (uint64_t)(uintptr_t)data;
	}
	return data;
}

static bool lost(const struct rt_bpf_copy *copy, enum rt_load_array which)
{
	return copy->lost >> which & 1;
}

/* A copy of a buffer, unless it is incomplete. false: out of memory. */
static bool bytes(struct rt_bpf_dump *dump, int which, const struct rt_bpf_copy *copy, enum rt_load_array from,
		  size_t size, __u32 *ret_count, __u64 *ret_pointer)
{
	const struct rt_bpf_buffer *b = &copy->array[from];
	void *data;

	if (lost(copy, from) || !b->have)
		return true;
	data = array(dump, which, b->have / size, size, ret_count, ret_pointer);
	if (data)
		memcpy(data, b->data, b->have / size * size);
	return data != NULL;
}

/* The map that a 64-bit immediate names, and where in its values; NULL: none. */
static const struct rt_load_map *map_of(const struct rt_bpf_copy *copy, uint64_t value, int32_t *ret_off,
					uint8_t *ret_kind)
{
	for (size_t i = 0; i < copy->maps.len; i++) {
		const struct rt_load_map *m = &copy->maps.data[i];

		if (m->map == value) {
			*ret_off = 0;
			*ret_kind = BPF_PSEUDO_MAP_FD;
			return m;
		}
		if (m->values_bytes && value >= m->values && value - m->values < m->values_bytes) {
			*ret_off = (int32_t)(value - m->values);
			*ret_kind = BPF_PSEUDO_MAP_VALUE;
			return m;
		}
	}
	return NULL;
}

static void show(const struct rt_bpf_copy *copy, struct bpf_insn *insn, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t code = insn[i].code, class = code & 7, mode = code & 0xe0, kind = 0;
		const struct rt_load_map *map;
		int32_t off = 0;

		if (code == OP_TAIL_CALL) {
			insn[i].code = BPF_JMP | BPF_CALL;
			insn[i].imm = TAIL_CALL;
		} else if (code == OP_CALL_ARGS) {
			insn[i].code = BPF_JMP | BPF_CALL;
		} else if (class == BPF_LDX && mode == MODE_PROBE_MEM) {
			insn[i].code = (code & 0x1f) | BPF_MEM;
		} else if ((class == BPF_LDX || class == BPF_STX || class == BPF_ST) && mode == MODE_PROBE_MEM32) {
			insn[i].code = (code & 0x1f) | BPF_MEM;
		} else if (code == (BPF_LD | BPF_IMM | BPF_DW) && i + 1 < count) {
			uint64_t value = (uint64_t)(uint32_t)insn[i + 1].imm << 32 | (uint32_t)insn[i].imm;

			map = map_of(copy, value, &off, &kind);
			if (map) {
				insn[i].src_reg = kind & 0xf;
				insn[i].imm = (int32_t)map->id;
				insn[i + 1].imm = off;
			}
		}
	}
}

static void numbers(const struct rt_bpf_copy *copy, struct bpf_prog_info *info)
{
	const struct rt_load_start *s = &copy->start;

	info->type = s->type;
	info->id = s->head.id;
	memcpy(info->tag, s->tag, sizeof(info->tag));
	info->load_time = s->load_time;
	info->created_by_uid = s->uid;
	memcpy(info->name, s->name, sizeof(info->name));
	info->gpl_compatible = s->flags & RT_LOAD_GPL ? 1 : 0;
	info->btf_id = s->btf;
	info->verified_insns = s->verified;
	info->attach_btf_obj_id = s->attach_btf_object;
	info->attach_btf_id = s->attach_btf;
	info->func_info_rec_size = sizeof(struct bpf_func_info);
	info->line_info_rec_size = sizeof(struct bpf_line_info);
	info->jited_line_info_rec_size = sizeof(uint64_t);
}

/* Addresses, lengths and tags: of each function, or of the only one. */
static bool functions(const struct rt_bpf_copy *copy, struct rt_bpf_dump *dump)
{
	struct rt_load_function only = { .address = copy->start.address, .bytes = copy->start.jited_bytes };
	const struct rt_load_function *f = copy->functions.len ? copy->functions.data : &only;
	size_t count = copy->functions.len ?: 1;
	struct bpf_prog_info *info = &dump->info;
	bool jited = copy->start.flags & RT_LOAD_JITED;
	uint64_t *address = NULL;
	uint32_t *length = NULL;
	uint8_t(*tag)[8];

	memcpy(only.tag, copy->start.tag, sizeof(only.tag));
	if (lost(copy, RT_ARRAY_FUNCTIONS))
		return true;
	tag = array(dump, TAGS, count, 8, &info->nr_prog_tags, &info->prog_tags);
	if (jited) {
		address = array(dump, KSYMS, count, 8, &info->nr_jited_ksyms, &info->jited_ksyms);
		length = array(dump, LENS, count, 4, &info->nr_jited_func_lens, &info->jited_func_lens);
	}
	if (!tag || (jited && (!address || !length)))
		return false;
	for (size_t i = 0; i < count; i++) {
		memcpy(tag[i], f[i].tag, 8);
		if (jited) {
			address[i] = f[i].address;
			length[i] = f[i].bytes;
		}
	}
	return true;
}

static bool fill(const struct rt_bpf_copy *copy, struct rt_bpf_dump *dump)
{
	struct bpf_prog_info *info = &dump->info;
	uint32_t *ids;

	if (!bytes(dump, JIT, copy, RT_ARRAY_JIT, 1, &info->jited_prog_len, &info->jited_prog_insns) ||
	    !bytes(dump, XLATED, copy, RT_ARRAY_XLATED, 1, &info->xlated_prog_len, &info->xlated_prog_insns) ||
	    !bytes(dump, FUNC_INFO, copy, RT_ARRAY_FUNC_INFO, sizeof(struct bpf_func_info), &info->nr_func_info,
		   &info->func_info) ||
	    !bytes(dump, LINE_INFO, copy, RT_ARRAY_LINE_INFO, sizeof(struct bpf_line_info), &info->nr_line_info,
		   &info->line_info) ||
	    !bytes(dump, JITED_LINE, copy, RT_ARRAY_JITED_LINE, 8, &info->nr_jited_line_info, &info->jited_line_info) ||
	    !functions(copy, dump))
		return false;
	if (info->xlated_prog_len)
		show(copy, dump->arrays[XLATED], info->xlated_prog_len / sizeof(struct bpf_insn));
	if (!copy->maps.len || lost(copy, RT_ARRAY_MAPS))
		return true;
	ids = array(dump, MAP_IDS, copy->maps.len, 4, &info->nr_map_ids, &info->map_ids);
	for (size_t i = 0; ids && i < copy->maps.len; i++)
		ids[i] = copy->maps.data[i].id;
	return ids != NULL;
}

struct rt_error *rt_bpf_copy_dump(const struct rt_bpf_copy *copy, struct rt_bpf_dump *ret)
{
	struct rt_bpf_dump dump = { 0 };

	numbers(copy, &dump.info);
	if (!fill(copy, &dump)) {
		rt_bpf_dump_deinit(&dump);
		return rt_error_nomem();
	}
	*ret = dump;
	return NULL;
}
