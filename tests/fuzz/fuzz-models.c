/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as models, beside a type, a class and a module: no fault; what a fault was found in adds nothing; and what
 * was taken in is written in words that are taken in again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "event/stream.h"
#include "lifetime/models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t name(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return,
		   struct rt_frame *ret, size_t max)
{
	return 0;
}

static struct rt_error *tell(struct rt_lifetime *lt)
{
	_cleanup_free_ struct rt_wire_type *type = rt_record_type(1, "obj", NULL);
	_cleanup_free_ struct rt_wire_class *class = rt_record_class(1, 7, "Odd");
	_cleanup_free_ struct rt_wire_module *module = rt_record_module(1, "/x");

	if (!type || !class || !module)
		return rt_error_nomem();
	module->build_id_size = 2;
	module->build_id[0] = 0x12;
	module->build_id[1] = 0xab;
	RT_TRY(rt_lifetime_record(lt, &type->head));
	RT_TRY(rt_lifetime_record(lt, &class->head));
	return rt_lifetime_record(lt, &module->head);
}

/* *ret_used: UINT64_MAX where it was not understood; what is known then is in sink */
static struct rt_error *read_and_write(const char *text, size_t size, struct rt_sink *sink, uint64_t *ret_used)
{
	struct rt_namer namer = { .name = name };
	_cleanup_(rt_lifetime_destroyp) struct rt_lifetime *lt = NULL;
	const struct rt_verdict *verdict;
	struct rt_error *err;

	RT_TRY(rt_lifetime_create(NULL, &namer, &lt));
	RT_TRY(tell(lt));
	err = rt_models_read(lt, text, size, "models", ret_used);
	if (err && err->code != RT_E_FORMAT)
		return err;
	if (err)
		*ret_used = UINT64_MAX;
	rt_error_free(err);
	RT_TRY(rt_lifetime_verdict(lt, &verdict));
	RT_TRY(rt_models_write(lt, sink));
	return rt_sink_end(sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t used = 0, again = 0;
	struct rt_sink first, second;
	struct rt_error *err;

	rt_sink_init_memory(&first);
	rt_sink_init_memory(&second);
	err = read_and_write((const char *)data, size, &first, &used);
	if (!err && used == UINT64_MAX && strcmp(first.buffer, "reftrace-models 1\n"))
		abort();
	if (!err && used != UINT64_MAX) {
		err = read_and_write(first.buffer, first.len, &second, &again);
		if (!err && (again == UINT64_MAX || strcmp(first.buffer, second.buffer)))
			abort();
	}
	rt_error_free(err);
	rt_sink_deinit(&first);
	rt_sink_deinit(&second);
	return 0;
}
