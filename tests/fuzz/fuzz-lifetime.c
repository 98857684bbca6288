/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as wire records: what rt_record_valid() lets through must not harm the analysis. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lifetime/lifetime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t name(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return,
		   struct rt_frame *ret, size_t max)
{
	static const char *const names[] = { "main", "f", "g_get", "g_put", "h", NULL, "x_new", "x" };

	if (!max)
		return 0;
	ret[0] = (struct rt_frame){ .function = names[pc & 7], .line = (uint32_t)(pc >> 3) & 3, .address = pc };
	if (max > 1 && (pc & 64)) {
		ret[0].inlined = true;
		ret[1] = (struct rt_frame){ .function = names[(pc >> 7) & 7], .address = pc, .returns = "struct x *" };
		return 2;
	}
	return 1;
}

static const char *source_line(struct rt_namer *self, uint32_t module_id, const char *file, uint32_t line,
			       bool *ret_stale)
{
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_namer namer = { name, source_line };
	_cleanup_(rt_lifetime_destroyp) struct rt_lifetime *lt = NULL;
	_cleanup_free_ uint64_t *aligned = malloc(size + 8);
	struct rt_error *err = rt_lifetime_create(NULL, &namer, &lt);
	const struct rt_verdict *v;

	if (!aligned || err) {
		rt_error_free(err);
		return 0;
	}
	memcpy(aligned, data, size);
	for (size_t at = 0; !err && at < size;) {
		const struct rt_wire_head *head = (const struct rt_wire_head *)(const void *)((char *)aligned + at);

		if (!rt_record_valid(head, size - at))
			break;
		err = rt_lifetime_record(lt, head);
		at += head->size;
	}
	if (!err)
		err = rt_lifetime_verdict(lt, &v);
	if (!err && v->trust.complete && !v->trust.events)
		abort();
	rt_error_free(err);
	return 0;
}
