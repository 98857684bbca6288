// SPDX-License-Identifier: GPL-2.0-only
/* A directory service in small: sessions share views of a configuration that is replaced, requests have contexts of
 * their own. */
#include <stdio.h>
#include <string.h>

#include "replace.h"
#include "talloc.h"

struct view {
	unsigned generation;
	char **names;
};

struct session {
	struct session *next;
	struct view *view;
	TALLOC_CTX *cache;
	unsigned requests;
};

static struct view *current;
static struct session *sessions;

static struct view *view_new(unsigned generation)
{
	struct view *v = talloc_zero(NULL, struct view);

	v->generation = generation;
	v->names = talloc_array(v, char *, 4);
	for (unsigned i = 0; i < 4; i++)
		v->names[i] = talloc_asprintf(v->names, "name%u", generation + i);
	return v;
}

/* The new view takes the place of the old one; sessions keep theirs until they look again. */
static void reconfigure(unsigned generation)
{
	struct view *old = current;

	current = view_new(generation);
	if (old)
		talloc_unlink(NULL, old);
}

static struct session *session_open(void)
{
	struct session *s = talloc_zero(NULL, struct session);

	s->view = talloc_reference(s, current);
	s->cache = talloc_new(NULL);
	s->next = sessions;
	sessions = s;
	return s;
}

static void session_close(struct session *s)
{
	struct session **at = &sessions;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	talloc_free(s->cache);
	/* and what it holds */
	talloc_free(s);
}

static void session_refresh(struct session *s)
{
	if (s->view == current)
		return;
	talloc_unlink(s, s->view);
	s->view = talloc_reference(s, current);
}

static void remember(struct session *s, char *text)
{
	if (s->requests % 8 == 0)
		TALLOC_FREE(s->cache);
	if (!s->cache)
		s->cache = talloc_new(NULL);
	talloc_steal(s->cache, text);
}

static int search(TALLOC_CTX *ctx, struct view *v, const char *filter, char **ret)
{
	TALLOC_CTX *mine = talloc_new(NULL);
	char *lower = talloc_strdup(mine, filter);

	for (char *p = lower; *p; p++)
		*p = (char)(*p | 0x20);
	if (strchr(lower, '(')) {
		talloc_free(mine);
		return -1;
	}
	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(v->names[i], lower)) {
			*ret = talloc_asprintf(ctx, "%s of %u", lower, v->generation);
			talloc_free(mine);
			return 0;
		}
	talloc_free(mine);
	return 1;
}

static int request(struct session *s, const char *filter)
{
	TALLOC_CTX *ctx = talloc_new(NULL);
	struct view *v = talloc_reference(NULL, s->view);
	char *found = NULL;
	int status;

	s->requests++;
	if (!*filter) {
		talloc_unlink(NULL, v);
		talloc_free(ctx);
		return -2;
	}
	status = search(ctx, v, filter, &found);
	if (status < 0) {
		talloc_unlink(NULL, v);
		talloc_free(ctx);
		return status;
	}
	if (found)
		remember(s, found);
	talloc_unlink(NULL, v);
	talloc_free(ctx);
	return status;
}

static void pooled(void)
{
	TALLOC_CTX *pool = talloc_pool(NULL, 4096);
	struct view *in = talloc_zero(pool, struct view), *out = talloc_zero(NULL, struct view);

	in->names = talloc_array(in, char *, 2);
	talloc_steal(out, in);
	talloc_free(pool);
	talloc_free(out);
}

int main(void)
{
	static const char *const filters[] = { "NAME1", "name7", "", "(name", "name3", "none" };
	unsigned found = 0;

	reconfigure(0);
	for (unsigned i = 0; i < 60; i++) {
		struct session *s = session_open();

		if (i % 3 == 0)
			reconfigure(i);
		for (unsigned k = 0; k < 6; k++)
			found += request(s, filters[(i + k) % 6]) == 0;
		for (struct session *other = sessions; other; other = other->next)
			session_refresh(other);
		pooled();
		if (i % 4)
			session_close(s);
	}
	while (sessions)
		session_close(sessions);
	talloc_unlink(NULL, current);
	printf("%u found\n", found);
	return 0;
}
