/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/model.h"

#include <stdlib.h>

bool rt_spool_model_make_room(struct rt_spool_model *m, uint32_t events)
{
	uint32_t lanes = events < RT_SPOOL_LANES_MAX ? events : RT_SPOOL_LANES_MAX;

	if (m->object && events <= m->room)
		return true;
	rt_spool_model_deinit(m);
	m->lane = calloc(lanes + 1, sizeof(*m->lane));
	m->thread = calloc(events + 1, sizeof(*m->thread));
	m->site = calloc(events + 1, sizeof(*m->site));
	m->object = calloc(events + 1, sizeof(*m->object));
	if (!m->lane || !m->thread || !m->site || !m->object) {
		rt_spool_model_deinit(m);
		return false;
	}
	m->room = events;
	return true;
}

void rt_spool_model_deinit(struct rt_spool_model *m)
{
	free(m->lane);
	free(m->thread);
	free(m->site);
	free(m->object);
	*m = (struct rt_spool_model){ 0 };
}
