/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock of all records. */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. Any thread. */
uint64_t rt_now_ns(void);
