/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tool asks of the keeper; each is answered by a struct rt_keeper_answer. */
#pragma once

#include "engine/semaphore.h"

enum rt_keeper_op {
	RT_KEEPER_RAISE,
	RT_KEEPER_LOOK,
	RT_KEEPER_NOTE_RAISED,
	RT_KEEPER_NOTE_LOWERED,
	RT_KEEPER_FORK,  /* place.pid: the child, other: its parent */
	RT_KEEPER_LEAVE, /* the same of a child that is left alone: its counters are lowered, and it is forgotten */
	RT_KEEPER_FORGET,
};

/* With it come, where the keeper is not known to have them, two file descriptors: the process's memory and maps. */
struct rt_keeper_request {
	uint32_t op, other;
	struct rt_semaphore_place place;
};

enum { RT_KEEPER_UNKNOWN = 100, RT_KEEPER_NOMEM }; /* beside enum rt_semaphore_state; UNKNOWN: descriptors are needed */
struct rt_keeper_answer {
	uint32_t state;
};

/* The keeper's life, in a child that stands alone: reads requests until the other end is closed. Never returns. */
_Noreturn void rt_keeper_run(int socket);
