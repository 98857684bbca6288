// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BPF object: how big its maps are, which programs this attach path needs,
 * and the tables that user space and the programs share, mapped into memory.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>

#include "base/log.h"
#include "engine/uprobe_priv.h"

/* made by bpftool */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "reftrace.skel.h"
#pragma GCC diagnostic pop

#define DEFAULT_RING (64u << 20)
#define SMALLEST_RING (16u << 10)
#define STACK_SHARE 4 /* of the ring: stacks are rare */
#define FREE_SHARE 8  /* of the slots */
#define DEFAULT_STACK_BYTES \
	4096 /* 16 frames of real programs span 3 to 4.5 KiB in the middle; 4 KiB cost hardly more than 2 */
#define DEFAULT_FRAMES 16
#define STACKS (128u << 10)
#define PENDINGS (16u << 10)
#define THREADS (8u << 10)
#define IPS (64u << 10)
#define TALLIES (64u << 10) /* about 25 MiB */
#define MOST_TALLIES (16u << 20)
#define COUNTING_RING (4u << 20)
#define SAMPLE_SETS (128u << 10) /* 8 MiB: a million addresses at which lives have ended */
#define SCRATCH_PER_CPU 4        /* as in bpf/state.h */

static int libbpf_says(enum libbpf_print_level level, const char *format, va_list args)
{
	_cleanup_free_ char *text = NULL;

	if (!rt_log_enabled("engine"))
		return 0;
	if (vasprintf(&text, format, args) < 0) {
		text = NULL;
		return 0;
	}
	/* the verifier says why it takes no program at the end of many lines */
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		rt_log_debug("engine", "libbpf: %.*s", (int)strcspn(line, "\n"), line);
	return 0;
}

static size_t ring_size(size_t wanted)
{
	size_t size = SMALLEST_RING;

	if (!wanted)
		wanted = DEFAULT_RING;
	while (size < wanted && size < (1u << 30))
		size *= 2;
	return size;
}

/* Points in the table: each costs 64 bytes on every CPU. */
static uint32_t point_limit(uint32_t cpus)
{
	return cpus <= 16 ? 16384 : cpus <= 64 ? 8192 : 4096;
}

static void set_rings(struct rt_uprobe *u)
{
	struct reftrace_bpf *b = u->bpf;
	/* counted, only stacks are sent */
	size_t size = u->options.counting ? COUNTING_RING : ring_size(u->options.ring_bytes);

	u->ring.slots = size / sizeof(struct rt_wire_event);
	u->ring.size = size / STACK_SHARE;
	b->rodata->rt_slots = u->ring.slots;
	b->rodata->rt_slots_free = u->ring.slots / FREE_SHARE;
	bpf_map__set_max_entries(b->maps.slots, u->ring.slots);
	bpf_map__set_max_entries(b->maps.stack_ring, u->ring.size);
}

/* Objects that can be counted at once: -m says how much memory they may take. */
static uint32_t tally_limit(const struct rt_uprobe *u)
{
	size_t each = sizeof(struct rt_tally_key) + sizeof(struct rt_tally) + 40; /* and what a hash map adds */
	size_t wanted = u->options.ring_bytes ? u->options.ring_bytes / each : TALLIES;

	return wanted < 64 ? 64 : wanted > MOST_TALLIES ? MOST_TALLIES : (uint32_t)wanted;
}

static void set_sizes(struct rt_uprobe *u)
{
	struct reftrace_bpf *b = u->bpf;
	unsigned stack = u->options.stack_bytes, frames = u->options.frames;

	if (!stack)
		stack = DEFAULT_STACK_BYTES;
	if (stack > RT_COPY_MAX)
		stack = RT_COPY_MAX;
	if (stack < 64)
		stack = 64;
	if (!frames)
		frames = DEFAULT_FRAMES;
	if (frames > RT_STACK_MAX)
		frames = RT_STACK_MAX;
	b->rodata->rt_stack_bytes = stack & ~7u;
	b->rodata->rt_frames = frames;
	b->rodata->rt_points = u->points;
	bpf_map__set_max_entries(b->maps.points, u->points);
	bpf_map__set_max_entries(b->maps.processes, RT_UPROBE_PROCESSES);
	bpf_map__set_max_entries(b->maps.counts, u->points * u->cpus);
	bpf_map__set_max_entries(b->maps.mappings, RT_UPROBE_MAPPINGS);
	bpf_map__set_max_entries(b->maps.rows, RT_UPROBE_ROWS);
	bpf_map__set_max_entries(b->maps.scratches, u->cpus * SCRATCH_PER_CPU);
	bpf_map__set_max_entries(b->maps.cpus, u->cpus);
	bpf_map__set_max_entries(b->maps.stacks, STACKS);
	bpf_map__set_max_entries(b->maps.pendings, PENDINGS);
	bpf_map__set_max_entries(b->maps.nesting, THREADS);
	bpf_map__set_max_entries(b->maps.in_calls, u->options.calls ? THREADS : 1);
	bpf_map__set_max_entries(b->maps.callers, u->options.calls ? RT_UPROBE_PROCESSES : 1);
	bpf_map__set_max_entries(b->maps.ips, u->path == RT_ATTACH_TRACEFS ? IPS : 1);
	bpf_map__set_max_entries(b->maps.tallies, u->options.counting ? tally_limit(u) : 1);
	bpf_map__set_max_entries(b->maps.sites, u->options.counting ? RT_UPROBE_SITES : 1);
	b->rodata->rt_sample_sets = u->options.sample.on ? SAMPLE_SETS : 0;
	b->rodata->rt_sample_ranks = u->options.sample.governed;
	b->bss->rt_sample_rate = u->options.sample.rate;
	bpf_map__set_max_entries(b->maps.samples, u->options.sample.on ? SAMPLE_SETS : 1);
	set_rings(u);
}

