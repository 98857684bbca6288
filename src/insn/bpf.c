/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/bpf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Numbers of the instruction set, spelt here: linux/bpf.h of the build machine may be older than they are. */
enum { CLASS_LD, CLASS_LDX, CLASS_ST, CLASS_STX, CLASS_ALU, CLASS_JMP, CLASS_JMP32, CLASS_ALU64 };
enum { MODE_ABS = 0x20, MODE_IND = 0x40, MODE_MEM = 0x60, MODE_MEMSX = 0x80, MODE_ATOMIC = 0xc0 };
/* the kernel's own marks for loads that may fault; they mean what the plain ones do */
enum { MODE_PROBE_MEM = 0x20, MODE_PROBE_MEMSX = 0x40, MODE_PROBE_MEM32 = 0xa0, MODE_PROBE_ATOMIC = 0xe0 };
enum { MODE_NOSPEC = 0xc0, SOURCE_REGISTER = 0x08 };
enum { OP_DIV = 0x30, OP_NEG = 0x80, OP_MOD = 0x90, OP_MOV = 0xb0, OP_END = 0xd0 };
enum { OP_JA = 0x00, OP_CALL = 0x80, OP_EXIT = 0x90, OP_JCOND = 0xe0, OP_TAIL_CALL = 0xf0 };
enum { LD_IMM64 = 0x18, CALL_SUB = 1, CALL_KERNEL = 2, CAST_OFF = 1, PERCPU_OFF = -1, TAIL_CALL_HELPER = 12 };
enum { MAP_FD = 1, MAP_VALUE = 2, BTF_ID = 3, FUNCTION = 4, MAP_INDEX = 5, MAP_INDEX_VALUE = 6 };
enum { ATOMIC_FETCH = 0x01, ATOMIC_XCHG = 0xe1, ATOMIC_CMPXCHG = 0xf1, LOAD_ACQUIRE = 0x100, STORE_RELEASE = 0x110 };

static const char *const sizes[] = { "u32", "u16", "u8", "u64" };
static const char *const signed_sizes[] = { "s32", "s16", "s8", "s64" };

bool rt_bpf_decode(struct rt_bytes code, bool big_endian, size_t index, struct rt_bpf_insn *ret)
{
	struct rt_cursor c = rt_cursor_make(code, big_endian);
	struct rt_bpf_insn insn = { 0 };
	uint8_t registers;
	uint16_t off;
	uint32_t imm, high;

	if (index >= code.size / RT_BPF_INSN_BYTES || !rt_cursor_skip(&c, index * RT_BPF_INSN_BYTES) ||
	    !rt_cursor_u8(&c, &insn.code) || !rt_cursor_u8(&c, &registers) || !rt_cursor_u16(&c, &off) ||
	    !rt_cursor_u32(&c, &imm))
		return false;
	insn.dst = big_endian ? registers >> 4 : registers & 15;
	insn.src = big_endian ? registers & 15 : registers >> 4;
	insn.off = (int16_t)off;
	insn.imm = (int32_t)imm;
	if (insn.code == LD_IMM64 && rt_cursor_skip(&c, 4) && rt_cursor_u32(&c, &high)) {
		insn.wide = true;
		insn.imm_high = (int32_t)high;
	}
	*ret = insn;
	return true;
}

static unsigned class_of(const struct rt_bpf_insn *insn)
{
	return insn->code & 7;
}

static unsigned op_of(const struct rt_bpf_insn *insn)
{
	return insn->code & 0xf0;
}

static unsigned mode_of(const struct rt_bpf_insn *insn)
{
	return insn->code & 0xe0;
}

static const char *size_of(const struct rt_bpf_insn *insn)
{
	return sizes[insn->code >> 3 & 3];
}

static bool is_call(const struct rt_bpf_insn *insn)
{
	return class_of(insn) == CLASS_JMP && op_of(insn) == OP_CALL && !(insn->code & SOURCE_REGISTER);
}

bool rt_bpf_is_subcall(const struct rt_bpf_insn *insn)
{
	return is_call(insn) && insn->src == CALL_SUB;
}

bool rt_bpf_is_kernel_call(const struct rt_bpf_insn *insn)
{
	return is_call(insn) && insn->src != CALL_SUB;
}

/* A loaded program has the function's number in imm and the distance in off; in an object file imm is the distance. */
static int64_t subcall_distance(const struct rt_bpf_insn *insn)
{
	return insn->off ? insn->off : insn->imm;
}

