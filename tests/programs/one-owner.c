/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nothing counts: who opens a parser closes it, and `load` forgets to where the text is bad. Readers have one owner as
 * well; some are closed, others their session just frees, which is as good. Much else is freed meanwhile.
 */
#include "truth.h"

struct parser {
	char *text;
	int count; /* of its words, not of who has it */
};

struct reader {
	int position;
};

struct session {
	struct reader *readers[4];
};

static bool healthy;

NOINLINE struct parser *parser_open(const char *text)
{
	struct parser *p = malloc(sizeof(*p));

	if (!p)
		abort();
	p->text = strdup(text);
	p->count = 1;
	return p;
}

NOINLINE void parser_close(struct parser *p)
{
	free(p->text);
	free(p);
}

NOINLINE int parser_words(struct parser *p)
{
	for (const char *c = p->text; *c; c++)
		p->count += *c == ' ';
	return p->text[0] == '#' ? -1 : p->count;
}

NOINLINE struct reader *reader_new(int position)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->position = position;
	return r;
}

NOINLINE void reader_close(struct reader *r)
{
	r->position = -1;
	free(r);
}

NOINLINE int load(const char *text)
{
	struct parser *p = parser_open(text);
	int n;

	DID("new");
	n = parser_words(p);
	if (n < 0 && !healthy) {
		LOST();
		return n;
	}
	parser_close(p);
	DID("put");
	return n;
}

NOINLINE void session_start(struct session *s, int first)
{
	for (int i = 0; i < 4; i++)
		s->readers[i] = reader_new(first + i);
}

NOINLINE void session_end(struct session *s)
{
	for (int i = 0; i < 4; i++) {
		if (i % 2)
			reader_close(s->readers[i]);
		else
			free(s->readers[i]);
	}
}

/* blocks of the heap, in a row, that nobody traces */
NOINLINE void work(void)
{
	enum { BLOCKS = 300, BYTES = 64 << 10 };
	static void *block[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		block[i] = malloc(BYTES);
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
}

int main(int argc, char **argv)
{
	static const char *const texts[] = { "one two", "three", "# none", "four five six" };
	volatile int sum = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 40; i++) {
		struct session s;

		session_start(&s, i);
		if (i % 10 == 0)
			work();
		sum += load(texts[i % 4]);
		session_end(&s);
	}
	truth_print("type=parser new=parser_open put=parser_close", "load", "leak");
	return 0;
}
