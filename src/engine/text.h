/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine text: hand-made event streams from .events files, see
 * reftrace.events(5). Also names its own frames.
 */
#pragma once

#include "event/names.h"
#include "event/stream.h"

struct rt_text;

/* Parses text (kept by the caller until destroy). RT_E_FORMAT with line and column. name is for messages. */
RT_CHECK struct rt_error *rt_text_create(const char *text, size_t len, const char *name, struct rt_text **ret);
void rt_text_destroy(struct rt_text *text);
RT_CLEANUP(struct rt_text *, rt_text_destroy);
struct rt_source *rt_text_source(struct rt_text *text);
/* The source begins anew. */
void rt_text_rewind(struct rt_text *text);
struct rt_namer *rt_text_namer(struct rt_text *text);
