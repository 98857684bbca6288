/* SPDX-License-Identifier: GPL-2.0-only */
/* Semaphores of markers as events that we raise ourselves, in each process when the kernel tells that it maps the file.
 */
#include <stdio.h>

#include "base/proc.h"
#include "engine/markers_priv.h"

struct rt_error *rt_markers_note_written(struct rt_markers *m, int fd, const struct rt_image *image,
					 struct rt_foff code, struct rt_foff offset)
{
	struct rt_written_counter w = { .code = code, .offset = offset };
	struct rt_elfaddr marker, counter;
	struct stat st;

	if (m->target.semaphore != RT_SEMAPHORE_WRITE || !offset.v || fstat(fd, &st) ||
	    !rt_image_address(image, code, true, &marker) || !rt_image_address(image, offset, false, &counter))
		return NULL;
	w.dev = st.st_dev;
	w.ino = st.st_ino;
	w.distance = counter.v - marker.v;
	if (!m->semaphores)
		RT_TRY(rt_semaphores_create(&m->semaphores));
	return rt_vec_push(&m->written, w) ? NULL : rt_error_nomem();
}

const char *rt_markers_unraised(const struct rt_markers *m)
{
	return m->unraised.len ? m->unraised.buffer : NULL;
}

struct rt_error *rt_markers_raise(struct rt_markers *m, uint32_t pid, const struct rt_maps_line *line,
				  const struct stat *file)
{
	for (size_t i = 0; i < m->written.len; i++) {
		const struct rt_written_counter *w = &m->written.data[i];
		struct rt_semaphore_place place = { .pid = pid, .tag = (uint32_t)i, .offset = w->offset.v };

		if (w->dev != file->st_dev || w->ino != file->st_ino || w->code.v < line->offset ||
		    w->code.v - line->offset >= line->end - line->start)
			continue;
		place.code = line->start + (w->code.v - line->offset);
		place.counter = place.code + w->distance;
		RT_TRY(rt_semaphores_raise(m->semaphores, &place));
	}
	return NULL;
}

struct rt_error *rt_markers_forked(struct rt_markers *m, uint32_t parent, uint32_t child, bool leave)
{
	if (!m->semaphores)
		return NULL;
	return leave ? rt_semaphores_leave(m->semaphores, parent, child)
		     : rt_semaphores_fork(m->semaphores, parent, child);
}

static void tell_missing(const struct rt_semaphore_place *place, void *arg)
{
	struct rt_markers *m = arg;
	char comm[64];

	if (m->unraised.len)
		rt_sink_puts(&m->unraised, "; ");
	rt_sink_printf(&m->unraised, "a semaphore of process %u (%s) could not be raised: it was in no writable memory",
		       place->pid, rt_proc_comm(place->pid, comm, sizeof(comm)));
}

void rt_markers_lower(struct rt_markers *m)
{
	if (!m->semaphores)
		return;
	rt_semaphores_missing(m->semaphores, tell_missing, m);
	rt_semaphores_destroy(rt_take(m->semaphores));
	rt_vec_clear(&m->written); /* what is drained yet raises nothing */
}
