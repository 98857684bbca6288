/* SPDX-License-Identifier: GPL-2.0-only */
/* perf.data files by hand, in either byte order: numbers are put one after another, sizes filled in later. */
#pragma once

#include "perfdata/format.h"
#include "test.h"

struct perf_file {
	bool big;
	size_t len;
	size_t record; /* where the record that is being put starts */
	uint8_t data[64 * 1024];
};

static inline void poke(struct perf_file *f, size_t at, uint64_t value, unsigned size)
{
	assert_true(at + size <= sizeof(f->data));
	for (unsigned i = 0; i < size; i++)
		f->data[at + i] = (uint8_t)(value >> 8 * (f->big ? size - 1 - i : i));
}

static inline void put(struct perf_file *f, uint64_t value, unsigned size)
{
	poke(f, f->len, value, size);
	f->len += size;
}

static inline void put8(struct perf_file *f, uint64_t value)
{
	put(f, value, 8);
}

static inline void put4(struct perf_file *f, uint64_t value)
{
	put(f, value, 4);
}

static inline void put_bytes(struct perf_file *f, const void *data, size_t size)
{
	assert_true(f->len + size <= sizeof(f->data));
	memcpy(f->data + f->len, data, size);
	f->len += size;
}

/* With its NUL, padded to a multiple of align. */
static inline void put_text(struct perf_file *f, const char *text, size_t align)
{
	size_t start = f->len;

	put_bytes(f, text, strlen(text) + 1);
	while ((f->len - start) % align)
		put(f, 0, 1);
}

/* As features have strings. */
static inline void put_string(struct perf_file *f, const char *text)
{
	put4(f, (strlen(text) + 64) / 64 * 64);
	put_text(f, text, 64);
}

static inline void begin(struct perf_file *f, uint32_t type, uint16_t misc)
{
	f->record = f->len;
	put4(f, type);
	put(f, misc, 2);
	put(f, 0, 2);
}

static inline void end(struct perf_file *f)
{
	poke(f, f->record + 6, f->len - f->record, 2);
}

/* size bytes of attributes; what is beyond 128 is set to all ones. flags: bit 0 is "disabled". */
static inline void put_attr(struct perf_file *f, uint32_t size, uint64_t sample_type, uint64_t flags)
{
	size_t start = f->len;

	put4(f, 1);
	put4(f, size);
	put8(f, 9);    /* config */
	put8(f, 1000); /* period */
	put8(f, sample_type);
	put8(f, 0);
	for (unsigned i = 0; i < 8; i++) {
		uint8_t b = 0;

		for (unsigned bit = 0; bit < 8; bit++)
			b |= (uint8_t)((flags >> (8 * i + bit) & 1) << (f->big ? 7 - bit : bit));
		put(f, b, 1);
	}
	while (f->len < start + size)
		put(f, f->len < start + 128 ? 0 : 0xff, 1);
}

enum { FLAG_SAMPLE_ID_ALL = 18 };

struct perf_event_spec {
	uint64_t sample_type, id;
	uint64_t read_format, branch, regs_user, regs_intr;
};

/* Header, ids and attributes of attr_size bytes each; what follows is data. */
static inline void file_begin(struct perf_file *f, bool big, uint32_t attr_size, const struct perf_event_spec *events,
			      size_t count)
{
	size_t ids = RT_PERF_HEADER_BYTES, attrs = ids + 8 * count;

	memset(f, 0, sizeof(*f));
	f->big = big;
	put8(f, RT_PERF_MAGIC);
	put8(f, RT_PERF_HEADER_BYTES);
	put8(f, attr_size + 16);
	put8(f, attrs);
	put8(f, count * (attr_size + 16));
	put8(f, attrs + count * (attr_size + 16));
	f->len = RT_PERF_HEADER_BYTES;
	for (size_t i = 0; i < count; i++)
		put8(f, events[i].id);
	for (size_t i = 0; i < count; i++) {
		size_t at = f->len;

		put_attr(f, attr_size, events[i].sample_type, UINT64_C(1) << FLAG_SAMPLE_ID_ALL);
		poke(f, at + 32, events[i].read_format, 8);
		if (attr_size >= 104) {
			poke(f, at + 72, events[i].branch, 8);
			poke(f, at + 80, events[i].regs_user, 8);
			poke(f, at + 96, events[i].regs_intr, 8);
		}
		put8(f, ids + 8 * i);
		put8(f, 8);
	}
}

static inline uint64_t data_start(const struct perf_file *f)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 8; i++)
		v = v << 8 | f->data[40 + (f->big ? i : 7 - i)];
	return v;
}

/* Ends the data. */
static inline void file_data_end(struct perf_file *f)
{
	poke(f, 48, f->len - data_start(f), 8);
}

/* Room for the table of these features, in ascending order; feature_begin()/feature_end() for each then. */
static inline void file_features(struct perf_file *f, const unsigned *features, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t word = 72 + 8 * (features[i] / 64), bit = features[i] % 64;

		f->data[word + (f->big ? 7 - bit / 8 : bit / 8)] |= (uint8_t)(1 << bit % 8);
	}
	f->record = f->len; /* the next entry of the table */
	f->len += 16 * count;
}

static inline void feature_begin(struct perf_file *f)
{
	poke(f, f->record, f->len, 8);
}

static inline void feature_end(struct perf_file *f)
{
	uint64_t start = 0;

	for (unsigned i = 0; i < 8; i++)
		start = start << 8 | f->data[f->record + (f->big ? i : 7 - i)];
	poke(f, f->record + 8, f->len - start, 8);
	f->record += 16;
}
