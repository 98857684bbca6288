/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that the installed perf records here and now are read as perf itself reads them. */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/sink.h"
#include "perfdata/reader.h"
#include "perfdata/tracing.h"
#include "test.h"

static char folder[] = "/tmp/rt-perfdata-XXXXXX";

static const char program[] =
	"#include <pthread.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
	"volatile unsigned long sink;\n"
	"__attribute__((noinline)) int poke(int a, long b) { sink += a + b; return a * 2; }\n"
	"static void *work(void *x) { for (unsigned long i = 0; i < 20000000; i++) sink += i; return x; }\n"
	"int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); work(0);\n"
	"for (int i = 0; i < 10; i++) poke(i - 3, -i);\n"
	"if (!fork()) { work(0); _exit(0); } wait(0); pthread_join(t, 0); return 0; }\n";

/* Runs "cd FOLDER; command"; what it prints, owned by the caller. NULL when it fails. */
__attribute__((format(printf, 1, 2))) static char *output(const char *format, ...)
{
	char command[4096];
	struct rt_sink text;
	FILE *pipe;
	size_t n;
	va_list args;
	int at = snprintf(command, sizeof(command), "cd %s && ", folder);

	va_start(args, format);
	vsnprintf(command + at, sizeof(command) - (size_t)at, format, args);
	va_end(args);
	rt_sink_init_memory(&text);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	do {
		char buffer[4096];

		n = fread(buffer, 1, sizeof(buffer), pipe);
		rt_sink_write(&text, buffer, n);
	} while (n);
	rt_sink_puts(&text, "");
	if (pclose(pipe)) {
		rt_sink_deinit(&text);
		return NULL;
	}
	return text.buffer ? text.buffer : strdup("");
}

static void prepare(void)
{
	char path[PATH_MAX];
	char *done;
	FILE *f;

	if (strstr(folder, "XXXXXX")) {
		assert_non_null(mkdtemp(folder));
		snprintf(path, sizeof(path), "%s/spin.c", folder);
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(program, f);
		fclose(f);
		done = output("cc -g -O1 -fno-omit-frame-pointer -o spin spin.c -lpthread 2>&1");
		assert_non_null(done);
		free(done);
	}
}

/* Records; skips the test where perf cannot. */
static void record(const char *arguments)
{
	char *done;

	prepare();
	done = output("perf record -q %s 2>/dev/null", arguments);
	if (!done)
		skip();
	free(done);
}

struct opened {
	struct rt_bytes bytes;
	struct rt_perf_reader *reader;
};

