/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records are put field by field in the order that perf_event_open(2) gives.
 * The buffer remembers that it overflowed, so only the end has to ask.
 */
#include "perfdata/encode.h"

#include <string.h>

enum { KSYMBOL_UNREGISTER = 1 };

/* since Linux 5.9; part of the layout of an empty branch stack */
#define BRANCH_HW_INDEX (1u << 17)

void rt_perf_put(struct rt_perf_put *put, const void *data, size_t size)
{
	if (put->full || size > put->size - put->len) {
		put->full = true;
		return;
	}
	if (size)
		memcpy(put->data + put->len, data, size);
	put->len += size;
}

void rt_perf_put_u16(struct rt_perf_put *put, uint16_t value)
{
	rt_perf_put(put, &value, sizeof(value));
}

void rt_perf_put_u32(struct rt_perf_put *put, uint32_t value)
{
	rt_perf_put(put, &value, sizeof(value));
}

void rt_perf_put_u64(struct rt_perf_put *put, uint64_t value)
{
	rt_perf_put(put, &value, sizeof(value));
}

void rt_perf_put_align(struct rt_perf_put *put, size_t align)
{
	static const uint8_t zeroes[64];
	size_t past = put->len & (align - 1);

	if (past)
		rt_perf_put(put, zeroes, align - past);
}

static void put_pair(struct rt_perf_put *put, uint32_t a, uint32_t b)
{
	rt_perf_put_u32(put, a);
	rt_perf_put_u32(put, b);
}

/* A string, its NUL, zeroes up to 8. */
static void put_text(struct rt_perf_put *put, const char *text)
{
	const char *t = text ? text : "";

	rt_perf_put(put, t, strlen(t) + 1);
	rt_perf_put_align(put, 8);
}

/* What sample_id_all puts behind records that are no samples. */
static void put_trailer(struct rt_perf_put *put, const struct perf_event_attr *attr, const struct rt_perf_id *id)
{
	uint64_t fields = attr->sample_id_all ? attr->sample_type : 0;

	if (fields & PERF_SAMPLE_TID)
		put_pair(put, id->pid, id->tid);
	if (fields & PERF_SAMPLE_TIME)
		rt_perf_put_u64(put, id->time_ns);
	if (fields & PERF_SAMPLE_ID)
		rt_perf_put_u64(put, id->id);
	if (fields & PERF_SAMPLE_STREAM_ID)
		rt_perf_put_u64(put, id->stream);
	if (fields & PERF_SAMPLE_CPU)
		put_pair(put, id->cpu, 0);
	if (fields & PERF_SAMPLE_IDENTIFIER)
		rt_perf_put_u64(put, id->id);
}

/* PERF_SAMPLE_READ. Not made up: perf drops samples whose counter did not move. */
static struct rt_error *put_read(struct rt_perf_put *put, struct rt_bytes values)
{
	if (!values.size || values.size % 8)
		return rt_error_new(RT_E_FORMAT, "the sample has %zu bytes of counter values, its event wants them",
				    values.size);
	rt_perf_put(put, values.data, values.size);
	return NULL;
}

/* The kernel counts the padding in, so that u32 size and the data end at a multiple of 8. */
static void put_raw(struct rt_perf_put *put, struct rt_bytes raw)
{
	if (raw.size > RT_PERF_RECORD_MAX) {
		put->full = true;
		return;
	}
	rt_perf_put_u32(put, (uint32_t)(((raw.size + 4 + 7) & ~(size_t)7) - 4));
	rt_perf_put(put, raw.data, raw.size);
	rt_perf_put_align(put, 8);
}

static void put_stack(struct rt_perf_put *put, const struct rt_perf_sample *sample)
{
	size_t size = sample->user_stack.size;
	size_t padded = (size + 7) & ~(size_t)7;

	rt_perf_put_u64(put, padded);
	if (!size)
		return;
	rt_perf_put(put, sample->user_stack.data, size);
	rt_perf_put_align(put, 8);
	rt_perf_put_u64(put, sample->user_stack_size < size ? sample->user_stack_size : size);
}

static void put_chain(struct rt_perf_put *put, const struct rt_perf_sample *sample)
{
	if (sample->chain_count > RT_PERF_RECORD_MAX / 8) {
		put->full = true;
		return;
	}
	rt_perf_put_u64(put, sample->chain_count);
	rt_perf_put(put, sample->chain, sample->chain_count * sizeof(uint64_t));
}

