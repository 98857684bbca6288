/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copying a program: START, PARTs of all that the kernel keeps of it, END. What
 * finds no room in the ring, or cannot be read, is a bit in the lost mask.
 */
#pragma once

#include "load_state.h"

#define FUNCTIONS_MAX 1024
#define MAPS_MAX 256
#define COPY_MAX (64u << 20) /* bytes of one array */
#define PAGE_SHIFT 12

struct copy {
	const void *from;
	uint32_t id, array, index;
	uint32_t total, at;
	uint32_t lost; /* bits of arrays, over the whole load */
};

/* Everything about one load. */
struct load {
	struct copy copy;
	struct bpf_prog *prog;
	struct bpf_prog_aux *aux;
	uint64_t address, load_time;
	uint32_t functions, maps, func_infos, line_infos;
	uint32_t insns, jited_bytes, btf, flags;
};

#define DEFINE_PUT(size_class, room) \
	static __always_inline bool put_##size_class(struct copy *c, uint32_t n) \
	{ \
		struct rt_load_part *p = bpf_ringbuf_reserve(&load_ring, sizeof(*p) + (room), 0); \
\
		if (!p) \
			return false; \
		p->head.kind = RT_LOAD_PART; \
		p->head.id = c->id; \
		p->array = c->array; \
		p->index = c->index; \
		p->offset = c->at; \
		p->total = c->total; \
		asm volatile("" : "+r"(n)); /* the verifier has to see the same register that is checked */ \
		if (n > (room)) \
			n = room; \
		p->bytes = n; \
		p->fault = bpf_probe_read_kernel(p->data, n, c->from + c->at) != 0; \
		if (p->fault) \
			c->lost |= 1u << (c->array & 31); \
		c->at += n; \
		bpf_ringbuf_submit(p, BPF_RB_NO_WAKEUP); \
		return true; \
	}

DEFINE_PUT(small, RT_LOAD_CLASS_0)
DEFINE_PUT(medium, RT_LOAD_CLASS_1)
DEFINE_PUT(large, RT_LOAD_CLASS_2)
DEFINE_PUT(huge, RT_LOAD_CLASS_3)

static long put_next(uint32_t i, void *arg)
{
	struct copy *c = arg;
	uint32_t left = c->total - c->at;
	bool sent;

	if (c->at >= c->total)
		return 1;
	if (left > RT_LOAD_CLASS_2)
		sent = put_huge(c, left);
	else if (left > RT_LOAD_CLASS_1)
		sent = put_large(c, left);
	else if (left > RT_LOAD_CLASS_0)
		sent = put_medium(c, left);
	else
		sent = put_small(c, left);
	if (!sent) {
		c->lost |= 1u << (c->array & 31);
		return 1;
	}
	return 0;
}

/* Sends total bytes from kernel memory. */
static __always_inline void put(struct copy *c, uint32_t array, uint32_t index, const void *from, uint32_t total)
{
	if (!total)
		return;
	c->array = array;
	c->index = index;
	c->from = from;
	c->at = 0;
	c->total = total;
	if (total > COPY_MAX) {
		c->lost |= 1u << array;
		return;
	}
	bpf_loop(COPY_MAX / RT_LOAD_CLASS_3, put_next, c, 0);
}

/* One small record of our own making. */
#define PUT_OWN(c, number, position, value) \
	({ \
		struct rt_load_part *own_ = bpf_ringbuf_reserve(&load_ring, sizeof(*own_) + sizeof(value), 0); \
\
		if (own_) { \
			own_->head.kind = RT_LOAD_PART; \
			own_->head.id = (c)->id; \
			own_->array = number; \
			own_->index = position; \
			own_->offset = 0; \
			own_->bytes = own_->total = sizeof(value); \
			own_->fault = 0; \
			*(__typeof__(value) *)own_->data = value; \
			bpf_ringbuf_submit(own_, BPF_RB_NO_WAKEUP); \
		} else { \
			(c)->lost |= 1u << (number); \
		} \
	})

static long put_function(uint32_t i, void *arg)
{
	struct load *l = arg;
	struct bpf_prog_aux *aux = l->aux;
	struct bpf_prog **table = BPF_CORE_READ(aux, func), *f = NULL;
	struct rt_load_function v = {};

	bpf_probe_read_kernel(&f, sizeof(f), table + i);
	if (!f) {
		l->copy.lost |= 1u << RT_ARRAY_FUNCTIONS;
		return 1;
	}
	v.address = (uint64_t)BPF_CORE_READ(f, bpf_func);
	v.bytes = BPF_CORE_READ(f, jited_len);
	BPF_CORE_READ_INTO(&v.tag, f, tag);
	PUT_OWN(&l->copy, RT_ARRAY_FUNCTIONS, i, v);
	put(&l->copy, RT_ARRAY_JIT, i, (void *)v.address, v.bytes);
	return 0;
}

