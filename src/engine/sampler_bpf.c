// SPDX-License-Identifier: GPL-2.0-only
/*
 * BPF programs that were loaded before: their symbols as the kernel would have told them, KSYMBOL for each function
 * and BPF_EVENT for the program. Asked by id through bpf(2); without the privilege there are none.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "engine/sampler_priv.h"

enum { FUNCTIONS_MAX = 4096, BTF_MAX = 64 * 1024 * 1024, PROGRAMS_MAX = 131072 };

static int sys_bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(__NR_bpf, command, attr, sizeof(*attr));
}

static bool next_id(uint32_t *id)
{
	union bpf_attr attr = { .start_id = *id };

	if (sys_bpf(BPF_PROG_GET_NEXT_ID, &attr))
		return false;
	*id = attr.next_id;
	return true;
}

static int open_program(uint32_t id)
{
	union bpf_attr attr = { .prog_id = id };

	return sys_bpf(BPF_PROG_GET_FD_BY_ID, &attr);
}

static bool info_of(int fd, void *info, uint32_t size)
{
	union bpf_attr attr = { .info = { .bpf_fd = (uint32_t)fd, .info_len = size, .info = (uintptr_t)info } };

	return !sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* Raw BTF by id; *ret is owned by the caller. */
static bool read_btf(uint32_t id, uint8_t **ret, size_t *ret_size)
{
	union bpf_attr attr = { .btf_id = id };
	struct bpf_btf_info info = { 0 };
	_cleanup_close_ int fd = id ? sys_bpf(BPF_BTF_GET_FD_BY_ID, &attr) : -1;
	_cleanup_free_ uint8_t *data = NULL;
	uint32_t size;

	if (fd < 0 || !info_of(fd, &info, sizeof(info)) || !info.btf_size || info.btf_size > BTF_MAX)
		return false;
	size = info.btf_size;
	data = malloc(size);
	info = (struct bpf_btf_info){ .btf = (uintptr_t)data, .btf_size = size };
	if (!data || !info_of(fd, &info, sizeof(info)))
		return false;
	*ret = rt_take(data);
	*ret_size = size;
	return true;
}

/* Bytes of a type behind its struct btf_type; UINT32_MAX for a kind that is not known. */
static uint32_t extra_bytes(uint32_t info)
{
	uint32_t kind = BTF_INFO_KIND(info), vlen = BTF_INFO_VLEN(info);

	switch (kind) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case 17: /* DECL_TAG */
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case 19: /* ENUM64 */
		return vlen * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return vlen * 8;
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case 18: /* TYPE_TAG */
		return 0;
	default:
		return UINT32_MAX;
	}
}

/* Name of type id in raw BTF, NULL when it is not to be found. */
static const char *btf_name(struct rt_bytes btf, uint32_t id)
{
	struct btf_header head;
	struct rt_bytes types, strings;
	struct rt_cursor c;

	if (btf.size < sizeof(head))
		return NULL;
	memcpy(&head, btf.data, sizeof(head));
	if (head.magic != BTF_MAGIC ||
	    !rt_bytes_sub(btf, (uint64_t)head.hdr_len + head.type_off, head.type_len, &types) ||
	    !rt_bytes_sub(btf, (uint64_t)head.hdr_len + head.str_off, head.str_len, &strings))
		return NULL;
	c = rt_cursor_make(types, false);
	for (uint32_t at = 1;; at++) {
		uint32_t name, info, size, extra;

		if (!rt_cursor_u32(&c, &name) || !rt_cursor_u32(&c, &info) || !rt_cursor_u32(&c, &size))
			return NULL;
		if (at == id)
			return name < strings.size && memchr(strings.data + name, 0, strings.size - name)
				       ? (const char *)strings.data + name
				       : NULL;
		extra = extra_bytes(info);
		if (extra == UINT32_MAX || !rt_cursor_skip(&c, extra))
			return NULL;
	}
}

struct program {
	struct bpf_prog_info info;
	uint64_t *addresses; /* owned, as all arrays */
	uint32_t *lengths;
	uint8_t *functions;
	uint8_t (*tags)[BPF_TAG_SIZE]; /* of each function: subprograms have their own */
	uint8_t *btf;
	size_t btf_size;
};

static void program_deinit(struct program *p)
{
	free(p->addresses);
	free(p->lengths);
	free(p->functions);
	free(p->tags);
	free(p->btf);
}

