/* SPDX-License-Identifier: GPL-2.0-only */
/* Markers with texts, bytes and numbers in pointers' clothes; each line says what the marker at that place is given. */
#include <stdio.h>
#include <sys/sdt.h>

struct object {
	const char *name;
	int number;
};

static inline __attribute__((always_inline)) void note(const char *what, const unsigned char *bytes)
{
	DTRACE_PROBE2(text, inner, what, bytes);
}

__attribute__((noinline)) int work(struct object *o, const char *message, char *buffer, unsigned long length)
{
	DTRACE_PROBE4(text, outer, message, o, length, buffer);
	printf("outer \"%s\" %p %lu \"%s\"\n", message, (void *)o, length, buffer);
	note(message, (const unsigned char *)buffer);
	printf("inner \"%s\" %p\n", message, (void *)buffer);
	return o->number;
}

int main(void)
{
	struct object o = { "object", 3 };
	char buffer[32] = "buffer", message[32];
	int sum = 0;

	for (unsigned long i = 0; i < 4; i++) {
		snprintf(message, sizeof(message), "message %lu", i);
		sum += work(&o, message, buffer + i, i << 33);
	}
	return sum != 12;
}
