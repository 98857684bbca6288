/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints a recording (a spool that is not finished yet, or perf.data) for the live tests, one record a line, by the
 * project's own readers:
 *
 *     attr ID NAME TYPE CONFIG SAMPLE_TYPE FLAGS_HEX IDS,...
 *     perf ATTR TIME PID TID HEX            the record's bytes
 *     blob WHAT ID HEX                      put together
 *     record KIND                           anything else
 *     loss CAUSE TEXT
 *     end STATUS                            STATUS - when it is not known
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "base/fs.h"
#include "capture/spool.h"
#include "event/blob.h"
#include "perfdata/reader.h"
#include "recording/recording.h"

struct dump {
	struct rt_event_sink sink;
	struct rt_blob_join join;
};

static void hex(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		printf("%02x", data[i]);
	putchar('\n');
}

static void attr(const struct rt_wire_attr *a)
{
	struct perf_event_attr attr = { 0 };
	const uint8_t *ids = a->data + a->attr_bytes;
	uint64_t flags;

	memcpy(&attr, a->data, a->attr_bytes < sizeof(attr) ? a->attr_bytes : sizeof(attr));
	memcpy(&flags, (const uint8_t *)&attr + 40, sizeof(flags));
	printf("attr %u %s %u %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 " ", a->id,
	       (const char *)ids + 8 * (size_t)a->ids, attr.type, (uint64_t)attr.config, (uint64_t)attr.sample_type,
	       flags, (uint64_t)attr.sample_period);
	for (uint32_t i = 0; i < a->ids; i++) {
		uint64_t id;

		memcpy(&id, ids + 8 * (size_t)i, sizeof(id));
		printf("%s%" PRIu64, i ? "," : "", id);
	}
	putchar('\n');
}

static struct rt_error *record(struct rt_event_sink *self, const struct rt_wire_head *head)
{
	struct dump *dump = (struct dump *)(void *)self;
	const struct rt_wire_perf *perf = (const struct rt_wire_perf *)(const void *)head;
	const struct rt_wire_loss *loss = (const struct rt_wire_loss *)(const void *)head;
	struct perf_event_header header;

	switch (head->kind) {
	case RT_WIRE_ATTR:
		attr((const struct rt_wire_attr *)(const void *)head);
		break;
	case RT_WIRE_PERF:
		memcpy(&header, perf->data, sizeof(header));
		printf("perf %u %" PRIu64 " %u %u ", perf->attr, head->time_ns, head->pid, head->tid);
		hex(perf->data, header.size);
		break;
	case RT_WIRE_BLOB:
		if (rt_blob_join(&dump->join, (const struct rt_wire_blob *)(const void *)head, 1 << 30, NULL)) {
			printf("blob %u %u ", dump->join.what, dump->join.id);
			hex(dump->join.data, dump->join.size);
		}
		break;
	case RT_WIRE_LOSS:
		printf("loss %u %s\n", loss->cause, loss->text);
		break;
	default:
		printf("record %u\n", head->kind);
	}
	return NULL;
}

static struct rt_error *dump_spool(struct rt_bytes bytes, const char *path)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	struct dump dump = { .sink = { record } };
	struct rt_error *err;
	int status;

	RT_TRY(rt_spool_reader_create(bytes, path, &reader));
	err = rt_source_drain(rt_spool_reader_source(reader), &dump.sink);
	rt_blob_join_deinit(&dump.join);
	RT_TRY(err);
	if (rt_spool_reader_status(reader, &status))
		printf("end %d\n", status);
	else
		printf("end -\n");
	return NULL;
}

static void perf_event(const struct rt_perf_event *event, unsigned id)
{
	uint64_t flags;

	memcpy(&flags, (const uint8_t *)&event->attr + 40, sizeof(flags));
	printf("attr %u %s %u %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 " ", id, event->name, event->attr.type,
	       (uint64_t)event->attr.config, (uint64_t)event->attr.sample_type, flags,
	       (uint64_t)event->attr.sample_period);
	for (size_t i = 0; i < event->id_count; i++)
		printf("%s%" PRIu64, i ? "," : "", event->ids[i]);
	putchar('\n');
}

/* As the HOST blob of a spool. */
static void perf_host(const struct rt_perf_header *header)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	fprintf(f, "hostname %s\nosrelease %s\narch %s\n", header->hostname, header->osrelease, header->arch);
	fprintf(f, "nrcpus_online %u\nclockid %" PRIu64 "\n", header->cpus_online, header->clockid);
	fprintf(f, "wall_ns %" PRIu64 "\nmonotonic_ns %" PRIu64 "\n", header->wall_clock_ns, header->clockid_time_ns);
	for (size_t i = 0; i < header->command_count; i++)
		fprintf(f, "cmdline %s\n", header->command[i]);
	fclose(f);
	printf("blob %u 0 ", RT_BLOB_HOST);
	hex((const uint8_t *)text, size);
	free(text);
	if (header->tracing_data.size) {
		printf("blob %u 0 ", RT_BLOB_TRACING_DATA);
		hex(header->tracing_data.data, header->tracing_data.size);
	}
}

static struct rt_error *wire(struct rt_recording_sink *self, const struct rt_wire_head *head)
{
	struct dump dump = { .join = { 0 } };
	/* the others were printed from the file itself */
	bool printed = head->kind == RT_WIRE_BLOB || head->kind == RT_WIRE_ATTR || head->kind == RT_WIRE_PERF;

	return printed ? NULL : record(&dump.sink, head);
}

static struct rt_error *dump_perf(struct rt_bytes bytes, const char *path)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	_cleanup_(rt_recording_closep) struct rt_recording *recording = NULL;
	struct rt_recording_sink sink = { .wire = wire };
	const struct rt_perf_event *events;
	struct rt_perf_record r;
	size_t count;
	bool more;
	int status;

	RT_TRY(rt_perf_reader_create(bytes, path, &reader));
	events = rt_perf_reader_events(reader, &count);
	for (size_t i = 0; i < count; i++)
		perf_event(&events[i], (unsigned)i + 1);
	perf_host(rt_perf_reader_header(reader));
	for (;;) {
		RT_TRY(rt_perf_reader_next(reader, &r, &more));
		if (!more)
			break;
		printf("perf %u %" PRIu64 " %u %u ", r.event + 1, r.id.time_ns, r.id.pid, r.id.tid);
		hex(r.bytes.data, r.bytes.size);
	}
	RT_TRY(rt_recording_open(bytes, path, &recording));
	RT_TRY(rt_recording_drain(recording, &sink));
	if (rt_recording_status(recording, &status))
		printf("end %d\n", status);
	else
		printf("end -\n");
	return NULL;
}

static struct rt_error *dump_file(const char *path)
{
	_cleanup_close_ int fd = -1;
	struct rt_bytes bytes;
	struct rt_error *err;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	RT_TRY(rt_fs_map(fd, path, &bytes));
	err = bytes.size > 8 && !memcmp(bytes.data, "PERFILE2", 8) ? dump_perf(bytes, path) : dump_spool(bytes, path);
	rt_fs_unmap(bytes);
	return err;
}

int main(int argc, char **argv)
{
	struct rt_error *err = argc == 2 ? dump_file(argv[1]) : NULL;

	if (err)
		fprintf(stderr, "%s: %s\n", rt_code_text(err->code), err->message);
	rt_error_free(err);
	return err || argc != 2;
}