static struct opened open_data(const char *name)
{
	struct opened o;
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_ok(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	assert_ok(rt_fs_map(fd, path, &o.bytes));
	close(fd);
	assert_ok(rt_perf_reader_create(o.bytes, name, &o.reader));
	return o;
}

static void close_data(struct opened *o)
{
	rt_perf_reader_destroy(o->reader);
	rt_fs_unmap(o->bytes);
}

/* Blanks become one, lines are trimmed and joined by \n; empty lines vanish. In place. */
static char *squeezed(char *text)
{
	char *to = text;
	bool fresh = true, blank = false;

	for (char *p = text; *p; p++) {
		if (*p == '\n') {
			if (!fresh)
				*to++ = '\n';
			fresh = true;
			blank = false;
		} else if (isspace((unsigned char)*p)) {
			blank = true;
		} else {
			if (blank && !fresh)
				*to++ = ' ';
			blank = fresh = false;
			*to++ = *p;
		}
	}
	*to = 0;
	return text;
}

/* Names of threads at the present moment of the stream. */
struct comms {
	struct rt_map by_tid;
	char names[4096][24];
	size_t count;
};

static void comm_set(struct comms *c, uint32_t tid, const char *name)
{
	uint64_t *slot = rt_map_put(&c->by_tid, rt_key_make(tid, 0), NULL);

	assert_non_null(slot);
	assert_true(c->count < 4096);
	snprintf(c->names[c->count], sizeof(c->names[0]), "%s", name);
	*slot = c->count++;
}

static const char *comm_get(struct comms *c, uint32_t tid)
{
	uint64_t *slot = rt_map_get(&c->by_tid, rt_key_make(tid, 0));

	/* a task that ended before its sample was taken has the number -1, and perf calls it by that */
	return slot ? c->names[*slot] : !tid ? "swapper" : tid == UINT32_MAX ? ":-1" : ":?";
}

static void comm_follow(struct comms *c, const struct rt_perf_record *r)
{
	if (r->type == RT_PERF_COMM)
		comm_set(c, r->comm.tid, r->comm.comm);
	if (r->type == RT_PERF_FORK && rt_map_get(&c->by_tid, rt_key_make(r->task.ptid, 0)))
		comm_set(c, r->task.tid, comm_get(c, r->task.ptid));
}

static void print_mmap(struct rt_sink *out, const struct rt_perf_record *r)
{
	const struct rt_perf_mmap *m = &r->mmap;

	rt_sink_printf(out, "PERF_RECORD_%s %d/%d: [%#lx(%#lx) @ %#lx", rt_perf_type_name(r->type), m->pid, m->tid,
		       m->addr, m->len, m->pgoff);
	if (r->type == RT_PERF_MMAP) {
		rt_sink_printf(out, "]: %c %s\n", r->misc & RT_PERF_MISC_MMAP_DATA ? 'r' : 'x', m->filename);
	} else {
		assert_int_equal(m->build_id_size, 0);
		rt_sink_printf(out, " %02x:%02x %lu %lu]: %c%c%c%c %s\n", m->maj, m->min, m->ino, m->ino_gen,
			       m->prot & 1 ? 'r' : '-', m->prot & 2 ? 'w' : '-', m->prot & 4 ? 'x' : '-',
			       m->flags & 1 ? 's' : 'p', m->filename);
	}
}

/* As `perf script -F time --show-task-events --show-mmap-events` says it; samples as with -F comm,...,ip. */
static void print_record(struct rt_sink *out, struct comms *comms, const struct rt_perf_record *r, const char *name)
{
	if (r->type == RT_PERF_SAMPLE)
		rt_sink_printf(out, "%s %d/%d ", comm_get(comms, r->id.tid), r->id.pid, r->id.tid);
	if (r->type == RT_PERF_SAMPLE || r->type == RT_PERF_MMAP || r->type == RT_PERF_MMAP2 ||
	    r->type == RT_PERF_COMM || r->type == RT_PERF_FORK || r->type == RT_PERF_EXIT)
		rt_sink_printf(out, "%lu.%09lu: ", r->id.time_ns / 1000000000, r->id.time_ns % 1000000000);
	switch (r->type) {
	case RT_PERF_SAMPLE:
		rt_sink_printf(out, "%lu %s: %lx\n", r->sample.period, name, r->sample.ip);
		break;
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
		print_mmap(out, r);
		break;
	case RT_PERF_COMM:
		rt_sink_printf(out, "PERF_RECORD_COMM%s: %s:%d/%d\n", r->comm.exec ? " exec" : "", r->comm.comm,
			       r->comm.pid, r->comm.tid);
		break;
	case RT_PERF_FORK:
	case RT_PERF_EXIT:
		rt_sink_printf(out, "PERF_RECORD_%s(%d:%d):(%d:%d)\n", rt_perf_type_name(r->type), r->task.pid,
			       r->task.tid, r->task.ppid, r->task.ptid);
		break;
	}
}

/* The whole file in the order of time: samples into *ret_samples, the rest that perf shows into *ret_tasks. */
static void read_all(const char *file, char **ret_samples, char **ret_tasks)
{
	static struct comms comms;
	struct opened o = open_data(file);
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	struct rt_sink samples, tasks;
	size_t count = 0;
	bool more;

	rt_sink_init_memory(&samples);
	rt_sink_init_memory(&tasks);
	memset(&comms, 0, sizeof(comms));
	assert_ok(rt_perf_order_create(o.reader, &order));
	for (;;) {
		struct rt_perf_record r;
		const struct rt_perf_event *events;

		assert_ok(rt_perf_order_next(order, &r, &more));
		if (!more)
			break;
		events = rt_perf_reader_events(o.reader, &count);
		comm_follow(&comms, &r);
		print_record(r.type == RT_PERF_SAMPLE ? &samples : &tasks, &comms, &r,
			     count && events[r.event].name ? events[r.event].name : "?");
	}
	assert_null(rt_perf_reader_damage(o.reader));
	rt_map_deinit(&comms.by_tid);
	*ret_samples = squeezed(samples.buffer);
	*ret_tasks = squeezed(tasks.buffer);
	rt_perf_order_destroy(rt_take(order));
	close_data(&o);
}

static void compare(const char *what, const char *ours, char *theirs)
{
	const char *a = ours, *b = theirs;
	unsigned line = 1;

	assert_non_null(theirs);
	assert_true(strlen(ours) > 20);
	while (*a && *a == *b) {
		line += *a == '\n';
		a++;
		b++;
	}
	if (*a != *b) {
		while (a > ours && a[-1] != '\n')
			a--, b--;
		print_error("%s, line %u:\nours:   %.*s\ntheirs: %.*s\n", what, line, (int)strcspn(a, "\n"), a,
			    (int)strcspn(b, "\n"), b);
		fail();
	}
	free(theirs);
}

static void same_as_perf(const char *file)
{
	char *samples, *tasks, *theirs;

	read_all(file, &samples, &tasks);
	theirs = output("perf script -i %s --ns -G -F comm,pid,tid,time,period,event,ip 2>/dev/null", file);
	compare(file, samples, squeezed(theirs));
	theirs = output("perf script -i %s --ns -G -F time --show-mmap-events --show-task-events 2>/dev/null | "
			"grep PERF_RECORD_",
			file);
	compare(file, tasks, squeezed(theirs));
	free(samples);
	free(tasks);
}

static void has_line(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void has_line(const char *text, const char *format, ...)
{
	char line[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (!strstr(text, line)) {
		print_error("\"%s\" is not in\n%s\n", line, text);
		fail();
	}
}

static void same_header(const char *file)
{
	struct opened o = open_data(file);
	const struct rt_perf_header *h = rt_perf_reader_header(o.reader);
	char *text = output("perf report --header-only -i %s 2>/dev/null", file);
	char command[4096] = "";
	struct rt_perf_record r;
	bool more = true;

	while (more)
		assert_ok(rt_perf_reader_next(o.reader, &r, &more));
	assert_non_null(text);
	has_line(text, "# hostname : %s\n", h->hostname);
	has_line(text, "# os release : %s\n", h->osrelease);
	has_line(text, "# perf version : %s\n", h->version);
	has_line(text, "# arch : %s\n", h->arch);
	has_line(text, "# nrcpus online : %u\n", h->cpus_online);
	has_line(text, "# nrcpus avail : %u\n", h->cpus_available);
	has_line(text, "# cpudesc : %s\n", h->cpudesc);
	has_line(text, "# cpuid : %s\n", h->cpuid);
	has_line(text, "# total memory : %lu kB\n", h->total_mem_kib);
	for (size_t i = 0; i < h->command_count; i++) {
		strncat(command, " ", sizeof(command) - strlen(command) - 1);
		strncat(command, h->command[i], sizeof(command) - strlen(command) - 1);
	}
	has_line(text, "# cmdline :%s \n", command);
	free(text);
	close_data(&o);
}

static void same_events(const char *file)
{
	struct opened o = open_data(file);
	char *text = output("perf evlist -v -i %s 2>/dev/null", file);
	size_t count;
	const struct rt_perf_event *events = rt_perf_reader_events(o.reader, &count);
	const char *line = text;

	assert_non_null(text);
	for (size_t i = 0; i < count; i++) {
		char config[32] = "", want[256];
		const struct perf_event_attr *a = &events[i].attr;

		if (a->config)
			snprintf(config, sizeof(config), ", config: %#llx", (unsigned long long)a->config);
		snprintf(want, sizeof(want), "%s: type: %u, size: %u%s, ", events[i].name, a->type, a->size, config);
		assert_memory_equal(line, want, strlen(want));
		snprintf(want, sizeof(want), "{ sample_period, sample_freq }: %llu,",
			 (unsigned long long)a->sample_period);
		assert_true(!a->sample_period || strstr(line, want));
		assert_int_equal(a->sample_id_all, 1);
		line = strchr(line, '\n') + 1;
	}
	assert_true(!*line || *line == '#');
	free(text);
	close_data(&o);
}

TEST(callchains)
{
	struct opened o;
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	struct rt_sink ours;
	char *theirs;
	bool more = true;

	record("-e cpu-clock -g -o g.data ./spin");
	same_as_perf("g.data");
	same_header("g.data");
	same_events("g.data");
	o = open_data("g.data");
	assert_ok(rt_perf_order_create(o.reader, &order));
	rt_sink_init_memory(&ours);
	while (more) {
		struct rt_perf_record r;

		assert_ok(rt_perf_order_next(order, &r, &more));
		if (!more || r.type != RT_PERF_SAMPLE)
			continue;
		rt_sink_printf(&ours, "%#lx nr:%lu\n", r.offset, r.sample.chain_count);
		for (uint64_t i = 0; i < r.sample.chain_count; i++)
			rt_sink_printf(&ours, "%lu: %016lx\n", i, r.sample.chain[i]);
	}
	theirs = output("perf script -D -i g.data 2>/dev/null | sed -nE "
			"-e 's/.* (0x[0-9a-f]+) \\[0x[0-9a-f]+\\]: PERF_RECORD_SAMPLE.*/\\1/;T chain;h;b' "
			"-e ':chain;s/^\\.\\.\\. (FP chain|chain): nr/nr/;T frame;H;x;s/\\n/ /;p;b' "
			"-e ':frame;s/^\\.\\.\\.\\.\\. +([0-9]+: [0-9a-f]+)$/\\1/;T;p'");
	compare("chains", ours.buffer, squeezed(theirs));
	rt_sink_deinit(&ours);
	rt_perf_order_destroy(rt_take(order));
	close_data(&o);
}

TEST(build_ids)
{
	struct opened o;
	struct rt_sink ours;
	const struct rt_perf_header *h;

	record("-e cpu-clock -o b.data ./spin");
	o = open_data("b.data");
	h = rt_perf_reader_header(o.reader);
	rt_sink_init_memory(&ours);
	for (size_t i = 0; i < h->build_id_count; i++) {
		for (unsigned n = 0; n < h->build_ids[i].size; n++)
			rt_sink_printf(&ours, "%02x", h->build_ids[i].id[n]);
		rt_sink_printf(&ours, " %s\n", h->build_ids[i].path);
	}
	compare("build-ids", ours.buffer, squeezed(output("perf buildid-list -i b.data 2>/dev/null")));
	rt_sink_deinit(&ours);
	close_data(&o);
}

TEST(system_wide_two_events)
{
	record("-F 500 -e cpu-clock,task-clock -a -o a.data ./spin");
	same_as_perf("a.data");
	same_header("a.data");
	same_events("a.data");
}

TEST(compressed)
{
	struct opened o;

	record("-z -F 5000 -e cpu-clock -g -o z.data ./spin");
	same_as_perf("z.data");
	o = open_data("z.data");
	assert_true(rt_perf_reader_header(o.reader)->compressed);
	close_data(&o);
}

TEST(pipe_stream)
{
	record("-F 500 -e cpu-clock,task-clock -o - ./spin > p.data");
	same_as_perf("p.data");
	same_header("p.data");
}

/* Every record that perf sees, we see: number, place, size and kind. */
TEST(every_record)
{
	struct opened o;
	struct rt_sink ours;
	char *theirs, *sorted;
	char path[PATH_MAX];
	FILE *f;
	bool more = true;

	record("-e cpu-clock --all-cgroups --namespaces -o r.data ./spin");
	o = open_data("r.data");
	rt_sink_init_memory(&ours);
	while (more) {
		struct rt_perf_record r;

		assert_ok(rt_perf_reader_next(o.reader, &r, &more));
		if (more)
			rt_sink_printf(&ours, "%#lx [%#zx]: event: %u\n", r.offset, r.bytes.size, r.type);
	}
	assert_null(rt_perf_reader_damage(o.reader));
	snprintf(path, sizeof(path), "%s/ours", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(ours.buffer, f);
	fclose(f);
	sorted = output("LC_ALL=C sort ours");
	theirs = output(
		"perf script -D -i r.data 2>/dev/null | sed -nE 's/^(0x[0-9a-f]+)@[^ ]* (.*event: )/\\1 \\2/p' | "
		"LC_ALL=C sort");
	compare("records", sorted, squeezed(theirs));
	free(sorted);
	rt_sink_deinit(&ours);
	close_data(&o);
}

/* Samples of tracepoints as text; those whose print format computes are left out on both sides. */
static void same_trace(const char *file, const char *events)
{
	struct opened o = open_data(file);
	_cleanup_(rt_tracing_destroyp) struct rt_tracing *tracing = NULL;
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	struct rt_sink ours;
	char *theirs;
	bool more = true;

	assert_ok(rt_perf_order_create(o.reader, &order));
	rt_sink_init_memory(&ours);
	while (more) {
		struct rt_perf_record r;
		const struct rt_perf_event *event;
		const struct rt_trace_event *trace;
		size_t count;

		assert_ok(rt_perf_order_next(order, &r, &more));
		if (!more || r.type != RT_PERF_SAMPLE)
			continue;
		if (!tracing)
			assert_ok(rt_tracing_create(rt_perf_reader_header(o.reader)->tracing_data, &tracing));
		event = &rt_perf_reader_events(o.reader, &count)[r.event];
		if (event->attr.type != PERF_TYPE_TRACEPOINT)
			continue;
		trace = rt_tracing_event(tracing, event->attr.config);
		assert_non_null(trace);
		assert_non_null(strstr(event->name, trace->name));
		if (!strstr(events, trace->name))
			continue;
		rt_sink_printf(&ours, "%d %lu.%09lu: %s:%s: ", r.id.tid, r.id.time_ns / 1000000000,
			       r.id.time_ns % 1000000000, trace->group, trace->name);
		rt_trace_print(tracing, trace, r.sample.raw, &ours);
		rt_sink_puts(&ours, "\n");
	}
	assert_null(rt_perf_reader_damage(o.reader));
	theirs = output("perf script -i %s --ns -F tid,time,event,trace 2>/dev/null | grep -E '%s'", file, events);
	compare(file, squeezed(ours.buffer), squeezed(theirs));
	rt_sink_deinit(&ours);
	rt_perf_order_destroy(rt_take(order));
	close_data(&o);
}

TEST(tracepoints)
{
	static const char some[] = "sched_process_fork|sched_wakeup|sched_process_exec|sched_stat_runtime";

	record("-e sched:sched_process_fork,sched:sched_wakeup,sched:sched_process_exec,sched:sched_switch,"
	       "sched:sched_stat_runtime,cpu-clock -o t.data ./spin");
	same_as_perf("t.data");
	same_trace("t.data", some);
	record("-e sched:sched_process_fork,sched:sched_wakeup,sched:sched_process_exec -o - ./spin > tp.data");
	same_as_perf("tp.data");
	same_trace("tp.data", some);
}

TEST(probes)
{
	char *done;

	prepare();
	done = output("perf probe -q -x ./spin rtread%d:poke=poke a b 2>&1 && "
		      "perf probe -q -x ./spin 'rtread%d:back=poke%%return $retval:s32' 2>&1",
		      getpid(), getpid());
	if (done) {
		free(done);
		done = output("perf record -q -e 'rtread%d:*' -o u.data ./spin", getpid());
	}
	free(output("perf probe -q -d 'rtread%d:*' 2>&1", getpid()));
	if (!done)
		skip();
	free(done);
	same_trace("u.data", "poke|back__return");
}

/* Registers and stacks of user space, addresses, switches: fields that stand before and behind them still fit. */
TEST(stacks_for_unwinding)
{
	struct opened o;
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	struct rt_sink ours;
	bool more = true;

	record("-e cpu-clock --call-graph dwarf,2048 -d --phys-data --switch-events -F 500 -o d.data ./spin");
	same_as_perf("d.data");
	o = open_data("d.data");
	rt_sink_init_memory(&ours);
	assert_ok(rt_perf_order_create(o.reader, &order));
	while (more) {
		struct rt_perf_record r;

		assert_ok(rt_perf_order_next(order, &r, &more));
		if (!more || r.type != RT_PERF_SAMPLE)
			continue;
		if (r.sample.user_abi)
			rt_sink_printf(&ours, ".... AX 0x%016lx\n", r.sample.user_regs[0]);
		if (r.sample.user_stack.size)
			rt_sink_printf(&ours, "... ustack: size %lu, offset 0x\n", r.sample.user_stack_size);
	}
	compare("registers and stacks", ours.buffer,
		squeezed(output("perf script -D -i d.data 2>/dev/null | grep -E '^.... AX |ustack: size' | "
				"sed -E 's/offset 0x.*/offset 0x/'")));
	rt_sink_deinit(&ours);
	rt_perf_order_destroy(rt_take(order));
	close_data(&o);
}

/* One sample with the values of a whole group. */
TEST(group_values)
{
	struct opened o;
	char *theirs;
	unsigned samples = 0, lines = 0;
	bool more = true;

	record("-e '{cpu-clock,task-clock}:S' -g -F 500 -o group.data ./spin");
	o = open_data("group.data");
	while (more) {
		struct rt_perf_record r;

		assert_ok(rt_perf_reader_next(o.reader, &r, &more));
		if (!more || r.type != RT_PERF_SAMPLE)
			continue;
		samples++;
		assert_int_equal(r.sample.read.data[0], 2);
		assert_true(r.sample.chain_count > 0);
	}
	assert_null(rt_perf_reader_damage(o.reader));
	theirs = output("perf script -D -i group.data 2>/dev/null | grep -c PERF_RECORD_SAMPLE");
	assert_non_null(theirs);
	lines = (unsigned)strtoul(theirs, NULL, 10);
	assert_int_equal(samples, lines);
	free(theirs);
	close_data(&o);
}

TEST(unfinished)
{
	struct opened o;
	char *done;
	struct rt_perf_record r;
	unsigned samples = 0;
	bool more = true;

	prepare();
	/* perf dies while it records, once it has written samples: the size of the data stays 0 */
	done = output("perf record -q -m 1 -e cpu-clock -o k.data sh -c 's=$(($(stat -c %%s k.data) + 8192)); "
		      "while [ $(stat -c %%s k.data) -lt $s ]; do ./spin; done; kill -9 $PPID' 2>/dev/null; "
		      "test -s k.data");
	if (!done)
		skip();
	free(done);
	o = open_data("k.data");
	assert_true(rt_perf_reader_header(o.reader)->unfinished);
	assert_null(rt_perf_reader_header(o.reader)->hostname);
	assert_non_null(strstr(rt_perf_reader_damage(o.reader), "never finished"));
	while (more) {
		assert_ok(rt_perf_reader_next(o.reader, &r, &more));
		samples += more && r.type == RT_PERF_SAMPLE;
	}
	assert_null(strstr(rt_perf_reader_damage(o.reader), "at 0x1"));
	assert_true(samples > 0);
	close_data(&o);
}

static __attribute__((destructor)) void clean(void)
{
	if (!strstr(folder, "XXXXXX"))
		free(output("rm -rf %s", folder));
}

TEST_MAIN();
