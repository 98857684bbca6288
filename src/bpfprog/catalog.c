// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/catalog.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "bpfprog/describe.h"
#include "bpfprog/holders.h"
#include "bpfprog/kernel.h"
#include "wire/bpfload.h"

static void holders_clear(struct rt_bpf_entry *e)
{
	for (size_t i = 0; i < e->holders.len; i++)
		free(e->holders.data[i].text);
	rt_vec_clear(&e->holders);
}

static void entry_destroy(struct rt_bpf_entry *e)
{
	holders_clear(e);
	rt_vec_deinit(&e->holders);
	for (size_t i = 0; i < e->attached.len; i++)
		free(e->attached.data[i].text);
	rt_vec_deinit(&e->attached);
	for (uint32_t i = 0; e->map_names && i < e->maps; i++)
		free(e->map_names[i]);
	free(e->map_names);
	free(e->map_ids);
	free(e->full_name);
	free(e->lost_text);
	free(e);
}

void rt_bpf_catalog_deinit(struct rt_bpf_catalog *c)
{
	for (size_t i = 0; i < c->entries.len; i++)
		entry_destroy(c->entries.data[i]);
	rt_vec_deinit(&c->entries);
	rt_map_deinit(&c->by_id);
	*c = (struct rt_bpf_catalog){ 0 };
}

struct rt_bpf_entry *rt_bpf_catalog_find(const struct rt_bpf_catalog *c, uint32_t id)
{
	uint64_t *index = rt_map_get(&c->by_id, rt_key_make(id, 0));

	return index ? c->entries.data[*index] : NULL;
}

struct rt_bpf_entry *rt_bpf_catalog_add(struct rt_bpf_catalog *c, uint32_t id)
{
	struct rt_bpf_entry *e = c->entries.len < RT_BPF_CATALOG_MAX ? calloc(1, sizeof(*e)) : NULL;
	uint64_t *index = e ? rt_map_put(&c->by_id, rt_key_make(id, 0), NULL) : NULL;

	if (!index || !rt_vec_push(&c->entries, e)) {
		if (index)
			rt_map_remove(&c->by_id, rt_key_make(id, 0), NULL);
		free(e);
		c->other++;
		return NULL;
	}
	*index = c->entries.len - 1;
	e->id = id;
	return e;
}

void rt_bpf_entry_attached(struct rt_bpf_entry *e, uint32_t link, const char *text)
{
	struct rt_bpf_attached *a;

	for (size_t i = 0; i < e->attached.len; i++) {
		a = &e->attached.data[i];
		if ((link && a->link == link) || (!link && !strcmp(a->text, text)))
			return;
	}
	a = e->attached.len < RT_BPF_TEXTS_MAX ? rt_vec_add(&e->attached) : NULL;
	if (!a)
		return;
	a->link = link;
	a->text = strdup(text);
	if (!a->text)
		e->attached.len--;
	e->extra_due = true;
}

const char *rt_bpf_entry_name(const struct rt_bpf_entry *e)
{
	return e->full_name ?: e->name;
}

char *rt_bpf_lost_words(uint32_t mask)
{
	static const char *const words[RT_ARRAY_NR] = {
		"everything",
		"functions",
		"JITed instructions",
		"translated instructions",
		"function infos",
		"line infos",
		"JITed line infos",
		"maps",
		"BTF",
		"what was read while it was closed",
	};
	char *text = strdup("");

	for (uint32_t i = 0; text && i < RT_ARRAY_NR; i++) {
		char *longer = NULL;

		if (!(mask >> i & 1))
			continue;
		if (asprintf(&longer, "%s%s%s", text, *text ? ", " : "", words[i]) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	return text;
}

/* A program that was there before us. false: it is gone. */
static bool describe(struct rt_bpf_catalog *c, uint32_t id)
{
	_cleanup_(rt_bpf_dump_deinit) struct rt_bpf_dump dump = { 0 };
	struct rt_error *err = rt_bpf_dump_read(id, &dump);
	struct rt_bpf_entry *e = err ? NULL : rt_bpf_catalog_add(c, id);

	rt_error_free(err);
	if (!e)
		return false;
	e->before = true;
	rt_bpf_entry_describe(e, &dump.info, (struct rt_bytes){ 0 }, NULL);
	return true;
}

static void note_stats(struct rt_bpf_entry *e, const struct bpf_prog_info *info)
{
	e->run_time_ns = info->run_time_ns;
	e->run_cnt = info->run_cnt;
	e->stats_known |= info->run_cnt != 0;
}

/* Asks for one program, and adds it when e is NULL; returns false when it is gone. */
static bool ask(struct rt_bpf_catalog *c, uint32_t id, struct rt_bpf_entry *e)
{
	_cleanup_close_ int fd = rt_bpf_prog_open(id);
	struct bpf_prog_info info;

	if (fd < 0 || !rt_bpf_prog_info(fd, &info))
		return fd != -ENOENT;
	if (e && memcmp(e->tag, info.tag, sizeof(e->tag)) != 0 && !e->lost)
		return false; /* the id has been given to another program */
	if (!e) {
		if (!describe(c, id))
			return true;
		e = rt_bpf_catalog_find(c, id);
	}
	note_stats(e, &info);
	return true;
}

struct rt_error *rt_bpf_catalog_alive(struct rt_bpf_catalog *c)
{
	for (size_t i = 0; i < c->entries.len; i++) {
		struct rt_bpf_entry *e = c->entries.data[i];

		if (!e->gone && !ask(c, e->id, e))
			e->gone = true;
	}
	return NULL;
}

struct rt_error *rt_bpf_catalog_refresh(struct rt_bpf_catalog *c)
{
	uint32_t id = 0;

	RT_TRY(rt_bpf_catalog_alive(c));
	while (!bpf_prog_get_next_id(id, &id)) {
		struct rt_bpf_entry *e = rt_bpf_catalog_find(c, id);

		if (!e || e->gone)
			ask(c, id, NULL);
	}
	if (errno != ENOENT)
		return rt_bpf_refused(errno, "cannot ask for BPF programs");
	for (size_t i = 0; i < c->entries.len; i++)
		holders_clear(c->entries.data[i]);
	return rt_bpf_holders_find(c);
}
