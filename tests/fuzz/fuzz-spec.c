/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as a spec: no fault; what was read is written and read again to the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_spec spec = { 0 }, again = { 0 };
	_cleanup_free_ char *text = NULL, *second = NULL;
	_cleanup_error_ struct rt_error *err = rt_spec_parse((const char *)data, size, "fuzz", &spec);

	if (!err && spec.types.len) {
		err = rt_spec_write(&spec, &text);
		if (err)
			abort();
		err = rt_spec_parse(text, strlen(text), "again", &again);
		if (err)
			abort();
		err = rt_spec_write(&again, &second);
		if (err || strcmp(text, second) != 0)
			abort();
	}
	rt_spec_deinit(&spec);
	rt_spec_deinit(&again);
	return 0;
}
