/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Activations by nodes (thread.h) against activations frame by frame (thread.c): a program that calls and returns at
 * random tells of its stack now and then, whole or cut; both ways number its frames alike, whatever came before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/text.h"
#include "lifetime/thread.h"

enum { EVENTS = 4000, FUNCTIONS = 3, LINES = 2, DEPTH = 14, FRAME = 64, TOP = 0x100000 };

static uint64_t state;

static uint32_t dice(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d) >> 32) * n >> 32);
}

/* few functions and lines, so that stacks come again; keep: frames that are told, outermost ones are cut */
static char *stacks(unsigned keep)
{
	unsigned function[DEPTH] = { 0 }, line[DEPTH] = { 0 }, depth = 1;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fprintf(f, "type obj start=1\n");
	for (unsigned i = 0; i < EVENTS; i++) {
		unsigned moves = dice(4), from;

		while (moves--) {
			if (depth < DEPTH && (depth < 3 || dice(2))) {
				function[depth++] = dice(FUNCTIONS);
			} else {
				depth -= depth > 1;
				line[depth - 1] = dice(LINES);
			}
		}
		from = depth > keep ? depth - keep : 0;
		fprintf(f, "%s obj 0x10 %s", dice(2) ? "get" : "put", from ? "...;" : "");
		for (unsigned k = from; k < depth; k++)
			fprintf(f, "f%u@a.c:%u%s", function[k], 10 * function[k] + line[k], k + 1 < depth ? ";" : "");
		fprintf(f, " sp=0x%x\n", TOP - FRAME * depth);
	}
	assert_int_equal(fclose(f), 0);
	return text;
}

static uint32_t number(const struct lt_thread *t, uint32_t at)
{
	return at < t->proven ? t->act[at] + at : 0;
}

static void both_ways(unsigned keep)
{
	static const struct lt_plain none;
	struct rt_lifetime *lt[2];
	struct rt_text *text = NULL;
	const struct rt_wire_head *r;
	char *events = stacks(keep);
	unsigned compared = 0, followed = 0;

	assert_null(rt_text_create(events, strlen(events), "stacks", &text));
	for (int i = 0; i < 2; i++)
		assert_null(rt_lifetime_create(NULL, rt_text_namer(text), &lt[i]));
	for (;;) {
		struct lt_thread *t[2];

		assert_null(rt_text_source(text)->next(rt_text_source(text), &r));
		if (!r)
			break;
		for (int i = 0; i < 2; i++) {
			const struct rt_wire_event *e = rt_record_event(r);
			const struct lt_known *known;

			if (r->kind != RT_WIRE_EVENT) {
				assert_null(rt_lifetime_record(lt[i], r));
				continue;
			}
			known = lt_known(lt[i], e);
			assert_non_null(known);
			t[i] = lt_thread(lt[i], r->pid, r->tid);
			assert_non_null(t[i]);
			followed += !i && lt_thread_follows(lt[i], t[i], &known->plain, e->sp);
			lt_thread_see(lt[i], t[i], &lt[i]->uses.data[known->use], i ? &none : &known->plain, e->sp);
		}
		if (r->kind != RT_WIRE_EVENT)
			continue;
		assert_int_equal(t[0]->nr, t[1]->nr);
		for (uint32_t at = 0; at < t[0]->nr; at++)
			assert_int_equal(number(t[0], at), number(t[1], at));
		compared++;
	}
	assert_int_equal(compared, EVENTS);
	assert_true(followed > EVENTS / 8);
	for (int i = 0; i < 2; i++)
		rt_lifetime_destroy(lt[i]);
	rt_text_destroy(text);
	free(events);
}

static void whole(void **unused)
{
	state = 1;
	both_ways(DEPTH);
}

static void cut(void **unused)
{
	for (unsigned keep = 1; keep < DEPTH; keep++) {
		state = keep;
		both_ways(keep);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(whole), cmocka_unit_test(cut) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
