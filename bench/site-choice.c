/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What site choice buys: of the exported counting functions of the installed
 * libraries, how many would be cheap to probe at their first instruction, and
 * how many are at the instruction that reftrace arms. `site-choice [LIBRARY...]`.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "probe/plan.h"

static const char *const libraries[] = {
	"libglib-2.0.so.0",  "libgobject-2.0.so.0",    "libgio-2.0.so.0",       "libdbus-1.so.3",
	"libjson-c.so.5",    "libcrypto.so.3",         "libssl.so.3",           "libsystemd.so.0",
	"libudev.so.1",      "libkmod.so.2",           "libmount.so.1",         "libcairo.so.2",
	"libpixman-1.so.0",  "libharfbuzz.so.0",       "libfontconfig.so.1",    "libfreetype.so.6",
	"libpango-1.0.so.0", "libxml2.so.2",           "libgstreamer-1.0.so.0", "libwayland-server.so.0",
	"libxkbcommon.so.0", "libinput.so.10",         "libusb-1.0.so.0",       "libpulse.so.0",
	"libnl-3.so.200",    "libvirt.so.0",           "libgit2.so.1.5",        "libblkid.so.1",
	"libfdisk.so.1",     "libsmartcols.so.1",      "libapparmor.so.1",      "libpolkit-gobject-1.so.0",
	"libsoup-2.4.so.1",  "libdevmapper.so.1.02.1", "libgcrypt.so.20",
};

static const char words[] = "use=*_ref:1,*_unref:1,*_up_ref:1,*_put:1,*_reference:1,*_destroy:1";

struct count {
	unsigned functions, cheap_entry, cheap_chosen, never_entry, never_chosen;
};

/* A plan of all counting functions of a module; NULL after printing why not. */
static struct rt_plan *plan_module(const struct rt_spec *spec, const struct rt_plan_module *module, bool first_insn)
{
	struct rt_plan_options options = { .first_insn = first_insn, .no_inline = true };
	struct rt_plan *plan = NULL;
	size_t first;
	struct rt_error *err = rt_plan_create(spec, &options, &plan);

	if (!err)
		err = rt_plan_module(plan, module, &first);
	if (!err)
		return plan;
	fprintf(stderr, "%s\n", err->message);
	rt_error_free(err);
	rt_plan_destroy(plan);
	return NULL;
}

static unsigned cheap(const struct rt_plan *plan)
{
	unsigned n = 0;

	for (size_t i = 0; i < plan->points.len; i++)
		n += plan->points.data[i].cost == RT_COST_EMULATED || plan->points.data[i].cost == RT_COST_AVOID;
	return n;
}

static void print_row(const char *name, const struct count *c)
{
	if (c->functions)
		printf("%-28s %9u %11.0f %% %11.0f %% %12u %13u\n", name, c->functions,
		       100.0 * c->cheap_entry / c->functions, 100.0 * c->cheap_chosen / c->functions, c->never_entry,
		       c->never_chosen);
}

static void measure(const char *name, const struct rt_spec *spec, struct count *sum)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_(rt_plan_destroyp) struct rt_plan *entry = NULL, *chosen = NULL;
	struct rt_plan_module module = { .id = 1 };
	struct count c = { 0 };
	char path[512];
	struct rt_error *err;

	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : "/usr/lib/x86_64-linux-gnu/", name);
	err = rt_image_open(path, &image);
	if (!err)
		err = rt_symtab_create(image, &symtab);
	if (!err)
		err = rt_dwarf_create(image, &dwarf);
	if (err) {
		/* a library that is not installed is left out */
		rt_error_free(err);
		return;
	}
	module.name = path;
	module.image = image;
	module.symtab = symtab;
	module.dwarf = dwarf;
	entry = plan_module(spec, &module, true);
	chosen = plan_module(spec, &module, false);
	if (!entry || !chosen)
		return;
	c.functions = (unsigned)(chosen->points.len + chosen->refused.len);
	c.cheap_entry = cheap(entry);
	c.cheap_chosen = cheap(chosen);
	c.never_entry = (unsigned)entry->refused.len;
	c.never_chosen = (unsigned)chosen->refused.len;
	print_row(name, &c);
	sum->functions += c.functions;
	sum->cheap_entry += c.cheap_entry;
	sum->cheap_chosen += c.cheap_chosen;
	sum->never_entry += c.never_entry;
	sum->never_chosen += c.never_chosen;
}

int main(int argc, char **argv)
{
	struct rt_spec spec = { 0 };
	struct count sum = { 0 };
	struct rt_error *err = rt_spec_parse(words, strlen(words), "words", &spec);

	if (err) {
		fprintf(stderr, "%s\n", err->message);
		return 1;
	}
	printf("%-28s %9s %13s %13s %12s %13s\n", "library", "functions", "cheap, entry", "cheap, chosen",
	       "never, entry", "never, chosen");
	for (int i = 1; i < argc; i++)
		measure(argv[i], &spec, &sum);
	for (size_t i = 0; argc == 1 && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		measure(libraries[i], &spec, &sum);
	print_row("all", &sum);
	rt_spec_deinit(&spec);
	return sum.functions ? 0 : 1;
}
