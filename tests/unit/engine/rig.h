/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rig for the tests of engine K: compiles engine/target.c, starts it (it stops
 * itself), arms points in it, lets it run and keeps every record.
 */
#pragma once

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "engine/engine.h"
#include "engine/uprobe.h"
#include "test.h"

struct symbol {
	char name[64];
	uint64_t address, size;
};

struct program {
	char path[128];
	RT_VEC(struct symbol) symbols; /* as nm says */
	Elf64_Phdr load[16];
	int loads;
};

struct target {
	const struct program *program;
	pid_t pid;
	uint64_t bias;
	int out; /* its stdout */
};

struct records {
	struct rt_event_sink sink;
	RT_VEC(struct rt_wire_event) events;
	RT_VEC(struct rt_wire_stack *) stacks;
	RT_VEC(struct rt_wire_loss) losses; /* LOSS and HITS, without texts */
};

extern char rig_dir[64];

/* Compiles target.c with these extra flags into a program of this name. */
void rig_compile(struct program *p, const char *name, const char *flags);
void rig_free(struct program *p);
uint64_t rig_symbol(const struct program *p, const char *name);
uint64_t rig_offset(const struct program *p, uint64_t address);
/* Name of the function that holds this ELF address, or "". */
const char *rig_function(const struct program *p, uint64_t address);

struct target rig_start(const struct program *p, const char *mode, long n);
uint64_t rig_bias(pid_t pid, const char *path);
void rig_continue(struct target *t);
/* Waits for the end; the wait status. */
int rig_wait(struct target *t);

/* An ENTRY point on argument 1, at an offset behind the function's first byte. */
struct rt_point rig_point(const struct program *p, uint32_t id, const char *function, unsigned plus);

struct arming {
	unsigned failures;
	struct rt_arm_failure last;
};
/* Arms points; failures are counted. */
struct arming rig_arm(struct rt_engine *e, const struct target *t, struct rt_point *points, size_t count);

struct rt_engine *rig_open(enum rt_attach_path path, size_t ring, unsigned frames);

void rig_records_init(struct records *r);
void rig_records_deinit(struct records *r);
size_t rig_count(const struct records *r, uint32_t point);
const struct rt_wire_stack *rig_stack(const struct records *r, uint32_t id);
/* Value of the HITS (cause 0) or LOSS record of this cause and point; 0 if there is none. */
uint64_t rig_loss(const struct records *r, uint8_t kind, uint32_t cause, uint32_t point);
/* The byte at an address of a process, or -1. */
int rig_peek(pid_t pid, uint64_t address);

/* Everything at once: start, arm, run to a clean end, stop the engine; records are left in *r. */
void rig_run(const struct program *p, enum rt_attach_path path, const char *mode, long n, struct rt_point *points,
	     size_t count, struct records *r);
