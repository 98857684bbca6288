/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "perfdata/compress.h"
#include "perfdata/features_write.h"
#include "perfdata/writer.h"

enum {
	STRING_ALIGN = 64,        /* perf pads strings of features so */
	BPF_INFO_MAX = 232,       /* struct bpf_prog_info of Linux 6.1; perf refuses longer ones */
	BPF_JITED_LEN = 16,       /* offset of jited_prog_len in it */
	BPF_JITED_INSNS = 1,      /* bit of arrays: the JITed code is there */
	BUILD_ID_ENTRY_HEAD = 36, /* header, pid, id and its size */
	COMPRESS_VERSION = 1,
	COMPRESS_ZSTD = 1,
	CLOCK_DATA_VERSION = 1,
	BUILD_ID_RECORD_MAX = 4096 + STRING_ALIGN, /* a path */
};

void rt_perf_features_init(struct rt_perf_features *features)
{
	for (int i = 0; i < RT_PERF_FEATURE_SLOTS; i++)
		rt_sink_init_memory(&features->section[i]);
}

void rt_perf_features_deinit(struct rt_perf_features *features)
{
	for (int i = 0; i < RT_PERF_FEATURE_SLOTS; i++)
		rt_sink_deinit(&features->section[i]);
}

/* The section of a feature, emptied. */
static struct rt_sink *fresh(struct rt_perf_features *features, enum rt_perf_feature feature)
{
	struct rt_sink *sink = &features->section[feature];

	sink->len = 0;
	return sink;
}

static void put_u32(struct rt_sink *sink, uint32_t value)
{
	rt_sink_write(sink, &value, sizeof(value));
}

static void put_u64(struct rt_sink *sink, uint64_t value)
{
	rt_sink_write(sink, &value, sizeof(value));
}

/* text, its NUL and zeroes up to padded bytes */
static void put_padded(struct rt_sink *sink, const char *text, size_t padded)
{
	static const char zeroes[STRING_ALIGN];
	size_t len = strlen(text);

	rt_sink_write(sink, text, len);
	rt_sink_write(sink, zeroes, padded - len);
}

static size_t padded_length(const char *text)
{
	return (strlen(text) + STRING_ALIGN) & ~(size_t)(STRING_ALIGN - 1);
}

static void put_string(struct rt_sink *sink, const char *text)
{
	size_t padded = padded_length(text);

	put_u32(sink, (uint32_t)padded);
	put_padded(sink, text, padded);
}

static void take_string(struct rt_perf_features *features, enum rt_perf_feature feature, const char *text)
{
	if (text)
		put_string(fresh(features, feature), text);
}

static struct rt_error *take_build_ids(struct rt_perf_features *features, const struct rt_perf_header *header)
{
	struct rt_sink *sink;

	if (!header->build_id_count)
		return NULL;
	sink = fresh(features, RT_PERF_FEAT_BUILD_ID);
	for (size_t i = 0; i < header->build_id_count; i++) {
		const struct rt_perf_build_id *b = &header->build_ids[i];
		const char *path = b->path ? b->path : "";
		size_t padded = padded_length(path);
		struct perf_event_header head = {
			.misc = b->misc | RT_PERF_MISC_BUILD_ID_SIZE,
			.size = (uint16_t)(BUILD_ID_ENTRY_HEAD + padded),
		};
		uint8_t id[24] = { 0 };

		if (padded > BUILD_ID_RECORD_MAX || b->size > sizeof(b->id))
			return rt_error_new(RT_E_LIMIT,
					    "a path with a build-id is longer than %d bytes, or its id "
					    "longer than %zu",
					    BUILD_ID_RECORD_MAX - STRING_ALIGN, sizeof(b->id));
		memcpy(id, b->id, b->size);
		id[20] = b->size;
		rt_sink_write(sink, &head, sizeof(head));
		put_u32(sink, b->pid);
		rt_sink_write(sink, id, sizeof(id));
		put_padded(sink, path, padded);
	}
	return NULL;
}

/* u32 info_len, u32 data_len, u64 arrays, then the bytes of both */
struct bpf_entry {
	uint64_t arrays;
	struct rt_bytes info, data;
};

static bool split_bpf_entry(struct rt_bytes bytes, struct bpf_entry *ret)
{
	struct rt_cursor c = rt_cursor_make(bytes, false);
	uint32_t info_len, data_len;

	return rt_cursor_u32(&c, &info_len) && rt_cursor_u32(&c, &data_len) && rt_cursor_u64(&c, &ret->arrays) &&
	       rt_cursor_bytes(&c, info_len, &ret->info) && rt_cursor_bytes(&c, data_len, &ret->data);
}

bool rt_perf_bpf_entry_is_whole(struct rt_bytes entry)
{
	struct bpf_entry e;

	return split_bpf_entry(entry, &e);
}

/*
 * One program as old readers know it: what is longer in info than theirs is cut, and what follows the data. A
 * length of JITed code without the code is told as 0: perf script (6.1) reads the code and dies.
 */
static struct rt_error *put_bpf_prog(struct rt_sink *sink, struct rt_bytes bytes)
{
	uint8_t copy[BPF_INFO_MAX];
	struct bpf_entry e;
	uint32_t kept;

	if (!split_bpf_entry(bytes, &e))
		return rt_error_new(RT_E_FORMAT, "the entry of a BPF program is cut");
	kept = e.info.size < BPF_INFO_MAX ? (uint32_t)e.info.size : BPF_INFO_MAX;
	put_u32(sink, kept);
	put_u32(sink, (uint32_t)e.data.size);
	memcpy(copy, e.info.data, kept);
	if (!(e.arrays & BPF_JITED_INSNS) && kept >= BPF_JITED_LEN + 4)
		memset(copy + BPF_JITED_LEN, 0, 4);
	rt_sink_write(sink, &e.arrays, sizeof(e.arrays));
	rt_sink_write(sink, copy, kept);
	rt_sink_write(sink, e.data.data, e.data.size);
	return NULL;
}

