/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jump tables: where the jumps of a switch lead. As distances from the table (4 bytes, position independent code),
 * whose address is added to what was read, or as addresses (8 bytes), read with an index. How many entries a table has
 * nobody says. Private to probe/.
 */
#pragma once

#include "elf/image.h"
#include "insn/insn.h"
#include "probe/track.h"

enum { RT_TABLE_MAX = 4096 /* entries */ };

struct rt_table {
	struct rt_elfaddr address; /* 0: none */
	struct rt_elfaddr since;   /* what is known of it is so since this instruction */
	uint32_t entries;          /* 0: not known */
	uint8_t width;             /* bytes of an entry, 4 or 8 */
};

/* One entry leads to target. false: what stands there is no entry of it, nor is anything behind that. */
typedef bool rt_table_entry(struct rt_elfaddr target, void *arg);

/* Calls entry for what the table has; where it is not known how much, up to RT_TABLE_MAX. Returns how many it took. */
unsigned rt_table_read(const struct rt_image *image, const struct rt_table *table, rt_table_entry *entry, void *arg);

/* A register is less than this, as a comparison says since there. */
struct rt_table_bound {
	struct rt_elfaddr since;
	uint32_t below; /* 0: not known */
};

/* Which tables the registers lead into, in straight code. */
struct rt_tables {
	struct rt_table at[RT_TRACK_REGS];   /* the register holds the address of this one */
	struct rt_table read[RT_TRACK_REGS]; /* an entry of this one */
	struct rt_table into[RT_TRACK_REGS]; /* where an entry of this one leads */
	struct rt_table_bound bound[RT_TRACK_REGS];
	struct rt_table_bound compared; /* what the last instruction compared, and which register that is */
	uint8_t compared_reg;
};

/*
 * The code goes on with insn, whose first bytes are `code`. true: it jumps through *ret, all of which is known. What
 * jumps elsewhere by a register or memory is none.
 */
bool rt_tables_pass(struct rt_tables *tables, struct rt_bytes code, const struct rt_insn *insn, struct rt_table *ret);
