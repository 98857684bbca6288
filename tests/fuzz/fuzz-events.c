/* SPDX-License-Identifier: GPL-2.0-only */
/* Any text as .events: read, analysed, judged; and judged again after half of it. */
#include <stdint.h>
#include <stdlib.h>

#include "engine/text.h"
#include "lifetime/lifetime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct rt_verdict *v)
{
	for (size_t i = 0; i < v->finding_count; i++) {
		if (!(v->findings[i].confidence >= 0.5) || v->findings[i].confidence > 1 || !v->findings[i].objects)
			abort();
	}
	for (size_t i = 0; i < v->suspect_count; i++) {
		if (!(v->suspects[i].confidence < 0.5))
			abort();
	}
	if (v->trust.complete && (v->trust.note_count || v->trust.nothing_seen))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_text *text = NULL;
	_cleanup_(rt_text_destroyp) struct rt_text *guard = NULL;
	_cleanup_(rt_lifetime_destroyp) struct rt_lifetime *lt = NULL;
	const struct rt_wire_head *record;
	const struct rt_verdict *v;
	struct rt_error *err = rt_text_create((const char *)data, size, "fuzz", &text);

	if (err) {
		rt_error_free(err);
		return 0;
	}
	guard = text;
	err = rt_lifetime_create(NULL, rt_text_namer(text), &lt);
	for (unsigned n = 0; !err; n++) {
		err = rt_text_source(text)->next(rt_text_source(text), &record);
		if (err || !record)
			break;
		if (!rt_record_valid(record, record->size))
			abort();
		err = rt_lifetime_record(lt, record);
		if (!err && n == 64) {
			err = rt_lifetime_verdict(lt, &v);
			if (!err)
				check(v);
		}
	}
	if (!err)
		err = rt_lifetime_verdict(lt, &v);
	if (!err)
		check(v);
	rt_error_free(err);
	return 0;
}
