/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of kernel structs that the watcher of loads reads. Offsets are put
 * right by the kernel's own BTF when the program is loaded (CO-RE); members
 * that are not named here do not matter.
 */
#pragma once

#include "kernel_types.h"

/* Members are matched by the names of their enums; the values do not matter. */
enum bpf_prog_type { PROG_TYPE_ANY };
enum bpf_attach_type { ATTACH_TYPE_ANY };
enum bpf_link_type { LINK_TYPE_ANY };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file {
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct task_struct {
	int pid, tgid;
	struct files_struct *files;
	struct signal_struct *signal;
};

struct bpf_prog_aux;

/* u64_stats_t */
struct bpf_prog_stats {
	struct {
		struct {
			uint64_t a;
		} v;
	} cnt, nsecs;
};

struct bpf_prog {
	enum bpf_prog_type type;
	enum bpf_attach_type expected_attach_type;
	uint32_t len;
	uint32_t jited_len;
	uint8_t tag[8];
	struct bpf_prog_stats *stats;
	void *bpf_func;
	struct bpf_prog_aux *aux;
	struct bpf_insn_ {
		uint64_t v;
	} insnsi[0];
	uint16_t jited : 1;
	uint16_t gpl_compatible : 1;
};

struct user_struct {
	struct {
		unsigned int val;
	} uid;
};

struct btf {
	void *data;
	uint32_t data_size;
	uint32_t id;
};

struct bpf_prog_aux {
	uint32_t used_map_cnt;
	uint32_t id;
	uint32_t func_cnt;
	uint32_t attach_btf_id;
	struct btf *attach_btf;
	bool offload_requested;
	const char *attach_func_name;
	struct bpf_prog **func;
	struct bpf_map **used_maps;
	struct bpf_prog *prog;
	struct user_struct *user;
	uint64_t load_time;
	uint32_t verified_insns;
	char name[16];
	struct btf *btf;
	void *func_info;
	void *linfo;
	void **jited_linfo;
	uint32_t func_info_cnt;
	uint32_t nr_linfo;
};

struct bpf_map {
	enum bpf_map_type map_type;
	uint32_t max_entries;
	uint32_t id;
	char name[16];
};

struct bpf_array {
	uint32_t elem_size;
	union {
		char value[0];
		void *pptrs[0];
	};
};

struct bpf_arena {
	uint64_t user_vm_start;
};

struct bpf_link {
	uint32_t id;
	enum bpf_link_type type;
	struct bpf_prog *prog;
};

struct bpf_perf_link {
	struct bpf_link link;
	struct file *perf_file;
};

struct tracepoint {
	const char *name;
};

struct trace_event_class {
	const char *system;
};

struct trace_event_call {
	struct trace_event_class *class;
	union {
		const char *name;
		struct tracepoint *tp;
	};
	int flags;
};

struct perf_event {
	struct trace_event_call *tp_event;
};

#pragma clang attribute pop