static bool jump_distance(const struct rt_bpf_insn *insn, int64_t *ret)
{
	unsigned class = class_of(insn), op = op_of(insn);

	if (rt_bpf_is_subcall(insn)) {
		*ret = subcall_distance(insn);
		return true;
	}
	if ((class != CLASS_JMP && class != CLASS_JMP32) || op == OP_CALL || op == OP_EXIT || op == OP_TAIL_CALL)
		return false;
	if (op == OP_JA && (insn->code & SOURCE_REGISTER))
		return false;
	*ret = op == OP_JA && class == CLASS_JMP32 ? insn->imm : insn->off;
	return op != OP_JCOND || (class == CLASS_JMP && !insn->src);
}

bool rt_bpf_target(const struct rt_bpf_insn *insn, size_t index, int64_t *ret)
{
	int64_t distance;

	if (!jump_distance(insn, &distance))
		return false;
	*ret = (int64_t)index + 1 + distance;
	return true;
}

struct out {
	char *text;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *out, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out->text + out->len, out->size - out->len, format, args);
	va_end(args);
	if (n > 0)
		out->len = (size_t)n < out->size - out->len ? out->len + (size_t)n : out->size - 1;
}

static void put_unknown(struct out *out, const struct rt_bpf_insn *insn)
{
	put(out, "unknown (0x%02x)", insn->code);
}

/* "*(u64 *)(r6 + 8)" */
static void put_memory(struct out *out, const char *size, unsigned base, int off)
{
	put(out, "*(%s *)(r%u %c %d)", size, base, off < 0 ? '-' : '+', off < 0 ? -off : off);
}

static void put_end(struct out *out, const struct rt_bpf_insn *insn)
{
	const char *name = insn->code & SOURCE_REGISTER ? "be" : "le";

	if (class_of(insn) == CLASS_ALU64)
		name = "bswap";
	put(out, "r%u = %s%d r%u", insn->dst, name, insn->imm, insn->dst);
}

static void put_move(struct out *out, const struct rt_bpf_insn *insn, char reg)
{
	uint32_t imm = (uint32_t)insn->imm;

	if (insn->off == CAST_OFF && reg == 'r')
		put(out, "r%u = addr_space_cast(r%u, %u, %u)", insn->dst, insn->src, imm >> 16, imm & 0xffff);
	else if (insn->off == PERCPU_OFF && reg == 'r')
		put(out, "r%u = &(void __percpu *)(r%u)", insn->dst, insn->src);
	else if (insn->off)
		put(out, "%c%u = (s%d)%c%u", reg, insn->dst, insn->off, reg, insn->src);
	else
		put(out, "%c%u = %c%u", reg, insn->dst, reg, insn->src);
}

static void put_alu(struct out *out, const struct rt_bpf_insn *insn)
{
	static const char *const names[16] = { "+=",  "-=",  "*=", "/=", "|=", "&=",   "<<=",
					       ">>=", "neg", "%=", "^=", "=",  "s>>=", "endian" };
	char reg = class_of(insn) == CLASS_ALU64 ? 'r' : 'w';
	unsigned op = op_of(insn);
	const char *name = names[op >> 4];

	if ((op == OP_DIV || op == OP_MOD) && insn->off == 1)
		name = op == OP_DIV ? "s/=" : "s%=";
	if (op > OP_END)
		put_unknown(out, insn);
	else if (op == OP_END)
		put_end(out, insn);
	else if (op == OP_NEG)
		put(out, "%c%u = -%c%u", reg, insn->dst, reg, insn->dst);
	else if (op == OP_MOV && (insn->code & SOURCE_REGISTER))
		put_move(out, insn, reg);
	else if (insn->code & SOURCE_REGISTER)
		put(out, "%c%u %s %c%u", reg, insn->dst, name, reg, insn->src);
	else
		put(out, "%c%u %s %d", reg, insn->dst, name, insn->imm);
}

/* "(u64 *)(r1 + 0)", the operand of an atomic that yields something */
static void put_operand(struct out *out, const struct rt_bpf_insn *insn, unsigned base)
{
	put(out, "(%s *)(r%u %c %d)", size_of(insn), base, insn->off < 0 ? '-' : '+',
	    insn->off < 0 ? -insn->off : insn->off);
}

