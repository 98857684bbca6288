// SPDX-License-Identifier: GPL-2.0-only
/*
 * At every start a forked child calls a small function of ours a known number
 * of times: directly, from a second thread, and from a child of its own that
 * has no link and must be neither counted nor harmed. Kernels differ in what
 * they get wrong here (events of threads lost, forked children killed), and
 * no version number tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "engine/uprobe_priv.h"

#define CALLS 5
#define THREAD_CALLS 3
#define ALL_CALLS (CALLS + THREAD_CALLS)
#define OBJECT 0x5eed0000u
#define SURVIVED 42

/* In asm, so that the first instruction, the return address and the result are known. */
void rt_uprobe_target(uint64_t object);
extern const char rt_uprobe_after[];
__asm__(".pushsection .text\n"
	".globl rt_uprobe_target, rt_uprobe_call, rt_uprobe_after\n"
	".hidden rt_uprobe_target, rt_uprobe_call, rt_uprobe_after\n"
	".type rt_uprobe_target, @function\n"
	".type rt_uprobe_call, @function\n"
	"rt_uprobe_target:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov %rdi, %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size rt_uprobe_target, . - rt_uprobe_target\n"
	"rt_uprobe_call:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call rt_uprobe_target\n"
	"rt_uprobe_after:\n"
	"	pop %rbp\n"
	"	ret\n"
	".size rt_uprobe_call, . - rt_uprobe_call\n"
	".popsection\n");

static int find_own(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct rt_uprobe_own *own = arg;
	uint64_t at = (uintptr_t)rt_uprobe_target - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || at < p->p_vaddr || at - p->p_vaddr >= p->p_filesz)
			continue;
		own->bias = info->dlpi_addr;
		own->address = at;
		own->offset = at - p->p_vaddr + p->p_offset;
		return 1;
	}
	return 0;
}

struct rt_error *rt_uprobe_own_site(struct rt_uprobe_own *ret)
{
	if (!dl_iterate_phdr(find_own, ret))
		return rt_error_new(RT_E_INTERNAL, "self-test: our own code is not in our own program");
	return NULL;
}

static void *call_in_thread(void *arg)
{
	for (int i = 0; i < THREAD_CALLS; i++)
		rt_uprobe_call(OBJECT);
	return arg;
}

/* The child: waits for the word, makes its calls, and says by its exit status that all went well. */
static _Noreturn void child_main(int go)
{
	pthread_t thread;
	int status = 0;
	pid_t pid;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) != 1)
		_exit(1);
	for (int i = 0; i < CALLS; i++)
		rt_uprobe_call(OBJECT);
	pid = fork();
	if (!pid) {
		rt_uprobe_call(OBJECT);
		_exit(SURVIVED);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != SURVIVED)
		_exit(2);
	if (pthread_create(&thread, NULL, call_in_thread, NULL) || pthread_join(thread, NULL))
		_exit(3);
	_exit(SURVIVED);
}

struct seen {
	struct rt_event_sink sink;
	uint32_t entry_point, return_point;
	unsigned entries, returns, wrong;
	uint32_t good[2 * ALL_CALLS]; /* stacks whose frame 0 is right */
	unsigned good_count;
};

static bool is_good(const struct seen *seen, uint32_t stack)
{
	for (unsigned i = 0; i < seen->good_count; i++)
		if (seen->good[i] == stack)
			return true;
	return false;
}

static struct rt_error *see(struct rt_event_sink *sink, const struct rt_wire_head *record)
{
	struct seen *seen = (struct seen *)(void *)sink;

	if (record->kind == RT_WIRE_STACK) {
		const struct rt_wire_stack *s = (const void *)record;

		if (s->nr && s->frame[0].pc == (uintptr_t)rt_uprobe_after && seen->good_count < 2 * ALL_CALLS)
			seen->good[seen->good_count++] = s->id;
	} else if (record->kind == RT_WIRE_EVENT) {
		const struct rt_wire_event *e = rt_record_event(record);

		seen->entries += e->point == seen->entry_point;
		seen->returns += e->point == seen->return_point;
		seen->wrong += e->object != OBJECT || !is_good(seen, e->stack);
	}
	return NULL;
}

