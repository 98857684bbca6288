/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of profile/: the counters. Numbers of things count from 1, 0 is none. */
#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

#define RT_PF_ROOT (1ull << 63) /* a parent that is a row, not a node */

struct rt_pf_thread {
	uint32_t comm;
};

struct rt_pf_symbol {
	uint32_t module, function; /* in strings */
	uint32_t module_id;
	uint64_t entry, address;
	bool kernel;
};

struct rt_pf_place {
	uint32_t symbol;
	uint64_t address;
};

struct rt_pf_row {
	unsigned event;
	uint32_t comm, symbol;
	uint64_t samples, period, total_samples, total_period;
	uint64_t stamp; /* the last sample that counted in its total: recursion counts once */
};

struct rt_pf_node {
	uint64_t parent; /* node, or row | RT_PF_ROOT */
	uint32_t symbol;
	uint64_t samples, period;
};

struct rt_pf_hit {
	unsigned event;
	uint32_t symbol;
	uint64_t address, samples, period;
};

struct rt_pf_table {
	uint64_t samples, period, without_chain, cut_chains;
	bool has_chains;
};

struct rt_profile {
	struct rt_namer *namer;
	struct rt_intern strings;
	RT_VEC(struct rt_pf_thread) threads;
	RT_VEC(struct rt_pf_symbol) symbols;
	RT_VEC(struct rt_pf_place) places;
	RT_VEC(struct rt_pf_table) tables;
	RT_VEC(struct rt_pf_row) rows;
	RT_VEC(struct rt_pf_node) nodes;
	RT_VEC(struct rt_pf_hit) hits;
	struct rt_map thread_by_tid, epoch_by_pid, symbol_by_name, place_by_ip, row_by_key, node_by_key, hit_by_place;
	uint64_t stamp;
	struct rt_arena answer; /* tables that were asked for */
};
