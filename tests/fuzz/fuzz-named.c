/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as an ELF file with debug info, in which a function is looked for by name: units that are left out because
 * their bytes do not have the name are not read. A name must not be found more often by itself than by a walk of all
 * units.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/variable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 8 };

static bool any(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	return true;
}

static bool is_named(const struct rt_instance *fn, const char *name)
{
	return !strcmp(fn->function, name) || (fn->linkage && !strcmp(fn->linkage, name));
}

static bool named(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	const char *const *name = arg;

	return is_named(fn, *name);
}

/* Instances of the name (NULL: of all), in a file that nothing was asked about before. */
static struct rt_dwarf *look(const struct rt_image *image, const char *name, struct rt_instance **ret,
			     size_t *ret_count)
{
	struct rt_dwarf *dwarf = NULL;
	struct rt_error *err = rt_dwarf_create(image, &dwarf);

	*ret = NULL;
	*ret_count = 0;
	if (!err)
		err = rt_dwarf_instances(dwarf, name, name ? named : any, &name, ret, ret_count);
	rt_error_free(err);
	return dwarf;
}

static void check_name(const struct rt_image *image, const char *name, const struct rt_instance *all, size_t count)
{
	struct rt_instance *list;
	size_t found, wanted = 0;
	struct rt_dwarf *dwarf = look(image, name, &list, &found);

	for (size_t i = 0; i < count; i++)
		wanted += is_named(&all[i], name);
	/*
	 * Less may be found where damage has led a reference into the middle of an entry, which only a walk of all
	 * follows; of files that are whole, test-dwarf-named checks that nothing is missing.
	 */
	if (found > wanted)
		abort();
	free(list);
	rt_dwarf_destroy(dwarf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_error_ struct rt_error *err = rt_image_from_bytes(rt_bytes_make(data, size), "fuzz", &image);
	const char *last = NULL;
	struct rt_instance *all;
	size_t count, asked = 0;

	if (err)
		return 0;
	dwarf = look(image, NULL, &all, &count);
	for (size_t i = 0; i < count && asked < NAMES; i++) {
		if (last && !strcmp(last, all[i].function))
			continue;
		last = all[i].function;
		check_name(image, last, all, count);
		if (all[i].linkage)
			check_name(image, all[i].linkage, all, count);
		asked++;
	}
	check_name(image, "no such name", all, count);
	free(all);
	return 0;
}
