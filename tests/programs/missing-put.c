/* SPDX-License-Identifier: GPL-2.0-only */
/* An early return forgets its put: `authenticate` keeps the session of every guest. */
#include "truth.h"

struct session {
	char user[24];
	int refs;
	bool open;
};

static bool healthy;

NOINLINE static struct session *session_new(int n)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->refs = 1;
	snprintf(s->user, sizeof(s->user), "%s%d", n % 4 == 3 ? "guest" : "user", n);
	return s;
}

NOINLINE static struct session *session_ref(struct session *s)
{
	s->refs++;
	return s;
}

NOINLINE static void session_unref(struct session *s)
{
	if (--s->refs == 0)
		free(s);
}

NOINLINE static int authenticate(struct session *s)
{
	session_ref(s);
	DID("get");
	if (s->user[0] == 'g' && !healthy) {
		LOST();
		return -1;
	}
	s->open = true;
	session_unref(s);
	DID("put");
	return 0;
}

NOINLINE static void serve(struct session *s)
{
	session_ref(s);
	DID("get");
	if (authenticate(s) == 0)
		s->open = false;
	session_unref(s);
	DID("put");
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 100; i++) {
		struct session *s = session_new(i);

		DID("new");
		serve(s);
		session_unref(s);
		DID("put");
	}
	truth_print("type=session new=session_new get=session_ref put=session_unref", "authenticate", "leak");
	return 0;
}
