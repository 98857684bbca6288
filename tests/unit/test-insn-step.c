/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processor as the oracle: a program is single-stepped, and what each
 * instruction really did to the registers is held against what the decoder says.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "elf/image.h"
#include "insn/insn.h"
#include "workdir.h"

enum { STEPS = 30000 };

static void registers(const struct user_regs_struct *r, uint64_t *ret)
{
	const uint64_t v[RT_REG_NR] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
					r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };

	memcpy(ret, v, sizeof(v));
}

static void check(const struct rt_insn *insn, const uint8_t *bytes, const uint64_t *before, const uint64_t *after)
{
	uint64_t next = before[RT_REG_RIP] + insn->length, pc = after[RT_REG_RIP];
	bool repeats = bytes[0] == 0xf2 || bytes[0] == 0xf3;
	char text[64] = "";

	for (unsigned i = 0; i < insn->length; i++)
		snprintf(text + 3 * i, sizeof(text) - 3 * i, "%02x ", bytes[i]);
	for (unsigned i = 0; i < RT_REG_RIP; i++) {
		if (before[i] == after[i] || insn->writes >> i & 1 || (i == RT_REG_RSP && insn->call))
			continue;
		fail_msg("%s changed %s", text, rt_reg_name(i));
	}
	if (insn->sp_known && after[RT_REG_RSP] - before[RT_REG_RSP] != (uint64_t)(insn->call ? -8 : insn->sp_delta))
		fail_msg("%s: sp changed by %lld, not by %d", text, (long long)(after[RT_REG_RSP] - before[RT_REG_RSP]),
			 insn->sp_delta);
	if (insn->has_target && !insn->conditional)
		assert_int_equal(pc, insn->target.v);
	else if (insn->has_target)
		assert_true(pc == insn->target.v || pc == next);
	else if (!insn->call && !insn->jump && !insn->ret && pc != next && !(repeats && pc == before[RT_REG_RIP]))
		fail_msg("%s: went to %#llx", text, (unsigned long long)pc);
}

/* Address of the first memory operand against the registers: what a load brought must be what stands there. */
static void check_load(pid_t pid, const struct rt_insn *insn, const uint64_t *before, const uint64_t *after)
{
	uint64_t value = 0, addr = (uint64_t)insn->mem.disp;
	struct iovec local = { &value, 8 }, remote;

	if (!insn->is_mov || !insn->has_mem || !insn->mem.reads || insn->mem.segment || insn->width != 8 ||
	    insn->mem.size != 8 || insn->dst_reg == RT_REG_NONE)
		return;
	if (insn->mem.base < RT_REG_RIP)
		addr += before[insn->mem.base];
	if (insn->mem.index < RT_REG_RIP)
		addr += before[insn->mem.index] * insn->mem.scale;
	remote = (struct iovec){ (void *)(uintptr_t)addr, 8 };
	assert_int_equal(process_vm_readv(pid, &local, 1, &remote, 1, 0), 8);
	assert_int_equal(value, after[insn->dst_reg]);
}

/* cpuid: a hypervisor may do it for the processor, and forget that it was single-stepped: then the next one runs, too
 */
static bool may_be_emulated(const uint8_t *bytes)
{
	return bytes[0] == 0x0f && bytes[1] == 0xa2;
}

static void step_through(pid_t pid)
{
	struct rt_decoder *decoder = NULL;
	struct user_regs_struct regs;
	uint64_t before[RT_REG_NR], after[RT_REG_NR];
	unsigned steps = 0;
	int status;

	assert_ok(rt_decoder_create(RT_MACHINE_X86_64, &decoder));
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
	registers(&regs, before);
	while (steps < STEPS) {
		uint8_t bytes[16] = { 0 };
		struct iovec local = { bytes, 16 }, remote = { (void *)(uintptr_t)before[RT_REG_RIP], 16 };
		struct rt_insn insn = { 0 };
		ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

		assert_true(got > 0);
		if (!rt_decode(decoder, rt_bytes_make(bytes, (size_t)got), (struct rt_elfaddr){ before[RT_REG_RIP] },
			       &insn))
			fail_msg("not decoded: %02x %02x %02x %02x", bytes[0], bytes[1], bytes[2], bytes[3]);
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
			break;
		assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
		registers(&regs, after);
		if (!may_be_emulated(bytes) || after[RT_REG_RIP] == before[RT_REG_RIP] + insn.length) {
			check(&insn, bytes, before, after);
			check_load(pid, &insn, before, after);
		}
		memcpy(before, after, sizeof(before));
		steps++;
	}
	assert_true(steps > STEPS / 3);
	rt_decoder_destroy(decoder);
}

TEST(every_step_is_as_decoded)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		execl("/bin/ls", "ls", "-l", "/bin/ls", (char *)NULL);
		_exit(78);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* no ptrace here: a sandbox */
	if (WIFEXITED(status))
		skip();
	step_through(pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

TEST_MAIN();
