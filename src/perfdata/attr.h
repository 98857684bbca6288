/* SPDX-License-Identifier: GPL-2.0-only */
/* perf_event_attr as files have it: any size from 64 bytes, either byte order. Inside perfdata only. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/format.h"

enum { RT_PERF_ATTR_MIN = 64 };

/*
 * The attr at the start of bytes: what it lacks is 0, what it has beyond ours is ignored; ret->size is what the
 * file says (0 in very old files means 64). RT_E_TRUNCATED when bytes are fewer than it says.
 */
RT_CHECK struct rt_error *rt_perf_attr_read(struct rt_bytes bytes, bool big_endian, struct perf_event_attr *ret);
