/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What perf's records say about mappings and hits. Layouts of linux/perf_event.h; every sample begins as the sampler
 * asks for it (engine/sampler.h).
 */
#include <linux/perf_event.h>
#include <string.h>

#include "session/binaries_priv.h"

enum {
	SAMPLE_HEAD = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
	SAMPLE_KNOWN = SAMPLE_HEAD | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
	MISC_BUILD_ID = 1 << 14,
	MMAP2_NAME = 72,
	CONTEXTS = 4095, /* chain entries from -4095 on say whose frames follow */
};

struct body {
	const uint8_t *data; /* with the header */
	size_t size;
};

static uint64_t u64_at(struct body b, size_t at)
{
	uint64_t v = 0;

	if (b.size >= 8 && at <= b.size - 8)
		memcpy(&v, b.data + at, sizeof(v));
	return v;
}

static uint32_t u32_at(struct body b, size_t at)
{
	uint32_t v = 0;

	if (b.size >= 4 && at <= b.size - 4)
		memcpy(&v, b.data + at, sizeof(v));
	return v;
}

/* header, identifier, ip, pid tid, time, [addr], [cpu], [period], [chain] */
static struct rt_error *sample(struct rt_hits *hits, uint64_t type, struct body b)
{
	uint32_t pid = u32_at(b, 24);
	size_t at = 40;
	uint64_t count;

	if ((type & SAMPLE_HEAD) != SAMPLE_HEAD || b.size < at)
		return NULL;
	RT_TRY(rt_hits_address(hits, pid, u64_at(b, 16)));
	/* members between the known ones and the chain are never asked for */
	if (!(type & PERF_SAMPLE_CALLCHAIN) || type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_READ))
		return NULL;
	at += 8 * (size_t)__builtin_popcountll(type & SAMPLE_KNOWN & ~(uint64_t)SAMPLE_HEAD);
	count = u64_at(b, at);
	for (at += 8; count && at + 8 <= b.size; count--, at += 8) {
		uint64_t ip = u64_at(b, at);

		if (ip < (uint64_t)-CONTEXTS)
			RT_TRY(rt_hits_address(hits, pid, ip));
	}
	return NULL;
}

/* The code that the kernel gives to each process: of no file, and its records have no build-id. */
static bool is_vdso(struct body b)
{
	static const char name[] = "[vdso]";

	return b.size >= MMAP2_NAME + sizeof(name) && !memcmp(b.data + MMAP2_NAME, name, sizeof(name));
}

/* A mapping of an ELF file that has a build-id: without one it cannot be found again. */
static bool mapping(const struct perf_event_header *header, struct body b, struct rt_binaries_mapping *ret)
{
	const char *name = (const char *)b.data + MMAP2_NAME;

	if (b.size <= MMAP2_NAME || !memchr(name, 0, b.size - MMAP2_NAME) || *name != '/' || name[1] == '/')
		return false;
	if (header->misc & PERF_RECORD_MISC_MMAP_DATA)
		return false;
	if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER || !(header->misc & MISC_BUILD_ID))
		return false;
	ret->id.size = b.data[40];
	if (!ret->id.size || ret->id.size > RT_BUILD_ID_MAX)
		return false;
	memcpy(ret->id.id, b.data + 44, ret->id.size);
	ret->file = (struct rt_mapped_file){
		.pid = u32_at(b, 8),
		.start = u64_at(b, 16),
		.end = u64_at(b, 16) + u64_at(b, 24),
		.path = name,
	};
	return ret->file.start < ret->file.end;
}

struct rt_error *rt_hits_perf(struct rt_hits *hits, const struct rt_map *sample_types,
			      const struct rt_wire_perf *record, struct rt_binaries_mapping *ret, bool *ret_map)
{
	struct body b = { record->data, record->head.size - sizeof(*record) };
	struct perf_event_header header;
	const uint64_t *type;

	*ret_map = false;
	if (record->head.size < sizeof(*record) + sizeof(header))
		return NULL;
	memcpy(&header, b.data, sizeof(header));
	if (header.size < b.size)
		b.size = header.size;
	switch (header.type) {
	case PERF_RECORD_SAMPLE:
		type = rt_map_get(sample_types, rt_key_make(record->attr, 0));
		return type && !hits->all ? sample(hits, *type, b) : NULL;
	case PERF_RECORD_FORK:
		return b.size >= 24 ? rt_hits_fork(hits, u32_at(b, 12), u32_at(b, 8)) : NULL;
	case PERF_RECORD_MMAP2:
		if (is_vdso(b))
			return rt_hits_map(hits, u32_at(b, 8), u64_at(b, 16), u64_at(b, 16) + u64_at(b, 24),
					   RT_HITS_VDSO);
		*ret_map = mapping(&header, b, ret);
		return NULL;
	default:
		return NULL;
	}
}
