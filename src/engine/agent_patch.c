/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A jump over each probed instruction, to a stub (agent_stub.h) that calls the agent, does what the instructions did
 * that are written over, and goes back. Stubs lie in areas of their own within 2 GiB of the code.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "base/fs.h"
#include "base/log.h"
#include "engine/agent_priv.h"
#include "engine/agent_stub.h"
#include "engine/point_probe.h"
#include "insn/move.h"
#include "maps/maps.h"

enum {
	MAPS_MAX = 64 << 20,
	MARGIN = 64 << 10, /* between an area and what lies above it */
	LOWEST = 64 << 10, /* address that may be mapped */
	RED_ZONE = 128,    /* bytes below the stack pointer that are a function's own (x86-64 psABI) */
};
#define REACH (2ull << 30)

/* All points at one instruction. */
struct place {
	uint64_t address;
	uint8_t before; /* bytes before it that the jump begins */
	bool no_room;   /* for a jump: only where another's reaches over it */
	const struct rt_point *points[RT_AGENT_SITE_POINTS];
	uint32_t point_nr;
};

/* A thread, and where it goes on. */
struct standing {
	uint32_t tid;
	uint64_t pc;
};

struct patching {
	struct rt_agent *agent;
	struct rt_agent_task *task;
	const struct rt_arm *arm;
	struct rt_stopped *r;
	int file;
	void (*failed)(const struct rt_arm_failure *failure, void *arg);
	void *arg;
	RT_VEC(struct place) places;
	RT_VEC(struct standing) standing; /* threads that go on in this code */
};

static void fail(const struct patching *p, uint32_t point, const char *why)
{
	struct rt_arm_failure failure = { .point = point, .why = why };

	if (p->failed)
		p->failed(&failure, p->arg);
}

static void fail_place(const struct patching *p, const struct place *place, const char *why)
{
	for (uint32_t i = 0; i < place->point_nr; i++)
		fail(p, place->points[i]->id, why);
}

/* ---- where stubs are ---- */

static bool reaches(uint64_t from, uint64_t to)
{
	return (from > to ? from - to : to - from) < REACH - MARGIN;
}

/* The highest room for an area that is below `below`. */
static struct rt_error *find_gap(const struct patching *p, uint64_t below, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	char path[32], *cursor;
	uint64_t end = LOWEST;

	*ret = 0;
	snprintf(path, sizeof(path), "/proc/%u/maps", p->task->pid);
	RT_TRY(rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL));
	cursor = text;
	while (rt_maps_parse_line(&cursor, &line) && end < below) {
		uint64_t top = line.start < below ? line.start : below;

		if (top > end && top - end >= RT_AGENT_AREA + MARGIN)
			*ret = (top - MARGIN / 2 - RT_AGENT_AREA) & ~4095ull;
		if (line.end > end)
			end = line.end;
	}
	return NULL;
}

/* An area near address with room for a stub. *ret_why: there is none, and why. */
static struct rt_error *find_area(struct patching *p, uint64_t address, size_t *ret, const char **ret_why)
{
	const struct rt_agent_head *head = rt_agent_blob_head();
	struct rt_agent_task *task = p->task;
	struct rt_agent_entries entries;
	uint64_t start;
	struct rt_agent_area *area;
	int64_t at;

	*ret_why = NULL;
	for (size_t i = task->areas.len; i-- > 0;) {
		area = &task->areas.data[i];
		if (reaches(area->start, address) && RT_AGENT_AREA - area->used >= RT_AGENT_STUB_MAX) {
			*ret = i;
			return NULL;
		}
	}
	RT_TRY(find_gap(p, address, &start));
	*ret_why = "there is no room for code near it";
	if (!start || !reaches(start, address))
		return NULL;
	*ret_why = "the process did not stand when code was to be added";
	if (!p->arm->tid)
		return NULL;
	RT_TRY(rt_stopped_call(p->r, SYS_mmap,
			       (uint64_t[6]){ start, RT_AGENT_AREA, PROT_READ | PROT_EXEC,
					      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX },
			       &at));
	*ret_why = "the system refuses the memory for code near it";
	if (at < 0)
		return NULL;
	entries = (struct rt_agent_entries){ task->pool->code + head->hit,
					     task->pool->code +
						     (p->agent->options.counting ? head->plain_count : head->plain),
					     task->pool->code + head->stop, task->pool->code + head->unwind,
					     task->pool->code + head->unwound };
	*ret_why = "its memory cannot be written";
	if (!rt_stopped_write(p->r, start, &entries, sizeof(entries)))
		return NULL;
	area = rt_vec_add(&task->areas);
	if (!area)
		return rt_error_nomem();
	*area = (struct rt_agent_area){ start, RT_AGENT_STUB_ENTRIES };
	*ret = task->areas.len - 1;
	*ret_why = NULL;
	return NULL;
}

