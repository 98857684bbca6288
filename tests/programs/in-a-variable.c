/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * in-a-variable ok|bad: one file at a time is open, in a variable of the program. bad: who closes it clears the
 * variable and does not put the file.
 */
#include <stdlib.h>
#include <string.h>

#define FAR __attribute__((noinline, noclone))

enum { FILES = 12 };

struct file {
	int refs;
	int kind;
	long pad[4];
};

__attribute__((used)) static struct file *file;
static const char *mode;
static int sum;

FAR struct file *file_new(int kind)
{
	struct file *f = calloc(1, sizeof(*f));

	f->refs = 1;
	f->kind = kind;
	return f;
}

FAR struct file *archive_new(int kind)
{
	struct file *f = calloc(2, sizeof(*f));

	f->refs = 1;
	f->kind = kind + 1;
	return f;
}

FAR void file_unref(struct file *f)
{
	if (!--f->refs)
		free(f);
}

static FAR int open_file(int kind)
{
	if (kind & 1)
		file = archive_new(kind);
	else
		file = file_new(kind);
	return file != NULL;
}

static FAR int classify(void)
{
	return file->kind & 3;
}

static FAR void close_file(void)
{
	if (file) {
		if (strcmp(mode, "bad"))
			file_unref(file);
		file = NULL;
	}
}

/* the operand of one instruction has the bytes of another one: movq $..., file(%rip) */
static FAR long looks_so(void)
{
	long value;

	__asm__ volatile(".byte 0x48, 0xb8, 0x48, 0xc7, 0x05\n.long file - . - 8\n.byte 0" : "=a"(value));
	return value & 0xffffff;
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "ok";
	for (int i = 0; i < FILES; i++) {
		if (open_file(i))
			sum += classify();
		close_file();
		if (looks_so() != 0x05c748)
			abort();
	}
	return sum < 0;
}
