/* SPDX-License-Identifier: GPL-2.0-only */
/* Which system calls hand out or take back descriptors and mappings. */
#include "probe/call.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/syscall.h>

#include "probe/build.h"

/* With a value of its own a call that does many things is several. */
#define FD(name) \
	{ \
#name, SYS_##name, RT_CALL_DESCRIPTOR \
	}
#define MEMORY(name) \
	{ \
#name, SYS_##name, RT_CALL_MAPPING \
	}

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

/* Several close what they give a new meaning to (dup2), or many at once (close_range): the spec says which. */
static const struct rt_call calls[] = {
	FD(accept),
	FD(accept4),
	FD(bpf),
	FD(close),
	/* with CLOSE_RANGE_CLOEXEC it closes nothing */
	{ "close_range", SYS_close_range, RT_CALL_DESCRIPTOR, 0, 3, 0 },
	{ "close_range.unshare", SYS_close_range, RT_CALL_DESCRIPTOR, 0, 3, CLOSE_RANGE_UNSHARE },
	FD(creat),
	FD(dup),
	FD(dup2),
	FD(dup3),
	FD(epoll_create),
	FD(epoll_create1),
	FD(eventfd),
	FD(eventfd2),
	FD(fanotify_init),
	{ "fcntl.dupfd", SYS_fcntl, RT_CALL_DESCRIPTOR, 0, 2, F_DUPFD },
	{ "fcntl.dupfd_cloexec", SYS_fcntl, RT_CALL_DESCRIPTOR, 0, 2, F_DUPFD_CLOEXEC },
	FD(fsmount),
	FD(fsopen),
	FD(fspick),
	FD(inotify_init),
	FD(inotify_init1),
	FD(io_uring_setup),
	FD(memfd_create),
	FD(memfd_secret),
	FD(mq_open),
	FD(open),
	FD(open_by_handle_at),
	FD(open_tree),
	FD(openat),
	FD(openat2),
	FD(perf_event_open),
	FD(pidfd_getfd),
	FD(pidfd_open),
	FD(pipe),
	FD(pipe2),
	{ "recvmsg", SYS_recvmsg, RT_CALL_DESCRIPTOR, RT_CALL_ONE_MESSAGE },
	{ "recvmmsg", SYS_recvmmsg, RT_CALL_DESCRIPTOR, RT_CALL_MANY_MESSAGES },
	FD(signalfd),
	FD(signalfd4),
	FD(socket),
	FD(socketpair),
	FD(timerfd_create),
	FD(userfaultfd),
	MEMORY(mmap),
	MEMORY(mremap),
	MEMORY(munmap),
	MEMORY(shmat),
	MEMORY(shmdt),
};

enum { DESCRIPTOR_BIAS = 1 }; /* object 0 is none, and descriptor 0 is one */

static uint8_t argument(uint8_t arg)
{
	static const uint8_t regs[] = { RT_REG_NONE, RT_REG_RDI, RT_REG_RSI, RT_REG_RDX,
					RT_REG_R10,  RT_REG_R8,  RT_REG_R9 };

	return arg < sizeof(regs) ? regs[arg] : RT_REG_NONE;
}

static struct rt_point point_of(const struct rt_call *call, const struct rt_spec_function *f)
{
	bool descriptor = call->kind == RT_CALL_DESCRIPTOR;

	return (struct rt_point){
		.kind = RT_POINT_CALL,
		.op = f->op,
		.delta = rt_op_delta(f->op, 1),
		.flags = RT_EV_INLINE,
		.address.v = call->nr,
		.function.v = call->nr,
		.reg = argument(f->arg),
		.width = descriptor ? 4 : 0,
		.reg_offset = descriptor ? DESCRIPTOR_BIAS : 0,
		.size_reg = argument(f->size_arg),
		.size_to = f->to,
		.match_reg = argument(call->match),
		.match = call->value,
		.message = call->message,
		.behind = f->behind,
		.place = f->place,
		/* one that fails has done nothing */
		.condition = f->condition == RT_IF_ALWAYS ? RT_IF_NOT_NEGATIVE : f->condition,
		.result_size = sizeof(uint64_t),
		.counter_offset = RT_COUNTER_UNKNOWN,
	};
}

struct rt_error *rt_plan_calls(struct rt_plan *plan, size_t *ret_first)
{
	static const struct rt_plan_module kernel = { .name = "the kernel" };
	struct rt_plan_build b = { .plan = plan, .module = &kernel };

	*ret_first = plan->points.len;
	for (uint32_t t = 0; t < plan->types.len; t++) {
		const struct rt_spec_type *spec = plan->types.data[t].spec;

		for (uint32_t i = 0; i < spec->functions.len; i++) {
			const struct rt_call *call = rt_spec_call(&spec->functions.data[i]);
			struct rt_point point;

			if (!call)
				continue;
			point = point_of(call, &spec->functions.data[i]);
			RT_TRY(rt_plan_add(&b, t, i, &point, call->name));
		}
	}
	return NULL;
}

const struct rt_call *rt_call_at(size_t i)
{
	return i < sizeof(calls) / sizeof(calls[0]) ? &calls[i] : NULL;
}

const struct rt_call *rt_call_find(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name))
			return &calls[i];
	return NULL;
}

const struct rt_call *rt_spec_call(const struct rt_spec_function *function)
{
	if (strncmp(function->name, RT_SPEC_CALL, strlen(RT_SPEC_CALL)) != 0)
		return NULL;
	return rt_call_find(function->name + strlen(RT_SPEC_CALL));
}

bool rt_spec_is_calls(const struct rt_spec_type *type)
{
	return type->functions.len && rt_spec_call(&type->functions.data[0]);
}
