/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The findings JSON, "reftrace-findings-1" (docs/findings.schema.json): for
 * programs. Numbers are exact; addresses are strings, because readers that keep
 * numbers as doubles would round them.
 */
#include <string.h>
#include <sys/wait.h>

#include "report/json_writer.h"
#include "report/report.h"
#include "report/suppress.h"
#include "report/words.h"

static void strings(struct rt_json *json, const char *key, const char *const *texts, size_t count)
{
	rt_json_begin_array(json, key);
	for (size_t i = 0; i < count; i++)
		rt_json_string(json, NULL, texts[i]);
	rt_json_end_array(json);
}

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void rt_json_frame(struct rt_json *json, const struct rt_frame *frame)
{
	static const char digit[] = "0123456789abcdef";
	char id[2 * RT_BUILD_ID_MAX + 1];
	size_t size = frame->build_id_size <= RT_BUILD_ID_MAX ? frame->build_id_size : RT_BUILD_ID_MAX;

	for (size_t i = 0; i < size; i++) {
		id[2 * i] = digit[frame->build_id[i] >> 4];
		id[2 * i + 1] = digit[frame->build_id[i] & 15];
	}
	id[2 * size] = 0;
	rt_json_string(json, "function", frame->function);
	rt_json_string(json, "file", frame->file);
	if (frame->line)
		rt_json_u64(json, "line", frame->line);
	else
		rt_json_null(json, "line");
	rt_json_string(json, "module", frame->module);
	if (frame->module || frame->address)
		rt_json_hex(json, "offset", frame->address);
	else
		rt_json_null(json, "offset");
	if (frame->entry)
		rt_json_hex(json, "start", frame->entry);
	else
		rt_json_null(json, "start");
	rt_json_string(json, "build_id", size ? id : NULL);
	rt_json_bool(json, "inlined", frame->inlined);
}

