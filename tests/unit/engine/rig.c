/* SPDX-License-Identifier: GPL-2.0-only */
#include "rig.h"

/* Every test of the engine needs it: said once, before any of them runs. */
__attribute__((constructor)) static void need_root(void)
{
	if (!geteuid())
		return;
	fputs("engine uprobe needs root\n", stderr);
	_exit(77);
}

char rig_dir[64];

uint64_t rig_symbol(const struct program *p, const char *name)
{
	for (size_t i = 0; i < p->symbols.len; i++)
		if (!strcmp(p->symbols.data[i].name, name))
			return p->symbols.data[i].address;
	print_error("no symbol %s\n", name);
	fail();
	return 0;
}

const char *rig_function(const struct program *p, uint64_t address)
{
	for (size_t i = 0; i < p->symbols.len; i++) {
		const struct symbol *s = &p->symbols.data[i];

		if (s->size && address >= s->address && address - s->address < s->size)
			return s->name;
	}
	return "";
}

uint64_t rig_offset(const struct program *p, uint64_t address)
{
	for (int i = 0; i < p->loads; i++)
		if (address >= p->load[i].p_vaddr && address - p->load[i].p_vaddr < p->load[i].p_filesz)
			return address - p->load[i].p_vaddr + p->load[i].p_offset;
	fail();
	return 0;
}

static void read_symbols(struct program *p)
{
	char line[512], type[8];
	struct symbol s;
	FILE *f;

	snprintf(line, sizeof(line), "nm -S %s", p->path);
	f = popen(line, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		memset(&s, 0, sizeof(s));
		if (sscanf(line, "%lx %lx %7s %63s", &s.address, &s.size, type, s.name) == 4)
			assert_true(rt_vec_push(&p->symbols, s));
	}
	assert_int_equal(pclose(f), 0);
}

static void read_segments(struct program *p)
{
	int fd = open(p->path, O_RDONLY);
	Elf64_Ehdr head;
	Elf64_Phdr ph;

	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	for (int i = 0; i < head.e_phnum && p->loads < 16; i++) {
		assert_int_equal(pread(fd, &ph, sizeof(ph), head.e_phoff + i * sizeof(ph)), sizeof(ph));
		if (ph.p_type == PT_LOAD)
			p->load[p->loads++] = ph;
	}
	close(fd);
}

void rig_compile(struct program *p, const char *name, const char *flags)
{
	char command[512];

	memset(p, 0, sizeof(*p));
	if (!rig_dir[0]) {
		snprintf(rig_dir, sizeof(rig_dir), "/tmp/rt-engine-XXXXXX");
		assert_non_null(mkdtemp(rig_dir));
	}
	snprintf(p->path, sizeof(p->path), "%s/%s", rig_dir, name);
	snprintf(command, sizeof(command), "gcc -g -pthread %s -o %s %s/tests/unit/engine/target.c", flags, p->path,
		 getenv("RT_SOURCE_ROOT"));
	assert_int_equal(system(command), 0);
	read_symbols(p);
	read_segments(p);
}

void rig_free(struct program *p)
{
	rt_vec_deinit(&p->symbols);
}

__attribute__((destructor)) static void remove_dir(void)
{
	char command[128];

	if (!rig_dir[0])
		return;
	snprintf(command, sizeof(command), "rm -rf %s", rig_dir);
	(void)!system(command);
}

uint64_t rig_bias(pid_t pid, const char *path)
{
	char name[64], line[512];
	uint64_t start = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "r");
	assert_non_null(f);
	while (!start && fgets(line, sizeof(line), f))
		if (strstr(line, path))
			sscanf(line, "%lx", &start);
	fclose(f);
	return start;
}

struct target rig_start(const struct program *p, const char *mode, long n)
{
	struct target t = { .program = p };
	int status, out[2];
	char number[32];

