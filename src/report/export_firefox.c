/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Firefox profiler's processed profile, in version 49 of its format, which
 * profiler.firefox.com upgrades on loading (docs-developer/CHANGELOG-formats.md there):
 * a thread for each thread that has samples; for each type of objects one whose samples are
 * the open references, weighted, and whose markers are the lives.
 */
#include "report/export_parts.h"
#include "report/json_writer.h"
#include "report/words.h"

enum { FORMAT_VERSION = 49, GECKO_VERSION = 24, MARKER_INTERVAL = 1, INTERVAL_MS = 1, DEPTH_MAX = 4096 };
#define NOBODY UINT32_MAX

/* What one thread's tables hold: numbers of the export, in the order of the table. */
struct table {
	RT_VEC(uint32_t) items;
	uint32_t *place; /* by number: index in items + 1 */
};

struct firefox {
	struct rt_export *e;
	struct rt_json json;
	struct rt_arena arena;
	struct table nodes, frames, strings;
	uint64_t threads;
	bool nomem;
};

struct row {
	double time;
	uint32_t node;
	int64_t weight;
};

/* Index of number in the table, where it is made when new. */
static uint32_t index_of(struct firefox *f, struct table *t, uint32_t number)
{
	if (!t->place[number]) {
		if (!rt_vec_push(&t->items, number)) {
			f->nomem = true;
			return 0;
		}
		t->place[number] = (uint32_t)t->items.len;
	}
	return t->place[number] - 1;
}

static void table_clear(struct table *t)
{
	for (size_t i = 0; i < t->items.len; i++)
		t->place[t->items.data[i]] = 0;
	rt_vec_clear(&t->items);
}

static void table_deinit(struct table *t)
{
	rt_vec_deinit(&t->items);
	free(t->place);
}

/* The path and its callers, callers first. */
static void use_stack(struct firefox *f, uint32_t node)
{
	uint32_t above[DEPTH_MAX];
	unsigned n = 0;

	for (; node && !f->nodes.place[node] && n < DEPTH_MAX; node = rt_ex_node(f->e, node)->parent)
		above[n++] = node;
	while (n--) {
		const struct rt_ex_frame *frame = rt_ex_frame(f->e, rt_ex_node(f->e, above[n])->frame);

		index_of(f, &f->nodes, above[n]);
		index_of(f, &f->frames, rt_ex_node(f->e, above[n])->frame);
		if (frame->name)
			index_of(f, &f->strings, frame->name);
		if (frame->file)
			index_of(f, &f->strings, frame->file);
	}
}

/* Milliseconds since the first event. */
static double time_of(const struct firefox *f, uint64_t ns)
{
	return ns > f->e->first_ns ? (double)(ns - f->e->first_ns) / 1e6 : 0;
}

static void nulls(struct firefox *f, const char *key, size_t n)
{
	rt_json_begin_array(&f->json, key);
	while (n--)
		rt_json_null(&f->json, NULL);
	rt_json_end_array(&f->json);
}

static void zeros(struct firefox *f, const char *key, size_t n)
{
	rt_json_begin_array(&f->json, key);
	while (n--)
		rt_json_u64(&f->json, NULL, 0);
	rt_json_end_array(&f->json);
}

/* One number for each frame. */
#define COLUMN(key, expression) \
	do { \
		rt_json_begin_array(&f->json, key); \
		for (size_t i = 0; i < f->frames.items.len; i++) { \
			const struct rt_ex_frame *frame = rt_ex_frame(f->e, f->frames.items.data[i]); \
			(void)frame; \
			expression; \
		} \
		rt_json_end_array(&f->json); \
	} while (0)

static void number_or_null(struct firefox *f, uint64_t value)
{
	if (value)
		rt_json_u64(&f->json, NULL, value);
	else
		rt_json_null(&f->json, NULL);
}

/*
 * A function for each frame: the profiler merges by name where it shows functions. Behind the strings there is
 * one for each frame, for those without a name.
 */
