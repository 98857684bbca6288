/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/doctor_checks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf_common.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/text.h"
#include "elf/image.h"
#include "engine/engine.h"
#include "insn/insn.h"
#include "report/words.h"

enum { CALLS = 100, CHECKS = 9 };

#define FIX_ROOT "sudo reftrace doctor (needed: CAP_BPF and CAP_PERFMON, or root)"

/* What is probed: never inlined, and its calls are not merged. */
static __attribute__((noinline)) unsigned probe_me(unsigned n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static void call_it(void)
{
	volatile unsigned n = 0;

	for (unsigned i = 0; i < CALLS; i++)
		n = probe_me(n);
}

/* File offset of probe_me() in our own executable. */
static bool own_offset(uint64_t *ret)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	extern const char __ehdr_start[];
	struct rt_elfaddr addr = { (uint64_t)(uintptr_t)probe_me };
	struct rt_error *err = rt_image_open("/proc/self/exe", &image);
	struct rt_foff offset;

	if (err) {
		rt_error_free(err);
		return false;
	}
	if (image->type == 3 /* ET_DYN */)
		addr.v -= (uint64_t)(uintptr_t)__ehdr_start;
	if (!rt_image_offset(image, addr, &offset))
		return false;
	*ret = offset.v;
	return true;
}

static void yes(struct rt_check *check, const char *why)
{
	check->works = true;
	check->why = why;
}

static void no(struct rt_check *check, const char *why, const char *fix)
{
	check->why = why;
	check->fix = fix;
}

static const char *errno_text(struct rt_arena *arena, const char *what)
{
	int saved = errno;

	return rt_format(arena, "%s: %s", what, strerror(saved));
}

static const char *bpf_fix(void)
{
	return errno == EPERM || errno == EACCES ? FIX_ROOT
	       : errno == ENOSYS                 ? "a kernel with CONFIG_BPF_SYSCALL=y"
						 : NULL;
}

/*
 * What is needed of linux/bpf.h. That header lists helper names that base/banned.h poisons, and in Debian 12 it is
 * older than uprobe_multi links (Linux 6.6).
 */
enum {
	CMD_MAP_CREATE = 0,
	CMD_MAP_LOOKUP = 1,
	CMD_PROG_LOAD = 5,
	CMD_LINK_CREATE = 28,
	MAP_TYPE_ARRAY = 2,
	PROG_TYPE_KPROBE = 2,
	ATTACH_UPROBE_MULTI = 48,
	REG_MAP_VALUE = 2, /* BPF_PSEUDO_MAP_VALUE */
	CODE_MOV64_IMM = BPF_ALU | 7 | 0xb0,
	CODE_ATOMIC_DW = BPF_STX | 0xc0 | 0x18,
	CODE_LD_IMM64 = BPF_LD | BPF_IMM | 0x18,
	CODE_EXIT = BPF_JMP | 0x90,
};

struct insn {
	uint8_t code, regs; /* source << 4 | destination */
	int16_t offset;
	int32_t imm;
};

union attr {
	struct {
		uint32_t type, key_size, value_size, max_entries;
	} map;
	struct {
		uint32_t fd, pad;
		uint64_t key, value;
	} lookup;
	struct {
		uint32_t type, count;
		uint64_t insns, license;
		uint32_t log_level, log_size;
		uint64_t log;
		uint32_t kernel, flags;
		char name[16];
		uint32_t ifindex, expected_attach;
	} prog;
	struct {
		uint32_t prog, target, attach, flags;
		uint64_t path, offsets, ref_ctr_offsets, cookies;
		uint32_t count, multi_flags, pid, pad;
	} link;
	char room[128];
};