static long put_map(uint32_t i, void *arg)
{
	struct load *l = arg;
	struct bpf_prog_aux *aux = l->aux;
	struct bpf_map **table = BPF_CORE_READ(aux, used_maps), *map = NULL;
	struct rt_load_map v = {};

	bpf_probe_read_kernel(&map, sizeof(map), table + i);
	if (!map) {
		l->copy.lost |= 1u << RT_ARRAY_MAPS;
		return 1;
	}
	v.map = (uint64_t)map;
	v.id = BPF_CORE_READ(map, id);
	v.type = BPF_CORE_READ(map, map_type);
	BPF_CORE_READ_INTO(&v.name, map, name);
	if (v.type == MAP_TYPE_ARRAY) {
		struct bpf_array *array = (void *)map;

		v.values = (uint64_t)map + bpf_core_field_offset(struct bpf_array, value);
		v.values_bytes = BPF_CORE_READ(array, elem_size);
	} else if (v.type == MAP_TYPE_ARENA && bpf_core_type_exists(struct bpf_arena)) {
		struct bpf_arena *arena = (void *)map;

		v.values = BPF_CORE_READ(arena, user_vm_start);
		v.values_bytes = (uint64_t)BPF_CORE_READ(map, max_entries) << PAGE_SHIFT;
	}
	PUT_OWN(&l->copy, RT_ARRAY_MAPS, i, v);
	return 0;
}

static __always_inline void read_numbers(struct load *l)
{
	struct bpf_prog *prog = l->prog;
	struct bpf_prog_aux *aux = l->aux;

	l->load_time = BPF_CORE_READ(aux, load_time);
	l->address = (uint64_t)BPF_CORE_READ(prog, bpf_func);
	l->insns = BPF_CORE_READ(prog, len);
	l->jited_bytes = BPF_CORE_READ(prog, jited_len);
	l->functions = BPF_CORE_READ(aux, func_cnt);
	l->func_infos = BPF_CORE_READ(aux, func_info_cnt);
	l->line_infos = BPF_CORE_READ(aux, nr_linfo);
	l->maps = BPF_CORE_READ(aux, used_map_cnt);
	l->btf = BPF_CORE_READ(aux, btf, id);
	l->flags = (BPF_CORE_READ_BITFIELD_PROBED(prog, jited) ? RT_LOAD_JITED : 0) |
		   (BPF_CORE_READ_BITFIELD_PROBED(prog, gpl_compatible) ? RT_LOAD_GPL : 0) |
		   (BPF_CORE_READ(aux, offload_requested) ? RT_LOAD_DEVICE : 0) |
		   (BPF_CORE_READ(aux, jited_linfo) ? RT_LOAD_JITED_LINES : 0);
}

static __always_inline bool put_start(struct load *l)
{
	struct rt_load_start *s = bpf_ringbuf_reserve(&load_ring, sizeof(*s), 0);
	struct bpf_prog *prog = l->prog;
	struct bpf_prog_aux *aux = l->aux;
	uint64_t pid_tgid = bpf_get_current_pid_tgid();

	if (!s)
		return false;
	s->head.kind = RT_LOAD_START;
	s->head.id = l->copy.id;
	s->time_ns = bpf_ktime_get_ns();
	s->load_time = l->load_time;
	s->address = l->address;
	s->pid = pid_tgid >> 32;
	s->tid = pid_tgid;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	BPF_CORE_READ_INTO(&s->name, aux, name);
	BPF_CORE_READ_INTO(&s->tag, prog, tag);
	s->type = BPF_CORE_READ(prog, type);
	s->attach_type = BPF_CORE_READ(prog, expected_attach_type);
	s->insns = l->insns;
	s->jited_bytes = l->jited_bytes;
	s->functions = l->functions;
	s->func_infos = l->func_infos;
	s->line_infos = l->line_infos;
	s->maps = l->maps;
	s->btf = l->btf;
	s->btf_bytes = BPF_CORE_READ(aux, btf, data_size);
	s->attach_btf = BPF_CORE_READ(aux, attach_btf_id);
	s->attach_btf_object = BPF_CORE_READ(aux, attach_btf, id);
	s->verified = 0;
	if (bpf_core_field_exists(aux->verified_insns))
		s->verified = BPF_CORE_READ(aux, verified_insns);
	s->uid = BPF_CORE_READ(aux, user, uid.val);
	s->flags = l->flags;
	s->pad = 0;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return true;
}

