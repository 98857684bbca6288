/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small experiments of the doctor: each really does the thing, on reftrace
 * itself or on a child of its own, and undoes it. Reading settings is no proof.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

struct rt_check {
	const char *name; /* "bpf-map", for --json and scripts */
	const char *what; /* "make a BPF map" */
	bool works;
	bool needed;     /* reftrace cannot trace without it */
	bool engine;     /* nor without any of these */
	const char *why; /* what was seen, or the reason; owned by the arena */
	const char *fix; /* NULL: none known */
};

/* Runs all; *ret points to ret_count checks owned by the arena. */
void rt_doctor_checks(struct rt_arena *arena, struct rt_check **ret, size_t *ret_count);
