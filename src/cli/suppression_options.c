/* SPDX-License-Identifier: GPL-2.0-only */
/* --suppressions and --gen-suppressions. */
#include "cli/suppression_options.h"

#include <fcntl.h>

#include "base/fs.h"

enum { FILE_MAX = 64 << 20 };

struct rt_error *rt_suppressions_read(const struct rt_options *options, struct rt_suppressions *ret)
{
	for (size_t i = 0; i < options->suppressions.len; i++) {
		const char *path = options->suppressions.data[i];
		_cleanup_free_ char *text = NULL;
		struct rt_error *err;
		size_t size;

		err = rt_fs_read(AT_FDCWD, path, FILE_MAX, &text, &size);
		if (err)
			return err->fix ? err
					: rt_error_fix(err, "name a file of rules, or make one: "
							    "reftrace report --gen-suppressions -i RECORDING");
		RT_TRY(rt_suppressions_parse(text, size, path, ret));
	}
	return NULL;
}
