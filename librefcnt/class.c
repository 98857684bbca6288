/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <pthread.h>
#include <string.h>

#include "class.h"
#include "memory.h"

struct name {
	struct name *next;
	char text[];
};

static struct name *names;
static struct rc_pool pool;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void rc_class_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rc_class_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

const char *rc_class_keep(const char *name)
{
	size_t size = 32;
	struct name *n;

	while (size < sizeof(*n) + strlen(name) + 1)
		size *= 2;
	rc_class_lock();
	for (n = names; n && strcmp(n->text, name) != 0;)
		n = n->next;
	if (!n) {
		n = rc_pool_take(&pool, size);
		if (n) {
			strcpy(n->text, name);
			n->next = names;
			names = n;
		}
	}
	rc_class_unlock();
	return n ? n->text : "?";
}
