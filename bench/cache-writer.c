/* SPDX-License-Identifier: GPL-2.0-only */
/* cache-writer DIR FILE SPEC LINE: adds one entry to the probes of a file in a build-id cache, as every command does.
 */
#include <stdio.h>

#include "cache/cache.h"
#include "elf/image.h"

struct entry {
	const char *spec, *line;
};

static struct rt_error *add(struct rt_probes *probes, void *arg)
{
	const struct entry *e = arg;

	return rt_probes_set(probes, false, e->spec, &e->line, 1);
}

static struct rt_error *write_entry(char **words)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct entry e = { words[3], words[4] };

	RT_TRY(rt_cache_open(words[1], true, &cache));
	RT_TRY(rt_image_open(words[2], &image));
	return rt_cache_change_probes(cache, image->build_id, image->build_id_size, words[2], add, &e);
}

int main(int argc, char **argv)
{
	struct rt_error *err = argc == 5 ? write_entry(argv) : rt_error_new(RT_E_USAGE, "DIR FILE SPEC LINE");

	if (!err)
		return 0;
	fprintf(stderr, "cache-writer: %s\n", err->message);
	rt_error_free(err);
	return 1;
}