/* ---- a jump ---- */

/* Whether what was written is still there: modules come and go. */
static bool stands(const struct rt_stopped *r, const struct rt_agent_jump *j)
{
	uint8_t now[RT_MOVE_JUMP];

	return rt_stopped_read(r, j->address, now, sizeof(now)) && !memcmp(now, j->jump, sizeof(now));
}

static void forget_unmapped(struct patching *p)
{
	for (size_t i = p->task->jumps.len; i-- > 0;)
		if (!stands(p->r, &p->task->jumps.data[i]))
			p->task->jumps.data[i] = p->task->jumps.data[--p->task->jumps.len];
}

bool rt_agent_is_jumped(const struct rt_agent_task *task, uint64_t address, size_t bytes)
{
	for (size_t i = 0; i < task->jumps.len; i++) {
		const struct rt_agent_jump *j = &task->jumps.data[i];

		if (address < j->address + j->moved && j->address < address + bytes)
			return true;
	}
	return false;
}

size_t rt_agent_behind_jump(const struct rt_agent_task *task, uint64_t address)
{
	for (size_t i = 0; i < task->jumps.len; i++) {
		const struct rt_agent_jump *j = &task->jumps.data[i];

		if (address - j->address < j->moved)
			return j->address + j->moved - address;
	}
	return 0;
}

static bool begins_jump(const struct rt_agent_task *task, uint64_t address)
{
	for (size_t i = 0; i < task->jumps.len; i++)
		if (task->jumps.data[i].address == address)
			return true;
	return false;
}

/* What stands at address, up to RT_AGENT_STUB_CODE bytes, and what the file says of it. */
static bool read_code(const struct patching *p, uint64_t address, uint64_t offset, uint8_t *code, uint8_t *original,
		      size_t *ret)
{
	ssize_t n = pread(p->file, original, RT_AGENT_STUB_CODE, (off_t)offset);

	*ret = n < 0 ? 0 : (size_t)n;
	return n >= RT_MOVE_JUMP && rt_stopped_read(p->r, address, code, (size_t)n);
}

/*
 * Who stands behind the start of what the stub stands for goes on in the stub, before the jump is written: whenever we
 * are killed, each is where it can go on. NULL, or why somebody cannot.
 */
static const char *let_go_on(struct patching *p, uint64_t address, const struct rt_agent_stub *stub, uint64_t at)
{
	for (size_t i = 0; i < p->standing.len; i++) {
		struct standing *t = &p->standing.data[i];
		uint64_t behind = t->pc - address;

		if (!behind || behind >= stub->moved)
			continue;
		if (!stub->place[behind] || !rt_stopped_send(p->r, t->tid, at + stub->place[behind]))
			return "a thread stands in the instructions that the jump would be written over";
		t->pc = at + stub->place[behind];
	}
	return NULL;
}

