/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a traced get costs the target, in CPU time of its own thread. One
 * program plays both parts; bench/engine.py puts the numbers side by side with
 * those of other tracers.
 *
 *   engine target FUNCTION LOOPS [bare]   stops itself, then calls FUNCTION 100 x LOOPS times from a
 *                                         stack of 16 frames; prints nanoseconds per call (least of 100);
 *                                         bare: the code of that stack has no frame pointers
 *   engine measure WAY FUNCTION LOOPS     runs the above under WAY: none, empty (a BPF program that
 *                                         does nothing), reftrace, counter (reftrace reading the counter),
 *                                         bare (reftrace on a stack without frame pointers), pointers (as it
 *                                         walks where no unwind rows are known)
 *   engine where FUNCTION                 ELF address and file offset of FUNCTION
 *   engine sites                          arms 10 000 functions of a standing program in one go, then kills who did:
 *                                         milliseconds until they are armed, and from the kill until none is any more
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "engine/uprobe_priv.h"
#include "maps/maps.h"

#define RUNS 100

struct object {
	long pad;
	int refs;
};

void cheap_get(struct object *o);
void slow_get(struct object *o);
void lock_get(struct object *o);
extern const char cheap_site[], slow_site[], lock_site[];
/*
 * Entries as compilers make them: a push, which the kernel emulates; endbr64 and a mov, each of which it would
 * single-step; and a locked operation, which it cannot probe at all. The sites are what site choice takes.
 */
__asm__(".text\n"
	".globl cheap_get, slow_get, lock_get, cheap_site, slow_site, lock_site\n"
	".type cheap_get, @function\n.type slow_get, @function\n.type lock_get, @function\n"
	".balign 16\n"
	"cheap_get: .cfi_startproc\ncheap_site: push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset rbp, -16\n"
	" mov %rsp, %rbp\n incl 8(%rdi)\n pop %rbp\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
	".size cheap_get, . - cheap_get\n"
	".balign 16\n"
	"slow_get: .cfi_startproc\n endbr64\n mov %rdi, %rax\nslow_site: push %rbx\n .cfi_def_cfa_offset 16\n"
	" mov %rax, %rbx\n incl 8(%rbx)\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
	".size slow_get, . - slow_get\n"
	".balign 16\n"
	"lock_get: .cfi_startproc\n lock incl 8(%rdi)\nlock_site: push %rbp\n .cfi_def_cfa_offset 16\n pop %rbp\n"
	" .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
	".size lock_get, . - lock_get\n");

enum { SITES = 10000, SITE_BYTES = 16 };

extern const char many_sites[];
/* SITES functions, one behind the other, that nobody calls. */
__asm__(".text\n"
	".balign 16\n"
	"many_sites:\n"
	".rept 10000\n"
	" push %rbp\n pop %rbp\n ret\n .balign 16\n"
	".endr\n");

static const struct function {
	const char *name;
	void (*call)(struct object *);
	const char *site;
} functions[] = {
	{ "cheap_get", cheap_get, cheap_site },
	{ "slow_get", slow_get, slow_site },
	{ "lock_get", lock_get, lock_site },
};

static const struct function *find_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	fprintf(stderr, "engine: no function %s\n", name);
	exit(2);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct object object = { 0, 1 };
static volatile long frames_kept;

__attribute__((noinline)) static double loop(const struct function *f, long loops)
{
	double least = 1e18;

	f->call(&object);
	for (int run = 0; run < RUNS; run++) {
		uint64_t start = cpu_ns();
		double each;

		for (long i = 0; i < loops; i++)
			f->call(&object);
		each = (double)(cpu_ns() - start) / (double)loops;
		if (each < least)
			least = each;
	}
	return least;
}

/* So many calls deep, then the loop: with main and its callers some 16 frames (built with frame pointers). */
__attribute__((noinline)) static double descend(const struct function *f, long loops, int depth)
{
	double least = depth ? descend(f, loops, depth - 1) : loop(f, loops);

	frames_kept++; /* no tail call */
	return least;
}

/* clang has no such attribute: built by it, this one has frame pointers as well, and so says the same as above */
#ifdef __clang__
#define BARE __attribute__((noinline))
#else
#define BARE __attribute__((noinline, optimize("omit-frame-pointer")))
#endif

BARE static double descend_bare(const struct function *f, long loops, int depth)
{
	double least = depth ? descend_bare(f, loops, depth - 1) : loop(f, loops);

	frames_kept++;
	return least;
}

enum { DEPTH = 12 };

static int be_target(const char *name, const char *loops, bool bare)
{
	const struct function *f = find_function(name);
	long n = strtol(loops, NULL, 10);

	raise(SIGSTOP);
	printf("%.1f\n", bare ? descend_bare(f, n, DEPTH) : descend(f, n, DEPTH));
	return 0;
}

static uint64_t bias, segment_address, segment_offset;

