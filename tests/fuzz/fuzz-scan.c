/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as a module: scanning and planning it neither fault nor hang, and points lie in its code. */
#include <stdint.h>
#include <stdlib.h>

#include "insn/insn.h"
#include "probe/plan.h"
#include "probe/scan.h"

static struct rt_error *plan(const struct rt_plan_module *module, struct rt_spec *spec)
{
	static const char words[] = "type=all get=*:1 put=*:*2 new=*:ret use=*:6?ret>0 hidden=*:out*3";
	static const struct rt_scan_options all = { 0 };
	static const struct rt_plan_options options = { .return_points = true };
	_cleanup_(rt_plan_destroyp) struct rt_plan *p = NULL;
	size_t first;

	RT_TRY(rt_scan_module(module, &all, spec));
	RT_TRY(rt_spec_parse(words, sizeof(words) - 1, "fuzz", spec));
	RT_TRY(rt_plan_create(spec, &options, &p));
	RT_TRY(rt_plan_module(p, module, &first));
	for (size_t i = 0; i < p->points.len; i++) {
		struct rt_foff offset;

		if (!rt_image_offset(module->image, p->points.data[i].address, &offset) ||
		    p->points.data[i].cost == RT_COST_NEVER)
			abort();
	}
	return rt_plan_missing(p, module, 1);
}

/* One decoder stays, so that its library is not loaded for each input: that took most of the time. */
static void keep_library(void)
{
	static struct rt_decoder *decoder;
	_cleanup_error_ struct rt_error *err = decoder ? NULL : rt_decoder_create(RT_MACHINE_X86_64, &decoder);

	if (err)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_error_ struct rt_error *err = rt_image_from_bytes(rt_bytes_make(data, size), "fuzz", &image);
	struct rt_plan_module module = { .id = 1, .name = "fuzz" };
	struct rt_spec spec = { 0 };

	keep_library();
	if (err)
		return 0;
	err = rt_symtab_create(image, &symtab);
	if (err)
		return 0;
	err = rt_dwarf_create(image, &dwarf);
	if (err)
		return 0;
	module.image = image;
	module.symtab = symtab;
	module.dwarf = dwarf;
	err = plan(&module, &spec);
	rt_spec_deinit(&spec);
	return 0;
}
