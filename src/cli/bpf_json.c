// SPDX-License-Identifier: GPL-2.0-only
/* Schema reftrace-bpf-1: readers ignore keys that they do not know. */
#include "cli/bpf_list.h"
#include "report/json_writer.h"
#include "report/words.h"

static const char *state_word(const struct rt_bpf_entry *e)
{
	static const char *const words[] = { "unloaded", "in-use", "leaked", "loaded" };

	return words[rt_bpf_state(e)];
}

static void holder(struct rt_json *json, const struct rt_bpf_holder *h)
{
	static const char *const kinds[] = { "?", "fd", "pin", "link", "perf", "attached" };

	rt_json_begin_object(json, NULL);
	rt_json_string(json, "kind", kinds[h->kind]);
	if (h->pid) {
		rt_json_u64(json, "pid", h->pid);
		rt_json_string(json, "comm", h->comm);
		rt_json_u64(json, "fd", (uint64_t)h->fd);
	}
	if (h->link)
		rt_json_u64(json, "link", h->link);
	if (h->text)
		rt_json_string(json, h->kind == RT_BPF_HELD_PIN ? "path" : "target", h->text);
	rt_json_end_object(json);
}

static void lists(struct rt_json *json, const struct rt_bpf_entry *e)
{
	rt_json_begin_array(json, "maps");
	for (uint32_t i = 0; e->map_names && i < e->maps; i++) {
		rt_json_begin_object(json, NULL);
		rt_json_u64(json, "id", e->map_ids[i]);
		rt_json_string(json, "name", e->map_names[i]);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_begin_array(json, "attached");
	for (size_t i = 0; i < e->attached.len; i++)
		rt_json_string(json, NULL, e->attached.data[i].text);
	rt_json_end_array(json);
	rt_json_begin_array(json, "holders");
	for (size_t i = 0; i < e->holders.len; i++)
		holder(json, &e->holders.data[i]);
	rt_json_end_array(json);
	rt_json_bool(json, "held_unseen", e->held_unseen);
}

static void program(struct rt_json *json, struct rt_arena *arena, const struct rt_bpf_entry *e)
{
	const uint8_t *t = e->tag;

	rt_json_begin_object(json, NULL);
	rt_json_u64(json, "id", e->id);
	rt_json_string(json, "state", state_word(e));
	rt_json_string(json, "type", rt_bpf_type_name(e->type));
	rt_json_string(json, "name", rt_bpf_entry_name(e));
	rt_json_string(
		json, "tag",
		rt_format(arena, "%02x%02x%02x%02x%02x%02x%02x%02x", t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]));
	if (e->loader_pid) {
		rt_json_begin_object(json, "loader");
		rt_json_u64(json, "pid", e->loader_pid);
		rt_json_string(json, "comm", e->loader);
		rt_json_end_object(json);
	} else {
		rt_json_null(json, "loader");
	}
	rt_json_u64(json, "uid", e->uid);
	rt_json_u64(json, "load_ns", e->load_ns);
	rt_json_u64(json, "unload_ns", e->unload_ns);
	rt_json_u64(json, "loaded_boottime_ns", e->load_boot_ns);
	if (e->stats_known) {
		rt_json_u64(json, "run_count", e->run_cnt);
		rt_json_u64(json, "run_time_ns", e->run_time_ns);
	}
	rt_json_u64(json, "functions", e->functions);
	rt_json_u64(json, "jited_bytes", e->jited_bytes);
	rt_json_u64(json, "xlated_bytes", e->xlated_bytes);
	rt_json_u64(json, "lines", e->lines);
	rt_json_u64(json, "btf_id", e->btf);
	rt_json_string(json, "lost", e->lost_text);
	lists(json, e);
	rt_json_end_object(json);
}

void rt_bpf_list_json(const struct rt_bpf_listing *l, struct rt_sink *out)
{
	const struct rt_bpf_catalog *c = l->catalog;
	struct rt_arena arena = { 0 };
	struct rt_json json;
	size_t count = 0, lost = 0;

	rt_json_init(&json, out);
	rt_json_begin_object(&json, NULL);
	rt_json_string(&json, "schema", "reftrace-bpf-1");
	rt_json_begin_array(&json, "command");
	for (const char *const *word = l->command; word && *word; word++)
		rt_json_string(&json, NULL, *word);
	rt_json_end_array(&json);
	rt_json_begin_object(&json, "exit");
	rt_json_i64(&json, "program", l->program_status);
	rt_json_i64(&json, "reftrace", l->exit_status);
	rt_json_end_object(&json);
	rt_json_begin_array(&json, "programs");
	for (size_t i = 0; i < c->entries.len; i++) {
		if (!rt_bpf_listed(l, c->entries.data[i]))
			continue;
		program(&json, &arena, c->entries.data[i]);
		count++;
		lost += c->entries.data[i]->lost != 0;
	}
	rt_json_end_array(&json);
	rt_json_begin_object(&json, "trust");
	rt_json_u64(&json, "programs", count);
	rt_json_u64(&json, "kept", count - lost);
	rt_json_u64(&json, "lost", lost + c->lost_unnamed);
	rt_json_u64(&json, "lost_unload_times", c->lost_unloads);
	rt_json_u64(&json, "not_listed", c->other);
	rt_json_string(&json, "limit", l->limit);
	rt_json_end_object(&json);
	rt_json_end_object(&json);
	rt_arena_deinit(&arena);
}
