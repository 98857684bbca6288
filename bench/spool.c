/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a recording costs: bytes, encoding and decoding time per event, beside the raw records with and without zstd,
 * and beside the entropy of a simple model of the stream: an estimate of the limit, which a strict pattern may
 * undercut. The same for the perf.data that a recording becomes.
 *
 *     spool                  generated streams, among them the reference workload
 *     spool RECORDING...     what is in these
 *     spool write N FILE     N events of the reference workload as a spool
 *     spool perf N FILE      the same as perf.data
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "base/fs.h"
#include "base/map.h"
#include "capture/spool.h"
#include "recording/recording.h"
#include "recording/to_perf.h"
#include "spool-stream.h"

/* A stream in memory: records back to back. */
struct stream {
	struct rt_sink bytes;
	size_t records, events;
};

static void check(struct rt_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "spool: %s\n", err->message);
	exit(1);
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void keep(void *arg, const struct rt_wire_head *record)
{
	struct stream *s = arg;

	rt_sink_write(&s->bytes, record, record->size);
	s->records++;
	s->events += record->kind == RT_WIRE_EVENT;
}

static const struct rt_wire_head *next(const struct stream *s, const struct rt_wire_head *record)
{
	const char *at = record ? (const char *)record + record->size : s->bytes.buffer;

	return at < s->bytes.buffer + s->bytes.len ? (const struct rt_wire_head *)(const void *)at : NULL;
}

static double encode(const struct stream *s, struct rt_sink *ret)
{
	struct rt_spool_writer *w = NULL;
	struct rt_event_sink *sink;
	double start;

	rt_sink_init_memory(ret);
	check(rt_spool_writer_create(ret, NULL, &w));
	sink = rt_spool_writer_sink(w);
	start = cpu_ns();
	for (const struct rt_wire_head *r = next(s, NULL); r; r = next(s, r))
		check(sink->record(sink, r));
	check(rt_spool_writer_end(w, 0));
	start = cpu_ns() - start;
	rt_spool_writer_destroy(w);
	return start;
}

/* Reads it all; with same, compares each record. */
static double decode(const struct rt_sink *spool, const struct stream *same)
{
	struct rt_spool_reader *reader = NULL;
	struct rt_source *source;
	const struct rt_wire_head *h, *want = NULL;
	uint64_t sum = 0;
	double start;

	check(rt_spool_reader_create(rt_bytes_make(spool->buffer, spool->len), "bench", &reader));
	source = rt_spool_reader_source(reader);
	start = cpu_ns();
	for (;;) {
		check(source->next(source, &h));
		if (same) {
			want = next(same, want);
			if (!h != !want || (h && memcmp(h, want, want->size))) {
				fprintf(stderr, "spool: what came back is not what went in\n");
				exit(1);
			}
		}
		if (!h)
			break;
		sum += h->time_ns;
	}
	start = cpu_ns() - start;
	rt_spool_reader_destroy(reader);
	return sum ? start : 0;
}

/* The spool as `record` leaves it in the end. */
static double to_perf(const struct rt_sink *spool, struct rt_sink *ret)
{
	const struct rt_to_perf_options how = { .zstd_level = RT_TO_PERF_ZSTD_LEVEL };
	uint8_t header[RT_PERF_HEADER_BYTES];
	double start = cpu_ns();

	rt_sink_init_memory(ret);
	check(rt_to_perf(rt_bytes_make(spool->buffer, spool->len), "bench", &how, ret, header, NULL));
	check(rt_sink_end(ret));
	memcpy(ret->buffer, header, sizeof(header));
	return cpu_ns() - start;
}

struct comparison {
	struct rt_recording_sink sink;
	const struct stream *same; /* NULL: not compared */
	const struct rt_wire_head *want;
	uint64_t records;
};

static struct rt_error *compare(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct comparison *c = (struct comparison *)(void *)self;

	c->records++;
	if (!c->same)
		return NULL;
	c->want = next(c->same, c->want);
	if (c->want && !memcmp(record, c->want, c->want->size))
		return NULL;
	return rt_error_new(RT_E_INTERNAL, "record %llu that came back from perf.data is not what went in",
			    (unsigned long long)c->records);
}

static double from_perf(const struct rt_sink *file, const struct stream *s, bool same)
{
	struct comparison c = { .sink = { .wire = compare }, .same = same ? s : NULL };
	struct rt_recording *recording = NULL;
	double start = cpu_ns();

	check(rt_recording_open(rt_bytes_make(file->buffer, file->len), "bench", &recording));
	check(rt_recording_drain(recording, &c.sink));
	start = cpu_ns() - start;
	if (c.records != s->records)
		check(rt_error_new(RT_E_INTERNAL, "%zu records went into perf.data, %llu came back", s->records,
				   (unsigned long long)c.records));
	rt_recording_close(recording);
	return start;
}

