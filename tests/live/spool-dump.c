/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints a spool for the live tests, one record a line, by the project's own reader:
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

static struct rt_error *dump_file(const char *path)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	_cleanup_close_ int fd = -1;
	struct dump dump = { .sink = { record } };
	struct rt_bytes bytes;
	struct rt_error *err;
	int status;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	RT_TRY(rt_fs_map(fd, path, &bytes));
	err = rt_spool_reader_create(bytes, path, &reader);
	if (!err)
		err = rt_source_drain(rt_spool_reader_source(reader), &dump.sink);
	if (!err && rt_spool_reader_status(reader, &status))
		printf("end %d\n", status);
	else if (!err)
		printf("end -\n");
	rt_spool_reader_destroy(rt_take(reader));
	rt_blob_join_deinit(&dump.join);
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