static void frame_tables(struct firefox *f)
{
	size_t n = f->frames.items.len, strings = f->strings.items.len;

	rt_json_begin_object(&f->json, "frameTable");
	rt_json_u64(&f->json, "length", n);
	/* -1: names are final, nobody shall look for symbols */
	COLUMN("address", rt_json_i64(&f->json, NULL, -1));
	zeros(f, "inlineDepth", n);
	COLUMN("category", rt_json_u64(&f->json, NULL, frame->kernel));
	zeros(f, "subcategory", n);
	COLUMN("func", rt_json_u64(&f->json, NULL, i));
	nulls(f, "nativeSymbol", n);
	nulls(f, "innerWindowID", n);
	nulls(f, "implementation", n);
	COLUMN("line", number_or_null(f, frame->line));
	nulls(f, "column", n);
	nulls(f, "optimizations", n);
	rt_json_end_object(&f->json);
	rt_json_begin_object(&f->json, "funcTable");
	rt_json_u64(&f->json, "length", n);
	COLUMN("name", rt_json_u64(&f->json, NULL, frame->name ? index_of(f, &f->strings, frame->name) : strings + i));
	COLUMN("isJS", rt_json_bool(&f->json, NULL, false));
	COLUMN("relevantForJS", rt_json_bool(&f->json, NULL, false));
	COLUMN("resource", rt_json_i64(&f->json, NULL, -1));
	COLUMN("fileName", if (frame->file) rt_json_u64(&f->json, NULL, index_of(f, &f->strings, frame->file));
	       else rt_json_null(&f->json, NULL));
	nulls(f, "lineNumber", n);
	nulls(f, "columnNumber", n);
	rt_json_end_object(&f->json);
}

static void stack_table(struct firefox *f)
{
	size_t n = f->nodes.items.len;

	rt_json_begin_object(&f->json, "stackTable");
	rt_json_u64(&f->json, "length", n);
	rt_json_begin_array(&f->json, "prefix");
	for (size_t i = 0; i < n; i++) {
		uint32_t parent = rt_ex_node(f->e, f->nodes.items.data[i])->parent;

		if (parent)
			rt_json_u64(&f->json, NULL, index_of(f, &f->nodes, parent));
		else
			rt_json_null(&f->json, NULL);
	}
	rt_json_end_array(&f->json);
	rt_json_begin_array(&f->json, "frame");
	for (size_t i = 0; i < n; i++)
		rt_json_u64(&f->json, NULL, index_of(f, &f->frames, rt_ex_node(f->e, f->nodes.items.data[i])->frame));
	rt_json_end_array(&f->json);
	rt_json_begin_array(&f->json, "category");
	for (size_t i = 0; i < n; i++)
		rt_json_u64(&f->json, NULL, rt_ex_frame(f->e, rt_ex_node(f->e, f->nodes.items.data[i])->frame)->kernel);
	rt_json_end_array(&f->json);
	zeros(f, "subcategory", n);
	rt_json_end_object(&f->json);
}

static void empty_tables(struct firefox *f)
{
	rt_json_begin_object(&f->json, "resourceTable");
	rt_json_u64(&f->json, "length", 0);
	zeros(f, "lib", 0);
	zeros(f, "name", 0);
	zeros(f, "host", 0);
	zeros(f, "type", 0);
	rt_json_end_object(&f->json);
	rt_json_begin_object(&f->json, "nativeSymbols");
	rt_json_u64(&f->json, "length", 0);
	zeros(f, "address", 0);
	zeros(f, "functionSize", 0);
	zeros(f, "libIndex", 0);
	zeros(f, "name", 0);
	rt_json_end_object(&f->json);
	zeros(f, "pausedRanges", 0);
}

static void samples(struct firefox *f, const struct row *rows, size_t n)
{
	rt_json_begin_object(&f->json, "samples");
	rt_json_u64(&f->json, "length", n);
	rt_json_string(&f->json, "weightType", "samples");
	rt_json_begin_array(&f->json, "stack");
	for (size_t i = 0; i < n; i++) {
		if (rows[i].node)
			rt_json_u64(&f->json, NULL, index_of(f, &f->nodes, rows[i].node));
		else
			rt_json_null(&f->json, NULL);
	}
	rt_json_end_array(&f->json);
	rt_json_begin_array(&f->json, "time");
	for (size_t i = 0; i < n; i++)
		rt_json_number(&f->json, NULL, rows[i].time);
	rt_json_end_array(&f->json);
	rt_json_begin_array(&f->json, "weight");
	for (size_t i = 0; i < n; i++)
		rt_json_i64(&f->json, NULL, rows[i].weight);
	rt_json_end_array(&f->json);
	rt_json_end_object(&f->json);
}

