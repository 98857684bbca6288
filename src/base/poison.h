/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tells AddressSanitizer which part of an allocation nobody may touch yet: what a growing array keeps in reserve, what
 * lies between the pieces of an arena. Else a step beyond their end would be unseen. Without the sanitizer: nothing.
 */
#pragma once

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RT_POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RT_POISON 1
#endif

#ifdef RT_POISON
#include <sanitizer/asan_interface.h>

enum { RT_POISON_GAP = 16 }; /* bytes between two pieces of one allocation */

static inline void rt_poison(void *at, size_t size)
{
	__asan_poison_memory_region(at, size);
}

static inline void rt_unpoison(void *at, size_t size)
{
	__asan_unpoison_memory_region(at, size);
}
#else
enum { RT_POISON_GAP = 0 };

static inline void rt_poison(void *at, size_t size)
{
}

static inline void rt_unpoison(void *at, size_t size)
{
}
#endif
