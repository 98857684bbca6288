/* SPDX-License-Identifier: GPL-2.0-only */
/* The fields of a sample, in the order of perf_event_open(2), "PERF_RECORD_SAMPLE". */
#include "perfdata/decoder.h"

#include <string.h>

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1u << 4)
#endif
#define BRANCH_COUNTERS (UINT64_C(1) << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8 */

static struct rt_error *cut(const char *what)
{
	return rt_error_new(RT_E_FORMAT, "sample is too short for its %s", what);
}

#define TAKE(ok, what) \
	do { \
		if (!(ok)) \
			return cut(what); \
	} while (0)

/* count words in our byte order, in the decoder's memory. */
static bool take_words(struct rt_perf_decoder *d, struct rt_cursor *c, uint64_t count, const uint64_t **ret)
{
	bool other = d->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	uint64_t *words = d->words + d->words_used;
	struct rt_bytes bytes;

	if (count > RT_PERF_RECORD_WORDS - d->words_used || !rt_cursor_bytes(c, count * 8, &bytes))
		return false;
	memcpy(words, bytes.data, bytes.size);
	for (uint64_t i = 0; other && i < count; i++)
		words[i] = __builtin_bswap64(words[i]);
	d->words_used += count;
	*ret = words;
	return true;
}

static bool take_read(struct rt_cursor *c, uint64_t format, struct rt_bytes *ret)
{
	uint64_t each = 8, times = 0, nr = 1;
	size_t start = c->pos;

	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		times += 8;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		times += 8;
	if (format & PERF_FORMAT_ID)
		each += 8;
	if (format & PERF_FORMAT_LOST)
		each += 8;
	if ((format & PERF_FORMAT_GROUP) && !rt_cursor_u64(c, &nr))
		return false;
	if (nr > rt_cursor_left(c) / each || !rt_cursor_skip(c, times + nr * each))
		return false;
	return rt_bytes_sub(c->bytes, start, c->pos - start, ret);
}

static bool take_raw(struct rt_cursor *c, struct rt_bytes *ret)
{
	uint32_t size;

	return rt_cursor_u32(c, &size) && rt_cursor_bytes(c, size, ret) && rt_cursor_align(c, 8);
}

static bool skip_branches(struct rt_cursor *c, uint64_t branch_type)
{
	uint64_t nr, each = 24;

	if (!rt_cursor_u64(c, &nr))
		return false;
	if ((branch_type & PERF_SAMPLE_BRANCH_HW_INDEX) && !rt_cursor_skip(c, 8))
		return false;
	if (branch_type & BRANCH_COUNTERS)
		each += 8;
	return nr <= rt_cursor_left(c) / each && rt_cursor_skip(c, nr * each);
}

/* Registers are there only when the kernel could take them (abi is not 0). */
static bool take_regs(struct rt_perf_decoder *d, struct rt_cursor *c, uint64_t mask, struct rt_perf_sample *s)
{
	s->user_reg_count = 0;
	if (!rt_cursor_u64(c, &s->user_abi))
		return false;
	if (!s->user_abi)
		return true;
	s->user_reg_count = (unsigned)__builtin_popcountll(mask);
	return take_words(d, c, s->user_reg_count, &s->user_regs);
}

static bool take_stack(struct rt_cursor *c, struct rt_perf_sample *s)
{
	uint64_t size;

	if (!rt_cursor_u64(c, &size))
		return false;
	if (!size)
		return true;
	if (!rt_cursor_bytes(c, size, &s->user_stack) || !rt_cursor_u64(c, &s->user_stack_size))
		return false;
	if (s->user_stack_size > size)
		s->user_stack_size = size;
	return true;
}