	snprintf(number, sizeof(number), "%ld", n);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	t.pid = fork();
	assert_true(t.pid >= 0);
	if (!t.pid) {
		dup2(out[1], 1);
		execl(p->path, p->path, mode, number, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	t.out = out[0];
	assert_int_equal(waitpid(t.pid, &status, WUNTRACED), t.pid);
	assert_true(WIFSTOPPED(status));
	t.bias = rig_bias(t.pid, p->path) - p->load[0].p_vaddr;
	return t;
}

void rig_continue(struct target *t)
{
	assert_int_equal(kill(t->pid, SIGCONT), 0);
}

int rig_wait(struct target *t)
{
	int status = 0;

	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	close(t->out);
	return status;
}

struct rt_point rig_point(const struct program *p, uint32_t id, const char *function, unsigned plus)
{
	uint64_t address = rig_symbol(p, function);

	return (struct rt_point){ .id = id,
				  .module = 1,
				  .type = 1,
				  .kind = RT_POINT_ENTRY,
				  .op = RT_OP_GET,
				  .delta = 1,
				  .address = { address + plus },
				  .offset = { rig_offset(p, address + plus) },
				  .function = { address },
				  .cfa_delta = 8,
				  .reg = RT_REG_RDI,
				  .counter_offset = RT_COUNTER_UNKNOWN };
}

static void note_failure(const struct rt_arm_failure *failure, void *arg)
{
	struct arming *a = arg;

	a->failures++;
	a->last = *failure;
}

struct arming rig_arm(struct rt_engine *e, const struct target *t, struct rt_point *points, size_t count)
{
	const struct rt_point *list[2048];
	struct arming arming = { 0 };
	char path[64];
	struct rt_arm arm = { .pid = t->pid, .path = path, .points = list, .point_count = count, .bias = t->bias };

	assert_true(count <= 2048);
	for (size_t i = 0; i < count; i++)
		list[i] = &points[i];
	snprintf(path, sizeof(path), "/proc/%d/exe", t->pid);
	assert_ok(e->ops->extend(e, &arm, note_failure, &arming));
	return arming;
}

struct rt_engine *rig_open(enum rt_attach_path path, size_t ring, unsigned frames)
{
	struct rt_engine_options options = {
		.attach = path, .ring_bytes = ring ? ring : 1 << 20, .frames = frames, .root_fd = AT_FDCWD
	};
	struct rt_engine *e = NULL;

	assert_ok(rt_engine_uprobe.open(&options, &e));
	return e;
}

static struct rt_error *keep(struct rt_event_sink *sink, const struct rt_wire_head *record)
{
	struct records *r = (struct records *)(void *)sink;

	assert_true(rt_record_valid(record, record->size));
	if (record->kind == RT_WIRE_EVENT) {
		assert_true(rt_vec_push(&r->events, *rt_record_event(record)));
	} else if (record->kind == RT_WIRE_STACK) {
		struct rt_wire_stack *copy = malloc(record->size);

		memcpy(copy, record, record->size);
		assert_true(rt_vec_push(&r->stacks, copy));
	} else {
		assert_true(rt_vec_push(&r->losses, *(const struct rt_wire_loss *)(const void *)record));
	}
	return NULL;
}

void rig_records_init(struct records *r)
{
	memset(r, 0, sizeof(*r));
	r->sink.record = keep;
}

void rig_records_deinit(struct records *r)
{
	for (size_t i = 0; i < r->stacks.len; i++)
		free(r->stacks.data[i]);
	rt_vec_deinit(&r->events);
	rt_vec_deinit(&r->stacks);
	rt_vec_deinit(&r->losses);
}

size_t rig_count(const struct records *r, uint32_t point)
{
	size_t n = 0;

	for (size_t i = 0; i < r->events.len; i++)
		n += r->events.data[i].point == point;
	return n;
}

const struct rt_wire_stack *rig_stack(const struct records *r, uint32_t id)
{
	for (size_t i = 0; i < r->stacks.len; i++)
		if (r->stacks.data[i]->id == id)
			return r->stacks.data[i];
	return NULL;
}

uint64_t rig_loss(const struct records *r, uint8_t kind, uint32_t cause, uint32_t point)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->losses.len; i++) {
		const struct rt_wire_loss *l = &r->losses.data[i];

		if (l->head.kind == kind && l->cause == cause && l->point == point)
			sum += l->value;
	}
	return sum;
}

int rig_peek(pid_t pid, uint64_t address)
{
	uint8_t byte;
	char path[32];
	int fd, n;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY);
	n = pread(fd, &byte, 1, address);
	close(fd);
	return n == 1 ? byte : -1;
}

void rig_run(const struct program *p, enum rt_attach_path path, const char *mode, long n, struct rt_point *points,
	     size_t count, struct records *r)
{
	struct rt_engine *e = rig_open(path, 0, 0);
	struct target t = rig_start(p, mode, n);
	struct rt_engine_stats stats;

	rig_records_init(r);
	assert_int_equal(rig_arm(e, &t, points, count).failures, 0);
	rig_continue(&t);
	assert_int_equal(rig_wait(&t), 0);
	assert_ok(e->ops->drain(e, &r->sink));
	assert_ok(e->ops->stop(e, &r->sink));
	e->ops->stats(e, &stats);
	assert_true(stats.balanced);
	assert_int_equal(stats.records, r->events.len);
	e->ops->close(e);
}
