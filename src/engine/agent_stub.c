/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/agent_stub.h"

#include <string.h>

#include "insn/move.h"

enum { CALL = 50 /* bytes of a call of the agent, at most */ };

static size_t put(uint8_t *out, size_t n, const void *bytes, size_t size)
{
	memcpy(out + n, bytes, size);
	return n + size;
}

/* The instruction `behind` bytes behind the jump's start; false: the code ends before. */
static bool decode(const struct rt_agent_stub_request *r, size_t behind, struct rt_bytes *ret_code, struct rt_insn *ret)
{
	if (behind >= r->code.size || behind >= RT_AGENT_STUB_CODE)
		return false;
	*ret_code = rt_bytes_make(r->code.data + behind, r->code.size - behind);
	return rt_decode(r->decoder, *ret_code, (struct rt_elfaddr){ r->address + behind }, ret);
}

/* Whether nothing runs what stands between moved and the end of the jump. */
static bool is_padding(const struct rt_agent_stub_request *r, size_t moved)
{
	struct rt_bytes rest;
	struct rt_insn insn;

	for (; moved < RT_MOVE_JUMP; moved += insn.length) {
		if (moved < r->code.size && r->code.data[moved] == 0xcc)
			insn.length = 1;
		else if (!decode(r, moved, &rest, &insn) || !insn.nop)
			return false;
	}
	return true;
}

/* Where in an area's entries the one is that this sight calls. */
static uint32_t entry_of(const struct rt_agent_sight *sight)
{
	if (sight->plain)
		return __builtin_offsetof(struct rt_agent_entries, plain);
	switch (sight->site) {
	case RT_AGENT_SIGHT_STOP:
		return __builtin_offsetof(struct rt_agent_entries, stop);
	case RT_AGENT_SIGHT_UNWIND:
	case RT_AGENT_SIGHT_FORCED:
		return __builtin_offsetof(struct rt_agent_entries, unwind);
	case RT_AGENT_SIGHT_UNWOUND:
		return __builtin_offsetof(struct rt_agent_entries, unwound);
	default:
		return __builtin_offsetof(struct rt_agent_entries, hit);
	}
}

static size_t put_push(uint8_t reg, uint8_t *out)
{
	static const uint8_t number[] = { 0, 2, 1, 3, 6, 7, 5, 4 }; /* of the first eight, in instructions */
	size_t n = 0;

	if (reg >= RT_REG_R8)
		out[n++] = 0x41;
	out[n++] = (uint8_t)(0x50 | (reg >= RT_REG_R8 ? reg - RT_REG_R8 : number[reg]));
	return n;
}

/* Leaves the red zone alone, keeps flags where they mean something, and tells the object (struct plain_hit). */
static size_t put_enter_plain(const struct rt_agent_sight *sight, uint8_t *out)
{
	static const uint8_t room[] = { 0x48, 0x8d, 0xa4, 0x24, 0x70, 0xff, 0xff, 0xff }; /* lea -144(%rsp), %rsp */
	/* lea -128(%rsp), %rsp; push %rax; lahf; seto %al; push %rax */
	static const uint8_t keep[] = { 0x48, 0x8d, 0x64, 0x24, 0x80, 0x50, 0x9f, 0x0f, 0x90, 0xc0, 0x50 };
	static const uint8_t of_rax[] = { 0xff, 0x74, 0x24, 0x08 }; /* push 8(%rsp) */
	size_t n = sight->entry ? put(out, 0, room, sizeof(room)) : put(out, 0, keep, sizeof(keep));

	return sight->reg || sight->entry ? n + put_push(sight->reg, out + n) : put(out, n, of_rax, sizeof(of_rax));
}

static size_t put_leave_plain(const struct rt_agent_sight *sight, size_t n, uint8_t *out)
{
	static const uint8_t room[] = { 0x48, 0x8d, 0xa4, 0x24, 0xa0, 0, 0, 0 }; /* lea 160(%rsp), %rsp */
	/* lea 16(%rsp), %rsp; pop %rax; add $0x7f, %al; sahf; pop %rax; lea 128(%rsp), %rsp */
	static const uint8_t keep[] = { 0x48, 0x8d, 0x64, 0x24, 0x10, 0x58, 0x04, 0x7f, 0x9e,
					0x58, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0,    0 };

	return sight->entry ? put(out, n, room, sizeof(room)) : put(out, n, keep, sizeof(keep));
}

/* Calls the agent: CALL bytes at most, that will lie at `at`. */
static size_t put_call(const struct rt_agent_stub_request *r, const struct rt_agent_sight *sight, uint64_t at,
		       uint8_t *out)
{
	static const uint8_t enter[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 };          /* lea -128(%rsp), %rsp */
	static const uint8_t leave[] = { 0x48, 0x8d, 0xa4, 0x24, 0x88, 0, 0, 0 }; /* lea 136(%rsp), %rsp */
	uint8_t push = 0x68, call[2] = { 0xff, 0x15 };
	int32_t distance;
	size_t n = 0;

	n = sight->plain ? put_enter_plain(sight, out) : put(out, n, enter, sizeof(enter));
	n = put(out, n, &push, 1);
	n = put(out, n, &sight->site, sizeof(sight->site));
	n = put(out, n, call, sizeof(call));
	distance = (int32_t)(r->area + entry_of(sight) - (at + n + 4));
	n = put(out, n, &distance, sizeof(distance));
	return sight->plain ? put_leave_plain(sight, n, out) : put(out, n, leave, sizeof(leave));
}

_Static_assert(sizeof(struct rt_agent_entries) <= RT_AGENT_STUB_ENTRIES, "entries");

bool rt_agent_stub_make(const struct rt_agent_stub_request *r, struct rt_agent_stub *ret)
{
	size_t n = 0, seen = 0;
	bool over = false;

	memset(ret, 0, sizeof(*ret));
	while ((ret->moved < RT_MOVE_JUMP || seen < r->sight_nr) && !over) {
		struct rt_bytes rest;
		struct rt_insn insn;
		size_t size;

		/* behind the instructions comes the jump back, which is no longer than one of them */
		if (n + CALL + RT_MOVE_MAX + RT_MOVE_MAX > RT_AGENT_STUB_MAX || !decode(r, ret->moved, &rest, &insn))
			return false;
		ret->place[ret->moved] = (uint16_t)n;
		if (seen < r->sight_nr && ret->moved == r->sights[seen].behind)
			n += put_call(r, &r->sights[seen++], r->at + n, ret->bytes + n);
		if (!rt_insn_move(rest, &insn, r->address + ret->moved, r->at + n, ret->bytes + n, &size))
			return false;
		n += size;
		ret->moved += insn.length;
		over = insn.ret || insn.call || (insn.jump && !insn.conditional);
	}
	if (!over)
		n += rt_insn_jump(r->address + ret->moved, ret->bytes + n);
	ret->size = n;
	if (seen < r->sight_nr || !is_padding(r, ret->moved))
		return false;
	if (ret->moved < RT_MOVE_JUMP)
		ret->moved = RT_MOVE_JUMP;
	return true;
}