/* Everything that has one fixed width, up to the period. */
static bool take_head(struct rt_cursor *c, const struct perf_event_attr *attr, struct rt_perf_record *ret)
{
	uint64_t type = attr->sample_type;
	struct rt_perf_sample *s = &ret->sample;
	struct rt_perf_id *id = &ret->id;

	if ((type & PERF_SAMPLE_IDENTIFIER) && !rt_cursor_u64(c, &id->id))
		return false;
	if ((type & PERF_SAMPLE_IP) && !rt_cursor_u64(c, &s->ip))
		return false;
	if ((type & PERF_SAMPLE_TID) && !(rt_cursor_u32(c, &id->pid) && rt_cursor_u32(c, &id->tid)))
		return false;
	if ((type & PERF_SAMPLE_TIME) && !rt_cursor_u64(c, &id->time_ns))
		return false;
	id->has_time = type & PERF_SAMPLE_TIME;
	if ((type & PERF_SAMPLE_ADDR) && !rt_cursor_u64(c, &s->addr))
		return false;
	if ((type & PERF_SAMPLE_ID) && !rt_cursor_u64(c, &id->id))
		return false;
	if ((type & PERF_SAMPLE_STREAM_ID) && !rt_cursor_u64(c, &id->stream))
		return false;
	if ((type & PERF_SAMPLE_CPU) && !(rt_cursor_u32(c, &id->cpu) && rt_cursor_skip(c, 4)))
		return false;
	if (type & PERF_SAMPLE_PERIOD)
		return rt_cursor_u64(c, &s->period);
	s->period = attr->freq ? 0 : attr->sample_period;
	return true;
}

static struct rt_error *take_tail(struct rt_perf_decoder *d, struct rt_cursor *c, const struct perf_event_attr *attr,
				  struct rt_perf_sample *s)
{
	struct rt_perf_sample ignored = { 0 }; /* registers of the interrupted kernel */
	uint64_t type = attr->sample_type, size;

	if (type & PERF_SAMPLE_REGS_INTR)
		TAKE(take_regs(d, c, attr->sample_regs_intr, &ignored), "registers");
	if (type & PERF_SAMPLE_PHYS_ADDR)
		TAKE(rt_cursor_u64(c, &s->phys_addr), "physical address");
	if (type & PERF_SAMPLE_CGROUP)
		TAKE(rt_cursor_u64(c, &s->cgroup), "cgroup");
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		TAKE(rt_cursor_u64(c, &s->data_page_size), "data page size");
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		TAKE(rt_cursor_u64(c, &s->code_page_size), "code page size");
	if (type & PERF_SAMPLE_AUX)
		TAKE(rt_cursor_u64(c, &size) && rt_cursor_skip(c, size), "AUX data");
	return NULL;
}

struct rt_error *rt_perf_sample_decode(struct rt_perf_decoder *d, const struct perf_event_attr *attr,
				       struct rt_cursor *c, struct rt_perf_record *ret)
{
	struct rt_perf_sample *s = &ret->sample;
	uint64_t type = attr->sample_type;

	TAKE(take_head(c, attr, ret), "fixed fields");
	if (type & PERF_SAMPLE_READ)
		TAKE(take_read(c, attr->read_format, &s->read), "counter values");
	if (type & PERF_SAMPLE_CALLCHAIN)
		TAKE(rt_cursor_u64(c, &s->chain_count) && take_words(d, c, s->chain_count, &s->chain), "call chain");
	if (type & PERF_SAMPLE_RAW)
		TAKE(take_raw(c, &s->raw), "raw data");
	if (type & PERF_SAMPLE_BRANCH_STACK)
		TAKE(skip_branches(c, attr->branch_sample_type), "branch stack");
	if (type & PERF_SAMPLE_REGS_USER)
		TAKE(take_regs(d, c, attr->sample_regs_user, s), "user registers");
	if (type & PERF_SAMPLE_STACK_USER)
		TAKE(take_stack(c, s), "user stack");
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		TAKE(rt_cursor_u64(c, &s->weight), "weight");
	if (type & PERF_SAMPLE_WEIGHT_STRUCT)
		s->weight &= UINT32_MAX; /* the rest are the parts of it */
	if (type & PERF_SAMPLE_DATA_SRC)
		TAKE(rt_cursor_u64(c, &s->data_src), "data source");
	if (type & PERF_SAMPLE_TRANSACTION)
		TAKE(rt_cursor_u64(c, &s->transaction), "transaction");
	return take_tail(d, c, attr, s);
}