/* Writes the jump at address, and the stub that lets the sights be seen. */
static struct rt_error *jump_to_stub(struct patching *p, const struct rt_agent_sight *sights, size_t sight_nr,
				     uint64_t address, uint64_t offset, const char **ret_why)
{
	uint8_t code[RT_AGENT_STUB_CODE], original[RT_AGENT_STUB_CODE], jump[RT_MOVE_JUMP] = { 0xe9 };
	struct rt_agent_stub_request request;
	size_t size = 0, index = 0;
	struct rt_agent_stub stub;
	struct rt_agent_area *area;
	struct rt_agent_jump *j;
	int32_t distance;

	*ret_why = rt_agent_is_jumped(p->task, address, RT_MOVE_JUMP)      ? "another probe's jump reaches into it"
		   : !read_code(p, address, offset, code, original, &size) ? "its code cannot be read"
									   : NULL;
	if (*ret_why)
		return NULL;
	RT_TRY(find_area(p, address, &index, ret_why));
	if (*ret_why)
		return NULL;
	area = &p->task->areas.data[index];
	request = (struct rt_agent_stub_request){
		.decoder = p->agent->decoder,
		.area = area->start,
		.at = area->start + area->used,
		.address = address,
		.code = rt_bytes_make(original, size),
		.sights = sights,
		.sight_nr = sight_nr,
	};
	*ret_why = "an instruction there cannot be moved";
	if (!rt_agent_stub_make(&request, &stub))
		return NULL;
	/* others change code, too */
	*ret_why = "its code was changed in memory: another tracer or debugger, or the program itself";
	if (memcmp(code, original, stub.moved) != 0)
		return NULL;
	distance = (int32_t)(request.at - (address + RT_MOVE_JUMP));
	memcpy(jump + 1, &distance, sizeof(distance));
	j = rt_vec_add(&p->task->jumps);
	if (!j)
		return rt_error_nomem();
	*ret_why = "its code cannot be written";
	if (rt_stopped_write(p->r, request.at, stub.bytes, stub.size))
		*ret_why = let_go_on(p, address, &stub, request.at);
	area->used += (stub.size + 15) & ~15ull;
	if (!*ret_why && !rt_stopped_write(p->r, address, jump, sizeof(jump)))
		*ret_why = "its code cannot be written";
	if (*ret_why) {
		p->task->jumps.len--;
		return NULL;
	}
	j->address = address;
	j->moved = (uint8_t)stub.moved;
	memcpy(j->original, code, sizeof(j->original));
	memcpy(j->jump, jump, sizeof(j->jump));
	return NULL;
}

/* ---- points ---- */

/* Two points that wait for the same return would be one event each: the kernel's way refuses that, too. */
static bool is_second_return(const struct place *place, const struct rt_point *point)
{
	for (uint32_t i = 0; i < place->point_nr; i++)
		if (rt_point_at_return(place->points[i]) && rt_point_at_return(point))
			return true;
	return false;
}

/* NULL, or why the point cannot be used. */
static const char *prepare(struct patching *p, const struct rt_point *point)
{
	struct rt_agent *a = p->agent;
	const char *why;

	if (!point->id || point->id >= RT_AGENT_POINTS)
		return "too many probe points for this engine";
	if (point->reg == RT_REG_RSP && point->deref && point->reg_offset < -RED_ZONE)
		return "its object is read below the stack, where the agent works";
	why = rt_point_probe(point, &a->probe[point->id]);
	if (why)
		return why;
	rt_agent_shared(p->task->pool)->probe[point->id] = a->probe[point->id];
	rt_agent_process(p->task)->looks |= point->look != RT_LOOK_NONE;
	if (point->id > a->last_point)
		a->last_point = point->id;
	return NULL;
}

static struct rt_error *add_point(struct patching *p, const struct rt_point *point)
{
	uint64_t address = p->arm->bias + point->address.v;
	struct place *place = NULL;
	uint64_t *known = rt_map_put(&p->task->armed, rt_key_make(point->id, 0), NULL);
	const char *why;

	if (!known)
		return rt_error_nomem();
	if (*known == address && rt_agent_is_jumped(p->task, address, 1))
		return NULL;
	*known = address;
	why = prepare(p, point);
	for (size_t i = 0; i < p->places.len && !place; i++)
		if (p->places.data[i].address == address)
			place = &p->places.data[i];
	if (!why && !place) {
		place = rt_vec_add(&p->places);
		if (!place)
			return rt_error_nomem();
		place->address = address;
		place->before = point->before;
		place->no_room = point->breakpoint;
	}
	if (!why && is_second_return(place, point))
		why = "another point waits for the same function's return";
	if (!why && place->point_nr == RT_AGENT_SITE_POINTS)
		why = "too many points at one instruction";
	if (why)
		fail(p, point->id, why);
	else
		place->points[place->point_nr++] = point;
	return NULL;
}

