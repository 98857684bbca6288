// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counting mode: what the BPF programs have counted, as records. A process' counts are taken when it is let go, as its
 * entry may become another one's; those that go on, when the run ends.
 */
#include <bpf/bpf.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/uprobe_priv.h"

static struct rt_error *keep(struct rt_uprobe *u, struct rt_wire_head *record)
{
	if (record && rt_vec_push(&u->counted, record))
		return NULL;
	free(record);
	return rt_error_nomem();
}

static struct rt_error *keep_tally(struct rt_uprobe *u, const struct rt_tally_key *key, const struct rt_tally *t,
				   uint32_t wire_pid)
{
	struct rt_wire_tally *r = calloc(1, sizeof(*r) + RT_TALLY_SITES * sizeof(r->site[0]));

	if (!r)
		return rt_error_nomem();
	r->head = (struct rt_wire_head){ .kind = RT_WIRE_TALLY, .time_ns = rt_now_ns(), .pid = wire_pid };
	r->object = key->object;
	r->first_ns = t->first_ns;
	r->last_ns = t->last_ns;
	r->balance = t->balance;
	r->type = key->type;
	r->news = t->news;
	r->gets = t->gets;
	r->puts = t->puts;
	r->others = t->others;
	for (unsigned i = 0; i < RT_TALLY_SITES && t->site[i]; i++)
		r->site[r->nr++] =
			(struct rt_wire_counted){ (uint32_t)(t->site[i] >> 32), (uint32_t)t->site[i], t->n[i] };
	r->head.size = (uint16_t)(sizeof(*r) + r->nr * sizeof(r->site[0]));
	return keep(u, &r->head);
}

static struct rt_error *keep_site(struct rt_uprobe *u, const struct rt_site_key *key, uint64_t n, uint32_t wire_pid)
{
	struct rt_wire_site *r = calloc(1, sizeof(*r));

	if (!r)
		return rt_error_nomem();
	r->head = (struct rt_wire_head){
		.size = sizeof(*r), .kind = RT_WIRE_SITE, .time_ns = rt_now_ns(), .pid = wire_pid
	};
	r->all = (struct rt_wire_counted){ key->stack, key->point, n };
	r->what = key->what;
	return keep(u, &r->head);
}

/* An entry is taken out while the map is gone through: its key leads on before that. */
static struct rt_error *take_tallies(struct rt_uprobe *u, uint32_t entry, uint32_t wire_pid)
{
	int fd = rt_uprobe_map_tallies(u), more;
	struct rt_tally_key key, next;
	struct rt_tally t;

	for (more = bpf_map_get_next_key(fd, NULL, &next); !more;) {
		key = next;
		more = bpf_map_get_next_key(fd, &key, &next);
		if (key.process != entry || bpf_map_lookup_elem(fd, &key, &t))
			continue;
		if (t.balance)
			RT_TRY(keep_tally(u, &key, &t, wire_pid));
		(void)bpf_map_delete_elem(fd, &key);
	}
	return NULL;
}

static struct rt_error *take_sites(struct rt_uprobe *u, uint32_t entry, uint32_t wire_pid)
{
	int fd = rt_uprobe_map_sites(u), more;
	struct rt_site_key key, next;
	uint64_t n;

	for (more = bpf_map_get_next_key(fd, NULL, &next); !more;) {
		key = next;
		more = bpf_map_get_next_key(fd, &key, &next);
		if (key.process != entry || bpf_map_lookup_elem(fd, &key, &n))
			continue;
		RT_TRY(keep_site(u, &key, n, wire_pid));
		(void)bpf_map_delete_elem(fd, &key);
	}
	return NULL;
}

struct rt_error *rt_uprobe_tally_take(struct rt_uprobe *u, uint32_t entry, uint32_t wire_pid)
{
	if (!u->options.counting || !wire_pid)
		return NULL;
	/* sites first: an object is told where they are known */
	RT_TRY(take_sites(u, entry, wire_pid));
	return take_tallies(u, entry, wire_pid);
}

struct rt_error *rt_uprobe_tally_say(struct rt_uprobe *u, struct rt_event_sink *sink)
{
	if (u->counted_nomem)
		return rt_error_nomem();
	for (size_t i = 0; i < u->counted.len; i++)
		RT_TRY(sink->record(sink, u->counted.data[i]));
	rt_uprobe_tally_drop(u);
	return NULL;
}

void rt_uprobe_tally_drop(struct rt_uprobe *u)
{
	for (size_t i = 0; i < u->counted.len; i++)
		free(u->counted.data[i]);
	rt_vec_deinit(&u->counted);
}
