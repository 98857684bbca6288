// SPDX-License-Identifier: GPL-2.0-only
#include "cli/bpf_list.h"

#include <string.h>
#include <time.h>

#include "report/words.h"

#define HOLDERS_SHOWN 4
#define NAME_COLUMNS 26
#define GROUPS_SEARCHED 256 /* the latest */

enum rt_bpf_state rt_bpf_state(const struct rt_bpf_entry *e)
{
	if (e->gone)
		return RT_BPF_UNLOADED;
	if (e->before)
		return RT_BPF_LOADED;
	for (size_t i = 0; i < e->holders.len; i++) {
		const struct rt_bpf_holder *h = &e->holders.data[i];

		if (h->pid && h->pid == e->loader_pid)
			return RT_BPF_IN_USE;
	}
	return RT_BPF_LEAKED;
}

bool rt_bpf_listed(const struct rt_bpf_listing *l, const struct rt_bpf_entry *e)
{
	if (l->watched)
		return !e->before;
	if (e->gone)
		return false;
	for (size_t i = 0; i < l->pid_count; i++) {
		for (size_t k = 0; k < e->holders.len; k++) {
			if (e->holders.data[k].pid == l->pids[i])
				return true;
		}
	}
	return !l->pid_count;
}

static const char *tag_text(struct rt_arena *arena, const uint8_t *tag)
{
	return rt_format(arena, "%02x%02x%02x%02x%02x%02x%02x%02x", tag[0], tag[1], tag[2], tag[3], tag[4], tag[5],
			 tag[6], tag[7]);
}

static const char *name_text(struct rt_arena *arena, const struct rt_bpf_entry *e)
{
	const char *name = rt_bpf_entry_name(e);

	return *name ? rt_shorten(arena, rt_clean(arena, name), NAME_COLUMNS) : "(no name)";
}

static const char *holder_text(struct rt_arena *arena, const struct rt_bpf_holder *h)
{
	const char *comm = rt_clean(arena, h->comm), *text = rt_clean(arena, h->text ?: "");
	const char *link = h->link ? rt_format(arena, " of link %u", h->link) : "";

	switch (h->kind) {
	case RT_BPF_HELD_FD:
		return rt_format(arena, "%s[%u] fd %d%s", comm, h->pid, h->fd, link);
	case RT_BPF_HELD_PERF:
		return rt_format(arena, "%s[%u] fd %d, perf event%s%s", comm, h->pid, h->fd, *text ? " " : "", text);
	case RT_BPF_HELD_PIN:
		return rt_format(arena, "pin %s%s", text, link);
	case RT_BPF_HELD_LINK:
		return rt_format(arena, "link %u, %s", h->link, text);
	case RT_BPF_HELD_ATTACHED:
		return text;
	}
	return "";
}

static void holders(struct rt_arena *arena, const struct rt_bpf_entry *e, struct rt_sink *out)
{
	size_t shown = e->holders.len < HOLDERS_SHOWN ? e->holders.len : HOLDERS_SHOWN;

	if (e->held_unseen)
		rt_sink_puts(
			out,
			"      held by the kernel: a socket, a map of programs, a tc action (or it is just going)\n");
	for (size_t i = 0; i < shown; i++)
		rt_sink_printf(out, "      held by %s\n", holder_text(arena, &e->holders.data[i]));
	if (e->holders.len > shown)
		rt_sink_printf(out, "      held by %zu more\n", e->holders.len - shown);
}

static const char *code_text(struct rt_arena *arena, const struct rt_bpf_entry *e)
{
	return rt_format(arena, "%s, %u function%s%s", rt_bytes_text(arena, e->jited_bytes ?: e->xlated_bytes),
			 e->functions, rt_plural(e->functions), e->btf ? "" : ", no BTF");
}

static const char *runs_text(struct rt_arena *arena, const struct rt_bpf_entry *e)
{
	if (!e->stats_known)
		return "";
	return rt_format(arena, "; ran %llu time%s, %s", (unsigned long long)e->run_cnt, rt_plural(e->run_cnt),
			 rt_duration_text(arena, e->run_time_ns));
}

