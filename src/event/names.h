/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the analysis asks about code: names for a frame. The analysis lies
 * below the symbol readers, so the interface is here and they implement it
 * (src/symbol for real programs, src/engine/text for hand-made ones).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/event.h"

/*
 * One source-level function at one address. A machine frame becomes one or
 * more of these, innermost first: inlined functions, then the symbol that
 * contains them. Strings belong to the namer and live as long as it does.
 */
struct rt_frame {
	const char *function; /* source name, demangled; NULL = unknown */
	const char *linkage;  /* name as in the symbol table where it differs (mangled), else NULL */
	const char *symbol; /* of the last frame: what the symbol table has there, as perf shows it (clone suffix kept);
			       NULL = nothing */
	const char *file;   /* source file as the debug info has it, NULL = unknown */
	const char *module; /* path of the module, NULL = not in any */
	/*
	 * Type that the function returns, "struct obj *", NULL = unknown; with '|' between, pointers to the structs
	 * that that one begins with: "struct sub *|struct obj *". Of an inlined one that returns no pointer, behind
	 * that what it leaves where its T ** arguments say: "int|struct obj *".
	 */
	const char *returns;
	uint32_t module_id;    /* struct rt_wire_module.id, 0 = none */
	uint32_t line;         /* 0 = unknown */
	uint64_t address;      /* ELF address of the pc */
	uint64_t entry;        /* ELF address where the function (or inlined instance) starts, 0 = unknown */
	uint64_t symbol_entry; /* ELF address of symbol */
	/*
	 * Where the call before a return address goes, in the process that was
	 * asked about, or the jump at another place; set in the last frame of an
	 * answer. 0 = not a direct call or jump, or unknown.
	 */
	uint64_t callee;
	uint8_t build_id_size;
	bool inlined; /* inlined into the next frame of the answer */
	uint8_t build_id[RT_BUILD_ID_MAX];
};

/* rt_frame.returns is a pointer to anything: what that is the declaration does not say. NULL: unknown, so false. */
static inline bool rt_returns_anything(const char *returns)
{
	return returns && !strcmp(returns, "void *");
}

/* What a function does with a call in it, as its code tells where no declaration does. */
enum {
	RT_HANDS_RESULT = 1 << 0,   /* it returns what the call returned, or 0 */
	RT_HANDS_ARGUMENT = 1 << 1, /* it returns what it gave the call as its first argument, or 0 */
	RT_HANDS_OWN = 1 << 2,      /* which is its own first argument */
	RT_HANDS_TAKEN = 1 << 3,    /* it takes what the call returned for an address, or returns it */
	RT_HANDS_BLIND = 1 << 4,    /* it gives the call an argument of its own that it has not looked into */
	RT_HANDS_JUMPED = 1 << 5, /* what the call goes to jumps on so, with an argument that it has not looked into */
	RT_HANDS_AGAIN = 1 << 6,  /* behind the call it uses what it gave it as its first argument */
	RT_HANDS_NR = 7
};

/* The word for 1 << bit in reftrace.events(5), bit in [0, RT_HANDS_NR). Static text. */
static inline const char *rt_hands_word(unsigned bit)
{
	static const char *const words[RT_HANDS_NR] = {
		"result", "argument", "own", "taken", "blind", "jumped", "again"
	};

	return words[bit];
}

/* A branch of a function, by lines of that function; 0 = unknown. */
struct rt_branch {
	uint32_t line, to; /* where it is decided, and where it leads */
};

struct rt_namer {
	/*
	 * Names for pc in process pid (RT_PID_MAKE) as mapped at time_ns. For a
	 * return address pass is_return: the call before it is looked up.
	 * Writes at most max frames, returns how many (at least 1 if max > 0:
	 * an unknown address gives one frame without names).
	 */
	size_t (*name)(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return,
		       struct rt_frame *ret, size_t max);
	/*
	 * Text of line `line` of file as compiled into module_id, without its
	 * newline; NULL when it cannot be read or the file is newer than the
	 * module (then *ret_stale is true; ret_stale may be NULL). Owned by the namer.
	 */
	const char *(*source_line)(struct rt_namer *self, uint32_t module_id, const char *file, uint32_t line,
				   bool *ret_stale);
	/* RT_HANDS_* of the function that the call before this return address lies in; NULL, 0: not known. */
	uint8_t (*hands)(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc);
	/*
	 * Where the function begins, in the process, that the function around this return address has somebody call
	 * later with what its call returned, or was given (*ret_given): do_later(done, obj). NULL, 0: there is none, or
	 * not known.
	 */
	uint64_t (*callback)(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool *ret_given);
	/*
	 * Where the function that begins at this address jumps to another one for good, in the process, but for jumps
	 * to what by its name only complains; NULL, 0: it does so nowhere, at several places, or that is not known.
	 * The frame of that place has the other one as its callee.
	 */
	uint64_t (*leaves)(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t callee);
	/*
	 * The branches by which the function of this frame, which is no inlined one, can go from the frame's place past
	 * all of these (ELF addresses in it, as frames have them), but for those that ask whether there is an object at
	 * all. At most max; NULL, 0: there is none, or that is not known.
	 */
	size_t (*skips)(struct rt_namer *self, const struct rt_frame *from, const uint64_t *places, size_t nr,
			struct rt_branch *ret, size_t max);
};

/* Samples whose callers were found in a copy of their stack, and why not all of them were. */
struct rt_unwound {
	uint64_t samples;                       /* that hold such a copy */
	uint64_t whole;                         /* up to the outermost function */
	uint64_t short_copy, no_rows, too_deep; /* end early: the copy ends; no unwind information; more than 127 */
	uint64_t foreign;                       /* of another architecture: no callers at all */
};
