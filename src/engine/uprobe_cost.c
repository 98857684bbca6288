// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a hit costs on this machine: a child calls the function of the self-test very often and says how much CPU time
 * that took it; with events, without, and with its return. Half of it is the kernel's way to a breakpoint and back, of
 * which no version number tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/uprobe_priv.h"

enum { CALLS = 4096, ROUNDS = 3, DEPTH = 12 };

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Called from as deep as programs call. */
static __attribute__((noinline)) uint64_t calls(unsigned depth)
{
	uint64_t best = UINT64_MAX, start, took;

	if (depth) {
		took = calls(depth - 1);
		__asm__ volatile("" : "+r"(took)); /* no tail call */
		return took;
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		start = cpu_ns();
		for (uint64_t k = 0; k < CALLS; k++)
			rt_uprobe_call(0x5eed0000 + 64 * (k % 64));
		took = cpu_ns() - start;
		best = took < best ? took : best;
	}
	return best / CALLS;
}

/* The child: a measurement for each byte. */
static _Noreturn void child_main(int go, int answer)
{
	uint64_t ns;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(go, &c, 1) == 1) {
		ns = calls(DEPTH);
		if (write(answer, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

struct child {
	pid_t pid;
	int go, answer;
};

static void child_end(struct child *c)
{
	int status;

	if (c->go >= 0)
		close(c->go);
	if (c->answer >= 0)
		close(c->answer);
	while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
}

static struct rt_error *child_begin(struct child *ret)
{
	_cleanup_close_ int go = -1, answer = -1;
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC))
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make a pipe");
	go = to[0];
	ret->go = to[1];
	if (pipe2(from, O_CLOEXEC))
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make a pipe");
	answer = from[1];
	ret->answer = from[0];
	ret->pid = fork();
	if (ret->pid < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot fork");
	if (!ret->pid) {
		close(ret->go);
		child_main(go, answer);
	}
	return NULL;
}

static struct rt_error *drop(struct rt_event_sink *sink, const struct rt_wire_head *record)
{
	(void)sink;
	(void)record;
	return NULL;
}

static struct rt_error *measure(struct rt_uprobe *u, const struct child *c, uint32_t *ret)
{
	struct rt_event_sink sink = { drop };
	uint64_t ns;

	if (write(c->go, "", 1) != 1 || read(c->answer, &ns, sizeof(ns)) != sizeof(ns))
		return rt_error_new(RT_E_SELF_TEST, "a child that was to measure the cost of a hit is gone");
	*ret = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
	return rt_ring_drain(u, &sink);
}

static void keep_failure(const struct rt_arm_failure *failure, void *arg)
{
	*(struct rt_arm_failure *)arg = *failure;
}

/* skip: bytes of instructions before the armed one. */
static struct rt_error *arm(struct rt_uprobe *u, pid_t pid, uint32_t id, enum rt_point_kind kind, unsigned skip)
{
	struct rt_uprobe_own own = { 0 };
	struct rt_arm_failure failure = { 0 };
	struct rt_uprobe_report report = { keep_failure, &failure };
	struct rt_point point = { .id = id,
				  .kind = kind,
				  .op = RT_OP_GET,
				  .delta = 1,
				  .cfa_delta = 8,
				  .reg = RT_REG_RDI,
				  .place = kind == RT_POINT_RETURN ? RT_PLACE_RET : RT_PLACE_ARG,
				  .sampled = true,
				  .counter_offset = RT_COUNTER_UNKNOWN };
	const struct rt_point *points[] = { &point };
	struct rt_arm request = { .pid = (uint32_t)pid, .path = "/proc/self/exe", .points = points, .point_count = 1 };

	RT_TRY(rt_uprobe_own_site(&own));
	point.address.v = own.address + skip;
	point.offset.v = own.offset + skip;
	request.bias = own.bias;
	RT_TRY(rt_uprobe_extend(u, &request, &report));
	return failure.point ? rt_error_new(RT_E_SELF_TEST, "our own function cannot be probed: %s", failure.why)
			     : NULL;
}

static uint32_t more(uint32_t all, uint32_t known)
{
	return all > known ? all - known : 0;
}

static struct rt_error *measure_all(struct rt_uprobe *u, uint32_t entry, struct rt_engine_cost *ret)
{
	struct child c = { 0, -1, -1 };
	uint32_t two = 0, rate = u->options.sample.rate;
	struct rt_error *err = child_begin(&c);

	if (!err)
		err = arm(u, c.pid, entry, RT_POINT_ENTRY, 0);
	rt_uprobe_sample(u, 0);
	if (!err)
		err = measure(u, &c, &ret->event_ns);
	rt_uprobe_sample(u, 1);
	if (!err)
		err = measure(u, &c, &ret->passed_ns);
	if (!err)
		err = arm(u, c.pid, entry + 1, RT_POINT_INSN, RT_UPROBE_OWN_PUSH);
	if (!err)
		err = measure(u, &c, &two);
	ret->step_ns = more(two, 2 * ret->passed_ns);
	rt_uprobe_sample(u, 0);
	if (!err)
		err = arm(u, c.pid, entry + 2, RT_POINT_RETURN, 0);
	if (!err)
		err = measure(u, &c, &two);
	ret->return_ns = more(two, 3 * ret->event_ns + ret->step_ns);
	rt_uprobe_sample(u, rate);
	child_end(&c);
	if (c.pid > 0)
		u->base.ops->forget(&u->base, (uint32_t)c.pid);
	rt_uprobe_forget_test(u, entry, entry + 2);
	return err;
}

struct rt_error *rt_uprobe_cost(struct rt_uprobe *u, struct rt_engine_cost *ret)
{
	struct rt_engine_cost cost = { 0 };

	if (!u->cost.event_ns) {
		RT_TRY(measure_all(u, u->points - 3, &cost));
		u->cost = cost;
	}
	*ret = u->cost;
	return NULL;
}
