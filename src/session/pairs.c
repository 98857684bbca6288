/* SPDX-License-Identifier: GPL-2.0-only */
/* The line that says which families are traced and why. */
#include "base/sink.h"
#include "probe/spec_type.h"
#include "session/internal.h"

#define NAMED 3 /* families that are named; of the others only the number */

static void put_functions(struct rt_sink *sink, const struct rt_spec_type *type)
{
	static const enum rt_op ops[] = { RT_OP_NEW, RT_OP_GET, RT_OP_PUT, RT_OP_FREE };
	bool any = false;

	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
		for (size_t i = 0; i < type->functions.len; i++) {
			if (type->functions.data[i].op != ops[o])
				continue;
			rt_sink_printf(sink, "%s%s %s", any ? ", " : "", rt_op_name(ops[o]),
				       type->functions.data[i].name);
			any = true;
			break;
		}
	}
	rt_sink_printf(sink, " -> struct %s", type->name);
}

static const char *origin_of(const struct rt_spec_type *type)
{
	if (!rt_spec_is_guessed(type))
		return type->origin ?: "told";
	return rt_spec_is_preset(type) ? "by presets; change: -P" : "found by name and type; change: -P";
}

const char *rt_session_pairs(const struct rt_session *session)
{
	struct rt_session *s = (struct rt_session *)(uintptr_t)session; /* the line is made when it is asked for */
	const char *origin = NULL;
	struct rt_error *err;
	struct rt_sink sink;
	size_t n = 0, total = 0;

	if (s->pairs)
		return s->pairs;
	for (size_t i = 0; i < s->batches.len; i++) {
		for (size_t k = 0; k < s->batches.data[i]->plan->types.len; k++)
			total += s->batches.data[i]->plan->types.data[k].present;
	}
	if (!total)
		return "pairs: none";
	rt_sink_init_memory(&sink);
	rt_sink_puts(&sink, "pairs: ");
	if (total > NAMED)
		rt_sink_printf(&sink, "%zu families: ", total);
	for (size_t i = 0; i < s->batches.len; i++) {
		for (size_t k = 0; k < s->batches.data[i]->plan->types.len; k++) {
			const struct rt_plan_type *type = &s->batches.data[i]->plan->types.data[k];

			if (!type->present)
				continue;
			if (!origin)
				origin = origin_of(type->spec);
			if (n++ >= NAMED)
				continue;
			rt_sink_puts(&sink, n > 1 ? "; " : "");
			put_functions(&sink, type->spec);
		}
	}
	if (total > NAMED)
		rt_sink_printf(&sink, "; and %zu more", total - NAMED);
	rt_sink_printf(&sink, "  (%s)", origin);
	err = rt_sink_end(&sink);
	if (!err)
		s->pairs = rt_take(sink.buffer);
	rt_error_free(err);
	rt_sink_deinit(&sink);
	return s->pairs ? s->pairs : "pairs: none";
}