static struct rt_error *take_bpf(struct rt_perf_features *features, const struct rt_perf_header *header)
{
	struct rt_sink *sink;

	if (header->bpf_prog_count > UINT32_MAX || header->btf_count > UINT32_MAX)
		return rt_error_new(RT_E_LIMIT, "too many BPF programs");
	if (header->bpf_prog_count) {
		sink = fresh(features, RT_PERF_FEAT_BPF_PROG_INFO);
		put_u32(sink, (uint32_t)header->bpf_prog_count);
		for (size_t i = 0; i < header->bpf_prog_count; i++)
			RT_TRY(put_bpf_prog(sink, header->bpf_progs[i].bytes));
	}
	if (header->btf_count) {
		sink = fresh(features, RT_PERF_FEAT_BPF_BTF);
		put_u32(sink, (uint32_t)header->btf_count);
		for (size_t i = 0; i < header->btf_count; i++) {
			const struct rt_perf_blob *btf = &header->btfs[i];

			if (btf->bytes.size > UINT32_MAX)
				return rt_error_new(RT_E_LIMIT, "BTF %u is too large", btf->id);
			put_u32(sink, btf->id);
			put_u32(sink, (uint32_t)btf->bytes.size);
			rt_sink_write(sink, btf->bytes.data, btf->bytes.size);
		}
	}
	return NULL;
}

static void take_numbers(struct rt_perf_features *features, const struct rt_perf_header *header)
{
	struct rt_sink *sink;

	if (header->cpus_available || header->cpus_online) {
		sink = fresh(features, RT_PERF_FEAT_NRCPUS);
		put_u32(sink, header->cpus_available);
		put_u32(sink, header->cpus_online);
	}
	if (header->total_mem_kib)
		put_u64(fresh(features, RT_PERF_FEAT_TOTAL_MEM), header->total_mem_kib);
	if (header->first_ns || header->last_ns) {
		sink = fresh(features, RT_PERF_FEAT_SAMPLE_TIME);
		put_u64(sink, header->first_ns);
		put_u64(sink, header->last_ns);
	}
	if (header->has_clockid)
		put_u64(fresh(features, RT_PERF_FEAT_CLOCKID), header->clockid);
	if (header->wall_clock_ns) {
		sink = fresh(features, RT_PERF_FEAT_CLOCK_DATA);
		put_u32(sink, CLOCK_DATA_VERSION);
		put_u32(sink, header->clock_data_id);
		put_u64(sink, header->wall_clock_ns);
		put_u64(sink, header->clockid_time_ns);
	}
}

/* The first failure (no memory) of the sections. */
static struct rt_error *settle(struct rt_perf_features *features)
{
	for (int i = 0; i < RT_PERF_FEATURE_SLOTS; i++)
		RT_TRY(rt_sink_end(&features->section[i]));
	return NULL;
}

struct rt_error *rt_perf_features_take(struct rt_perf_features *features, const struct rt_perf_header *header)
{
	struct rt_sink *sink;

	take_string(features, RT_PERF_FEAT_HOSTNAME, header->hostname);
	take_string(features, RT_PERF_FEAT_OSRELEASE, header->osrelease);
	take_string(features, RT_PERF_FEAT_VERSION, header->version);
	take_string(features, RT_PERF_FEAT_ARCH, header->arch);
	take_string(features, RT_PERF_FEAT_CPUDESC, header->cpudesc);
	take_string(features, RT_PERF_FEAT_CPUID, header->cpuid);
	if (header->command_count) {
		sink = fresh(features, RT_PERF_FEAT_CMDLINE);
		put_u32(sink, (uint32_t)header->command_count);
		for (size_t i = 0; i < header->command_count; i++)
			put_string(sink, header->command[i]);
	}
	take_numbers(features, header);
	RT_TRY(take_build_ids(features, header));
	RT_TRY(take_bpf(features, header));
	if (header->tracing_data.size)
		rt_sink_write(fresh(features, RT_PERF_FEAT_TRACING_DATA), header->tracing_data.data,
			      header->tracing_data.size);
	return settle(features);
}

struct rt_error *rt_perf_features_events(struct rt_perf_features *features, const struct rt_perf_event *events,
					 size_t count)
{
	struct rt_sink *sink = fresh(features, RT_PERF_FEAT_EVENT_DESC);

	put_u32(sink, (uint32_t)count);
	put_u32(sink, PERF_ATTR_SIZE_VER7);
	for (size_t i = 0; i < count; i++) {
		rt_sink_write(sink, &events[i].attr, PERF_ATTR_SIZE_VER7);
		put_u32(sink, (uint32_t)events[i].id_count);
		put_string(sink, events[i].name ? events[i].name : "");
		rt_sink_write(sink, events[i].ids, events[i].id_count * sizeof(uint64_t));
	}
	return settle(features);
}

struct rt_error *rt_perf_features_compressed(struct rt_perf_features *features, unsigned level, uint64_t ratio)
{
	struct rt_sink *sink = fresh(features, RT_PERF_FEAT_COMPRESSED);

	put_u32(sink, COMPRESS_VERSION);
	put_u32(sink, COMPRESS_ZSTD);
	put_u32(sink, level);
	put_u32(sink, (uint32_t)ratio);
	put_u32(sink, RT_PERF_COMPRESS_CHUNK);
	return settle(features);
}