static struct rt_error *put_user_regs(struct rt_perf_put *put, const struct perf_event_attr *attr,
				      const struct rt_perf_sample *sample)
{
	unsigned want = (unsigned)__builtin_popcountll(attr->sample_regs_user);

	rt_perf_put_u64(put, sample->user_abi);
	if (!sample->user_abi)
		return NULL;
	if (sample->user_reg_count != want)
		return rt_error_new(RT_E_FORMAT, "the sample has %u user registers, its event says %u",
				    sample->user_reg_count, want);
	rt_perf_put(put, sample->user_regs, want * sizeof(uint64_t));
	return NULL;
}

/* Fields up to the period. */
static void put_sample_head(struct rt_perf_put *put, uint64_t fields, const struct rt_perf_record *record)
{
	const struct rt_perf_id *id = &record->id;

	if (fields & PERF_SAMPLE_IDENTIFIER)
		rt_perf_put_u64(put, id->id);
	if (fields & PERF_SAMPLE_IP)
		rt_perf_put_u64(put, record->sample.ip);
	if (fields & PERF_SAMPLE_TID)
		put_pair(put, id->pid, id->tid);
	if (fields & PERF_SAMPLE_TIME)
		rt_perf_put_u64(put, id->time_ns);
	if (fields & PERF_SAMPLE_ADDR)
		rt_perf_put_u64(put, record->sample.addr);
	if (fields & PERF_SAMPLE_ID)
		rt_perf_put_u64(put, id->id);
	if (fields & PERF_SAMPLE_STREAM_ID)
		rt_perf_put_u64(put, id->stream);
	if (fields & PERF_SAMPLE_CPU)
		put_pair(put, id->cpu, 0);
	if (fields & PERF_SAMPLE_PERIOD)
		rt_perf_put_u64(put, record->sample.period);
}

static struct rt_error *put_sample(struct rt_perf_put *put, const struct perf_event_attr *attr,
				   const struct rt_perf_record *record)
{
	const struct rt_perf_sample *sample = &record->sample;
	uint64_t fields = attr->sample_type;

	put_sample_head(put, fields, record);
	if (fields & PERF_SAMPLE_READ)
		RT_TRY(put_read(put, sample->read));
	if (fields & PERF_SAMPLE_CALLCHAIN)
		put_chain(put, sample);
	if (fields & PERF_SAMPLE_RAW)
		put_raw(put, sample->raw);
	if (fields & PERF_SAMPLE_BRANCH_STACK) {
		rt_perf_put_u64(put, 0);
		if (attr->branch_sample_type & BRANCH_HW_INDEX)
			rt_perf_put_u64(put, 0);
	}
	if (fields & PERF_SAMPLE_REGS_USER)
		RT_TRY(put_user_regs(put, attr, sample));
	if (fields & PERF_SAMPLE_STACK_USER)
		put_stack(put, sample);
	if (fields & PERF_SAMPLE_WEIGHT_TYPE)
		rt_perf_put_u64(put, sample->weight);
	if (fields & PERF_SAMPLE_DATA_SRC)
		rt_perf_put_u64(put, sample->data_src);
	if (fields & PERF_SAMPLE_TRANSACTION)
		rt_perf_put_u64(put, sample->transaction);
	if (fields & PERF_SAMPLE_REGS_INTR)
		rt_perf_put_u64(put, 0); /* PERF_SAMPLE_REGS_ABI_NONE */
	if (fields & PERF_SAMPLE_PHYS_ADDR)
		rt_perf_put_u64(put, sample->phys_addr);
	if (fields & PERF_SAMPLE_CGROUP)
		rt_perf_put_u64(put, sample->cgroup);
	if (fields & PERF_SAMPLE_DATA_PAGE_SIZE)
		rt_perf_put_u64(put, sample->data_page_size);
	if (fields & PERF_SAMPLE_CODE_PAGE_SIZE)
		rt_perf_put_u64(put, sample->code_page_size);
	if (fields & PERF_SAMPLE_AUX)
		rt_perf_put_u64(put, 0);
	return NULL;
}

/* Returns the misc of the record. */
static uint16_t put_mmap(struct rt_perf_put *put, const struct rt_perf_record *record)
{
	const struct rt_perf_mmap *m = &record->mmap;
	uint16_t misc = record->misc & (uint16_t)~RT_PERF_MISC_MMAP_BUILD_ID;
	uint8_t size = m->build_id_size < sizeof(m->build_id) ? m->build_id_size : sizeof(m->build_id);

	put_pair(put, m->pid, m->tid);
	rt_perf_put_u64(put, m->addr);
	rt_perf_put_u64(put, m->len);
	rt_perf_put_u64(put, m->pgoff);
	if (record->type == RT_PERF_MMAP2) {
		if (size) {
			uint8_t union_bytes[24] = { size };

			memcpy(union_bytes + 4, m->build_id, size);
			rt_perf_put(put, union_bytes, sizeof(union_bytes));
			misc |= RT_PERF_MISC_MMAP_BUILD_ID;
		} else {
			put_pair(put, m->maj, m->min);
			rt_perf_put_u64(put, m->ino);
			rt_perf_put_u64(put, m->ino_gen);
		}
		put_pair(put, m->prot, m->flags);
	}
	put_text(put, m->filename);
	return misc;
}