static int sys_bpf(int command, union attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int make_map(void)
{
	union attr attr = { .room = { 0 } };

	attr.map.type = MAP_TYPE_ARRAY;
	attr.map.key_size = 4;
	attr.map.value_size = 8;
	attr.map.max_entries = 1;
	return sys_bpf(CMD_MAP_CREATE, &attr);
}

/* A program that adds 1 to the map's only value, for uprobe_multi links when multi is set. */
static int load_program(int map, bool multi)
{
	const struct insn code[] = {
		{ CODE_LD_IMM64, REG_MAP_VALUE << 4 | 1, 0, map }, /* r1 = &value; */
		{ 0 },
		{ CODE_MOV64_IMM, 2, 0, 1 },          /* r2 = 1; */
		{ CODE_ATOMIC_DW, 2 << 4 | 1, 0, 0 }, /* lock *r1 += r2; */
		{ CODE_MOV64_IMM, 0, 0, 0 },          /* return 0; */
		{ CODE_EXIT, 0, 0, 0 },
	};
	union attr attr = { .room = { 0 } };

	attr.prog.type = PROG_TYPE_KPROBE;
	attr.prog.insns = address(code);
	attr.prog.count = sizeof(code) / sizeof(*code);
	attr.prog.license = address("GPL");
	attr.prog.expected_attach = multi ? ATTACH_UPROBE_MULTI : 0;
	return sys_bpf(CMD_PROG_LOAD, &attr);
}

static bool map_value(int map, uint64_t *ret)
{
	uint32_t key = 0;
	union attr attr = { .room = { 0 } };

	attr.lookup.fd = (uint32_t)map;
	attr.lookup.key = address(&key);
	attr.lookup.value = address(ret);
	return !sys_bpf(CMD_MAP_LOOKUP, &attr);
}

static int link_multi(int prog, const char *path, uint64_t offset)
{
	union attr attr = { .room = { 0 } };

	attr.link.prog = (uint32_t)prog;
	attr.link.attach = ATTACH_UPROBE_MULTI;
	attr.link.path = address(path);
	attr.link.offsets = address(&offset);
	attr.link.count = 1;
	attr.link.pid = (uint32_t)getpid();
	return sys_bpf(CMD_LINK_CREATE, &attr);
}

static void check_map(struct rt_arena *arena, struct rt_check *check)
{
	_cleanup_close_ int map = make_map();

	if (map >= 0)
		yes(check, "made one");
	else
		no(check, errno_text(arena, "BPF_MAP_CREATE"), bpf_fix());
}

static void check_program(struct rt_arena *arena, struct rt_check *check)
{
	_cleanup_close_ int map = make_map(), prog = -1;

	prog = map >= 0 ? load_program(map, false) : -1;
	if (prog >= 0)
		yes(check, "the verifier took one");
	else
		no(check, errno_text(arena, "BPF_PROG_LOAD"), bpf_fix());
}

static void check_multi(struct rt_arena *arena, struct rt_check *check)
{
	_cleanup_close_ int map = make_map(), prog = -1, link = -1;
	uint64_t offset, hits = 0;

	if (!own_offset(&offset)) {
		no(check, "reftrace cannot read its own executable", NULL);
		return;
	}
	prog = map >= 0 ? load_program(map, true) : -1;
	if (prog < 0) {
		no(check, errno_text(arena, "BPF_PROG_LOAD"), bpf_fix());
		return;
	}
	link = link_multi(prog, "/proc/self/exe", offset);
	if (link < 0) {
		const char *fix =
			errno == EINVAL ? "Linux 6.6 or newer; until then the tracefs way is used" : bpf_fix();

		no(check, errno_text(arena, "BPF_LINK_CREATE"), fix);
		return;
	}
	call_it();
	if (map_value(map, &hits) && hits == CALLS)
		yes(check, rt_format(arena, "%u calls, %llu hits", CALLS, (unsigned long long)hits));
	else
		no(check, rt_format(arena, "%u calls, but %llu hits", CALLS, (unsigned long long)hits), NULL);
}

static bool write_text(int dir, const char *path, int flags, const char *text)
{
	_cleanup_close_ int fd = openat(dir, path, flags | O_CLOEXEC);
	size_t len = strlen(text);

	return fd >= 0 && write(fd, text, len) == (ssize_t)len;
}

/* Hits of our event in uprobe_profile: "  path event hits missed" by line. */
static uint64_t profile_hits(int dir, const char *event)
{
	_cleanup_free_ char *text = NULL;
	struct rt_error *err = rt_fs_read(dir, "uprobe_profile", 1 << 20, &text, NULL);
	const char *at = err ? NULL : strstr(text, event);
	uint64_t hits = 0;

	rt_error_free(err);
	if (!at)
		return 0;
	at += strlen(event);
	at += strspn(at, " \t");
	return rt_parse_u64(at, strspn(at, "0123456789"), 10, &hits) ? hits : 0;
}

static void try_tracefs(struct rt_arena *arena, struct rt_check *check, int dir, uint64_t offset)
{
	const char *event = rt_format(arena, "doctor_%d", (int)getpid());
	const char *enable = rt_format(arena, "events/reftrace_doctor/%s/enable", event);
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	uint64_t hits;

	exe[n > 0 ? n : 0] = 0;
	if (!write_text(dir, "uprobe_events", O_WRONLY | O_APPEND,
			rt_format(arena, "p:reftrace_doctor/%s %s:0x%llx\n", event, exe, (unsigned long long)offset))) {
		no(check, errno_text(arena, "uprobe_events"), "a kernel with CONFIG_UPROBE_EVENTS=y");
		return;
	}
	if (!write_text(dir, enable, O_WRONLY, "1")) {
		no(check, errno_text(arena, enable), NULL);
	} else {
		call_it();
		hits = profile_hits(dir, event);
		if (hits == CALLS)
			yes(check, rt_format(arena, "%u calls, %llu hits", CALLS, (unsigned long long)hits));
		else
			no(check, rt_format(arena, "%u calls, but %llu hits", CALLS, (unsigned long long)hits), NULL);
		if (!write_text(dir, enable, O_WRONLY, "0"))
			no(check, errno_text(arena, "cannot disable the event again"), NULL);
	}
	if (!write_text(dir, "uprobe_events", O_WRONLY | O_APPEND, rt_format(arena, "-:reftrace_doctor/%s\n", event)))
		no(check, errno_text(arena, "cannot remove the event again"), NULL);
}

static void check_tracefs(struct rt_arena *arena, struct rt_check *check)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	_cleanup_close_ int dir = -1;
	uint64_t offset;

	if (!own_offset(&offset)) {
		no(check, "reftrace cannot read its own executable", NULL);
		return;
	}
	for (size_t i = 0; i < 2 && dir < 0; i++) {
		dir = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir >= 0 && faccessat(dir, "uprobe_events", W_OK, 0)) {
			int saved = errno;

			close(rt_take_fd(&dir));
			errno = saved;
		}
	}
	if (dir >= 0)
		try_tracefs(arena, check, dir, offset);
	else
		no(check, errno_text(arena, "uprobe_events of tracefs"),
		   geteuid() ? "sudo reftrace doctor" : "mount -t tracefs tracefs /sys/kernel/tracing");
}

