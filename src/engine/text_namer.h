/* SPDX-License-Identifier: GPL-2.0-only */
/* What a story says of the code that its frames lie in. Private to engine/. */
#pragma once

#include "engine/text_build.h"
#include "event/names.h"

struct text_namer {
	struct rt_namer namer;
	const struct text_build *build;
};

/* build stays the caller's, and is there as long as the namer is used. */
void text_namer_init(struct text_namer *n, const struct text_build *build);