static void history(struct rt_json *json, const struct rt_finding *finding, uint64_t start_ns)
{
	rt_json_begin_array(json, "history");
	for (size_t i = 0; i < finding->history_count; i++) {
		const struct rt_history *h = &finding->history[i];

		rt_json_begin_object(json, NULL);
		rt_json_u64(json, "time_ns", h->time_ns > start_ns ? h->time_ns - start_ns : 0);
		rt_json_u64(json, "tid", h->tid);
		rt_json_string(json, "op", rt_op_name(h->op));
		rt_json_i64(json, "delta", h->delta);
		if (h->count_after == INT64_MIN)
			rt_json_null(json, "count");
		else
			rt_json_i64(json, "count", h->count_after);
		rt_json_string(json, "function", h->site.function);
		rt_json_string(json, "file", h->site.file);
		rt_json_u64(json, "line", h->site.line);
		rt_json_string(json, "api", h->api);
		rt_json_bool(json, "gap_before", h->gap_before);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void balance(struct rt_json *json, const struct rt_finding *finding)
{
	rt_json_begin_array(json, "balance");
	for (size_t i = 0; i < finding->balance_count; i++) {
		const struct rt_balance *b = &finding->balance[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "function", b->site.function);
		rt_json_string(json, "file", b->site.file);
		rt_json_begin_array(json, "lines");
		for (size_t n = 0; n < sizeof(b->lines) / sizeof(*b->lines) && b->lines[n]; n++)
			rt_json_u64(json, NULL, b->lines[n]);
		rt_json_end_array(json);
		rt_json_u64(json, "new", b->news);
		rt_json_u64(json, "get", b->gets);
		rt_json_u64(json, "put", b->puts);
		rt_json_i64(json, "left", b->left);
		rt_json_bool(json, "guilty", b->guilty);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void stacks(struct rt_json *json, const struct rt_finding *finding)
{
	rt_json_begin_array(json, "stacks");
	for (size_t i = 0; i < finding->stack_count; i++) {
		const struct rt_trace_stack *s = &finding->stacks[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "label", s->label);
		rt_json_begin_array(json, "frames");
		for (size_t n = 0; n < s->count; n++) {
			rt_json_begin_object(json, NULL);
			rt_json_frame(json, &s->frames[n]);
			rt_json_end_object(json);
		}
		rt_json_end_array(json);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static bool known(const struct rt_frame *frame)
{
	return frame->function || frame->address;
}

static void alternatives(struct rt_json *json, const struct rt_finding *finding)
{
	rt_json_begin_array(json, "alternatives");
	for (size_t i = 0; i < finding->alternative_count; i++) {
		rt_json_begin_object(json, NULL);
		rt_json_number(json, "confidence", finding->alternatives[i].confidence);
		rt_json_frame(json, &finding->alternatives[i].frame);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void generated(struct rt_json *json, const struct rt_finding *finding)
{
	struct rt_arena arena = { 0 };

	rt_json_string(json, "suppression", rt_suppression_for(&arena, finding));
	rt_arena_deinit(&arena);
}

/* The members of a finding. */
static void finding_members(struct rt_json *json, const struct rt_finding *finding, uint64_t start_ns)
{
	rt_json_string(json, "id", finding->id);
	rt_json_string(json, "kind", rt_finding_word(finding->kind));
	rt_json_string(json, "type", finding->type);
	rt_json_string(json, "class", finding->klass);
	rt_json_u64(json, "objects", finding->objects);
	rt_json_u64(json, "of", finding->of);
	rt_json_u64(json, "references", finding->references);
	rt_json_u64(json, "bytes", finding->bytes);
	rt_json_number(json, "confidence", finding->confidence);
	rt_json_bool(json, "incomplete", finding->incomplete);
	rt_json_begin_array(json, "pids");
	for (size_t i = 0; i < finding->pid_count; i++)
		rt_json_u64(json, NULL, RT_PID_OF(finding->pids[i]));
	rt_json_end_array(json);
	rt_json_begin_object(json, "guilty");
	rt_json_string(json, "role", rt_role_word(finding->role));
	rt_json_frame(json, &finding->guilty);
	rt_json_end_object(json);
	if (known(&finding->taken_by)) {
		rt_json_begin_object(json, "taken_by");
		rt_json_frame(json, &finding->taken_by);
		rt_json_u64(json, "taken", finding->taken_count);
		rt_json_u64(json, "closed", finding->taken_closed);
		rt_json_end_object(json);
	} else {
		rt_json_null(json, "taken_by");
	}
	alternatives(json, finding);
	rt_json_begin_array(json, "skips");
	for (size_t i = 0; i < finding->skip_count; i++) {
		rt_json_begin_object(json, NULL);
		rt_json_u64(json, "line", finding->skips[i].line);
		rt_json_u64(json, "to", finding->skips[i].to);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_begin_array(json, "evidence");
	for (size_t i = 0; i < finding->evidence_count; i++)
		rt_json_string(json, NULL, finding->evidence[i]);
	rt_json_end_array(json);
	rt_json_u64(json, "first_object", finding->first_object);
	rt_json_hex(json, "first_address", finding->first_address);
	rt_json_u64(json, "first_time_ns", finding->first_time_ns > start_ns ? finding->first_time_ns - start_ns : 0);
	history(json, finding, start_ns);
	balance(json, finding);
	stacks(json, finding);
}

static void findings(struct rt_json *json, const char *key, const struct rt_finding *of, size_t count,
		     const struct rt_verdict *verdict, bool generate)
{
	rt_json_begin_array(json, key);
	for (size_t i = 0; i < count; i++) {
		rt_json_begin_object(json, NULL);
		finding_members(json, &of[i], verdict->start_ns);
		if (generate)
			generated(json, &of[i]);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void suppressed(struct rt_json *json, const struct rt_verdict *verdict, const struct rt_run_info *run)
{
	rt_json_begin_array(json, "suppressed");
	for (size_t i = 0; i < run->suppressed_count; i++) {
		const struct rt_suppressed *s = &run->suppressed[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "rule", s->rule->name);
		rt_json_string(json, "rule_file", s->rule->file);
		rt_json_u64(json, "rule_line", s->rule->line);
		rt_json_bool(json, "suspect", s->suspect);
		finding_members(json, s->finding, verdict->start_ns);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_begin_array(json, "suppressions");
	for (size_t i = 0; run->suppressions && i < run->suppressions->rules.len; i++) {
		const struct rt_rule *rule = &run->suppressions->rules.data[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "name", rule->name);
		rt_json_string(json, "file", rule->file);
		rt_json_u64(json, "line", rule->line);
		rt_json_bool(json, "applies", rule->kinds != 0);
		rt_json_u64(json, "findings", rule->findings);
		rt_json_u64(json, "suspects", rule->suspects);
		rt_json_u64(json, "objects", rule->objects);
		rt_json_u64(json, "partly", rule->partly);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void head(struct rt_json *json, const struct rt_verdict *verdict, const struct rt_run_info *run)
{
	rt_json_string(json, "schema", "reftrace-findings-1");
	rt_json_begin_array(json, "command");
	for (size_t i = 0; run->command && run->command[i]; i++)
		rt_json_string(json, NULL, run->command[i]);
	rt_json_end_array(json);
	rt_json_string(json, "engine", run->engine);
	strings(json, "unnamed", run->unnamed, run->unnamed_count);
	rt_json_string(json, "pairs", run->pairs && !strncmp(run->pairs, "pairs: ", 7) ? run->pairs + 7 : run->pairs);
	rt_json_string(json, "recording", run->recording);
	if (run->moment)
		rt_json_u64(json, "look", run->moment);
	else
		rt_json_null(json, "look");
	rt_json_u64(json, "duration_ns", verdict->end_ns > verdict->start_ns ? verdict->end_ns - verdict->start_ns : 0);
	rt_json_begin_object(json, "exit");
	if (run->program_ended)
		rt_json_i64(json, "program", shell_status(run->program_status));
	else
		rt_json_null(json, "program");
	rt_json_i64(json, "reftrace", run->exit_status);
	rt_json_end_object(json);
	rt_json_begin_array(json, "processes");
	for (size_t i = 0; i < verdict->process_count; i++) {
		const struct rt_process_end *p = &verdict->processes[i];

		rt_json_begin_object(json, NULL);
		rt_json_u64(json, "pid", RT_PID_OF(p->pid));
		rt_json_string(json, "exe", p->exe ? p->exe : "");
		if (p->ended)
			rt_json_i64(json, "status", shell_status(p->status));
		else
			rt_json_null(json, "status");
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

enum { RATE_DECIMALS = 15 }; /* one of 2^15, to the last digit */

static void sampling(struct rt_json *json, const struct rt_sampling *s)
{
	if (!s->on) {
		rt_json_null(json, "sample");
		return;
	}
	rt_json_begin_object(json, "sample");
	rt_json_bool(json, "partial", s->partial);
	rt_json_decimals(json, "rate", s->rate, RATE_DECIMALS);
	rt_json_decimals(json, "lowest", s->lowest, RATE_DECIMALS);
	rt_json_u64(json, "passed", s->passed);
	rt_json_u64(json, "left", s->left);
	if (s->governed) {
		rt_json_decimals(json, "limit", s->limit, RATE_DECIMALS);
		rt_json_number(json, "overhead", s->cost);
		rt_json_u64(json, "event_ns", s->event_ns);
		rt_json_u64(json, "passed_ns", s->passed_ns);
	}
	rt_json_end_object(json);
}

static void trust_object(struct rt_json *json, const struct rt_trust *trust)
{
	rt_json_begin_object(json, "trust");
	rt_json_bool(json, "complete", trust->complete);
	rt_json_bool(json, "nothing_seen", trust->nothing_seen);
	rt_json_u64(json, "events", trust->events);
	rt_json_u64(json, "lost", trust->lost);
	rt_json_u64(json, "points", trust->points);
	rt_json_u64(json, "points_hit", trust->points_hit);
	strings(json, "unarmed", trust->unarmed, trust->unarmed_count);
	rt_json_string(json, "unwind", trust->unwind);
	rt_json_u64(json, "incomplete_objects", trust->incomplete_objects);
	strings(json, "notes", trust->notes, trust->note_count);
	strings(json, "limits", trust->limits, trust->limit_count);
	sampling(json, &trust->sampling);
	rt_json_end_object(json);
}

static void tallies(struct rt_json *json, const struct rt_verdict *verdict)
{
	rt_json_begin_array(json, "tallies");
	for (size_t i = 0; i < verdict->tally_count; i++) {
		const struct rt_tally_group *g = &verdict->tallies[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "type", g->type);
		rt_json_u64(json, "objects", g->objects);
		rt_json_i64(json, "balance", g->balance);
		rt_json_bool(json, "made", g->made);
		rt_json_bool(json, "several", g->several);
		rt_json_u64(json, "others", g->others);
		rt_json_hex(json, "first_address", g->first_address);
		rt_json_begin_array(json, "places");
		for (size_t k = 0; k < g->row_count; k++) {
			rt_json_begin_object(json, NULL);
			rt_json_string(json, "op", rt_op_name(g->rows[k].op));
			rt_json_string(json, "api", g->rows[k].api);
			rt_json_u64(json, "events", g->rows[k].events);
			rt_json_u64(json, "in_all", g->rows[k].in_all);
			rt_json_frame(json, &g->rows[k].site);
			rt_json_end_object(json);
		}
		rt_json_end_array(json);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void types(struct rt_json *json, const struct rt_verdict *verdict)
{
	rt_json_begin_array(json, "types");
	for (size_t i = 0; i < verdict->type_count; i++) {
		const struct rt_type_count *t = &verdict->types[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "name", t->name);
		rt_json_string(json, "class", NULL);
		rt_json_u64(json, "objects", t->incarnations);
		rt_json_u64(json, "new", t->news);
		rt_json_u64(json, "get", t->gets);
		rt_json_u64(json, "put", t->puts);
		rt_json_u64(json, "free", t->frees);
		rt_json_u64(json, "use", t->uses);
		rt_json_u64(json, "live", t->live);
		rt_json_u64(json, "swept", t->swept);
		rt_json_u64(json, "in_findings", t->leaked);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void classes(struct rt_json *json, const struct rt_verdict *verdict)
{
	rt_json_begin_array(json, "classes");
	for (size_t i = 0; i < verdict->class_count; i++) {
		const struct rt_class_count *c = &verdict->classes[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "type", c->type);
		rt_json_string(json, "class", c->name);
		rt_json_u64(json, "objects", c->incarnations);
		rt_json_u64(json, "live", c->live);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void points(struct rt_json *json, const struct rt_verdict *verdict)
{
	rt_json_begin_array(json, "points");
	for (size_t i = 0; i < verdict->point_count; i++) {
		const struct rt_point_count *p = &verdict->points[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "type", p->type);
		rt_json_string(json, "op", rt_op_name(p->op));
		rt_json_string(json, "function", p->function);
		rt_json_u64(json, "events", p->events);
		if (p->hits == UINT64_MAX)
			rt_json_null(json, "hits");
		else
			rt_json_u64(json, "hits", p->hits);
		rt_json_u64(json, "dropped", p->dropped);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void sites(struct rt_json *json, const struct rt_verdict *verdict)
{
	rt_json_begin_array(json, "sites");
	for (size_t i = 0; i < verdict->site_count; i++) {
		const struct rt_site_count *s = &verdict->sites[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "type", s->type);
		rt_json_string(json, "op", rt_op_name(s->op));
		rt_json_string(json, "api", s->api);
		rt_json_u64(json, "events", s->events);
		rt_json_frame(json, &s->site);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

struct rt_error *rt_report_json(const struct rt_verdict *verdict, const struct rt_run_info *run, struct rt_sink *sink)
{
	struct rt_json json;

	rt_json_init(&json, sink);
	rt_json_begin_object(&json, NULL);
	head(&json, verdict, run);
	trust_object(&json, &verdict->trust);
	if (verdict->counted)
		tallies(&json, verdict);
	types(&json, verdict);
	classes(&json, verdict);
	findings(&json, "findings", verdict->findings, verdict->finding_count, verdict, run->generate);
	findings(&json, "suspects", verdict->suspects, verdict->suspect_count, verdict, false);
	suppressed(&json, verdict, run);
	rt_json_begin_array(&json, "alive");
	for (size_t i = 0; i < verdict->alive_count; i++) {
		rt_json_begin_object(&json, NULL);
		rt_json_string(&json, "type", verdict->alive[i].type);
		rt_json_string(&json, "class", verdict->alive[i].klass);
		rt_json_u64(&json, "objects", verdict->alive[i].objects);
		rt_json_string(&json, "reason", verdict->alive[i].reason);
		rt_json_end_object(&json);
	}
	rt_json_end_array(&json);
	points(&json, verdict);
	sites(&json, verdict);
	rt_json_end_object(&json);
	return rt_sink_end(sink);
}
