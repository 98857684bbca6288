/* SPDX-License-Identifier: GPL-2.0-only */
/* Optimal string alignment distance with an early end: only small distances matter. */
#include "probe/near.h"

#include <string.h>

enum { NAME_MAX_LEN = 128 };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

unsigned rt_edit_distance(const char *a, const char *b, unsigned max)
{
	unsigned rows[3][NAME_MAX_LEN + 1];
	size_t la = strnlen(a, NAME_MAX_LEN + 1), lb = strnlen(b, NAME_MAX_LEN + 1);

	if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN || (la > lb ? la - lb : lb - la) > max)
		return max + 1;
	for (unsigned j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= la; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
		unsigned best = now[0] = i;

		for (unsigned j = 1; j <= lb; j++) {
			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
			if (now[j] < best)
				best = now[j];
		}
		if (best > max)
			return max + 1;
	}
	return rows[la % 3][lb] <= max ? rows[la % 3][lb] : max + 1;
}

unsigned rt_slip_limit(const char *word)
{
	size_t len = strlen(word);

	return len < 5 ? 1 : len < 10 ? 2 : 3;
}

void rt_near_offer(struct rt_near *near, const char *name)
{
	unsigned limit = rt_slip_limit(near->wanted), distance = rt_edit_distance(near->wanted, name, limit);
	size_t at = near->count;

	if (distance > limit)
		return;
	for (size_t i = 0; i < near->count; i++)
		if (strcmp(near->names[i], name) == 0)
			return;
	while (at > 0 && near->distance[at - 1] > distance)
		at--;
	if (at >= RT_NEAR_MAX)
		return;
	if (near->count < RT_NEAR_MAX)
		near->count++;
	for (size_t i = near->count - 1; i > at; i--) {
		near->names[i] = near->names[i - 1];
		near->distance[i] = near->distance[i - 1];
	}
	near->names[at] = name;
	near->distance[at] = distance;
}
