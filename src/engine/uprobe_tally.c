// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counting mode: what the BPF programs have counted, as records. A process' counts are taken when it is let go, as its
 * entry may become another one's; those that go on, when the run ends.
 */
#include <bpf/bpf.h>

#include "engine/uprobe_priv.h"

static struct rt_error *keep_tally(struct rt_uprobe *u, const struct rt_tally_key *key, const struct rt_tally *t,
				   uint32_t wire_pid)
{
	struct rt_wire_tally *r = rt_counted_tally(&u->counted, wire_pid, key->object, key->type);

	if (!r)
		return rt_error_nomem();
	r->first_ns = t->first_ns;
	r->last_ns = t->last_ns;
	r->balance = t->balance;
	r->news = t->news;
	r->gets = t->gets;
	r->puts = t->puts;
	r->others = t->others;
	for (unsigned i = 0; i < RT_TALLY_SITES && t->site[i]; i++)
		rt_counted_tally_site(
			r, (struct rt_wire_counted){ (uint32_t)(t->site[i] >> 32), (uint32_t)t->site[i], t->n[i] });
	return NULL;
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
		RT_TRY(rt_counted_site(&u->counted, wire_pid, (struct rt_wire_counted){ key.stack, key.point, n },
				       key.what));
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
