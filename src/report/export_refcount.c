/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mozilla's refcount log (XPCOM_MEM_REFCNT_LOG), one life after the other:
 *
 *     <type> 0xADDRESS serial AddRef count
 *         function (file:line)    innermost first
 *         ...                     an empty line ends the stack
 *
 * tools/rb/find_leakers.py takes AddRef to 1 as a birth and Release to 0 as a death; make-tree.pl
 * --object takes an address: where one is used again, later lives have "/SERIAL" behind it. A life whose
 * beginning was not seen starts with as many AddRefs without a stack as its puts need (Mesa's log does that, too);
 * a put that nobody owed goes down to -1, which is no death. Frames are indented, as Mozilla writes them: a line that
 * begins with '<', as names of C++ and Rust may, is an operation to these tools.
 */
#include "report/export_parts.h"
#include "report/words.h"

struct log {
	struct rt_export *e;
	struct rt_arena arena;
	struct rt_map seen; /* addresses */
	const struct rt_ex_life *life;
	bool again; /* the address had another life */
	int64_t count;
};

static const char *type_of(struct log *l)
{
	char *name = (char *)(uintptr_t)rt_format(
		&l->arena, "%s", rt_clean(&l->arena, rt_ex_text(l->e, l->e->classes.data[l->life->class].name)));

	/* fields are cut at blanks */
	for (char *c = name; *c; c++)
		*c = *c == ' ' || *c == '<' || *c == '>' ? '_' : *c;
	return name;
}

static void entry(struct log *l, uint32_t node, const char *what)
{
	rt_sink_printf(l->e->sink, "<%s> 0x%llx", type_of(l), (unsigned long long)l->life->object);
	if (l->again)
		rt_sink_printf(l->e->sink, "/%llu", (unsigned long long)l->life->serial);
	rt_sink_printf(l->e->sink, " %llu %s %lld\n", (unsigned long long)l->life->serial, what, (long long)l->count);
	for (; node; node = rt_ex_node(l->e, node)->parent) {
		const struct rt_ex_frame *f = rt_ex_frame(l->e, rt_ex_node(l->e, node)->frame);
		const char *where = rt_ex_text(l->e, f->file ? f->file : f->module);

		rt_sink_printf(l->e->sink, "    %s", rt_clean(&l->arena, rt_ex_function(l->e, &l->arena, f)));
		if (f->file && f->line)
			rt_sink_printf(l->e->sink, " (%s:%u)", rt_clean(&l->arena, where), f->line);
		else if (*where)
			rt_sink_printf(l->e->sink, " (%s +0x%llx)", rt_clean(&l->arena, where),
				       (unsigned long long)f->address);
		rt_sink_puts(l->e->sink, "\n");
	}
	rt_sink_puts(l->e->sink, "\n");
}

/* how far the count of a life goes below its beginning */
static int64_t owed(const struct rt_ex_life *life)
{
	int64_t count = 0, lowest = 0;

	if (!life->steps.len || life->steps.data[0].op == RT_OP_NEW)
		return 0;
	for (size_t i = 0; i < life->steps.len && !life->steps.data[i].after_end; i++) {
		count -= life->steps.data[i].closes;
		lowest = count < lowest ? count : lowest;
		count += life->steps.data[i].opens;
	}
	return -lowest;
}

static void step(struct log *l, const struct rt_ex_step *s)
{
	for (uint16_t k = 0; k < s->closes; k++) {
		l->count--;
		entry(l, s->node, "Release");
	}
	if (s->after_end && s->closes)
		l->count = 0;
	for (uint16_t k = 0; k < s->opens; k++) {
		l->count++;
		entry(l, s->node, "AddRef");
	}
	/* memory that goes away with references open: they end here */
	while (s->op == RT_OP_FREE && !s->after_end && l->count > 0) {
		l->count--;
		entry(l, s->node, "Release");
	}
}

static void life(struct log *l)
{
	l->count = 0;
	for (int64_t n = owed(l->life); n > 0; n--) {
		l->count++;
		entry(l, 0, "AddRef");
	}
	for (size_t i = 0; i < l->life->steps.len; i++) {
		step(l, &l->life->steps.data[i]);
		rt_arena_deinit(&l->arena);
	}
}

struct rt_error *rt_ex_refcount(struct rt_export *e)
{
	struct log l = { .e = e };
	struct rt_error *err = NULL;

	for (size_t i = 0; i < e->lives.len; i++) {
		bool made;
		uint64_t *slot;

		l.life = e->lives.data[i];
		slot = rt_map_put(&l.seen, rt_key_make(l.life->object, (uint64_t)l.life->pid << 32 | l.life->class),
				  &made);
		if (!slot) {
			err = rt_error_nomem();
			break;
		}
		l.again = !made;
		life(&l);
	}
	rt_map_deinit(&l.seen);
	rt_arena_deinit(&l.arena);
	return err;
}
