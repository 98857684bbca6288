// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches BPF programs being loaded. At the exit of the bpf(2) call that made a
 * program, still in the loader's own thread, everything that the kernel keeps of
 * it is copied into a ring: the loader has no file descriptor yet that it could
 * close. What cannot be copied is named.
 *
 *   load     exit of bpf(2), ioctl(2), setsockopt(2): loads and attachments
 *   drop     entry of close(2): what a program had run until now; loaded only when run times are asked for
 *   forked   a child of a followed process is followed
 *   ended    a process is forgotten; what it still held is told as by drop
 *
 * These programs may be preempted: nothing per CPU is taken for granted.
 */
#include "load_types.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#include "wire/bpfload.h"

#define NR_CLOSE 3
#define NR_IOCTL 16
#define NR_SETSOCKOPT 54
#define NR_BPF 321
#define CMD_PROG_LOAD 5
#define CMD_PROG_ATTACH 8
#define CMD_PROG_TEST_RUN 10
#define PROG_TYPE_SYSCALL 31
#define CMD_RAW_TRACEPOINT_OPEN 17
#define CMD_LINK_CREATE 28
#define IOC_SET_BPF 0x40042408
#define SOL_SOCKET 1
#define SO_ATTACH_BPF 50
#define LINK_TYPE_PERF_EVENT 7
#define MAP_TYPE_ARRAY 2
#define MAP_TYPE_PERCPU_ARRAY 6
#define MAP_TYPE_ARENA 33
#define FUNCTIONS_MAX 1024
#define MAPS_MAX 256
#define FDS_MAX 65536
#define COPY_MAX (64u << 20) /* bytes of one array */
#define PAGE_SHIFT 12

/* Set before loading. */
const volatile uint32_t rt_all = 0;   /* follow every process, not only those of the map */
const volatile uint32_t rt_own = 0;   /* our own pid: left alone */
const volatile uint32_t rt_cpus = 0;  /* possible CPUs, where run times are asked for; else 0 */
const volatile uint64_t rt_since = 0; /* CLOCK_BOOTTIME: programs that were loaded before are none of ours */

struct rt_load_counts rt_counts = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} load_ring SEC(".maps");

/* Followed processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, uint32_t);
	__type(value, uint8_t);
} followed SEC(".maps");

/* Programs of which something found no room in the ring. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, uint32_t);
	__type(value, struct rt_load_lost);
} losses SEC(".maps");

/* BTF ids that were sent: many programs share one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, uint32_t);
	__type(value, uint8_t);
} btfs SEC(".maps");

/* Program id -> its load_time: copied. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, uint32_t);
	__type(value, uint64_t);
} copied SEC(".maps");

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

static __always_inline bool is_followed(uint32_t tgid)
{
	if (tgid == rt_own)
		return false;
	return rt_all || bpf_map_lookup_elem(&followed, &tgid);
}

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

static struct file *file_of(int fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **table, *file = NULL;

	if (fd < 0 || (uint32_t)fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	table = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	return file;
}

/* p, if it is a program: its own part points back. */
static struct bpf_prog *as_prog(void *p)
{
	struct bpf_prog *prog = p;

	return prog && BPF_CORE_READ(prog, aux, prog) == prog ? prog : NULL;
}

static struct bpf_prog *prog_of(int fd)
{
	struct file *file = file_of(fd);

	return file ? as_prog(BPF_CORE_READ(file, private_data)) : NULL;
}

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

/* "sched", "sched_switch" of a perf event. */
static void name_event(struct rt_load_attach *a, struct file *file)
{
	struct perf_event *event = (void *)BPF_CORE_READ(file, private_data);
	struct trace_event_call *call = BPF_CORE_READ(event, tp_event);
	const char *name;
	uint64_t first = 0;

	if (!call)
		return;
	bpf_probe_read_kernel_str(a->group, sizeof(a->group), BPF_CORE_READ(call, class, system));
	/* A union of a name and a tracepoint, which begins with a pointer to its name: no text has such bytes. */
	name = BPF_CORE_READ(call, name);
	bpf_probe_read_kernel(&first, sizeof(first), name);
	if (first >> 48 == 0xffff)
		name = (void *)first;
	bpf_probe_read_kernel_str(a->name, sizeof(a->name), name);
}