static void one(struct rt_arena *arena, const struct rt_bpf_entry *e, const char *when, struct rt_sink *out)
{
	rt_sink_printf(out, "  %-6u %-15s %-26s %s  %s%s%s\n", e->id, rt_bpf_type_name(e->type), name_text(arena, e),
		       tag_text(arena, e->tag), code_text(arena, e), when, runs_text(arena, e));
}

static void attached(struct rt_arena *arena, const struct rt_bpf_entry *e, struct rt_sink *out)
{
	for (size_t i = 0; i < e->attached.len && i < HOLDERS_SHOWN; i++)
		rt_sink_printf(out, "      attached to %s\n", rt_clean(arena, e->attached.data[i].text));
}

/* ---- what is loaded now ---- */

static uint64_t boot_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void list_loaded(const struct rt_bpf_listing *l, struct rt_arena *arena, struct rt_sink *out)
{
	uint64_t now = boot_ns();
	size_t count = 0;

	for (size_t i = 0; i < l->catalog->entries.len; i++) {
		const struct rt_bpf_entry *e = l->catalog->entries.data[i];
		const char *when = "";

		if (!rt_bpf_listed(l, e))
			continue;
		if (e->load_boot_ns && e->load_boot_ns < now)
			when = rt_format(arena, ", loaded %s ago by uid %u",
					 rt_duration_text(arena, now - e->load_boot_ns), e->uid);
		one(arena, e, when, out);
		holders(arena, e, out);
		count++;
	}
	rt_sink_printf(out, "%zu BPF program%s loaded\n", count, rt_plural(count));
}

/* ---- what was watched ---- */

/* Programs that are shown as one line: same code, same loader, same end. */
struct group {
	const struct rt_bpf_entry *first;
	size_t count, loaders;
	uint32_t last_pid;
	uint64_t least_ns, most_ns, sum_ns;
	size_t timed;
	uint64_t run_cnt, run_time_ns;
};

static bool same(const struct rt_bpf_entry *a, const struct rt_bpf_entry *b)
{
	return a->type == b->type && a->lost == b->lost && !strcmp(a->loader, b->loader) &&
	       !memcmp(a->tag, b->tag, sizeof(a->tag)) && !strcmp(a->name, b->name);
}

struct groups {
	RT_VEC(struct group) list;
};

static void group(struct groups *groups, const struct rt_bpf_entry *e)
{
	uint64_t lived = e->unload_ns > e->load_ns && e->load_ns ? e->unload_ns - e->load_ns : 0;
	struct group *g = NULL;

	for (size_t i = groups->list.len; i-- > 0 && !g && groups->list.len - i <= GROUPS_SEARCHED;) {
		if (same(groups->list.data[i].first, e))
			g = &groups->list.data[i];
	}
	if (!g) {
		g = rt_vec_add(&groups->list);
		if (!g)
			return;
		g->first = e;
		g->least_ns = UINT64_MAX;
	}
	g->count++;
	g->loaders += e->loader_pid != g->last_pid;
	g->last_pid = e->loader_pid;
	g->run_cnt += e->run_cnt;
	g->run_time_ns += e->run_time_ns;
	if (!lived)
		return;
	g->timed++;
	g->sum_ns += lived;
	g->least_ns = lived < g->least_ns ? lived : g->least_ns;
	g->most_ns = lived > g->most_ns ? lived : g->most_ns;
}

