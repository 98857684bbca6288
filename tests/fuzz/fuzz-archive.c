/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as an archive: opened, listed and handed out without fault, within its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"

enum { BYTES_MAX = 1 << 20, FILES_MAX = 1000 };

static struct rt_error *take(void *arg, const struct rt_archive_item *item, struct rt_bytes bytes)
{
	uint64_t *total = arg;

	/* what is handed out was told */
	if (!item->path || item->path[0] == '/' || strstr(item->path, "..") == item->path || item->bytes != bytes.size)
		abort();
	*total += bytes.size;
	if (*total > BYTES_MAX)
		abort();
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rt_archive_limits limits = { .bytes = BYTES_MAX, .files = FILES_MAX };
	struct rt_archive *archive = NULL;
	struct rt_error *err = rt_archive_open(rt_bytes_make(data, size), "fuzz", &limits, &archive);
	uint64_t total = 0;
	size_t count;

	if (!err) {
		const struct rt_archive_item *items = rt_archive_items(archive, &count);

		for (size_t i = 0; i < count; i++)
			total += strlen(items[i].origin) + (items[i].why ? strlen(items[i].why) : 0);
		total = 0;
		err = rt_archive_each(archive, take, &total);
		/* it was checked when it was opened */
		if (err)
			abort();
	}
	rt_error_free(err);
	rt_archive_close(archive);
	return 0;
}