static void marker_data(struct firefox *f, const struct rt_ex_life *life)
{
	uint32_t node = life->steps.len ? life->steps.data[0].node : 0;

	rt_json_begin_object(&f->json, NULL);
	rt_json_string(&f->json, "type", "life");
	rt_json_u64(&f->json, "serial", life->serial);
	rt_json_hex(&f->json, "address", life->object);
	rt_json_u64(&f->json, "open", life->open.len);
	rt_json_u64(&f->json, "steps", life->steps.len + life->left_out);
	if (node) {
		rt_json_begin_object(&f->json, "cause");
		rt_json_number(&f->json, "time", time_of(f, life->birth_ns));
		rt_json_u64(&f->json, "stack", index_of(f, &f->nodes, node));
		rt_json_end_object(&f->json);
	}
	rt_json_end_object(&f->json);
}

enum column { CATEGORY, DATA, END, NAME, PHASE, START };

static void marker_column(struct firefox *f, uint32_t class, const char *key, enum column column)
{
	rt_json_begin_array(&f->json, key);
	for (size_t i = 0; i < f->e->lives.len; i++) {
		const struct rt_ex_life *life = f->e->lives.data[i];

		if (life->class != class)
			continue;
		if (column == CATEGORY)
			rt_json_u64(&f->json, NULL, 0);
		else if (column == DATA)
			marker_data(f, life);
		else if (column == END)
			rt_json_number(&f->json, NULL, time_of(f, life->ended ? life->end_ns : f->e->last_ns));
		else if (column == NAME)
			rt_json_u64(&f->json, NULL, index_of(f, &f->strings, f->e->classes.data[class].name));
		else if (column == PHASE)
			rt_json_u64(&f->json, NULL, MARKER_INTERVAL);
		else
			rt_json_number(&f->json, NULL, time_of(f, life->birth_ns));
	}
	rt_json_end_array(&f->json);
}

/* Lives of one class as markers; class NOBODY: none. */
static void markers(struct firefox *f, uint32_t class)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->e->lives.len; i++)
		n += f->e->lives.data[i]->class == class;
	rt_json_begin_object(&f->json, "markers");
	rt_json_u64(&f->json, "length", n);
	marker_column(f, class, "category", CATEGORY);
	marker_column(f, class, "data", DATA);
	marker_column(f, class, "endTime", END);
	marker_column(f, class, "name", NAME);
	marker_column(f, class, "phase", PHASE);
	marker_column(f, class, "startTime", START);
	rt_json_end_object(&f->json);
}

static void collect(struct firefox *f, const struct row *rows, size_t count, uint32_t class)
{
	table_clear(&f->nodes);
	table_clear(&f->frames);
	table_clear(&f->strings);
	for (size_t i = 0; i < count; i++)
		use_stack(f, rows[i].node);
	if (class == NOBODY)
		return;
	index_of(f, &f->strings, f->e->classes.data[class].name);
	for (size_t i = 0; i < f->e->lives.len; i++) {
		const struct rt_ex_life *life = f->e->lives.data[i];

		if (life->class == class && life->steps.len)
			use_stack(f, life->steps.data[0].node);
	}
}