static void use(struct bpf_program *prog, bool wanted, uint32_t attach_type)
{
	bpf_program__set_autoload(prog, wanted);
	bpf_program__set_type(prog, BPF_PROG_TYPE_KPROBE);
	/* decided before loading: the kernel ties helpers to it */
	bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)attach_type);
}

static void choose_programs(struct rt_uprobe *u)
{
	struct reftrace_bpf *b = u->bpf;
	bool multi = u->path == RT_ATTACH_MULTI;

	use(b->progs.entry_multi, multi, RT_ATTACH_TYPE_MULTI);
	use(b->progs.session_multi, multi && u->session, RT_ATTACH_TYPE_SESSION);
	use(b->progs.enter_multi, multi && !u->session, RT_ATTACH_TYPE_MULTI);
	use(b->progs.leave_multi, multi && !u->session, RT_ATTACH_TYPE_MULTI);
	use(b->progs.entry_trace, !multi, 0);
	use(b->progs.enter_trace, !multi, 0);
	use(b->progs.leave_trace, !multi, 0);
	use(b->progs.stop_any, true, multi ? RT_ATTACH_TYPE_MULTI : 0);
	use(b->progs.unwind_any, true, multi ? RT_ATTACH_TYPE_MULTI : 0);
	bpf_program__set_autoload(b->progs.call_enter, u->options.calls);
	bpf_program__set_autoload(b->progs.call_leave, u->options.calls);
}

static struct rt_error *map_table(struct bpf_map *map, void **ret)
{
	size_t size = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot map the BPF table %s", bpf_map__name(map));
	*ret = at;
	return NULL;
}

static void unmap_table(struct bpf_map *map, void *at)
{
	if (at)
		munmap(at, (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map));
}

static struct rt_error *map_tables(struct rt_uprobe *u)
{
	void *at = NULL;

	RT_TRY(map_table(u->bpf->maps.points, &at));
	u->probes = at;
	RT_TRY(map_table(u->bpf->maps.processes, &at));
	u->process_table = at;
	RT_TRY(map_table(u->bpf->maps.counts, &at));
	u->counts = at;
	RT_TRY(map_table(u->bpf->maps.call_points, &at));
	u->calls = at;
	RT_TRY(map_table(u->bpf->maps.mappings, &at));
	u->code.mappings = at;
	RT_TRY(map_table(u->bpf->maps.rows, &at));
	u->code.rows = at;
	(void)madvise(at, RT_UPROBE_ROWS * sizeof(struct rt_unwind_row), MADV_DONTFORK);
	RT_TRY(map_table(u->bpf->maps.slots, &at));
	/* A child has no use for it, and copying its page tables would make every fork of ours slow. */
	(void)madvise(at, u->ring.slots * sizeof(struct rt_wire_event), MADV_DONTFORK);
	u->ring.slot = at;
	u->ring.counters = &u->bpf->bss->event_ring;
	return rt_ring_open(&u->ring, bpf_map__fd(u->bpf->maps.stack_ring));
}

/* What the verifier does not know it calls invalid: of all that the programs use, exchanging values came last. */
static struct rt_error *not_taken(int errnum)
{
	struct rt_error *err = rt_error_errno(RT_E_KERNEL, errnum, "the kernel does not take the BPF programs");

	if (errnum == EINVAL)
		return rt_error_fix(err, "Linux 5.12 or newer; where it is: --debug=engine shows what the kernel says");
	return rt_error_fix(err, "--debug=engine shows what the kernel says");
}

