/* SPDX-License-Identifier: GPL-2.0-only */
/* Loads plugin.so from its own folder, runs it, unloads it, and does that again. */
#include "truth.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

static int run_plugin(const char *path, bool healthy)
{
	void *plugin = dlopen(path, RTLD_NOW);
	int (*run)(int, bool);
	int bad;

	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&run = dlsym(plugin, "plug_run");
	if (!run)
		exit(1);
	bad = run(30, healthy);
	dlclose(plugin);
	return bad;
}

int main(int argc, char **argv)
{
	char self[PATH_MAX] = "", path[PATH_MAX + 16];

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	snprintf(path, sizeof(path), "%s/plugin.so", dirname(self));
	for (int i = 0; i < 2; i++)
		run_plugin(path, truth_healthy(argc, argv));
	truth_print("type=plug new=plug_new get=plug_ref put=plug_unref", "plug_process", "leak");
	return 0;
}