static void thread(struct firefox *f, uint32_t pid, const char *tid, const char *name, const struct row *rows,
		   size_t count, uint32_t class)
{
	rt_json_begin_object(&f->json, NULL);
	rt_json_string(&f->json, "name", name);
	rt_json_bool(&f->json, "isMainThread", !f->threads++);
	rt_json_string(&f->json, "processType", "default");
	rt_json_string(&f->json, "processName", rt_ex_title(f->e, &f->arena));
	rt_json_string(&f->json, "pid", rt_format(&f->arena, "%u", RT_PID_OF(pid)));
	rt_json_string(&f->json, "tid", tid);
	rt_json_u64(&f->json, "registerTime", 0);
	rt_json_null(&f->json, "unregisterTime");
	rt_json_u64(&f->json, "processStartupTime", 0);
	rt_json_null(&f->json, "processShutdownTime");
	/* each thread carries its own tables: that is the format */
	collect(f, rows, count, class);
	frame_tables(f);
	stack_table(f);
	empty_tables(f);
	samples(f, rows, count);
	markers(f, class);
	rt_json_begin_array(&f->json, "stringArray");
	for (size_t i = 0; i < f->strings.items.len; i++)
		rt_json_string(&f->json, NULL, rt_ex_text(f->e, f->strings.items.data[i]));
	for (size_t i = 0; i < f->frames.items.len; i++) {
		const struct rt_ex_frame *frame = rt_ex_frame(f->e, f->frames.items.data[i]);

		rt_json_string(&f->json, NULL, frame->name ? "" : rt_ex_function(f->e, &f->arena, frame));
	}
	rt_json_end_array(&f->json);
	rt_json_end_object(&f->json);
	rt_arena_deinit(&f->arena);
}

