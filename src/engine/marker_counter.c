/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/marker_counter.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BREAKPOINT 0xcc /* x86-64 */

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The first writable segment whose pages hold the file offset; true: it lies before the counter's own. */
static bool first_holder(const struct rt_image *image, struct rt_elfaddr counter, struct rt_elfaddr *ret)
{
	uint64_t page = page_size();
	struct rt_foff offset;

	if (!rt_image_offset(image, counter, &offset))
		return false;
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];
		uint64_t start = s->offset.v & ~(page - 1);
		uint64_t end = (s->offset.v + (s->end.v - s->start.v) + page - 1) & ~(page - 1);

		if (!(s->flags & PF_W) || offset.v < start || offset.v >= end)
			continue;
		ret->v = s->start.v - s->offset.v + offset.v;
		return ret->v < counter.v;
	}
	return false;
}

bool rt_counter_is_skewed(const struct rt_image *image, const struct rt_sdt_marker *marker)
{
	struct rt_elfaddr other;

	return marker->semaphore.v && first_holder(image, marker->semaphore, &other);
}

bool rt_counter_bias(const struct rt_image *image, uint64_t start, uint64_t page_offset, uint64_t *ret)
{
	uint64_t page = page_size();

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];

		if (!(s->flags & PF_X) || (s->offset.v & ~(page - 1)) != page_offset)
			continue;
		*ret = start - (s->start.v & ~(page - 1));
		return true;
	}
	return false;
}

static bool peek(int memory, uint64_t at, void *to, size_t size)
{
	return pread(memory, to, size, (off_t)at) == (ssize_t)size;
}

/*
 * Breakpoints of one marker: the kernel sets one in each mapping of the page that was not writable then, and lowers the
 * counter once for each when it takes them away.
 */
static uint16_t breakpoints(int memory, const struct rt_image *image, struct rt_elfaddr location, uint64_t bias)
{
	uint64_t page = page_size();
	struct rt_foff offset;
	uint16_t count = 0;

	for (size_t i = 0; i < image->segment_count && rt_image_offset(image, location, &offset); i++) {
		const struct rt_segment *s = &image->segments[i];
		uint64_t start = s->offset.v & ~(page - 1);
		uint64_t end = (s->offset.v + (s->end.v - s->start.v) + page - 1) & ~(page - 1);
		uint8_t code;

		if (offset.v >= start && offset.v < end &&
		    peek(memory, bias + s->start.v - s->offset.v + offset.v, &code, sizeof(code)))
			count += code == BREAKPOINT;
	}
	return count;
}

enum rt_counter_state rt_counter_raise(uint32_t pid, const struct rt_image *image, const struct rt_sdt_marker *m,
				       uint64_t bias)
{
	struct rt_elfaddr other;
	_cleanup_close_ int memory = -1;
	uint16_t stray, counter;
	uint8_t code;
	char path[32];

	if (!first_holder(image, m->semaphore, &other))
		return RT_COUNTER_GONE;
	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return RT_COUNTER_GONE;
	if (!peek(memory, bias + m->location.v, &code, sizeof(code)))
		return errno == EIO ? RT_COUNTER_NOT_YET : RT_COUNTER_GONE;
	if (code != BREAKPOINT || !peek(memory, bias + other.v, &stray, sizeof(stray)) ||
	    !peek(memory, bias + m->semaphore.v, &counter, sizeof(counter)))
		return RT_COUNTER_NOT_YET;
	/*
	 * What was counted at the wrong place is moved, so that it is not counted a second time. It may have been
	 * zeroed there, where the file's part of the segment ends: then a counter that nobody has raised is.
	 */
	if (!stray && counter)
		return RT_COUNTER_RAISED;
	counter = (uint16_t)(counter + breakpoints(memory, image, m->location, bias));
	if (pwrite(memory, &counter, sizeof(counter), (off_t)(bias + m->semaphore.v)) != sizeof(counter))
		return RT_COUNTER_GONE;
	if (stray--)
		(void)!pwrite(memory, &stray, sizeof(stray), (off_t)(bias + other.v));
	return RT_COUNTER_RAISED;
}