static int find_self(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t at = (uintptr_t)cheap_get - info->dlpi_addr;

	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || at < p->p_vaddr || at - p->p_vaddr >= p->p_filesz)
			continue;
		bias = info->dlpi_addr;
		segment_address = p->p_vaddr;
		segment_offset = p->p_offset;
		return 1;
	}
	return 0;
}

static uint64_t file_offset(const void *at)
{
	return (uintptr_t)at - bias - segment_address + segment_offset;
}

/* Where the target has loaded the same program. */
static uint64_t target_bias(pid_t pid)
{
	char name[64], line[512], self[256] = "";
	uint64_t start = 0;
	FILE *f;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 0;
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "r");
	while (f && !start && fgets(line, sizeof(line), f))
		if (strstr(line, self) && sscanf(line, "%lx", &start) != 1)
			start = 0;
	if (f)
		fclose(f);
	return start;
}

static void die(struct rt_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "engine: %s\n", err->message);
	exit(1);
}

static struct rt_error *count(struct rt_event_sink *sink, const struct rt_wire_head *record);

static struct counter {
	struct rt_event_sink sink;
	long events;
} counter = { .sink = { count } };

static struct rt_error *count(struct rt_event_sink *sink, const struct rt_wire_head *record)
{
	(void)sink;
	counter.events += record->kind == RT_WIRE_EVENT;
	return NULL;
}

static void complain(const struct rt_arm_failure *failure, void *arg)
{
	(void)arg;
	fprintf(stderr, "engine: not armed: %s\n", failure->why);
	exit(1);
}

/* Rows of one mapping; the image is only needed for that. */
static void describe(const struct rt_maps_line *line, struct rt_engine_code *ret)
{
	struct rt_unwind_rows *rows = NULL;
	struct rt_image *image = NULL;
	struct rt_elfaddr at;

	die(rt_image_open(line->path, &image));
	die(rt_unwind_rows_create(image, &rows));
	if (!rt_image_address(image, (struct rt_foff){ line->offset }, true, &at))
		exit(1);
	*ret = (struct rt_engine_code){ line->start, line->end, line->start - at.v, (uint32_t)line->inode, rows };
	rt_image_destroy(image);
}

/* As a session does before it arms. */
static void tell_code(struct rt_engine *e, pid_t pid)
{
	struct rt_engine_code code[16];
	char name[64], text[65536], *cursor = text;
	struct rt_maps_line line;
	size_t count = 0, size;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "r");
	size = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[size] = '\0';
	if (f)
		fclose(f);
	while (count < 16 && rt_maps_parse_line(&cursor, &line))
		if (line.executable && line.path[0] == '/')
			describe(&line, &code[count++]);
	die(e->ops->code(e, &(struct rt_arm){ .pid = (uint32_t)pid }, code, count));
	while (count)
		rt_unwind_rows_destroy((struct rt_unwind_rows *)(uintptr_t)code[--count].rows);
}

static struct rt_engine *trace(pid_t pid, const struct function *f, bool read_counter, bool rows)
{
	uint64_t address = (uintptr_t)f->site - bias;
	struct rt_engine_options options = { .root_fd = AT_FDCWD };
	struct rt_point point = { .id = 1,
				  .module = 1,
				  .type = 1,
				  .kind = RT_POINT_ENTRY,
				  .op = RT_OP_GET,
				  .delta = 1,
				  .address = { address },
				  .offset = { file_offset(f->site) },
				  .cfa_delta = 8,
				  .reg = RT_REG_RDI,
				  .counter_offset = read_counter ? 8 : RT_COUNTER_UNKNOWN,
				  .counter_size = 4 };
	const struct rt_point *points[] = { &point };
	struct rt_arm arm = { .pid = (uint32_t)pid,
			      .path = "/proc/self/exe",
			      .points = points,
			      .point_count = 1,
			      .bias = target_bias(pid) };
	struct rt_engine *e = NULL;

	die(rt_engine_uprobe.open(&options, &e));
	if (rows)
		tell_code(e, pid);
	die(e->ops->extend(e, &arm, complain, NULL));
	return e;
}

/* A link with a program of two instructions. */
static void probe_with_nothing(pid_t pid, const struct function *f)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)RT_ATTACH_TYPE_MULTI);
	uint64_t offset = file_offset(f->site), cookie = 0;
	struct rt_multi_request request = {
		.prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "nothing", "GPL", code, 2, &opts),
		.type = RT_ATTACH_TYPE_MULTI,
		.pid = (uint32_t)pid,
		.path = "/proc/self/exe",
		.offsets = &offset,
		.cookies = &cookie,
		.count = 1,
	};

	if (request.prog < 0 || rt_multi_link(&request) < 0) {
		perror("engine: empty program");
		exit(1);
	}
}