static void put_poke(struct rt_perf_put *put, const struct rt_perf_text_poke *poke)
{
	rt_perf_put_u64(put, poke->addr);
	if (poke->old.size > RT_PERF_RECORD_MAX || poke->new.size > RT_PERF_RECORD_MAX) {
		put->full = true;
		return;
	}
	rt_perf_put_u16(put, (uint16_t)poke->old.size);
	rt_perf_put_u16(put, (uint16_t)poke->new.size);
	rt_perf_put(put, poke->old.data, poke->old.size);
	rt_perf_put(put, poke->new.data, poke->new.size);
	rt_perf_put_align(put, 8);
}

static void put_task(struct rt_perf_put *put, const struct rt_perf_task *task)
{
	put_pair(put, task->pid, task->ppid);
	put_pair(put, task->tid, task->ptid);
	rt_perf_put_u64(put, task->time_ns);
}

static void put_ksymbol(struct rt_perf_put *put, const struct rt_perf_ksymbol *symbol)
{
	rt_perf_put_u64(put, symbol->addr);
	rt_perf_put_u32(put, symbol->len);
	rt_perf_put_u16(put, symbol->type);
	rt_perf_put_u16(put, symbol->unregister ? KSYMBOL_UNREGISTER : 0);
	put_text(put, symbol->name);
}

static void put_bpf(struct rt_perf_put *put, const struct rt_perf_bpf_event *bpf)
{
	rt_perf_put_u16(put, bpf->type);
	rt_perf_put_u16(put, bpf->flags);
	rt_perf_put_u32(put, bpf->id);
	rt_perf_put(put, bpf->tag, sizeof(bpf->tag));
}

/* The fields of one record; *misc may change. */
static struct rt_error *put_fields(struct rt_perf_put *put, const struct perf_event_attr *attr,
				   const struct rt_perf_record *record, uint16_t *misc)
{
	switch (record->type) {
	case RT_PERF_SAMPLE:
		return put_sample(put, attr, record);
	case RT_PERF_FINISHED_ROUND:
	case RT_PERF_FINISHED_INIT:
		return NULL;
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
		*misc = put_mmap(put, record);
		break;
	case RT_PERF_FORK:
	case RT_PERF_EXIT:
		put_task(put, &record->task);
		break;
	case RT_PERF_COMM:
		*misc = (uint16_t)(record->misc & ~RT_PERF_MISC_COMM_EXEC) |
			(record->comm.exec ? RT_PERF_MISC_COMM_EXEC : 0);
		put_pair(put, record->comm.pid, record->comm.tid);
		put_text(put, record->comm.comm);
		break;
	case RT_PERF_KSYMBOL:
		put_ksymbol(put, &record->ksymbol);
		break;
	case RT_PERF_BPF_EVENT:
		put_bpf(put, &record->bpf);
		break;
	case RT_PERF_TEXT_POKE:
		put_poke(put, &record->poke);
		break;
	case RT_PERF_LOST:
		rt_perf_put_u64(put, record->lost.id);
		rt_perf_put_u64(put, record->lost.count);
		break;
	case RT_PERF_LOST_SAMPLES:
		rt_perf_put_u64(put, record->lost.count);
		break;
	default:
		return rt_error_new(RT_E_UNSUPPORTED, "a record of type %u (%s) can only be copied", record->type,
				    rt_perf_type_name(record->type));
	}
	put_trailer(put, attr, &record->id);
	return NULL;
}

struct rt_error *rt_perf_encode(const struct perf_event_attr *attr, const struct rt_perf_record *record,
				uint8_t *buffer, size_t size, size_t *ret_size)
{
	struct rt_perf_put put = { .data = buffer, .size = size < RT_PERF_RECORD_MAX ? size : RT_PERF_RECORD_MAX };
	struct perf_event_header header = { .type = record->type };
	uint16_t misc = record->misc;

	rt_perf_put(&put, &header, sizeof(header));
	RT_TRY(put_fields(&put, attr, record, &misc));
	if (put.full)
		return rt_error_new(RT_E_LIMIT, "a %s record is larger than the %d bytes that perf.data allows",
				    rt_perf_type_name(record->type), RT_PERF_RECORD_MAX);
	header.misc = misc;
	header.size = (uint16_t)put.len;
	memcpy(buffer, &header, sizeof(header));
	*ret_size = put.len;
	return NULL;
}