static void put_atomic(struct out *out, const struct rt_bpf_insn *insn)
{
	static const char *const signs[16] = { [0] = "+=", [4] = "|=", [5] = "&=", [10] = "^=" };
	static const char *const words[16] = { [0] = "add", [4] = "or", [5] = "and", [10] = "xor" };
	const char *width = (insn->code >> 3 & 3) == 3 ? "64" : "";
	unsigned op = (uint32_t)insn->imm >> 4 & 15;

	if (insn->imm == ATOMIC_CMPXCHG || insn->imm == ATOMIC_XCHG) {
		bool compares = insn->imm == ATOMIC_CMPXCHG;

		put(out, "r%u = atomic%s_%s(", compares ? 0 : insn->src, width, compares ? "cmpxchg" : "xchg");
		put_operand(out, insn, insn->dst);
		put(out, "%s, r%u)", compares ? ", r0" : "", insn->src);
	} else if (insn->imm == LOAD_ACQUIRE) {
		put(out, "r%u = load_acquire(", insn->dst);
		put_operand(out, insn, insn->src);
		put(out, ")");
	} else if (insn->imm == STORE_RELEASE) {
		put(out, "store_release(");
		put_operand(out, insn, insn->dst);
		put(out, ", r%u)", insn->src);
	} else if (insn->imm & ~(0xf0 | ATOMIC_FETCH) || !signs[op]) {
		put(out, "unknown atomic (0x%02x, %#x)", insn->code, (uint32_t)insn->imm);
	} else if (insn->imm & ATOMIC_FETCH) {
		put(out, "r%u = atomic%s_fetch_%s(", insn->src, width, words[op]);
		put_operand(out, insn, insn->dst);
		put(out, ", r%u)", insn->src);
	} else {
		put(out, "lock ");
		put_memory(out, size_of(insn), insn->dst, insn->off);
		put(out, " %s r%u", signs[op], insn->src);
	}
}

static void put_store(struct out *out, const struct rt_bpf_insn *insn)
{
	unsigned mode = mode_of(insn);
	bool from_register = class_of(insn) == CLASS_STX;

	if (mode == MODE_MEM || mode == MODE_PROBE_MEM32) {
		put_memory(out, size_of(insn), insn->dst, insn->off);
		if (from_register)
			put(out, " = r%u", insn->src);
		else
			put(out, " = %d", insn->imm);
	} else if (from_register && (mode == MODE_ATOMIC || mode == MODE_PROBE_ATOMIC)) {
		put_atomic(out, insn);
	} else if (!from_register && mode == MODE_NOSPEC) {
		put(out, "nospec");
	} else {
		put_unknown(out, insn);
	}
}

static void put_load(struct out *out, const struct rt_bpf_insn *insn)
{
	unsigned mode = mode_of(insn);
	const char *size = size_of(insn);

	if (mode == MODE_MEMSX || mode == MODE_PROBE_MEMSX) {
		size = signed_sizes[insn->code >> 3 & 3];
	} else if (mode != MODE_MEM && mode != MODE_PROBE_MEM && mode != MODE_PROBE_MEM32) {
		put_unknown(out, insn);
		return;
	}
	put(out, "r%u = ", insn->dst);
	put_memory(out, size, insn->src, insn->off);
}

static void put_map(struct out *out, const struct rt_bpf_insn *insn, const struct rt_bpf_naming *naming)
{
	bool by_index = insn->src == MAP_INDEX || insn->src == MAP_INDEX_VALUE;
	const char *name = !by_index && naming && naming->map ? naming->map(naming->arg, (uint32_t)insn->imm) : NULL;

	put(out, "map[%s:%d]", by_index ? "idx" : "id", insn->imm);
	if (insn->src == MAP_VALUE)
		put(out, "[0]%+d", insn->imm_high);
	else if (insn->src == MAP_INDEX_VALUE)
		put(out, "%+d", insn->imm_high);
	if (name)
		put(out, " <%s>", name);
}

