/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/sigframe.h"

#include <cpuid.h>
#include <signal.h>
#include <string.h>

enum {
	LEGACY = 512,     /* bytes of the area of FXSAVE */
	HEADER = 64,      /* and of what XSAVE has behind it */
	SOFTWARE = 464,   /* where in it the kernel's own words lie */
	TAIL = 4,         /* and behind all of it */
	COMPONENTS = 0xd, /* of CPUID */
	NO_MODE = 0x7f,   /* of an alternate stack: it stays what it is */
};
#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u
/* large, and known to a thread only that has asked for them: a frame without them is taken */
#define TILES (UINT64_C(3) << 17)

/* struct ucontext, as the kernel has it */
struct context {
	uint64_t flags, link;
	stack_t stack;
	struct sigcontext registers;
	uint64_t mask;
};
_Static_assert(sizeof(struct context) == 304, "struct ucontext");
_Static_assert(__builtin_offsetof(struct context, registers.rip) == RT_SIGFRAME_PC, "struct ucontext");

/* struct _fpx_sw_bytes */
struct software {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};
_Static_assert(sizeof(struct software) == 48, "struct _fpx_sw_bytes");

/* Bytes that these states take, as XSAVE has them. */
static size_t room(uint64_t features)
{
	size_t end = LEGACY + HEADER;

	for (unsigned i = 2; i < 63; i++) {
		unsigned size, offset, c, d;

		if (features >> i & 1 && __get_cpuid_count(COMPONENTS, i, &size, &offset, &c, &d) &&
		    offset + size > end)
			end = offset + size;
	}
	return end;
}

static struct sigcontext registers_of(const struct user_regs_struct *r)
{
	return (struct sigcontext){ .r8 = r->r8,
				    .r9 = r->r9,
				    .r10 = r->r10,
				    .r11 = r->r11,
				    .r12 = r->r12,
				    .r13 = r->r13,
				    .r14 = r->r14,
				    .r15 = r->r15,
				    .rdi = r->rdi,
				    .rsi = r->rsi,
				    .rbp = r->rbp,
				    .rbx = r->rbx,
				    .rdx = r->rdx,
				    .rax = r->rax,
				    .rcx = r->rcx,
				    .rsp = r->rsp,
				    .rip = r->rip,
				    .eflags = r->eflags,
				    .cs = (unsigned short)r->cs,
				    .gs = (unsigned short)r->gs,
				    .fs = (unsigned short)r->fs,
				    .__pad0 = (unsigned short)r->ss };
}

bool rt_sigframe_make(const struct user_regs_struct *regs, uint64_t mask, const uint8_t *xstate, size_t xstate_size,
		      uint64_t top, struct rt_sigframe *ret)
{
	enum { XSTATE = 1, WITH_SS = 2, STRICT_SS = 4 };
	struct context context = { .flags = XSTATE | WITH_SS | STRICT_SS,
				   .stack = { .ss_flags = NO_MODE },
				   .registers = registers_of(regs),
				   .mask = mask };
	struct software software = { .magic = MAGIC1 };
	const uint32_t tail = MAGIC2;
	uint64_t state;
	size_t size;

	ret->size = 0;
	if (xstate_size < LEGACY + HEADER)
		return false;
	/* where a frame has them the regset has what the processor can save */
	memcpy(&software.features, xstate + SOFTWARE, sizeof(software.features));
	software.features &= ~TILES;
	size = room(software.features);
	if (size > xstate_size || sizeof(context) + size + TAIL + 64 > sizeof(ret->bytes))
		return false;
	software.size = (uint32_t)size;
	software.extended_size = (uint32_t)(size + TAIL);
	state = (top - size - TAIL) & ~63ull;
	context.registers.fpstate =
		(void *)(uintptr_t)state; /* NOLINT(performance-no-int-to-ptr) in the other process */
	ret->start = state - sizeof(context);
	ret->size = sizeof(context) + size + TAIL;
	memcpy(ret->bytes, &context, sizeof(context));
	memcpy(ret->bytes + sizeof(context), xstate, size);
	memcpy(ret->bytes + sizeof(context) + SOFTWARE, &software, sizeof(software));
	memcpy(ret->bytes + sizeof(context) + size, &tail, sizeof(tail));
	return true;
}