/* After its jump: whoever passes from now on is seen. */
static struct rt_error *raise_semaphore(struct patching *p, const struct rt_point *point)
{
	struct rt_semaphore_place place = { .pid = p->task->pid,
					    .tag = point->id,
					    .code = p->arm->bias + point->address.v,
					    .counter = p->arm->bias + point->counter.v,
					    .offset = point->semaphore.v };
	const char *why = NULL;

	if (!point->semaphore.v || p->agent->options.semaphore == RT_SEMAPHORE_NONE)
		return NULL;
	RT_TRY(rt_agent_raise(p->agent, p->task, p->r, &place, &why));
	if (why)
		fail(p, point->id, why);
	return NULL;
}

/* Whether the point asks for nothing that struct rt_agent_plain does not say. */
static bool is_plain(const struct rt_probe *probe)
{
	static const struct rt_probe none;
	struct rt_probe rest = *probe;

	rest.reg = 0;
	rest.reg_offset = 0;
	rest.counter_offset = rest.counter_size = rest.counter_bias = 0;
	rest.cfa_delta = 0;
	rest.op = 0;
	rest.delta = 0;
	rest.flags = 0;
	rest.kind &= (uint8_t)~RT_PROBE_SITE;
	rest.type = 0;
	rest.start = 0;
	rest.class_at = 0;
	rest.result_size = 0; /* nothing without a condition */
	rest.index = 0;       /* nothing without a scale */
	return probe->reg < RT_REG_RIP && probe->reg != RT_REG_RSP && !memcmp(&rest, &none, sizeof(rest));
}

static bool is_entry(const struct rt_point *point)
{
	return point->kind == RT_POINT_ENTRY && !(point->flags & RT_EV_INLINE) && point->address.v == point->function.v;
}

static struct rt_agent_plain plain_of(const struct rt_probe *probe)
{
	return (struct rt_agent_plain){
		.object = probe->reg_offset,
		.counter = probe->counter_offset,
		.counter_bias = probe->counter_size ? probe->counter_bias : 0,
		.counter_size = probe->counter_size,
		.class_at = probe->class_at,
		.sp = probe->kind & RT_PROBE_SITE ? 0 : probe->cfa_delta,
		.head = RT_AGENT_EVENT_HEAD(probe->op),
		.tail = RT_AGENT_EVENT_TAIL(probe->delta, probe->flags),
	};
}

static struct rt_agent_plain_count plain_count_of(const struct rt_probe *probe)
{
	bool odd = probe->op == RT_OP_NEW || probe->op == RT_OP_FREE || (probe->flags & RT_EV_MAYBE);

	return (struct rt_agent_plain_count){
		.object = probe->reg_offset,
		.change = odd ? RT_AGENT_TALLY_ODD : RT_AGENT_TALLY_CHANGE(probe->delta),
		.mark = RT_AGENT_TALLY_MARK(probe->type),
	};
}

/* Enters a place as a site of that number, and returns how its stub is to let it be seen. */
static struct rt_agent_sight enter_site(const struct patching *p, const struct place *place, uint32_t number,
					uint64_t start)
{
	const struct rt_probe *probe = &p->agent->probe[place->points[0]->id];
	struct rt_agent_site site = { .address = place->address };

	for (uint32_t i = 0; i < place->point_nr; i++)
		site.point[i] = place->points[i]->id;
	if (p->agent->options.counting)
		site.count = plain_count_of(probe);
	else
		site.plain = plain_of(probe);
	rt_agent_shared(p->task->pool)->site[number] = site;
	return (struct rt_agent_sight){ .site = number,
					.behind = (uint8_t)(place->address - start),
					.plain = place->point_nr == 1 && is_plain(probe),
					.entry = is_entry(place->points[0]),
					.reg = probe->reg };
}

