/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the BPF program that watches loads tells user space, through a ring of
 * its own; never in a file. Everything about one load is sent by one thread, in
 * this order, between other loads' records: START, PARTs, END. A record that
 * found no room is in the lost mask of END, or in the table of losses.
 *
 * Includes <stdint.h> at most.
 */
#pragma once

#ifndef RT_WIRE_NO_STDINT
#include <stdint.h>
#endif

enum rt_load_kind {
	RT_LOAD_START = 1,  /* struct rt_load_start */
	RT_LOAD_PART = 2,   /* struct rt_load_part */
	RT_LOAD_END = 3,    /* struct rt_load_end */
	RT_LOAD_ATTACH = 4, /* struct rt_load_attach */
	RT_LOAD_STATS = 5,  /* struct rt_load_stats */
};

/* Arrays of a program; also the bits of lost masks. */
enum rt_load_array {
	RT_ARRAY_START = 0,
	RT_ARRAY_FUNCTIONS = 1,  /* struct rt_load_function, one each; index = function */
	RT_ARRAY_JIT = 2,        /* JITed instructions; index = function */
	RT_ARRAY_XLATED = 3,     /* struct bpf_insn as the kernel runs them */
	RT_ARRAY_FUNC_INFO = 4,  /* struct bpf_func_info */
	RT_ARRAY_LINE_INFO = 5,  /* struct bpf_line_info */
	RT_ARRAY_JITED_LINE = 6, /* u64 addresses */
	RT_ARRAY_MAPS = 7,       /* struct rt_load_map, one each; index = position */
	RT_ARRAY_BTF = 8,        /* raw BTF */
	RT_ARRAY_RACED = 9,      /* no array: the program was closed while it was copied */
	RT_ARRAY_NR
};

struct rt_load_head {
	uint32_t kind; /* enum rt_load_kind */
	uint32_t id;   /* program id */
};

enum { RT_LOAD_JITED = 1 << 0, RT_LOAD_GPL = 1 << 1, RT_LOAD_DEVICE = 1 << 2, RT_LOAD_JITED_LINES = 1 << 3 };

struct rt_load_start {
	struct rt_load_head head;
	uint64_t time_ns;   /* CLOCK_MONOTONIC */
	uint64_t load_time; /* as the kernel noted it, CLOCK_BOOTTIME */
	uint64_t address;   /* of the JITed main function */
	uint32_t pid, tid;  /* of the loader */
	char comm[16];
	char name[16];
	uint8_t tag[8];
	uint32_t type, attach_type;
	uint32_t insns, jited_bytes; /* of the whole program; of the main function */
	uint32_t functions;          /* 0: only the main one, without a table */
	uint32_t func_infos, line_infos, maps;
	uint32_t btf, btf_bytes; /* id, 0 = none */
	uint32_t attach_btf, attach_btf_object;
	uint32_t verified, uid;
	uint32_t flags; /* RT_LOAD_* */
	uint32_t pad;
};

struct rt_load_function {
	uint64_t address;
	uint32_t bytes;
	uint32_t pad;
	uint8_t tag[8];
};

struct rt_load_map {
	uint64_t map;                  /* kernel address: instructions name the map by it */
	uint64_t values, values_bytes; /* where values lie that instructions name directly; 0 = nowhere */
	uint32_t id, type;
	char name[16];
};

/* Bytes [offset, offset + bytes) of total. */
struct rt_load_part {
	struct rt_load_head head;
	uint32_t array; /* enum rt_load_array */
	uint32_t index;
	uint32_t offset, bytes, total;
	uint32_t fault; /* these bytes could not be read */
	uint8_t data[];
};

struct rt_load_end {
	struct rt_load_head head;
	uint32_t lost; /* bits 1 << enum rt_load_array */
	uint32_t pad;
};

enum rt_load_attached {
	RT_ATTACHED_LINK = 1,   /* by a link: link and link_type */
	RT_ATTACHED_PERF = 2,   /* to a perf event, by ioctl */
	RT_ATTACHED_SOCKET = 3, /* to a socket, by setsockopt */
	RT_ATTACHED_DIRECT = 4, /* by BPF_PROG_ATTACH: attach_type */
};

struct rt_load_attach {
	struct rt_load_head head;
	uint64_t time_ns;
	uint32_t pid;
	uint32_t how; /* enum rt_load_attached */
	uint32_t link, link_type, attach_type;
	uint32_t pad;
	char group[32]; /* "sched", or "" */
	char name[64];  /* "sched_switch", or "" */
};

/* What a program had run when its last file descriptor was about to be closed. */
struct rt_load_stats {
	struct rt_load_head head;
	uint64_t run_time_ns, run_cnt;
};

/* Value of the table of losses: program id -> this. For loads whose START or END found no room. */
struct rt_load_lost {
	uint32_t mask;
	uint32_t pid;
	char comm[16];
};

/* Counters of the watching program. */
struct rt_load_counts {
	uint64_t loads;   /* seen */
	uint64_t unnamed; /* of which neither records nor table could take the loss */
};

/* Data bytes of a PART, by size class: a record is as large as the class that was chosen for it. */
#define RT_LOAD_CLASS_0 256
#define RT_LOAD_CLASS_1 1024
#define RT_LOAD_CLASS_2 4096
#define RT_LOAD_CLASS_3 16384

_Static_assert(sizeof(struct rt_load_start) == 144, "start");
_Static_assert(sizeof(struct rt_load_part) == 32, "part");
_Static_assert(sizeof(struct rt_load_attach) == 136, "attach");
