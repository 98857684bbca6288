/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording as a plain file of wire records, back to back, and back: for tests that change single records.
 *
 *     spool-records read SPOOL RECORDS            prints the program's wait status (-1: not known)
 *     spool-records write RECORDS SPOOL STATUS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "capture/spool.h"

#define RECORDING_MAX ((size_t)1 << 32)

static struct rt_error *read_spool(const char *spool, struct rt_sink *out)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	_cleanup_free_ char *data = NULL;
	const struct rt_wire_head *h;
	struct rt_source *source;
	int status = -1;
	size_t size;

	RT_TRY(rt_fs_read(AT_FDCWD, spool, RECORDING_MAX, &data, &size));
	RT_TRY(rt_spool_reader_create(rt_bytes_make(data, size), spool, &reader));
	source = rt_spool_reader_source(reader);
	for (;;) {
		RT_TRY(source->next(source, &h));
		if (!h)
			break;
		rt_sink_write(out, h, h->size);
	}
	rt_spool_reader_status(reader, &status);
	printf("%d\n", status);
	return rt_sink_end(out);
}

static struct rt_error *write_spool(const char *records, struct rt_sink *out, int status)
{
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *writer = NULL;
	_cleanup_free_ char *data = NULL;
	struct rt_event_sink *sink;
	size_t size;

	RT_TRY(rt_fs_read(AT_FDCWD, records, RECORDING_MAX, &data, &size));
	RT_TRY(rt_spool_writer_create(out, NULL, &writer));
	sink = rt_spool_writer_sink(writer);
	for (size_t at = 0; at < size;) {
		const struct rt_wire_head *h = (const struct rt_wire_head *)(const void *)(data + at);

		if (!rt_record_valid(h, size - at))
			return rt_error_new(RT_E_FORMAT, "%s: no record at byte %zu", records, at);
		RT_TRY(sink->record(sink, h));
		at += h->size;
	}
	return rt_spool_writer_end(writer, status);
}

int main(int argc, char **argv)
{
	bool reading = argc == 4 && !strcmp(argv[1], "read"), writing = argc == 5 && !strcmp(argv[1], "write");
	_cleanup_close_ int fd = -1;
	_cleanup_(rt_sink_deinit) struct rt_sink out = { .fd = -1 };
	struct rt_error *err;

	if (!reading && !writing) {
		fprintf(stderr, "usage: spool-records read SPOOL RECORDS | write RECORDS SPOOL STATUS\n");
		return 2;
	}
	fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) {
		perror(argv[3]);
		return 1;
	}
	rt_sink_init_fd(&out, fd, argv[3]);
	err = reading ? read_spool(argv[2], &out) : write_spool(argv[2], &out, atoi(argv[4]));
	if (err)
		fprintf(stderr, "spool-records: %s\n", err->message);
	rt_error_free(err);
	return err ? 1 : 0;
}
