/* SPDX-License-Identifier: GPL-2.0-only */
/* What order.c needs of the reader beyond reader.h. Inside perfdata only. */
#pragma once

#include "perfdata/reader.h"

/* Decodes once more a record that the reader gave. */
RT_CHECK struct rt_error *rt_perf_reader_decode(struct rt_perf_reader *reader, struct rt_bytes bytes,
						struct rt_perf_record *ret);

/* bytes lie in the file, so they stay as long as it does. */
bool rt_perf_reader_lasting(const struct rt_perf_reader *reader, struct rt_bytes bytes);
