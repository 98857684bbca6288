/* SPDX-License-Identifier: GPL-2.0-only */
/* The code that a jump leads to: the instructions that are written over, with a call of the agent before each that is
 * seen. */
#pragma once

#include "base/bytes.h"
#include "insn/decoder.h"
#include "wire/agent.h"

enum {
	RT_AGENT_STUB_MAX = 400,    /* bytes of a stub */
	RT_AGENT_STUB_ENTRIES = 48, /* bytes at the start of an area, for what its stubs call; stubs are aligned */
	RT_AGENT_STUB_CODE = 64,    /* bytes of the code that are looked at: what comes before an instruction, and it */
	RT_AGENT_STUB_SIGHTS = 8,   /* instructions that one stub lets be seen */
};

/* What is to be seen. */
struct rt_agent_sight {
	uint32_t site;  /* its number, or RT_AGENT_SIGHT_* */
	uint8_t behind; /* bytes from the start of the jump to the instruction */
	bool plain;     /* of a site: its only object is as far from what reg holds as struct rt_agent_plain says */
	bool entry;     /* with plain: a function's first instruction, where no flags mean anything (psABI) */
	uint8_t reg;    /* enum rt_reg */
};

/* Where an area's stubs find what they call: to be written to its start, RT_AGENT_STUB_ENTRIES bytes. */
struct rt_agent_entries {
	uint64_t hit, plain, stop, unwind, unwound;
};

struct rt_agent_stub_request {
	struct rt_decoder *decoder;
	uint64_t area;                       /* start of the area */
	uint64_t at;                         /* where in the process the stub will lie */
	uint64_t address;                    /* where the jump will */
	struct rt_bytes code;                /* what stands at address, RT_AGENT_STUB_CODE bytes or to the end */
	const struct rt_agent_sight *sights; /* in order, each at another instruction */
	size_t sight_nr;                     /* 1 or more */
};

struct rt_agent_stub {
	uint8_t bytes[RT_AGENT_STUB_MAX];
	size_t size;  /* of bytes */
	size_t moved; /* bytes of the code that it stands for: as many as the jump has, or more */
	/* by how far behind the jump's start an instruction begins: where that is in bytes; 0: none begins there */
	uint16_t place[RT_AGENT_STUB_CODE];
};

/* false: something there cannot be moved, or does not fit. */
bool rt_agent_stub_make(const struct rt_agent_stub_request *r, struct rt_agent_stub *ret);