static int by_thread(const void *a, const void *b)
{
	const struct rt_ex_sample *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static void sample_threads(struct firefox *f)
{
	struct rt_export *e = f->e;
	RT_VEC(struct row) rows = { 0 };

	if (e->samples.len)
		qsort(e->samples.data, e->samples.len, sizeof(*e->samples.data), by_thread);
	for (size_t i = 0, next; i < e->samples.len; i = next) {
		const struct rt_ex_sample *first = &e->samples.data[i];

		rt_vec_clear(&rows);
		for (next = i; next < e->samples.len; next++) {
			const struct rt_ex_sample *s = &e->samples.data[next];

			if (s->pid != first->pid || s->tid != first->tid)
				break;
			f->nomem |= !rt_vec_push(&rows, ((struct row){ time_of(f, s->time_ns), s->node, 1 }));
		}
		thread(f, first->pid, rt_format(&f->arena, "%u", first->tid), rt_ex_text(e, first->comm), rows.data,
		       rows.len, NOBODY);
	}
	rt_vec_deinit(&rows);
}

static void type_thread(struct firefox *f, uint32_t class)
{
	struct rt_export *e = f->e;
	RT_VEC(struct row) rows = { 0 };
	uint32_t pid = 0;

	for (size_t i = 0; i < e->counts.len; i++) {
		const struct rt_ex_count *c = &e->counts.data[i];

		/* they are open at the end: that is their time */
		if (c->class == class && c->value[RT_EX_OPEN] > 0)
			f->nomem |= !rt_vec_push(
				&rows, ((struct row){ time_of(f, e->last_ns), c->node, c->value[RT_EX_OPEN] }));
	}
	for (size_t i = 0; i < e->lives.len && !pid; i++)
		pid = e->lives.data[i]->class == class ? e->lives.data[i]->pid : 0;
	if (rows.len || pid)
		thread(f, pid, rt_format(&f->arena, "type %u", class),
		       rt_format(&f->arena, "open references: %s",
				 rt_clean(&f->arena, rt_ex_text(e, e->classes.data[class].name))),
		       rows.data, rows.len, class);
	rt_vec_deinit(&rows);
}

static void field(struct firefox *f, const char *key, const char *label, const char *format)
{
	rt_json_begin_object(&f->json, NULL);
	rt_json_string(&f->json, "key", key);
	rt_json_string(&f->json, "label", label);
	rt_json_string(&f->json, "format", format);
	rt_json_end_object(&f->json);
}

static void category(struct firefox *f, const char *name, const char *color)
{
	rt_json_begin_object(&f->json, NULL);
	rt_json_string(&f->json, "name", name);
	rt_json_string(&f->json, "color", color);
	rt_json_begin_array(&f->json, "subcategories");
	rt_json_string(&f->json, NULL, "Other");
	rt_json_end_array(&f->json);
	rt_json_end_object(&f->json);
}

static void marker_schema(struct firefox *f)
{
	rt_json_begin_array(&f->json, "markerSchema");
	rt_json_begin_object(&f->json, NULL);
	rt_json_string(&f->json, "name", "life");
	rt_json_string(&f->json, "tooltipLabel", "{marker.name} #{marker.data.serial}");
	rt_json_string(&f->json, "tableLabel", "#{marker.data.serial} {marker.data.address}");
	rt_json_begin_array(&f->json, "display");
	rt_json_string(&f->json, NULL, "marker-chart");
	rt_json_string(&f->json, NULL, "marker-table");
	rt_json_end_array(&f->json);
	rt_json_begin_array(&f->json, "data");
	field(f, "serial", "Serial", "integer");
	field(f, "address", "Address", "string");
	field(f, "open", "Open references", "integer");
	field(f, "steps", "Steps", "integer");
	rt_json_end_array(&f->json);
	rt_json_end_object(&f->json);
	rt_json_end_array(&f->json);
}

static void meta(struct firefox *f)
{
	rt_json_begin_object(&f->json, "meta");
	rt_json_u64(&f->json, "version", GECKO_VERSION);
	rt_json_u64(&f->json, "preprocessedProfileVersion", FORMAT_VERSION);
	rt_json_u64(&f->json, "processType", 0);
	rt_json_string(&f->json, "product", rt_ex_title(f->e, &f->arena));
	rt_json_string(&f->json, "importedFrom", rt_format(&f->arena, "reftrace %s", f->e->options.version ?: ""));
	rt_json_u64(&f->json, "interval", INTERVAL_MS);
	rt_json_u64(&f->json, "startTime", 0);
	/* else it shows what lies between samples, which leaves out the lives that ended before */
	rt_json_u64(&f->json, "profilingStartTime", 0);
	rt_json_number(&f->json, "profilingEndTime", time_of(f, f->e->last_ns) + INTERVAL_MS);
	rt_json_u64(&f->json, "stackwalk", 1);
	rt_json_bool(&f->json, "debug", false);
	rt_json_bool(&f->json, "symbolicated", true);
	rt_json_bool(&f->json, "usesOnlyOneStackType", true);
	rt_json_bool(&f->json, "doesNotUseFrameImplementation", true);
	rt_json_bool(&f->json, "sourceCodeIsNotOnSearchfox", true);
	rt_json_begin_object(&f->json, "extensions");
	rt_json_u64(&f->json, "length", 0);
	zeros(f, "baseURL", 0);
	zeros(f, "id", 0);
	zeros(f, "name", 0);
	rt_json_end_object(&f->json);
	rt_json_begin_array(&f->json, "categories");
	category(f, "Other", "grey");
	category(f, "Kernel", "orange");
	rt_json_end_array(&f->json);
	marker_schema(f);
	rt_json_end_object(&f->json);
}

static void write_all(struct firefox *f)
{
	rt_json_init(&f->json, f->e->sink);
	rt_json_begin_object(&f->json, NULL);
	meta(f);
	zeros(f, "libs", 0);
	zeros(f, "pages", 0);
	rt_json_begin_array(&f->json, "threads");
	sample_threads(f);
	for (uint32_t i = 0; i < f->e->classes.len; i++) {
		if (f->e->classes.data[i].lives)
			type_thread(f, i);
	}
	rt_json_end_array(&f->json);
	rt_json_end_object(&f->json);
	rt_sink_puts(f->e->sink, "\n");
}

struct rt_error *rt_ex_firefox(struct rt_export *e)
{
	struct firefox f = { .e = e };

	f.nodes.place = calloc(e->nodes.len + 1, sizeof(uint32_t));
	f.frames.place = calloc(e->frames.len + 1, sizeof(uint32_t));
	f.strings.place = calloc(e->strings.items.len + 1, sizeof(uint32_t));
	f.nomem = !f.nodes.place || !f.frames.place || !f.strings.place;
	if (!f.nomem)
		write_all(&f);
	table_deinit(&f.nodes);
	table_deinit(&f.frames);
	table_deinit(&f.strings);
	rt_arena_deinit(&f.arena);
	return f.nomem ? rt_error_nomem() : NULL;
}
