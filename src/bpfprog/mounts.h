/* SPDX-License-Identifier: GPL-2.0-only */
/* Mounted file systems of one type. */
#pragma once

/* Calls visit for the path of each mount of this type that we see. */
void rt_bpf_mounts_each(const char *type, void (*visit)(void *arg, const char *path), void *arg);