/* The arrays that were counted by a first look. false: the program went, or we may not see it. */
static bool read_program(int fd, struct program *p)
{
	struct bpf_prog_info first = { 0 };

	if (!info_of(fd, &first, sizeof(first)) || first.nr_jited_ksyms > FUNCTIONS_MAX ||
	    first.nr_jited_func_lens > FUNCTIONS_MAX || first.nr_func_info > FUNCTIONS_MAX ||
	    first.nr_prog_tags > FUNCTIONS_MAX || first.func_info_rec_size > 256)
		return false;
	p->addresses = calloc(first.nr_jited_ksyms + 1, sizeof(*p->addresses));
	p->lengths = calloc(first.nr_jited_func_lens + 1, sizeof(*p->lengths));
	p->functions = calloc(first.nr_func_info + 1, first.func_info_rec_size + 1);
	p->tags = calloc(first.nr_prog_tags + 1, sizeof(*p->tags));
	if (!p->addresses || !p->lengths || !p->functions || !p->tags)
		return false;
	p->info = (struct bpf_prog_info){
		.nr_jited_ksyms = first.nr_jited_ksyms,
		.jited_ksyms = (uintptr_t)p->addresses,
		.nr_jited_func_lens = first.nr_jited_func_lens,
		.jited_func_lens = (uintptr_t)p->lengths,
		.nr_func_info = first.nr_func_info,
		.func_info_rec_size = first.func_info_rec_size,
		.func_info = (uintptr_t)p->functions,
		.nr_prog_tags = first.nr_prog_tags,
		.prog_tags = (uintptr_t)p->tags,
	};
	if (!info_of(fd, &p->info, sizeof(p->info)) || p->info.nr_jited_ksyms > first.nr_jited_ksyms ||
	    p->info.nr_jited_func_lens > first.nr_jited_func_lens || p->info.nr_func_info > first.nr_func_info ||
	    p->info.nr_prog_tags > first.nr_prog_tags)
		return false;
	if (p->info.nr_func_info)
		read_btf(p->info.btf_id, &p->btf, &p->btf_size);
	return true;
}

/* As the kernel calls it: bpf_prog_<tag>_<name>; the main function with the program's tag, subprograms with their own.
 */
static void symbol_name(const struct program *p, uint32_t function, char *text, size_t size)
{
	const uint8_t *t = function && function < p->info.nr_prog_tags ? p->tags[function] : p->info.tag;
	const char *name = NULL;
	uint32_t type_id;

	if (p->btf && function < p->info.nr_func_info && p->info.func_info_rec_size >= sizeof(struct bpf_func_info)) {
		/* struct bpf_func_info: insn_off, type_id */
		memcpy(&type_id, p->functions + function * p->info.func_info_rec_size + 4, sizeof(type_id));
		name = btf_name(rt_bytes_make(p->btf, p->btf_size), type_id);
	}
	if (!name)
		name = p->info.name;
	snprintf(text, size, "bpf_prog_%02x%02x%02x%02x%02x%02x%02x%02x%s%.*s", t[0], t[1], t[2], t[3], t[4], t[5],
		 t[6], t[7], *name ? "_" : "", (int)strnlen(name, 128), name);
}

static struct rt_error *emit_program(struct rt_sampler *s, struct rt_event_sink *sink, const struct program *p)
{
	struct {
		uint16_t type, flags;
		uint32_t id;
		uint8_t tag[BPF_TAG_SIZE];
	} load = { .type = PERF_BPF_EVENT_PROG_LOAD, .id = p->info.id };
	uint32_t count = p->info.nr_jited_ksyms;
	struct rt_synth r;

	if (count > p->info.nr_jited_func_lens)
		count = p->info.nr_jited_func_lens;
	for (uint32_t i = 0; i < count; i++) {
		struct {
			uint64_t addr;
			uint32_t len;
			uint16_t type, flags;
		} ksymbol = { p->addresses[i], p->lengths[i], PERF_RECORD_KSYMBOL_TYPE_BPF, 0 };
		char name[256];

		/* addresses are 0 where the kernel hides them */
		if (!ksymbol.addr)
			continue;
		symbol_name(p, i, name, sizeof(name));
		rt_synth_begin(&r, PERF_RECORD_KSYMBOL, 0);
		rt_synth_add(&r, &ksymbol, sizeof(ksymbol));
		rt_synth_string(&r, name);
		RT_TRY(rt_synth_end(&r, s, sink, 0, 0));
	}
	memcpy(load.tag, p->info.tag, sizeof(load.tag));
	rt_synth_begin(&r, PERF_RECORD_BPF_EVENT, 0);
	rt_synth_add(&r, &load, sizeof(load));
	return rt_synth_end(&r, s, sink, 0, 0);
}

struct rt_error *rt_sampler_emit_bpf(struct rt_sampler *s, struct rt_event_sink *sink)
{
	uint32_t id = 0;

	for (unsigned n = 0; n < PROGRAMS_MAX && next_id(&id); n++) {
		_cleanup_close_ int fd = open_program(id);
		_cleanup_(program_deinit) struct program p = { .btf_size = 0 };

		if (fd >= 0 && read_program(fd, &p))
			RT_TRY(emit_program(s, sink, &p));
	}
	return NULL;
}
