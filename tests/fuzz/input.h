/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking an input apart. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* The input up to a byte 0, which is taken too, or its end, as a string that the caller frees. */
static inline char *take_text(struct rt_bytes *input)
{
	const uint8_t *end = input->size ? memchr(input->data, 0, input->size) : NULL;
	size_t len = end ? (size_t)(end - input->data) : input->size, used = len + (end != NULL);
	char *text = calloc(1, len + 1);

	if (!text)
		abort();
	if (len)
		memcpy(text, input->data, len);
	if (used)
		*input = rt_bytes_make(input->data + used, input->size - used);
	return text;
}
