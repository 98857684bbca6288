/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lives of BPF programs: who loaded each, when, how long it lived, what it
 * ran, what it was attached to, and who holds it now. Grows with programs, up to
 * RT_BPF_CATALOG_MAX; what does not fit is counted.
 */
#pragma once

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"

#define RT_BPF_CATALOG_MAX (256u << 10)
#define RT_BPF_TEXTS_MAX 64 /* attach points and holders that are kept of one program */

enum rt_bpf_holder_kind {
	RT_BPF_HELD_FD = 1,       /* descriptor fd of process pid; link != 0: of a link to the program */
	RT_BPF_HELD_PIN = 2,      /* text is a path in a BPF file system; link as above */
	RT_BPF_HELD_LINK = 3,     /* a link; text says to what */
	RT_BPF_HELD_PERF = 4,     /* attached to the perf event fd of process pid */
	RT_BPF_HELD_ATTACHED = 5, /* attached without a link: text says to what */
};

struct rt_bpf_holder {
	enum rt_bpf_holder_kind kind;
	uint32_t link; /* id, 0 = none */
	uint32_t pid;
	int fd;
	char comm[16]; /* of pid */
	char *text;    /* owned; NULL = none */
};

struct rt_bpf_attached {
	uint32_t link; /* id, 0 = not by a link */
	char *text;    /* "tracepoint sched/sched_switch"; owned */
};

struct rt_bpf_entry {
	uint32_t id, type, attach_type;
	uint8_t tag[8];
	char name[17];       /* from BTF where the kernel's own name is cut to 15 bytes: see full_name */
	char *full_name;     /* owned; NULL = as name */
	uint32_t loader_pid; /* 0 = unknown: loaded before we looked */
	char loader[17];
	uint64_t load_ns, unload_ns; /* CLOCK_MONOTONIC; unload_ns 0 = not seen */
	uint64_t load_boot_ns;       /* as the kernel noted it, CLOCK_BOOTTIME; 0 = unknown */
	bool gone;                   /* not loaded any more */
	bool before;                 /* loaded before the watch began */
	bool stats_known;
	uint64_t run_time_ns, run_cnt;
	uint32_t functions, jited_bytes, xlated_bytes, lines, maps, btf, btf_bytes;
	uint32_t lost;   /* bits 1 << enum rt_load_array: what could not be kept */
	char *lost_text; /* owned; NULL = all was kept */
	bool extra_due;  /* more is known than the last EXTRA blob said */
	uint32_t uid;
	uint32_t *map_ids; /* owned */
	char **map_names;  /* beside map_ids; owned */
	RT_VEC(struct rt_bpf_attached) attached;
	RT_VEC(struct rt_bpf_holder) holders;
	bool held_unseen; /* loaded, and none of the holders that can be asked has it */
};

struct rt_bpf_catalog {
	RT_VEC(struct rt_bpf_entry *) entries; /* by load */
	struct rt_map by_id;                   /* of the latest program of that id */
	uint64_t other;                        /* programs beyond the limit */
	uint64_t lost_programs;                /* of which something is missing */
	uint64_t lost_unnamed;                 /* loads of which not even the id is known */
	uint64_t lost_unloads;                 /* records of the side band that did not fit */
};

/* The entry of id; NULL: unknown. */
struct rt_bpf_entry *rt_bpf_catalog_find(const struct rt_bpf_catalog *catalog, uint32_t id);
/* A new entry for id. NULL: no room, or out of memory (counted). */
struct rt_bpf_entry *rt_bpf_catalog_add(struct rt_bpf_catalog *catalog, uint32_t id);
/* Notes an attach point; the first text of a link, and equal texts, are kept once. */
void rt_bpf_entry_attached(struct rt_bpf_entry *entry, uint32_t link, const char *text);
const char *rt_bpf_entry_name(const struct rt_bpf_entry *entry);
void rt_bpf_catalog_deinit(struct rt_bpf_catalog *catalog);

/*
 * Asks the kernel about everything that is loaded now: programs that the
 * catalog does not know are added (before = true), gone ones are marked, run
 * times and holders are filled in.
 * RT_E_PRIVILEGE where the kernel does not tell.
 */
RT_CHECK struct rt_error *rt_bpf_catalog_refresh(struct rt_bpf_catalog *catalog);
/* Only which programs are gone, and run times. Cheap. */
RT_CHECK struct rt_error *rt_bpf_catalog_alive(struct rt_bpf_catalog *catalog);

/* "tracepoint", "xdp": as bpftool and libbpf call it. Static string, "?" where unknown. */
const char *rt_bpf_type_name(uint32_t type);
const char *rt_bpf_attach_name(uint32_t attach_type);
const char *rt_bpf_link_name(uint32_t link_type);
/* What the bits of a lost mask name: "JITed instructions, BTF". Caller frees; NULL: out of memory. */
char *rt_bpf_lost_words(uint32_t mask);