static void list_group(const struct group *g, struct rt_arena *arena, struct rt_sink *out)
{
	const struct rt_bpf_entry *e = g->first;

	const char *loader = rt_clean(arena, e->loader);

	rt_sink_printf(out, "  %5zu x %-15s %-26s %s  %s; by %s", g->count, rt_bpf_type_name(e->type),
		       name_text(arena, e), tag_text(arena, e->tag), code_text(arena, e),
		       g->loaders > 1 ? rt_format(arena, "%zu processes %s", g->loaders, loader)
				      : rt_format(arena, "%s[%u]", loader, e->loader_pid));
	if (g->timed == 1)
		rt_sink_printf(out, "; lived %s", rt_duration_text(arena, g->sum_ns));
	else if (g->timed)
		rt_sink_printf(out, "; lived %s (%s to %s)", rt_duration_text(arena, g->sum_ns / g->timed),
			       rt_duration_text(arena, g->least_ns), rt_duration_text(arena, g->most_ns));
	if (g->run_cnt)
		rt_sink_printf(out, "; ran %llu time%s, %s", (unsigned long long)g->run_cnt, rt_plural(g->run_cnt),
			       rt_duration_text(arena, g->run_time_ns));
	rt_sink_puts(out, "\n");
	if (g->count == 1)
		attached(arena, e, out);
	if (e->lost_text)
		rt_sink_printf(out, "      lost: %s\n", rt_clean(arena, e->lost_text));
}

static void list_state(const struct rt_bpf_listing *l, enum rt_bpf_state state, const char *title,
		       struct rt_arena *arena, struct rt_sink *out)
{
	bool any = false;

	for (size_t i = 0; i < l->catalog->entries.len; i++) {
		const struct rt_bpf_entry *e = l->catalog->entries.data[i];

		if (!rt_bpf_listed(l, e) || rt_bpf_state(e) != state)
			continue;
		if (!any)
			rt_sink_printf(out, "%s:\n", title);
		any = true;
		one(arena, e,
		    rt_format(arena, "; by %s[%u]%s", rt_clean(arena, e->loader), e->loader_pid,
			      e->load_ns > l->start_ns
				      ? rt_format(arena, " at +%s", rt_duration_text(arena, e->load_ns - l->start_ns))
				      : ""),
		    out);
		attached(arena, e, out);
		holders(arena, e, out);
		if (e->lost_text)
			rt_sink_printf(out, "      lost: %s\n", rt_clean(arena, e->lost_text));
	}
}

static void list_watched(const struct rt_bpf_listing *l, struct rt_arena *arena, struct rt_sink *out)
{
	struct groups groups = { 0 };
	size_t count[4] = { 0 }, all = 0, kept = 0;

	for (size_t i = 0; i < l->catalog->entries.len; i++) {
		const struct rt_bpf_entry *e = l->catalog->entries.data[i];

		if (!rt_bpf_listed(l, e))
			continue;
		all++;
		kept += !e->lost;
		count[rt_bpf_state(e)]++;
		if (rt_bpf_state(e) == RT_BPF_UNLOADED)
			group(&groups, e);
	}
	rt_sink_printf(
		out,
		"%zu BPF program%s loaded: %zu unloaded, %zu in use by the loader, %zu leaked; %zu of %zu kept whole\n",
		all, rt_plural(all), count[RT_BPF_UNLOADED], count[RT_BPF_IN_USE], count[RT_BPF_LEAKED], kept, all);
	list_state(l, RT_BPF_LEAKED, "leaked (still loaded, and its loader does not hold it)", arena, out);
	list_state(l, RT_BPF_IN_USE, "in use", arena, out);
	if (groups.list.len)
		rt_sink_puts(out, "unloaded:\n");
	for (size_t i = 0; i < groups.list.len; i++)
		list_group(&groups.list.data[i], arena, out);
	rt_vec_deinit(&groups.list);
}

void rt_bpf_list_text(const struct rt_bpf_listing *l, struct rt_sink *out)
{
	const struct rt_bpf_catalog *c = l->catalog;
	struct rt_arena arena = { 0 };

	if (l->watched)
		list_watched(l, &arena, out);
	else
		list_loaded(l, &arena, out);
	if (c->lost_unnamed)
		rt_sink_printf(out, "lost: %llu loads of which nothing is known\n",
			       (unsigned long long)c->lost_unnamed);
	if (c->other)
		rt_sink_printf(out, "not listed: %llu more programs\n", (unsigned long long)c->other);
	if (c->lost_unloads)
		rt_sink_printf(out, "lost: up to %llu times of unloads\n", (unsigned long long)c->lost_unloads);
	if (l->limit)
		rt_sink_printf(out, "note: %s\n", rt_clean(&arena, l->limit));
	rt_arena_deinit(&arena);
}