static void measure_perf(const struct stream *s, const struct rt_sink *spool, double least)
{
	double n = (double)s->events, in = 1e30, out = 1e30;
	struct rt_sink file;

	for (int i = 0; i < 3; i++) {
		double ns = to_perf(spool, &file), back = from_perf(&file, s, !i);

		in = ns < in ? ns : in;
		out = i && back < out ? back : out;
		if (i < 2)
			rt_sink_deinit(&file);
	}
	printf("    %-18s %6.2f B  %5.2fx  encode %5.1f ns  decode %5.1f ns\n", "perf.data", (double)file.len / n,
	       (double)file.len / n / least, in / n, out / n);
	rt_sink_deinit(&file);
}

struct entropy {
	struct rt_map pairs, contexts;
	double n;
};

static void see(struct entropy *e, uint64_t context, uint64_t value)
{
	uint64_t *pair = rt_map_put(&e->pairs, rt_key_make(context, value), NULL);
	uint64_t *alone = rt_map_put(&e->contexts, rt_key_make(context, 0), NULL);

	if (!pair || !alone)
		exit(1);
	++*pair;
	++*alone;
	e->n++;
}

static double map_bits(const struct rt_map *map)
{
	struct rt_map_slot *slot;
	double bits = 0;
	size_t pos = 0;

	while ((slot = rt_map_next(map, &pos)))
		bits -= (double)slot->value * log2((double)slot->value);
	return bits;
}

/* Bits of all values, given their contexts. */
static double entropy_bits(struct entropy *e)
{
	double bits = map_bits(&e->pairs) - map_bits(&e->contexts);

	rt_map_deinit(&e->pairs);
	rt_map_deinit(&e->contexts);
	return bits;
}

struct thread_memory {
	uint64_t recent[8], n, site;
};

/* How far back in the thread the object was seen; 8: further. */
static unsigned recent(struct thread_memory *m, uint64_t object)
{
	unsigned code = 0;

	while (code < 8 && m->recent[(m->n - 1 - code) % 8] != object)
		code++;
	m->recent[m->n++ % 8] = object;
	return code;
}

/*
 * Bytes per event of the parts that have entropy: the lane after the lane, the site after the thread's site, the
 * object among the last eight or else among all, the time since the lane's last event by site, in steps of 1 ns.
 */
static double limit(const struct stream *s, double ret_part[4])
{
	static uint64_t lane_time[4096];
	struct entropy lane = { 0 }, site = { 0 }, code = { 0 }, far = { 0 }, time = { 0 };
	struct rt_map threads = { 0 };
	struct thread_memory *memory = calloc(65536, sizeof(*memory));
	uint64_t before = 0;

	if (!memory)
		exit(1);
	memset(lane_time, 0, sizeof(lane_time));
	for (const struct rt_wire_head *r = next(s, NULL); r; r = next(s, r)) {
		const struct rt_wire_event *e = rt_record_event(r);
		uint64_t *thread, at, producer = r->seq >> RT_SEQ_BITS;
		struct thread_memory *m;
		unsigned how;
		bool fresh;

		if (r->kind != RT_WIRE_EVENT)
			continue;
		thread = rt_map_put(&threads, rt_key_make(r->pid, r->tid), &fresh);
		if (!thread || threads.len > 65536)
			exit(1);
		if (fresh)
			*thread = threads.len - 1;
		m = &memory[*thread];
		at = (uint64_t)e->point << 32 | e->stack;
		see(&lane, before, producer << 32 | *thread);
		see(&site, m->site, at);
		how = recent(m, e->object);
		see(&code, at, how);
		if (how == 8)
			see(&far, 0, e->object);
		see(&time, at, r->time_ns - lane_time[producer]);
		before = producer << 32 | *thread;
		m->site = at;
		lane_time[producer] = r->time_ns;
	}
	free(memory);
	rt_map_deinit(&threads);
	ret_part[0] = entropy_bits(&lane) / 8 / (double)s->events;
	ret_part[1] = entropy_bits(&site) / 8 / (double)s->events;
	ret_part[2] = (far.n ? far.n * log2(far.n) : 0) + map_bits(&far.pairs);
	ret_part[2] = (ret_part[2] + entropy_bits(&code)) / 8 / (double)s->events;
	rt_map_deinit(&far.pairs);
	rt_map_deinit(&far.contexts);
	ret_part[3] = entropy_bits(&time) / 8 / (double)s->events;
	return ret_part[0] + ret_part[1] + ret_part[2] + ret_part[3];
}

