/* SPDX-License-Identifier: GPL-2.0-only */
/* Small questions to /proc. The asked process may vanish at any time: that is an ordinary answer, not an error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Number behind "Key:" of /proc/PID/status (or task/TID/status); base 10 or 16. false: gone or no such key. */
bool rt_proc_status(uint32_t tid, const char *key, unsigned base, uint64_t *ret);
/* State letter of /proc/TID/stat, 0 when it is gone. */
char rt_proc_state(uint32_t tid);
/* Name as in /proc/PID/comm into text, of size bytes; "?" when gone. Returns text. */
char *rt_proc_comm(uint32_t pid, char *text, size_t size);
/* RT_E_TRACED where a debugger (anything by ptrace(2), and be it us) holds the process: its name and number. */
RT_CHECK struct rt_error *rt_proc_check_untraced(uint32_t pid);

/* Do two processes have the same memory? clone(2) and vfork(2) make such. */
bool rt_proc_same_memory(uint32_t a, uint32_t b);

/*
 * For a child that is to outlive its parent by a moment: keeps nothing but fd, which becomes 0; no terminal, no
 * directory, no signals; its name in ps. Ends the process where that fails.
 */
void rt_proc_stand_alone(int fd, const char *name);