static void note_loss(struct load *l)
{
	struct rt_load_lost lost = { .mask = l->copy.lost, .pid = bpf_get_current_pid_tgid() >> 32 };

	bpf_get_current_comm(lost.comm, sizeof(lost.comm));
	if (bpf_map_update_elem(&losses, &l->copy.id, &lost, BPF_ANY))
		__sync_fetch_and_add(&rt_counts.unnamed, 1);
}

static __always_inline void put_btf(struct load *l)
{
	struct bpf_prog_aux *aux = l->aux;
	uint32_t id = l->btf;
	uint8_t one = 1;

	if (!id || bpf_map_update_elem(&btfs, &id, &one, BPF_NOEXIST))
		return;
	put(&l->copy, RT_ARRAY_BTF, id, BPF_CORE_READ(aux, btf, data), BPF_CORE_READ(aux, btf, data_size));
	if (l->copy.lost & 1u << RT_ARRAY_BTF)
		bpf_map_delete_elem(&btfs, &id);
}

/* Was it copied already? From now on it was. */
static __always_inline bool known(struct load *l)
{
	uint64_t *time = bpf_map_lookup_elem(&copied, &l->copy.id);

	if (time && *time == l->load_time)
		return true;
	bpf_map_update_elem(&copied, &l->copy.id, &l->load_time, BPF_ANY);
	return false;
}

static __noinline int on_load(int fd)
{
	struct load l = {};
	struct rt_load_end end = {};
	struct bpf_prog *prog = prog_of(fd);
	struct bpf_prog_aux *aux;

	if (!prog)
		return 0;
	aux = BPF_CORE_READ(prog, aux);
	l.prog = prog;
	l.aux = aux;
	l.copy.id = BPF_CORE_READ(aux, id);
	read_numbers(&l);
	if (known(&l))
		return 0;
	__sync_fetch_and_add(&rt_counts.loads, 1);
	if (!put_start(&l)) {
		l.copy.lost = 1u << RT_ARRAY_START;
		note_loss(&l);
		return 0;
	}
	if (l.functions)
		bpf_loop(l.functions < FUNCTIONS_MAX ? l.functions : FUNCTIONS_MAX, put_function, &l, 0);
	else if (l.flags & RT_LOAD_JITED)
		put(&l.copy, RT_ARRAY_JIT, 0, (void *)l.address, l.jited_bytes);
	put(&l.copy, RT_ARRAY_XLATED, 0, (void *)prog + bpf_core_field_offset(struct bpf_prog, insnsi), l.insns * 8);
	put(&l.copy, RT_ARRAY_FUNC_INFO, 0, BPF_CORE_READ(aux, func_info), l.func_infos * 8);
	put(&l.copy, RT_ARRAY_LINE_INFO, 0, BPF_CORE_READ(aux, linfo), l.line_infos * 16);
	if (l.flags & RT_LOAD_JITED_LINES)
		put(&l.copy, RT_ARRAY_JITED_LINE, 0, BPF_CORE_READ(aux, jited_linfo), l.line_infos * 8);
	bpf_loop(l.maps < MAPS_MAX ? l.maps : MAPS_MAX, put_map, &l, 0);
	put_btf(&l);
	/* Another thread may have guessed the descriptor, and closed it. */
	if (prog_of(fd) != prog)
		l.copy.lost |= 1u << RT_ARRAY_RACED;
	end.head.kind = RT_LOAD_END;
	end.head.id = l.copy.id;
	end.lost = l.copy.lost;
	if (bpf_ringbuf_output(&load_ring, &end, sizeof(end), 0)) {
		l.copy.lost |= 1u << RT_ARRAY_START;
		note_loss(&l);
	}
	return 0;
}

static long look_at_fd(uint32_t fd, void *arg)
{
	struct file **table = *(struct file ***)arg, *file = NULL;
	struct bpf_prog *prog;

	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	prog = file ? as_prog(BPF_CORE_READ(file, private_data)) : NULL;
	if (prog && BPF_CORE_READ(prog, aux, load_time) >= rt_since)
		on_load(fd);
	return 0;
}

/* A program that makes system calls inside the kernel has run (light skeletons): what did it load? */
static __noinline int on_test_run(uint64_t attr)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **table = BPF_CORE_READ(fdt, fd);
	uint32_t fd = -1, count = BPF_CORE_READ(fdt, max_fds);
	struct bpf_prog *prog;

	bpf_probe_read_user(&fd, sizeof(fd), (void *)attr);
	prog = prog_of(fd);
	if (prog && BPF_CORE_READ(prog, type) == PROG_TYPE_SYSCALL)
		bpf_loop(count < FDS_MAX ? count : FDS_MAX, look_at_fd, &table, 0);
	return 0;
}