/* Bytes of the raw records in zstd frames of 128 KiB, as a spool without columns would hold them. */
static double plain(const struct stream *s, int level, double *ret_ns)
{
	static char out[256 * 1024];
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	double start = cpu_ns(), sum = 0;

	for (size_t at = 0; at < s->bytes.len; at += 128 * 1024) {
		size_t left = s->bytes.len - at;

		sum += (double)ZSTD_compressCCtx(zstd, out, sizeof(out), s->bytes.buffer + at,
						 left < 128 * 1024 ? left : 128 * 1024, level);
	}
	*ret_ns = cpu_ns() - start;
	ZSTD_freeCCtx(zstd);
	return sum;
}

static void measure(const char *name, const struct stream *s)
{
	double n = (double)s->events, parts[4], least, in = 1e30, out = 1e30, zstd_bytes, zstd_ns;
	struct rt_sink spool;

	if (!s->events)
		return;
	least = limit(s, parts);
	for (int i = 0; i < 3; i++) {
		double ns = encode(s, &spool), back = decode(&spool, i ? NULL : s);

		in = ns < in ? ns : in;
		out = i && back < out ? back : out;
		if (i < 2)
			rt_sink_deinit(&spool);
	}
	zstd_bytes = plain(s, 1, &zstd_ns);
	printf("%-22s %9zu events  limit %5.2f B (lane %.2f site %.2f object %.2f time %.2f)\n", name, s->events, least,
	       parts[0], parts[1], parts[2], parts[3]);
	printf("    %-18s %6.2f B  %5.2fx  encode %5.1f ns  decode %5.1f ns\n", "spool", (double)spool.len / n,
	       (double)spool.len / n / least, in / n, out / n);
	measure_perf(s, &spool, least);
	printf("    %-18s %6.2f B  %5.2fx  encode %5.1f ns\n", "raw + zstd -1", zstd_bytes / n, zstd_bytes / n / least,
	       zstd_ns / n);
	printf("    %-18s %6.2f B  %5.2fx\n", "raw", (double)s->bytes.len / n, (double)s->bytes.len / n / least);
	fflush(stdout);
	rt_sink_deinit(&spool);
}

static void load(const char *path, struct stream *ret)
{
	struct rt_spool_reader *reader = NULL;
	struct rt_bytes bytes;
	struct rt_source *source;
	const struct rt_wire_head *h;
	int fd = -1;

	check(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	check(rt_fs_map(fd, path, &bytes));
	check(rt_spool_reader_create(bytes, path, &reader));
	source = rt_spool_reader_source(reader);
	rt_sink_init_memory(&ret->bytes);
	for (;;) {
		check(source->next(source, &h));
		if (!h)
			break;
		keep(ret, h);
	}
	rt_spool_reader_destroy(reader);
	rt_fs_unmap(bytes);
	close(fd);
}

static void put(void *arg, const struct rt_wire_head *record)
{
	struct rt_event_sink *sink = rt_spool_writer_sink(arg);

	check(sink->record(sink, record));
}

static int write_reference(size_t events, const char *path, bool perf)
{
	struct rt_spool_writer *w = NULL;
	struct rt_sink spool, file, *whole = &spool;
	FILE *out = fopen(path, "we");

	if (!out) {
		perror(path);
		return 1;
	}
	rt_sink_init_memory(&spool);
	check(rt_spool_writer_create(&spool, NULL, &w));
	spool_stream(&spool_workloads[0], events, put, w);
	check(rt_spool_writer_end(w, 0));
	rt_spool_writer_destroy(w);
	if (perf) {
		to_perf(&spool, &file);
		rt_sink_deinit(&spool);
		whole = &file;
	}
	if (fwrite(whole->buffer, 1, whole->len, out) != whole->len || fclose(out)) {
		perror(path);
		return 1;
	}
	rt_sink_deinit(whole);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && (!strcmp(argv[1], "write") || !strcmp(argv[1], "perf")))
		return write_reference((size_t)atof(argv[2]), argv[3], argv[1][0] == 'p');
	for (int i = 1; i < argc; i++) {
		struct stream s = { 0 };

		load(argv[i], &s);
		measure(argv[i], &s);
		rt_sink_deinit(&s.bytes);
	}
	for (size_t i = 0; argc == 1 && spool_workloads[i].name; i++) {
		struct stream s = { 0 };

		rt_sink_init_memory(&s.bytes);
		spool_stream(&spool_workloads[i], 2000000, keep, &s);
		measure(spool_workloads[i].name, &s);
		rt_sink_deinit(&s.bytes);
	}
	return 0;
}