/* One jump at start for places in order of their addresses. *ret_why: it cannot be, and nothing is armed. */
static struct rt_error *arm_together(struct patching *p, const struct place *const *places, size_t nr, uint64_t start,
				     const char **ret_why)
{
	struct rt_agent_sight sights[RT_AGENT_STUB_SIGHTS];
	struct rt_agent_pool *pool = p->task->pool;
	uint64_t offset = places[0]->points[0]->offset.v - (places[0]->address - start);

	*ret_why = "too many probed instructions beside each other";
	if (places[nr - 1]->address - start >= RT_AGENT_STUB_CODE)
		return NULL;
	*ret_why = "too many probed instructions for this engine";
	if (RT_AGENT_SITES - pool->site_end < nr)
		return NULL;
	for (size_t i = 0; i < nr; i++)
		sights[i] = enter_site(p, places[i], pool->site_end + (uint32_t)i, start);
	RT_TRY(jump_to_stub(p, sights, nr, start, offset, ret_why));
	if (*ret_why)
		return NULL;
	pool->site_end += (uint32_t)nr;
	for (size_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k < places[i]->point_nr; k++)
			RT_TRY(raise_semaphore(p, places[i]->points[k]));
	return NULL;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_start(const void *a, const void *b)
{
	const struct place *x = *(const struct place *const *)a, *y = *(const struct place *const *)b;

	/* who has room comes first: it begins the jump */
	return compare(x->address - x->before, y->address - y->before) ?: x->no_room - y->no_room;
}

static int by_address(const void *a, const void *b)
{
	const struct place *x = *(const struct place *const *)a, *y = *(const struct place *const *)b;

	return compare(x->address, y->address);
}

/* Those that have no room for two jumps share one; where that cannot be, who comes first gets it. places: by_start. */
static struct rt_error *arm_group(struct patching *p, const struct place **places, size_t nr)
{
	const char *why = "there is no room for a jump";
	uint64_t start = places[0]->address - places[0]->before;
	bool room = !places[0]->no_room;

	qsort(places, nr, sizeof(*places), by_address);
	if (room)
		RT_TRY(arm_together(p, places, nr, start, &why));
	if (!why)
		return NULL;
	if (nr == 1) {
		fail_place(p, places[0], why);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		RT_TRY(arm_group(p, places + i, 1));
	return NULL;
}

/*
 * Nothing leads between the start and the end of what a jump takes the place of, as the plan has seen to: so what
 * else is to be seen there is passed by nobody but who comes through the jump, and is seen in its stub.
 */
static struct rt_error *arm_places(struct patching *p)
{
	_cleanup_free_ const struct place **order = calloc(p->places.len + 1, sizeof(*order));
	size_t count = 0, next;

	if (!order)
		return rt_error_nomem();
	for (size_t i = 0; i < p->places.len; i++)
		if (p->places.data[i].point_nr)
			order[count++] = &p->places.data[i];
	qsort(order, count, sizeof(*order), by_start);
	for (size_t i = 0; i < count; i = next) {
		uint64_t end = 0;

		for (next = i; next < count && next - i < RT_AGENT_STUB_SIGHTS; next++) {
			const struct place *place = order[next];
			uint64_t start = place->address - place->before;

			if (next > i && start >= end)
				break;
			if (!place->no_room && start + RT_MOVE_JUMP > end)
				end = start + RT_MOVE_JUMP;
			if (!place->no_room && place->address >= end)
				end = place->address + 1;
		}
		RT_TRY(arm_group(p, order + i, next - i));
	}
	return NULL;
}

/* Where stacks are unwound: who waits for returns on them gives way. */
static struct rt_error *arm_unwinders(struct patching *p)
{
	static const uint32_t sights[] = { [RT_UNWINDER_BEGINS] = RT_AGENT_SIGHT_UNWIND,
					   [RT_UNWINDER_FORCED] = RT_AGENT_SIGHT_FORCED,
					   [RT_UNWINDER_OVER] = RT_AGENT_SIGHT_UNWOUND };

	for (size_t i = 0; i < p->arm->unwinder_count; i++) {
		const struct rt_unwinder *u = &p->arm->unwinders[i];
		const struct rt_agent_sight sight = { sights[u->kind], u->before };
		uint64_t address = p->arm->bias + u->address.v - u->before;
		const char *why = "there is no room for a jump";

		if (begins_jump(p->task, address))
			continue; /* of the parent's */
		if (!u->no_room)
			RT_TRY(jump_to_stub(p, &sight, 1, address, u->offset.v - u->before, &why));
		if (why)
			rt_log_debug("engine", "process %u: an unwinder: %s", p->task->pid, why);
		if (why && u->kind != RT_UNWINDER_OVER)
			fail(p, 0, "an exception through a call whose return is waited for ends the program");
	}
	return NULL;
}

static struct rt_error *arm_all(struct patching *p)
{
	const struct rt_agent_sight hook = { RT_AGENT_SIGHT_STOP, 0 };
	const struct rt_arm *arm = p->arm;
	const char *why = NULL;

	forget_unmapped(p);
	for (size_t i = 0; i < arm->point_count; i++)
		RT_TRY(add_point(p, arm->points[i]));
	RT_TRY(arm_places(p));
	RT_TRY(arm_unwinders(p));
	if (!arm->stop_at.v || p->task->stop_armed)
		return NULL;
	RT_TRY(jump_to_stub(p, &hook, 1, arm->bias + arm->stop_at.v, arm->stop_offset.v, &why));
	p->task->stop_armed = !why;
	if (why)
		fail(p, 0, why);
	return NULL;
}

/* Nothing is written into code that runs: where every thread of the process will go on. */
static struct rt_error *note_threads(struct patching *p)
{
	for (size_t i = 0; i < p->arm->thread_count; i++) {
		struct user_regs_struct regs;
		struct standing *t;

		if (ptrace(PTRACE_GETREGS, p->arm->threads[i], 0, &regs))
			return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
							 "process %u cannot have the agent: its thread %u does not "
							 "stand still, as one that waits for a device (state D)",
							 p->task->pid, p->arm->threads[i]),
					    "try it again later; or as root: --engine uprobe");
		t = rt_vec_add(&p->standing);
		if (!t)
			return rt_error_nomem();
		*t = (struct standing){ p->arm->threads[i], regs.rip };
	}
	return NULL;
}

