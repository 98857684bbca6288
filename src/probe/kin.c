/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/kin.h"

#include <string.h>

enum { DEPTH = 8 };

struct reading {
	struct rt_kin *kin;
	bool nomem;
};

static bool see(const char *structure, const char *head, void *arg)
{
	struct reading *r = arg;

	r->nomem = !rt_vec_push(&r->kin->all, ((struct rt_head){ structure, head }));
	return !r->nomem;
}

struct rt_error *rt_kin_read(struct rt_dwarf *dwarf, struct rt_kin *ret)
{
	struct reading r = { .kin = ret };

	*ret = (struct rt_kin){ 0 };
	if (dwarf)
		RT_TRY(rt_dwarf_heads(dwarf, see, &r));
	return r.nomem ? rt_error_nomem() : NULL;
}

void rt_kin_deinit(struct rt_kin *k)
{
	rt_vec_deinit(&k->all);
}

const char *rt_kin_head(const struct rt_kin *k, const char *structure)
{
	for (size_t i = 0; i < k->all.len; i++) {
		if (!strcmp(k->all.data[i].structure, structure))
			return k->all.data[i].head;
	}
	return NULL;
}

bool rt_kin_begins(const struct rt_kin *k, const char *structure, const char *head)
{
	for (unsigned depth = 0; depth < DEPTH && (structure = rt_kin_head(k, structure)); depth++) {
		if (!strcmp(structure, head))
			return true;
	}
	return false;
}