/* Opens and loads; errno, negative. */
static int load(struct rt_uprobe *u, bool by_rows)
{
	int r;

	u->bpf = reftrace_bpf__open();
	if (!u->bpf)
		return -errno;
	u->by_rows = by_rows;
	u->bpf->rodata->rt_by_rows = by_rows;
	set_sizes(u);
	choose_programs(u);
	r = reftrace_bpf__load(u->bpf);
	if (r) {
		reftrace_bpf__destroy(u->bpf);
		u->bpf = NULL;
	}
	return r;
}

struct rt_error *rt_uprobe_load(struct rt_uprobe *u)
{
	libbpf_print_fn_t old = libbpf_set_print(libbpf_says);
	struct rt_error *err = NULL;
	int cpus = libbpf_num_possible_cpus(), r;
	u->cpus = cpus > 0 ? cpus : 1;
	u->points = point_limit(u->cpus);
	r = load(u, true);
	/* EACCES is what the verifier says, too: of too much stack, for one */
	if (r && r != -EPERM) {
		rt_log_debug("engine", "not with unwind rows: %s", strerror(-r));
		r = load(u, false);
	}
	if (r == -EPERM || r == -EACCES)
		err = rt_uprobe_denied(u->path, -r, "cannot load BPF programs");
	else if (r)
		err = not_taken(-r);
	else
		err = map_tables(u);
	libbpf_set_print(old);
	return err;
}

void rt_uprobe_unload(struct rt_uprobe *u)
{
	if (!u->bpf)
		return;
	rt_ring_close(&u->ring);
	unmap_table(u->bpf->maps.points, u->probes);
	unmap_table(u->bpf->maps.processes, u->process_table);
	unmap_table(u->bpf->maps.counts, u->counts);
	unmap_table(u->bpf->maps.call_points, u->calls);
	unmap_table(u->bpf->maps.mappings, u->code.mappings);
	unmap_table(u->bpf->maps.rows, u->code.rows);
	unmap_table(u->bpf->maps.slots, u->ring.slot);
	u->probes = NULL;
	u->process_table = NULL;
	u->counts = NULL;
	u->calls = NULL;
	u->ring.slot = NULL;
	u->code.mappings = NULL;
	u->code.rows = NULL;
	reftrace_bpf__destroy(u->bpf);
	u->bpf = NULL;
}

void rt_uprobe_expect_returns(struct rt_uprobe *u, bool expect)
{
	__atomic_store_n(&u->bpf->bss->rt_returns, expect, __ATOMIC_SEQ_CST);
}

void rt_uprobe_count(struct rt_uprobe *u)
{
	__atomic_store_n(&u->bpf->bss->rt_counting, 1, __ATOMIC_SEQ_CST);
}

void rt_uprobe_sample(struct rt_uprobe *u, uint32_t rate)
{
	__atomic_store_n(&u->bpf->bss->rt_sample_rate, rate, __ATOMIC_SEQ_CST);
}

int rt_uprobe_prog_entry(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->path == RT_ATTACH_MULTI ? u->bpf->progs.entry_multi : u->bpf->progs.entry_trace);
}

int rt_uprobe_prog_enter(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->path == RT_ATTACH_MULTI ? u->bpf->progs.enter_multi : u->bpf->progs.enter_trace);
}

int rt_uprobe_prog_leave(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->path == RT_ATTACH_MULTI ? u->bpf->progs.leave_multi : u->bpf->progs.leave_trace);
}

int rt_uprobe_prog_session(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->bpf->progs.session_multi);
}

int rt_uprobe_prog_stop(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->bpf->progs.stop_any);
}

int rt_uprobe_prog_unwind(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->bpf->progs.unwind_any);
}

int rt_uprobe_prog_call_enter(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->bpf->progs.call_enter);
}

int rt_uprobe_prog_call_leave(const struct rt_uprobe *u)
{
	return bpf_program__fd(u->bpf->progs.call_leave);
}

int rt_uprobe_map_callers(const struct rt_uprobe *u)
{
	return bpf_map__fd(u->bpf->maps.callers);
}

int rt_uprobe_map_tallies(const struct rt_uprobe *u)
{
	return bpf_map__fd(u->bpf->maps.tallies);
}

int rt_uprobe_map_sites(const struct rt_uprobe *u)
{
	return bpf_map__fd(u->bpf->maps.sites);
}

int rt_uprobe_map_ips(const struct rt_uprobe *u)
{
	return bpf_map__fd(u->bpf->maps.ips);
}

int rt_uprobe_map_nesting(const struct rt_uprobe *u)
{
	return bpf_map__fd(u->bpf->maps.nesting);
}

int rt_uprobe_map_pendings(const struct rt_uprobe *u)
{
	return bpf_map__fd(u->bpf->maps.pendings);
}