static void send_attach(struct rt_load_attach *a, struct bpf_prog *prog)
{
	if (!prog)
		return;
	a->head.kind = RT_LOAD_ATTACH;
	a->head.id = BPF_CORE_READ(prog, aux, id);
	a->time_ns = bpf_ktime_get_ns();
	a->pid = bpf_get_current_pid_tgid() >> 32;
	if (!a->attach_type)
		a->attach_type = BPF_CORE_READ(prog, expected_attach_type);
	if (!a->name[0])
		bpf_probe_read_kernel_str(a->name, sizeof(a->name), BPF_CORE_READ(prog, aux, attach_func_name));
	(void)bpf_ringbuf_output(&load_ring, a, sizeof(*a), 0);
}

/* attr: user's union bpf_attr. */
static __noinline int on_link(int fd, uint32_t cmd, uint64_t attr)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_LINK };
	struct file *file = file_of(fd);
	struct bpf_link *link = file ? (void *)BPF_CORE_READ(file, private_data) : NULL;
	struct bpf_prog *prog = link ? as_prog(BPF_CORE_READ(link, prog)) : NULL;
	uint64_t name = 0;

	if (!prog)
		return 0;
	a.link = BPF_CORE_READ(link, id);
	a.link_type = BPF_CORE_READ(link, type);
	if (cmd == CMD_RAW_TRACEPOINT_OPEN) {
		bpf_probe_read_user(&name, sizeof(name), (void *)attr);
		if (name)
			bpf_probe_read_user_str(a.name, sizeof(a.name), (void *)name);
	} else {
		/* struct { u32 prog_fd, target_fd, attach_type; } */
		bpf_probe_read_user(&a.attach_type, sizeof(a.attach_type), (void *)(attr + 8));
		if (a.link_type == LINK_TYPE_PERF_EVENT)
			name_event(&a, BPF_CORE_READ((struct bpf_perf_link *)link, perf_file));
	}
	send_attach(&a, prog);
	return 0;
}

/* attr: struct { u32 target_fd, attach_bpf_fd, attach_type; } */
static __noinline int on_attach(uint64_t attr)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_DIRECT };
	uint32_t fd = -1;

	bpf_probe_read_user(&fd, sizeof(fd), (void *)(attr + 4));
	bpf_probe_read_user(&a.attach_type, sizeof(a.attach_type), (void *)(attr + 8));
	send_attach(&a, prog_of(fd));
	return 0;
}

static __noinline int on_perf(int event, int fd)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_PERF };

	name_event(&a, file_of(event));
	send_attach(&a, prog_of(fd));
	return 0;
}

static __noinline int on_socket(uint64_t value)
{
	struct rt_load_attach a = { .how = RT_ATTACHED_SOCKET };
	uint32_t fd = -1;

	bpf_probe_read_user(&fd, sizeof(fd), (void *)value);
	send_attach(&a, prog_of(fd));
	return 0;
}

static void on_bpf(struct pt_regs *regs, long ret)
{
	uint32_t cmd = regs->di;

	if (cmd == CMD_PROG_LOAD) {
		on_load(ret);
	} else if (cmd == CMD_PROG_TEST_RUN) {
		on_test_run(regs->si);
	} else if (cmd == CMD_LINK_CREATE || cmd == CMD_RAW_TRACEPOINT_OPEN) {
		on_link(ret, cmd, regs->si);
	} else if (cmd == CMD_PROG_ATTACH) {
		on_attach(regs->si);
	}
}

SEC("tp_btf/sys_exit")
int load(uint64_t *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	long ret = ctx[1];
	uint64_t nr = regs->orig_ax;

	if ((nr != NR_BPF && nr != NR_IOCTL && nr != NR_SETSOCKOPT) || ret < 0)
		return 0;
	if (!is_followed(bpf_get_current_pid_tgid() >> 32))
		return 0;
	if (nr == NR_BPF)
		on_bpf(regs, ret);
	else if (nr == NR_IOCTL && (uint32_t)regs->si == IOC_SET_BPF)
		on_perf(regs->di, regs->dx);
	else if (nr == NR_SETSOCKOPT && regs->si == SOL_SOCKET && regs->dx == SO_ATTACH_BPF)
		on_socket(regs->r10);
	return 0;
}

