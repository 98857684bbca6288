/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as a spec: no fault; what was read is written and read again to the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/spec.h"
#include "probe/spec_type.h"

static struct rt_error *read_spec(const uint8_t *data, size_t size, struct rt_spec *ret)
{
	struct rt_spec_includes includes = { 0 };
	struct rt_error *err = rt_spec_parse_including((const char *)data, size, "fuzz", ret, &includes);

	for (size_t i = 0; i < includes.names.len; i++)
		if (!*includes.names.data[i] || strchr(includes.names.data[i], '/'))
			abort();
	while (includes.names.len)
		free(includes.names.data[--includes.names.len]);
	rt_vec_deinit(&includes.names);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_spec spec = { 0 }, again = { 0 };
	_cleanup_free_ char *text = NULL, *second = NULL;
	_cleanup_error_ struct rt_error *err = read_spec(data, size, &spec);
	const char *name;

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
		name = spec.types.data[0].name;
		rt_spec_keep(&again, &name, 1);
		if (again.types.len != 1 || strcmp(again.types.data[0].name, name) != 0)
			abort();
	}
	rt_spec_deinit(&spec);
	rt_spec_deinit(&again);
	return 0;
}
