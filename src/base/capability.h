/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this process may do: capabilities, capabilities(7). Only for saying why something was refused; whether
 * it works is found by trying.
 */
#pragma once

#include <stdbool.h>

/* Bits of the kernel's masks, linux/capability.h; some of its versions lack 38 and 39. */
enum rt_capability {
	RT_CAP_SYS_ADMIN = 21,
	RT_CAP_PERFMON = 38,
	RT_CAP_BPF = 39,
};

/* Is it in our effective set? True, too, when that cannot be read: nothing shall be called missing by mistake. */
bool rt_capable(enum rt_capability capability);
