/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Presets against the libraries that are installed: every name in them exists
 * and can be armed. A library that is not there is skipped.
 */
#include <dirent.h>

#include "planned.h"

static const char *presets_dirs[2];

static void find_presets(void)
{
	static char dir[512];
	const char *root = getenv("RT_SOURCE_ROOT");

	snprintf(dir, sizeof(dir), "%s/presets", root ? root : ".");
	presets_dirs[0] = dir;
}

static const struct {
	const char *preset;
	const char *libraries[3]; /* together they have every function */
	unsigned refused;         /* how many cannot be armed: known ones */
} cases[] = {
	{ "json-c", { "libjson-c.so.5" }, 0 },    { "glib", { "libglib-2.0.so.0" }, 0 },
	{ "glib-rc", { "libglib-2.0.so.0" }, 0 }, { "gobject", { "libgobject-2.0.so.0", "libglib-2.0.so.0" }, 0 },
	{ "dbus", { "libdbus-1.so.3" }, 0 },      { "openssl", { "libcrypto.so.3", "libssl.so.3" }, 0 },
	{ "malloc", { "libc.so.6" }, 0 },
};

/* Plans one preset over one library and adds what was seen to seen[type][function]. */
static void plan_library(const char *preset, const char *path, uint8_t *seen, unsigned *refused)
{
	struct planned p;
	size_t n = 0;

	planned_open(&p, path);
	assert_ok(rt_spec_argument(preset, presets_dirs, &p.spec));
	planned_make(&p, NULL, NULL);
	for (size_t t = 0; t < p.plan->types.len; t++)
		for (size_t i = 0; i < p.spec.types.data[t].functions.len; i++)
			seen[n++] |= p.plan->types.data[t].seen[i];
	for (size_t i = 0; i < p.plan->points.len; i++)
		assert_int_not_equal(p.plan->points.data[i].cost, RT_COST_NEVER);
	for (size_t i = 0; i < p.plan->refused.len; i++)
		print_message("  %s: %s\n", p.plan->refused.data[i].function, p.plan->refused.data[i].why);
	*refused += (unsigned)p.plan->refused.len;
	planned_close(&p);
}

TEST(every_name_is_there)
{
	find_presets();
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct rt_spec spec = { 0 };
		uint8_t seen[1000] = { 0 };
		unsigned refused = 0, missing = 0;
		bool all = true;
		size_t n = 0;

		for (size_t l = 0; l < 3 && cases[c].libraries[l]; l++) {
			char path[256];

			snprintf(path, sizeof(path), "/usr/lib/x86_64-linux-gnu/%s", cases[c].libraries[l]);
			all &= access(path, R_OK) == 0;
			if (all)
				plan_library(cases[c].preset, path, seen, &refused);
		}
		print_message("%s: %s\n", cases[c].preset, all ? "checked" : "not installed");
		if (!all)
			continue;
		assert_ok(rt_spec_argument(cases[c].preset, presets_dirs, &spec));
		for (size_t t = 0; t < spec.types.len; t++)
			for (size_t i = 0; i < spec.types.data[t].functions.len; i++)
				if (!seen[n++]) {
					print_message("  nowhere: %s\n", spec.types.data[t].functions.data[i].name);
					missing++;
				}
		assert_int_equal(missing, 0);
		assert_int_equal(refused, cases[c].refused);
		rt_spec_deinit(&spec);
	}
}

/* every file parses; each type has what takes (a get, or what makes an object) and what gives back (a put, or a free)
 */
TEST(every_preset_is_complete)
{
	DIR *dir;
	struct dirent *entry;
	unsigned files = 0;

	find_presets();
	dir = opendir(presets_dirs[0]);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct rt_spec spec = { 0 };

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "meson.build") == 0)
			continue;
		files++;
		assert_ok(rt_spec_argument(entry->d_name, presets_dirs, &spec));
		for (size_t t = 0; t < spec.types.len; t++) {
			unsigned ops = 0;

			for (size_t i = 0; i < spec.types.data[t].functions.len; i++)
				ops |= 1u << spec.types.data[t].functions.data[i].op;
			assert_true(ops & (1u << RT_OP_GET | 1u << RT_OP_NEW));
			assert_true(ops & (1u << RT_OP_PUT | 1u << RT_OP_FREE));
		}
		rt_spec_deinit(&spec);
	}
	closedir(dir);
	assert_true(files >= 8);
}

TEST_MAIN();