/* LD: 64-bit constants, and the packet loads of classic BPF. */
static void put_constant(struct out *out, const struct rt_bpf_insn *insn, const struct rt_bpf_naming *naming)
{
	unsigned mode = mode_of(insn);

	if (mode == MODE_ABS || mode == MODE_IND) {
		put(out, "r0 = *(%s *)skb[", size_of(insn));
		if (mode == MODE_IND)
			put(out, "r%u + ", insn->src);
		put(out, "%d]", insn->imm);
		return;
	}
	if (!insn->wide) {
		put_unknown(out, insn);
		return;
	}
	put(out, "r%u = ", insn->dst);
	if (insn->src == MAP_FD || insn->src == MAP_VALUE || insn->src == MAP_INDEX || insn->src == MAP_INDEX_VALUE)
		put_map(out, insn, naming);
	else if (insn->src == FUNCTION)
		put(out, "subprog[%+d]", insn->imm);
	else if (insn->src == BTF_ID)
		put(out, "btf[id:%d]", insn->imm);
	else
		put(out, "0x%llx",
		    (unsigned long long)(uint32_t)insn->imm_high << 32 | (unsigned long long)(uint32_t)insn->imm);
}

static void put_call(struct out *out, const struct rt_bpf_insn *insn, size_t index, const struct rt_bpf_naming *naming)
{
	const char *name = NULL;

	if (rt_bpf_is_subcall(insn)) {
		int64_t distance = subcall_distance(insn);

		if (naming && naming->function)
			name = naming->function(naming->arg, insn->imm, (int64_t)index + 1 + distance);
		put(out, "call pc%+lld%s%s", (long long)distance, name ? "#" : "", name ?: "");
		return;
	}
	if (naming && naming->helper)
		name = naming->helper(naming->arg, insn->imm);
	if (!name && insn->src != CALL_KERNEL && insn->imm > 0)
		name = rt_bpf_helper_name((uint32_t)insn->imm);
	if (name)
		put(out, "call %s", name);
	else
		put(out, "call %s#%d", insn->src == CALL_KERNEL ? "kernel-function" : "unknown", insn->imm);
}

static void put_branch(struct out *out, const struct rt_bpf_insn *insn)
{
	static const char *const signs[16] = {
		[1] = "==",  [2] = ">",  [3] = ">=",  [4] = "&",   [5] = "!=",  [6] = "s>",
		[7] = "s>=", [10] = "<", [11] = "<=", [12] = "s<", [13] = "s<="
	};
	char reg = class_of(insn) == CLASS_JMP32 ? 'w' : 'r';
	const char *sign = signs[op_of(insn) >> 4];

	if (!sign) {
		put_unknown(out, insn);
		return;
	}
	put(out, "if %c%u %s ", reg, insn->dst, sign);
	if (insn->code & SOURCE_REGISTER)
		put(out, "%c%u", reg, insn->src);
	else
		put(out, "0x%x", (uint32_t)insn->imm);
	put(out, " goto pc%+d", insn->off);
}

static void put_jump(struct out *out, const struct rt_bpf_insn *insn, size_t index, const struct rt_bpf_naming *naming)
{
	bool is_64 = class_of(insn) == CLASS_JMP;

	switch (op_of(insn)) {
	case OP_JA:
		if (!(insn->code & SOURCE_REGISTER))
			put(out, "goto%s pc%+d", is_64 ? "" : "l", is_64 ? insn->off : insn->imm);
		else if (is_64)
			put(out, "gotox r%u", insn->dst);
		else
			put_unknown(out, insn);
		return;
	case OP_CALL:
		if (is_call(insn))
			put_call(out, insn, index, naming);
		else if (is_64)
			put(out, "callx r%u", insn->dst);
		else
			put_unknown(out, insn);
		return;
	case OP_EXIT:
		if (is_64)
			put(out, "exit");
		else
			put_unknown(out, insn);
		return;
	case OP_JCOND:
		if (is_64 && !insn->src)
			put(out, "may_goto pc%+d", insn->off);
		else
			put_unknown(out, insn);
		return;
	case OP_TAIL_CALL:
		put(out, "call %s", rt_bpf_helper_name(TAIL_CALL_HELPER));
		return;
	default:
		put_branch(out, insn);
	}
}

size_t rt_bpf_text(const struct rt_bpf_insn *insn, size_t index, const struct rt_bpf_naming *naming, char *text,
		   size_t size)
{
	struct out out = { text, size, 0 };

	if (!size)
		return 0;
	*text = 0;
	switch (class_of(insn)) {
	case CLASS_LD:
		put_constant(&out, insn, naming);
		break;
	case CLASS_LDX:
		put_load(&out, insn);
		break;
	case CLASS_ST:
	case CLASS_STX:
		put_store(&out, insn);
		break;
	case CLASS_ALU:
	case CLASS_ALU64:
		put_alu(&out, insn);
		break;
	default:
		put_jump(&out, insn, index, naming);
	}
	return out.len;
}
