/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A typed growing array.
 *
 *     RT_VEC(struct site) sites = { 0 };
 *     struct site *s = rt_vec_add(&sites);       NULL: out of memory
 *     for (size_t i = 0; i < sites.len; i++) use(&sites.data[i]);
 *     rt_vec_deinit(&sites);
 *
 * Added elements are zeroed. Adding may move the elements: keep indexes, not
 * pointers. All zeroes is an empty vector.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define RT_VEC(type) \
	struct { \
		type *data; \
		size_t len, cap; \
	}

/* Pointer to a new zeroed last element, or NULL without memory. */
#define rt_vec_add(v) ((__typeof__((v)->data))rt_vec_add_(&(v)->data, &(v)->len, &(v)->cap, sizeof(*(v)->data)))

/* Appends value; false without memory. */
#define rt_vec_push(v, value) \
	({ \
		__typeof__((v)->data) rt_vec_p_ = rt_vec_add(v); \
		if (rt_vec_p_) \
			*rt_vec_p_ = (value); \
		rt_vec_p_ != NULL; \
	})

/* Makes room for n elements in all; false without memory. len stays. */
#define rt_vec_reserve(v, n) rt_vec_reserve_(&(v)->data, &(v)->cap, (n), sizeof(*(v)->data))

/* Adds zeroed elements until there are n; false without memory. */
#define rt_vec_extend(v, n) rt_vec_extend_(&(v)->data, &(v)->len, &(v)->cap, (n), sizeof(*(v)->data))

#define rt_vec_clear(v) ((void)((v)->len = 0))

#define rt_vec_deinit(v) (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

void *rt_vec_add_(void *data, size_t *len, size_t *cap, size_t size);
bool rt_vec_reserve_(void *data, size_t *cap, size_t n, size_t size);
bool rt_vec_extend_(void *data, size_t *len, size_t *cap, size_t n, size_t size);
