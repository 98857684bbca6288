/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/poison.h"

/* data is the address of a typed pointer: memcpy keeps that free of aliasing trouble. */
bool rt_vec_reserve_(void *data, size_t *cap, size_t n, size_t size)
{
	void *old, *new;

	memcpy(&old, data, sizeof(old));
	/* who reserves may fill it without adding */
	if (old)
		rt_unpoison(old, *cap * size);
	if (n <= *cap)
		return true;
	if (n > SIZE_MAX / size)
		return false;
	new = realloc(old, n * size);
	if (!new)
		return false;
	memcpy(data, &new, sizeof(new));
	*cap = n;
	return true;
}

void *rt_vec_add_(void *data, size_t *len, size_t *cap, size_t size)
{
	bool full = *len == *cap;
	char *base;

	if (full) {
		size_t want = *cap ? *cap * 2 : 8;

		if (want < *cap || !rt_vec_reserve_(data, cap, want, size))
			return NULL;
	}
	memcpy(&base, data, sizeof(base));
	base += *len * size;
	if (full)
		rt_poison(base, (*cap - *len) * size);
	rt_unpoison(base, size);
	memset(base, 0, size);
	(*len)++;
	return base;
}

bool rt_vec_extend_(void *data, size_t *len, size_t *cap, size_t n, size_t size)
{
	char *base;

	if (n <= *len)
		return true;
	/* by doubling: a caller may extend by one each time */
	if (n > *cap && !rt_vec_reserve_(data, cap, n / 2 < *cap ? *cap * 2 : n, size))
		return false;
	memcpy(&base, data, sizeof(base));
	memset(base + *len * size, 0, (n - *len) * size);
	*len = n;
	return true;
}