static void keep_failure(const struct rt_arm_failure *failure, void *arg)
{
	*(struct rt_arm_failure *)arg = *failure;
}

/* Arms the function in the child, lets it run to its end. */
static struct rt_error *run_child(struct rt_uprobe *u, struct seen *seen, pid_t pid, int go)
{
	struct rt_uprobe_own own = { 0 };
	struct rt_arm_failure failure = { 0 };
	struct rt_uprobe_report report = { keep_failure, &failure };
	struct rt_arm arm = { .pid = (uint32_t)pid, .path = "/proc/self/exe" };
	struct rt_point entry = { .id = seen->entry_point,
				  .kind = RT_POINT_ENTRY,
				  .op = RT_OP_GET,
				  .cfa_delta = 8,
				  .reg = RT_REG_RDI,
				  .counter_offset = RT_COUNTER_UNKNOWN };
	struct rt_point leave = entry;
	const struct rt_point *points[] = { &entry, &leave };

	RT_TRY(rt_uprobe_own_site(&own));
	leave.id = seen->return_point;
	leave.kind = RT_POINT_RETURN;
	leave.place = RT_PLACE_RET;
	entry.address.v = leave.address.v = own.address;
	entry.offset.v = leave.offset.v = own.offset;
	arm.points = points;
	arm.point_count = 2;
	arm.bias = own.bias;
	RT_TRY(rt_uprobe_extend(u, &arm, &report));
	if (failure.point)
		return rt_error_new(RT_E_SELF_TEST, "self-test: our own function cannot be probed: %s (%d)",
				    failure.why, failure.errnum);
	if (write(go, "", 1) != 1)
		return rt_error_errno(RT_E_SYSTEM, errno, "self-test: cannot start the child");
	return NULL;
}

static struct rt_error *judge(const struct seen *seen, int status)
{
	if (!WIFEXITED(status) || WEXITSTATUS(status) != SURVIVED)
		return rt_error_new(RT_E_SELF_TEST, "self-test: a probed child was harmed (wait status 0x%x)", status);
	if (seen->entries != ALL_CALLS || seen->returns != ALL_CALLS)
		return rt_error_new(RT_E_SELF_TEST, "self-test: %u calls and %u returns seen where %u were made",
				    seen->entries, seen->returns, ALL_CALLS);
	if (seen->wrong)
		return rt_error_new(RT_E_SELF_TEST, "self-test: %u of %u events with a wrong object or caller",
				    seen->wrong, 2 * ALL_CALLS);
	return NULL;
}

void rt_uprobe_forget_test(struct rt_uprobe *u, uint32_t first, uint32_t last)
{
	for (uint32_t point = first; point <= last; point++) {
		u->probes[point] = (struct rt_probe){ 0 };
		u->records[point] = 0;
		for (uint32_t cpu = 0; cpu < u->cpus; cpu++)
			u->counts[(size_t)cpu * u->points + point] = (struct rt_probe_count){ 0 };
	}
	u->last_point = 0;
	rt_uprobe_expect_returns(u, false);
}

struct rt_error *rt_uprobe_selftest(struct rt_uprobe *u)
{
	struct seen seen = { .sink = { see }, .entry_point = u->points - 2, .return_point = u->points - 1 };
	_cleanup_close_ int from = -1, to = -1;
	struct rt_error *err;
	int pipe_fds[2], status = 0;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return rt_error_errno(RT_E_SYSTEM, errno, "self-test: cannot make a pipe");
	from = pipe_fds[0];
	to = pipe_fds[1];
	pid = fork();
	if (pid < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "self-test: cannot fork");
	if (!pid) {
		close(to);
		child_main(from);
	}
	err = run_child(u, &seen, pid, to);
	if (err)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!err)
		err = rt_ring_drain(u, &seen.sink);
	if (!err)
		err = judge(&seen, status);
	u->base.ops->forget(&u->base, (uint32_t)pid);
	rt_uprobe_forget_test(u, seen.entry_point, seen.return_point);
	return err;
}