struct rt_error *rt_agent_patch(struct rt_agent *a, struct rt_agent_task *task, const struct rt_arm *arm,
				void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg)
{
	struct patching p = { .agent = a, .task = task, .arm = arm, .failed = failed, .arg = arg };
	_cleanup_close_ int file = open(arm->path, O_RDONLY | O_CLOEXEC);
	struct rt_stopped r;
	struct rt_error *err;

	if (file < 0)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot open %s", arm->path);
	p.file = file;
	p.r = &r;
	RT_TRY(rt_stopped_open(&r, task->pid, arm->tid));
	err = note_threads(&p);
	if (!err)
		err = arm_all(&p);
	rt_stopped_close(&r);
	rt_vec_deinit(&p.places);
	rt_vec_deinit(&p.standing);
	return err;
}

/* Calls that have not returned do so as without us: nobody is there any more to tell an unwinder of. */
static void lift_returns(const struct rt_agent_task *task, const struct rt_stopped *r)
{
	const struct rt_agent_head *head = rt_agent_blob_head();
	const struct rt_agent_shared *shared = rt_agent_shared(task->pool);
	const struct rt_agent_process *process = rt_agent_process(task);
	uint64_t thunks = task->pool->code + head->thunk, at;

	RT_AGENT_EACH_PENDING (i, process) {
		uint64_t slot = process->pending[i].slot, number;

		if (!slot || !rt_stopped_read(r, slot, &at, sizeof(at)))
			continue;
		number = (at - thunks) / head->thunk_bytes;
		if (at >= thunks && number < RT_AGENT_RETURNS)
			(void)rt_stopped_write(r, slot, &shared->return_address[number],
					       sizeof(shared->return_address[number]));
	}
}

void rt_agent_unpatch(struct rt_agent_task *task)
{
	struct rt_stopped r;
	struct rt_error *err = rt_stopped_open(&r, task->pid, 0);
	uint64_t leaving = RT_AGENT_LEAVING;

	if (err) {
		rt_error_free(err); /* it has ended */
		return;
	}
	for (size_t i = 0; i < task->jumps.len; i++) {
		const struct rt_agent_jump *j = &task->jumps.data[i];

		if (stands(&r, j) && !rt_stopped_write(&r, j->address, j->original, sizeof(j->original)))
			rt_log_debug("engine", "a jump stays in process %u", task->pid);
	}
	(void)rt_stopped_write(&r, task->pool->code + offsetof(struct rt_agent_head, off), &leaving, sizeof(leaving));
	lift_returns(task, &r);
	rt_stopped_close(&r);
}