/* ---- run times ---- */

#define CPUS_MAX 8192

/* Its elements show where each CPU's part of per-CPU memory lies; not every kernel names the table of these. */
struct {
	__uint(type, MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint64_t);
} percpu SEC(".maps");

struct sum {
	uint64_t at;      /* struct bpf_prog_stats, relative to a CPU's part of memory */
	uint64_t element; /* the same of percpu's element */
	uint64_t cnt, nsecs;
};

static long add_cpu(uint32_t cpu, void *arg)
{
	struct sum *sum = arg;
	uint32_t zero = 0;
	void *element = bpf_map_lookup_percpu_elem(&percpu, &zero, cpu);
	uint64_t base = 0, v = 0;

	if (!element)
		return 1;
	/* as a number: the verifier would not let a pointer leave its map */
	bpf_probe_read_kernel(&base, sizeof(base), &element);
	base -= sum->element;
	base += sum->at;
	bpf_probe_read_kernel(&v, sizeof(v), (void *)base + bpf_core_field_offset(struct bpf_prog_stats, cnt));
	sum->cnt += v;
	v = 0;
	bpf_probe_read_kernel(&v, sizeof(v), (void *)base + bpf_core_field_offset(struct bpf_prog_stats, nsecs));
	sum->nsecs += v;
	return 0;
}

static __noinline int put_stats(struct bpf_prog *prog)
{
	struct rt_load_stats s = { .head.kind = RT_LOAD_STATS };
	struct bpf_array *array = NULL;
	void *map = &percpu;
	struct sum sum = {};

	if (!prog)
		return 0;
	/* through memory, as in add_cpu() */
	bpf_probe_read_kernel(&array, sizeof(array), &map);
	sum.element = (uint64_t)BPF_CORE_READ(array, pptrs[0]);
	sum.at = (uint64_t)BPF_CORE_READ(prog, stats);
	bpf_loop(rt_cpus < CPUS_MAX ? rt_cpus : CPUS_MAX, add_cpu, &sum, 0);
	if (!sum.cnt)
		return 0;
	s.head.id = BPF_CORE_READ(prog, aux, id);
	s.run_cnt = sum.cnt;
	s.run_time_ns = sum.nsecs;
	(void)bpf_ringbuf_output(&load_ring, &s, sizeof(s), BPF_RB_NO_WAKEUP);
	return 0;
}

/* The program of a file: its own, or that of a link. */
static struct bpf_prog *prog_behind(struct file *file)
{
	void *p = file ? BPF_CORE_READ(file, private_data) : NULL;
	struct bpf_link *link = p;

	if (!p)
		return NULL;
	return as_prog(p) ?: as_prog(BPF_CORE_READ(link, prog));
}

SEC("tp_btf/sys_enter")
int drop(uint64_t *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];

	if (ctx[1] == NR_CLOSE && is_followed(bpf_get_current_pid_tgid() >> 32))
		put_stats(prog_behind(file_of(regs->di)));
	return 0;
}

static long drop_fd(uint32_t fd, void *arg)
{
	struct file **table = *(struct file ***)arg, *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	put_stats(prog_behind(file));
	return 0;
}

static __noinline int drop_all(struct task_struct *task)
{
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **table = BPF_CORE_READ(fdt, fd);
	uint32_t count = BPF_CORE_READ(fdt, max_fds);

	bpf_loop(count < FDS_MAX ? count : FDS_MAX, drop_fd, &table, 0);
	return 0;
}

SEC("raw_tp/sched_process_fork")
int forked(uint64_t *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	uint32_t old = BPF_CORE_READ(parent, tgid), new = BPF_CORE_READ(child, tgid);
	uint8_t one = 1;

	if (old != new &&bpf_map_lookup_elem(&followed, &old))
		bpf_map_update_elem(&followed, &new, &one, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int ended(uint64_t *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	uint32_t tgid = BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	if (rt_cpus && is_followed(tgid))
		drop_all(task);
	bpf_map_delete_elem(&followed, &tgid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