/* A child that waits to be looked at. -1: errno says why. */
static pid_t waiting_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			pause();
	}
	return pid;
}

static void end_child(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

static void check_ptrace(struct rt_arena *arena, struct rt_check *check)
{
	pid_t pid = waiting_child();
	int status;

	if (pid > 0 && !ptrace(PTRACE_SEIZE, pid, NULL, NULL) && !ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) &&
	    waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) && !ptrace(PTRACE_DETACH, pid, NULL, NULL))
		yes(check, "stopped a child and let it go");
	else
		no(check, errno_text(arena, "ptrace"),
		   "allow ptrace: in a container, --cap-add=SYS_PTRACE; else look at kernel.yama.ptrace_scope");
	end_child(pid);
}

static void check_memory(struct rt_arena *arena, struct rt_check *check)
{
	static const char word[] = "reftrace";
	char got[sizeof(word)] = "";
	pid_t pid = waiting_child();
	struct iovec here = { got, sizeof(got) }, there = { (void *)(uintptr_t)(const void *)word, sizeof(word) };

	if (pid > 0 && process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(word) && !strcmp(got, word))
		yes(check, "read a child's");
	else
		no(check, errno_text(arena, "process_vm_readv"),
		   "allow ptrace: in a container, --cap-add=SYS_PTRACE; else look at kernel.yama.ptrace_scope");
	end_child(pid);
}

static void check_decoder(struct rt_arena *arena, struct rt_check *check)
{
	struct rt_decoder *decoder = NULL;
	struct rt_error *err = rt_decoder_create(RT_MACHINE_X86_64, &decoder);

	if (err)
		no(check, rt_format(arena, "%s %s", rt_code_text(err->code), err->message),
		   err->fix ? rt_format(arena, "%s", err->fix) : NULL);
	else
		yes(check, "opened capstone");
	rt_error_free(err);
	rt_decoder_destroyp(&decoder);
}

static void try_engine(const struct rt_engine_ops *ops, const char *well, struct rt_arena *arena,
		       struct rt_check *check)
{
	struct rt_engine_options options = { .root_fd = AT_FDCWD };
	struct rt_error *err = ops->probe(&options);

	if (!err) {
		yes(check, well);
		return;
	}
	no(check, rt_format(arena, "%s %s", rt_code_text(err->code), err->message),
	   err->fix ? rt_format(arena, "%s", err->fix) : NULL);
	rt_error_free(err);
}

static void check_uprobe(struct rt_arena *arena, struct rt_check *check)
{
	try_engine(&rt_engine_uprobe, "passed its self-test", arena, check);
}

static void check_agent(struct rt_arena *arena, struct rt_check *check)
{
	try_engine(&rt_engine_agent, "has what it needs", arena, check);
}

void rt_doctor_checks(struct rt_arena *arena, struct rt_check **ret, size_t *ret_count)
{
	static const struct {
		const char *name, *what;
		bool needed, engine;
		void (*run)(struct rt_arena *arena, struct rt_check *check);
	} checks[CHECKS] = {
		{ "bpf-map", "make a BPF map", .run = check_map },
		{ "bpf-program", "load a BPF program", .run = check_program },
		{ "uprobe-multi", "count own calls by a uprobe_multi link", .run = check_multi },
		{ "tracefs", "count own calls by a tracefs event", .run = check_tracefs },
		{ "ptrace", "stop a child by ptrace", .needed = true, .run = check_ptrace },
		{ "decoder", "decode instructions", .needed = true, .run = check_decoder },
		{ "memory", "read another process's memory", .run = check_memory },
		{ "engine-uprobe", "engine uprobe (running programs, too)", .engine = true, .run = check_uprobe },
		{ "engine-agent", "engine agent (launched programs)", .engine = true, .run = check_agent },
	};
	struct rt_check *list = rt_arena_alloc(arena, sizeof(*list) * CHECKS);

	*ret = list;
	*ret_count = list ? CHECKS : 0;
	for (size_t i = 0; list && i < CHECKS; i++) {
		list[i] = (struct rt_check){ .name = checks[i].name,
					     .what = checks[i].what,
					     .needed = checks[i].needed,
					     .engine = checks[i].engine };
		checks[i].run(arena, &list[i]);
	}
}
