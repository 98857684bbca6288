/* SPDX-License-Identifier: GPL-2.0-only */
#include "perfdata/features_write.h"

#include <string.h>

#include "perfdata/encode.h"

struct section_place { /* struct perf_file_section */
	uint64_t offset, size;
};

struct feature_record { /* HEADER_FEATURE */
	struct perf_event_header header;
	uint64_t feature;
};

struct tracing_record { /* HEADER_TRACING_DATA; size bytes follow behind the record */
	struct perf_event_header header;
	uint32_t size, pad;
};

static const uint8_t zeroes[8];

struct rt_error *rt_perf_features_write(const struct rt_perf_features *features, struct rt_sink *sink, uint64_t offset,
					uint64_t ret_bits[4])
{
	uint64_t bits = 0, at;

	for (int i = 0; i < RT_PERF_FEATURE_SLOTS; i++)
		if (features->section[i].len)
			bits |= 1ull << i;
	at = offset + (uint64_t)__builtin_popcountll(bits) * sizeof(struct section_place);
	for (int i = 0; i < RT_PERF_FEATURE_SLOTS; i++) {
		struct section_place place = { at, features->section[i].len };

		if (!place.size)
			continue;
		rt_sink_write(sink, &place, sizeof(place));
		at += place.size;
	}
	for (int i = 0; i < RT_PERF_FEATURE_SLOTS; i++)
		rt_sink_write(sink, features->section[i].buffer, features->section[i].len);
	memset(ret_bits, 0, 4 * sizeof(uint64_t));
	ret_bits[0] = bits;
	return NULL;
}

/* One HEADER_FEATURE of two parts; false: does not fit. */
static bool stream_feature(struct rt_sink *sink, int feature, struct rt_bytes head, struct rt_bytes tail)
{
	size_t size = head.size + tail.size;
	size_t padded = (size + 7) & ~(size_t)7;
	struct feature_record record = { .header.type = RT_PERF_HEADER_FEATURE, .feature = (uint64_t)feature };

	if (size > RT_PERF_RECORD_MAX || sizeof(record) + padded > RT_PERF_RECORD_MAX)
		return false;
	record.header.size = (uint16_t)(sizeof(record) + padded);
	rt_sink_write(sink, &record, sizeof(record));
	rt_sink_write(sink, head.data, head.size);
	rt_sink_write(sink, tail.data, tail.size);
	rt_sink_write(sink, zeroes, padded - size);
	return true;
}

static void stream_tracing_data(struct rt_sink *sink, struct rt_bytes data)
{
	size_t padded = (data.size + 7) & ~(size_t)7;
	struct tracing_record record = { .header = { .type = RT_PERF_HEADER_TRACING_DATA, .size = sizeof(record) },
					 .size = (uint32_t)padded };

	rt_sink_write(sink, &record, sizeof(record));
	rt_sink_write(sink, data.data, data.size);
	rt_sink_write(sink, zeroes, padded - data.size);
}

/* In a pipe perf wants each build-id as a record of its own; the entries of the section have the same layout. */
static void stream_build_ids(struct rt_sink *sink, struct rt_bytes section)
{
	struct perf_event_header header;

	for (size_t at = 0; at + sizeof(header) <= section.size; at += header.size) {
		memcpy(&header, section.data + at, sizeof(header));
		header.type = RT_PERF_HEADER_BUILD_ID;
		if (header.size % 8) { /* 36 + 64n: four zeroes more keep the stream aligned */
			struct perf_event_header longer = header;

			longer.size = (uint16_t)(header.size + 4);
			rt_sink_write(sink, &longer, sizeof(longer));
			rt_sink_write(sink, section.data + at + sizeof(header), header.size - sizeof(header));
			rt_sink_write(sink, zeroes, 4);
			continue;
		}
		rt_sink_write(sink, &header, sizeof(header));
		rt_sink_write(sink, section.data + at + sizeof(header), header.size - sizeof(header));
	}
}

/* One record per program or BTF: all of them together are seldom small enough. */
static unsigned stream_bpf(struct rt_sink *sink, int feature, struct rt_bytes section)
{
	static const uint32_t one = 1;
	unsigned lost = 0;
	size_t at = sizeof(uint32_t);

	while (at + 8 <= section.size) {
		uint32_t words[2];
		size_t size;

		memcpy(words, section.data + at, sizeof(words));
		size = feature == RT_PERF_FEAT_BPF_BTF ? 8 + (size_t)words[1] : 16 + (size_t)words[0] + words[1];
		if (!stream_feature(sink, feature, rt_bytes_make(&one, sizeof(one)),
				    rt_bytes_make(section.data + at, size)))
			lost++;
		at += size;
	}
	return lost;
}

bool rt_perf_features_fit(const struct rt_perf_features *features, enum rt_perf_feature feature)
{
	return features->section[feature].len <= RT_PERF_RECORD_MAX - sizeof(struct feature_record);
}

void rt_perf_features_drop(struct rt_perf_features *features, enum rt_perf_feature feature)
{
	features->section[feature].len = 0;
}

struct rt_error *rt_perf_features_stream(struct rt_perf_features *features, struct rt_sink *sink, unsigned *lost)
{
	struct rt_sink *tracing = &features->section[RT_PERF_FEAT_TRACING_DATA];

	for (int i = 0; i < RT_PERF_FEATURE_SLOTS; i++) {
		struct rt_sink *s = &features->section[i];
		struct rt_bytes bytes = rt_bytes_make(s->buffer, s->len);

		if (!s->len || s == tracing)
			continue;
		if (i == RT_PERF_FEAT_BUILD_ID)
			stream_build_ids(sink, bytes);
		else if (i == RT_PERF_FEAT_BPF_PROG_INFO || i == RT_PERF_FEAT_BPF_BTF)
			*lost += stream_bpf(sink, i, bytes);
		else if (!stream_feature(sink, i, bytes, rt_bytes_make(NULL, 0)))
			*lost += 1;
		s->len = 0;
	}
	/* last, as perf has it: perf evlist stops at the features and does not know how to pass over these bytes */
	if (tracing->len > UINT32_MAX - 8)
		return rt_error_new(RT_E_LIMIT, "the formats of raw fields are too large for a pipe");
	if (tracing->len)
		stream_tracing_data(sink, rt_bytes_make(tracing->buffer, tracing->len));
	tracing->len = 0;
	return NULL;
}
