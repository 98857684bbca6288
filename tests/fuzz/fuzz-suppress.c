/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as suppressions, against a finding: no fault; a fault of the text leaves the rules as they were; no rule
 * takes a finding of another kind; the rule that is made for a finding takes it, whatever its names.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "report/suppress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rt_frame frames[] = {
	{ .function = "parse_header", .file = "/src/leak.c", .line = 29, .module = "/usr/bin/leak" },
	{ .function = "handle_request", .file = "/src/leak.c", .line = 38, .module = "/usr/bin/leak" },
	{ .function = "operator[]", .module = "/usr/lib/libfoo.so.1" },
	{ .module = "/usr/lib/libc.so.6", .address = 0x1234 },
};

static void apply(struct rt_suppressions *rules, const char *name)
{
	struct rt_origin origins[] = { { .api = "obj_get", .stack = { "taken", frames, 4 }, .references = 3 } };
	struct rt_finding findings[] = {
		{ .id = "3f2a91c0",
		  .kind = RT_LEAK,
		  .type = "obj",
		  .objects = 3,
		  .guilty = frames[0],
		  .origins = origins,
		  .origin_count = 1 },
		{ .id = "3f2a91c1", .kind = RT_EXTRA_PUT, .type = "obj", .klass = "[x]", .objects = 1 },
	};
	struct rt_verdict verdict = { .findings = findings, .finding_count = 2 };
	struct rt_suppression_result result;
	struct rt_suppressions made = { 0 };
	struct rt_arena arena = { 0 };
	const char *text;

	findings[1].guilty.function = findings[1].guilty.file = name;
	if (rt_suppress(rules, &verdict, &result) || result.verdict.finding_count + result.count != 2)
		abort();
	for (size_t i = 0; i < result.count; i++) {
		if (!(result.suppressed[i].rule->kinds & 1U << result.suppressed[i].finding->kind))
			abort();
	}
	rt_suppression_result_deinit(&result);
	text = rt_suppression_for(&arena, &findings[1]);
	if (rt_suppressions_parse(text, strlen(text), "made", &made) || made.rules.len != 1 ||
	    rt_suppress(&made, &verdict, &result) || result.count != 1 || result.suppressed[0].finding != &findings[1])
		abort();
	rt_suppression_result_deinit(&result);
	rt_suppressions_deinit(&made);
	rt_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_bytes input = rt_bytes_make(data, size);
	struct rt_suppressions rules = { 0 };
	char *name = take_text(&input);
	struct rt_error *err;

	/* a name, a byte 0, a file; or a file alone */
	if (!input.size || input.size == size)
		input = rt_bytes_make(data, size);
	err = rt_suppressions_parse((const char *)input.data, input.size, "fuzz", &rules);
	if (err && (rules.rules.len || !err->fix))
		abort();
	apply(&rules, name);
	rt_error_free(err);
	rt_suppressions_deinit(&rules);
	free(name);
	return 0;
}
