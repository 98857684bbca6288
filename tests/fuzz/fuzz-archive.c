/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as an archive: as a tar (plain or compressed) as they are; and, where they do not start as either, as a
 * script of files whose tar headers and hashes are right, which chance would not find:
 *
 *     u8 0x01 | files: u8 type, u8 path bytes, path, u16 bytes, contents
 *
 * In the contents of the file MANIFEST the bytes 0x02 and '0' + n stand for the hash of file n as hex.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "archive/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES_MAX = 40, BLOCK = 512 };

struct file {
	uint8_t type;
	struct rt_bytes path, content;
};

static volatile size_t seen;

static struct rt_error *take(void *arg, const struct rt_archive_item *item, struct rt_bytes bytes)
{
	size_t *taken = arg;

	/* what is handed out was told */
	if (!item->path || item->why || item->bytes != bytes.size || !rt_archive_path_ok(item->path))
		abort();
	for (size_t i = 0; i < bytes.size; i++)
		seen += bytes.data[i];
	++*taken;
	return NULL;
}

static void read_all(struct rt_bytes bytes)
{
	static const struct rt_archive_limits limits = { .bytes = 1 << 20, .files = 32 };
	_cleanup_(rt_archive_closep) struct rt_archive *archive = NULL;
	_cleanup_error_ struct rt_error *err = rt_archive_open(bytes, "fuzz", &limits, &archive), *again = NULL;
	const struct rt_archive_item *items;
	size_t count, taken = 0, there = 0;

	if (err)
		return;
	items = rt_archive_items(archive, &count);
	for (size_t i = 0; i < count; i++) {
		if (!items[i].origin || !items[i].path == !items[i].why)
			abort();
		seen += strlen(items[i].origin) + strlen(items[i].path ? items[i].path : items[i].why) +
			(items[i].build_id ? strlen(items[i].build_id) : 0);
		there += items[i].path != NULL;
	}
	/* what was whole once stays so */
	again = rt_archive_each(archive, take, &taken);
	if (again || taken != there)
		abort();
}

static size_t parse(const uint8_t *data, size_t size, struct file files[FILES_MAX])
{
	struct rt_cursor c = rt_cursor_make(rt_bytes_make(data, size), false);
	size_t n = 0;

	for (; n < FILES_MAX; n++) {
		uint8_t len;
		uint16_t bytes;

		if (!rt_cursor_u8(&c, &files[n].type) || !rt_cursor_u8(&c, &len) || len > 100 ||
		    !rt_cursor_bytes(&c, len, &files[n].path) || !rt_cursor_u16(&c, &bytes) ||
		    !rt_cursor_bytes(&c, bytes, &files[n].content))
			break;
	}
	return n;
}

static void add_header(struct rt_sink *tar, const struct file *f, size_t size)
{
	static const char types[] = "0000\000125Lxg7";
	char header[BLOCK] = { 0 };
	unsigned sum = 8 * ' ';

	if (f->path.size)
		memcpy(header, f->path.data, f->path.size);
	memcpy(header + 100, "0000644", 8);
	snprintf(header + 124, 12, "%011zo", size);
	header[156] = types[f->type % (sizeof(types) - 1)];
	memcpy(header + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof(header); i++)
		sum += (uint8_t)header[i];
	snprintf(header + 148, 8, "%06o", sum);
	header[155] = ' ';
	rt_sink_write(tar, header, sizeof(header));
}

/* The contents with the hashes put in. */
static void fill_in(struct rt_bytes content, const struct file *files, size_t count, struct rt_sink *out)
{
	for (size_t i = 0; i < content.size; i++) {
		unsigned n = i + 1 < content.size ? content.data[i + 1] - '0' : FILES_MAX;
		uint8_t hash[32];
		char hex[65];

		if (content.data[i] != 2 || n >= count) {
			rt_sink_write(out, &content.data[i], 1);
			continue;
		}
		rt_archive_hash(files[n].content, hash);
		rt_archive_hash_text(hash, hex);
		rt_sink_puts(out, hex);
		i++;
	}
}

static void read_script(const uint8_t *data, size_t size)
{
	static const char zeros[2 * BLOCK];
	struct file files[FILES_MAX];
	size_t count = parse(data, size, files);
	_cleanup_(rt_sink_deinit) struct rt_sink tar;

	rt_sink_init_memory(&tar);
	for (size_t i = 0; i < count; i++) {
		struct rt_bytes name = files[i].path, content = files[i].content;
		_cleanup_(rt_sink_deinit) struct rt_sink text;

		rt_sink_init_memory(&text);
		if (name.size == 8 && !memcmp(name.data, RT_ARCHIVE_MANIFEST, 8)) {
			fill_in(content, files, count, &text);
			content = rt_bytes_make(text.buffer, text.len);
		}
		add_header(&tar, &files[i], content.size);
		if (content.size)
			rt_sink_write(&tar, content.data, content.size);
		rt_sink_write(&tar, zeros, (BLOCK - content.size % BLOCK) % BLOCK);
	}
	rt_sink_write(&tar, zeros, sizeof(zeros));
	/* exactly as long as it is: reading beyond it is seen by ASan */
	if (!tar.err && tar.len) {
		_cleanup_free_ uint8_t *copy = malloc(tar.len);

		if (!copy)
			return;
		memcpy(copy, tar.buffer, tar.len);
		read_all(rt_bytes_make(copy, tar.len));
	}
	rt_error_free(rt_sink_end(&tar));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == 1)
		read_script(data + 1, size - 1);
	else
		read_all(rt_bytes_make(data, size));
	return 0;
}
