/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/counted.h"

#include <stdlib.h>

#include "base/clock.h"

/* NULL: out of memory; record is freed then. */
static struct rt_wire_head *keep(struct rt_counted *c, struct rt_wire_head *record)
{
	if (record && rt_vec_push(&c->records, record))
		return record;
	free(record);
	return NULL;
}

struct rt_wire_tally *rt_counted_tally(struct rt_counted *c, uint32_t wire_pid, uint64_t object, uint32_t type)
{
	struct rt_wire_tally *r = calloc(1, sizeof(*r) + RT_TALLY_SITES * sizeof(r->site[0]));

	if (!r || !keep(c, &r->head))
		return NULL;
	r->head = (struct rt_wire_head){
		.size = sizeof(*r), .kind = RT_WIRE_TALLY, .time_ns = rt_now_ns(), .pid = wire_pid
	};
	r->object = object;
	r->type = type;
	return r;
}

void rt_counted_tally_site(struct rt_wire_tally *t, struct rt_wire_counted site)
{
	t->site[t->nr++] = site;
	t->head.size = (uint16_t)(sizeof(*t) + t->nr * sizeof(t->site[0]));
}

struct rt_error *rt_counted_site(struct rt_counted *c, uint32_t wire_pid, struct rt_wire_counted all,
				 enum rt_counted_what what)
{
	struct rt_wire_site *r = calloc(1, sizeof(*r));

	if (!r || !keep(c, &r->head))
		return rt_error_nomem();
	r->head = (struct rt_wire_head){
		.size = sizeof(*r), .kind = RT_WIRE_SITE, .time_ns = rt_now_ns(), .pid = wire_pid
	};
	r->all = all;
	r->what = what;
	return NULL;
}

struct rt_error *rt_counted_say(struct rt_counted *c, struct rt_event_sink *sink)
{
	if (c->nomem)
		return rt_error_nomem();
	for (size_t i = 0; i < c->records.len; i++)
		RT_TRY(sink->record(sink, c->records.data[i]));
	rt_counted_drop(c);
	return NULL;
}

void rt_counted_drop(struct rt_counted *c)
{
	for (size_t i = 0; i < c->records.len; i++)
		free(c->records.data[i]);
	rt_vec_deinit(&c->records);
}