static int measure(const char *way, const char *name, const char *loops)
{
	const struct function *f = find_function(name);
	struct rt_engine *e = NULL;
	int out[2], status = 0;
	char text[64] = "";
	pid_t pid;

	if (pipe(out))
		return 1;
	pid = fork();
	if (!pid) {
		/* it stands still until it is told to go on */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		execl("/proc/self/exe", "engine", "target", name, loops, !strcmp(way, "bare") ? way : NULL,
		      (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return 1;
	if (!strcmp(way, "empty"))
		probe_with_nothing(pid, f);
	else if (strcmp(way, "none"))
		e = trace(pid, f, !strcmp(way, "counter"), strcmp(way, "pointers"));
	kill(pid, SIGCONT);
	while (!waitpid(pid, &status, WNOHANG)) {
		if (e)
			die(e->ops->drain(e, &counter.sink));
		usleep(1000);
	}
	if (e) {
		die(e->ops->stop(e, &counter.sink));
		e->ops->close(e);
		if (counter.events != 1 + RUNS * strtol(loops, NULL, 10)) {
			fprintf(stderr, "engine: %ld events of %ld calls\n", counter.events,
				1 + RUNS * strtol(loops, NULL, 10));
			return 1;
		}
	}
	if (status || read(out[0], text, sizeof(text) - 1) <= 0)
		return 1;
	fputs(text, stdout);
	return 0;
}

/* Arms all of many_sites in pid and says how long that took; then stands. */
static void arm_many(pid_t pid, int say)
{
	static struct rt_point points[SITES];
	static const struct rt_point *list[SITES];
	struct rt_engine_options options = { .root_fd = AT_FDCWD };
	struct rt_arm arm = { .pid = (uint32_t)pid,
			      .path = "/proc/self/exe",
			      .points = list,
			      .point_count = SITES,
			      .bias = target_bias(pid) };
	struct rt_engine *e = NULL;
	uint64_t start, took;

	for (unsigned i = 0; i < SITES; i++) {
		const char *site = many_sites + (size_t)i * SITE_BYTES;

		points[i] = (struct rt_point){ .id = i + 1,
					       .module = 1,
					       .type = 1,
					       .kind = RT_POINT_ENTRY,
					       .op = RT_OP_GET,
					       .delta = 1,
					       .address = { (uintptr_t)site - bias },
					       .offset = { file_offset(site) },
					       .cfa_delta = 8,
					       .reg = RT_REG_RDI,
					       .counter_offset = RT_COUNTER_UNKNOWN };
		list[i] = &points[i];
	}
	/* ahead of others, as a session is */
	(void)setpriority(PRIO_PROCESS, 0, -10);
	die(rt_engine_uprobe.open(&options, &e));
	start = rt_now_ns();
	die(e->ops->extend(e, &arm, complain, NULL));
	took = rt_now_ns() - start;
	if (write(say, &took, sizeof(took)) != sizeof(took))
		exit(1);
	for (;;)
		pause();
}

/* How many of many_sites are breakpoints in the process whose memory that is. */
static unsigned armed_sites(int mem, uint64_t address)
{
	static uint8_t text[SITES * SITE_BYTES];
	unsigned armed = 0;

	if (pread(mem, text, sizeof(text), (off_t)address) != (ssize_t)sizeof(text))
		return UINT_MAX;
	for (unsigned i = 0; i < SITES; i++)
		armed += text[(size_t)i * SITE_BYTES] == 0xcc;
	return armed;
}

static int many(void)
{
	uint64_t took = 0, start, address;
	pid_t target = fork(), tracer;
	unsigned armed, left;
	int say[2], status;
	char name[64];

	if (!target) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	snprintf(name, sizeof(name), "/proc/%d/mem", target);
	int mem = open(name, O_RDONLY | O_CLOEXEC);

	if (target < 0 || mem < 0 || pipe(say))
		return 1;
	tracer = fork();
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		arm_many(target, say[1]);
	}
	close(say[1]);
	if (tracer < 0 || read(say[0], &took, sizeof(took)) != sizeof(took))
		return 1;
	address = (uintptr_t)many_sites; /* the target is a copy of this process */
	armed = armed_sites(mem, address);
	start = rt_now_ns();
	kill(tracer, SIGKILL);
	while ((left = armed_sites(mem, address)) && left != UINT_MAX)
		usleep(500);
	printf("%.1f %.1f\n", (double)took / 1e6, (double)(rt_now_ns() - start) / 1e6);
	waitpid(tracer, &status, 0);
	kill(target, SIGKILL);
	waitpid(target, &status, 0);
	if (armed != SITES || left) {
		fprintf(stderr, "engine: %u of %d sites were armed\n", armed, SITES);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	dl_iterate_phdr(find_self, NULL);
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "target"))
		return be_target(argv[2], argv[3], argc == 5 && !strcmp(argv[4], "bare"));
	if (argc == 5 && !strcmp(argv[1], "measure"))
		return measure(argv[2], argv[3], argv[4]);
	if (argc == 3 && !strcmp(argv[1], "where")) {
		const struct function *f = find_function(argv[2]);

		printf("0x%lx 0x%lx\n", (uintptr_t)f->call - bias, file_offset((const void *)(uintptr_t)f->call));
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "sites"))
		return many();
	fputs("usage: engine target FUNCTION LOOPS [bare] | measure WAY FUNCTION LOOPS | where FUNCTION | sites\n",
	      stderr);
	return 2;
}
