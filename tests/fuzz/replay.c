/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands in for libFuzzer where there is none: feeds a fuzz target every file of the folders named on the command line,
 * then the same bytes cut and changed in ways that are the same at every run. The target aborts, or a sanitizer does,
 * when something is wrong. -e: exactly the files, without changes; -m: then the inputs that tests/fuzz/replay.py makes
 * of the seeds whose fields it knows, from standard input.
 *
 * There, per seed: u32 size, u32 edits, its bytes; per edit u32 offset, u32 size, its bytes. They take the place of the
 * seed's; where the highest bit of size is set, the input ends behind them. All in the machine's own order.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MAX = 1024 * 1024, CUTS = 64, CHANGES = 512, INPUTS = 8000 };

static unsigned long runs;
static bool exactly;
static unsigned cuts = CUTS, changes = CHANGES; /* of each file */

/* A copy of exactly that size: reading beyond it is seen by ASan. */
static void feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	runs++;
}

static uint32_t draw(void)
{
	static uint64_t random = 0x9e3779b97f4a7c15;

	random = random * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(random >> 33);
}

/* A number of 1, 2, 4 or 8 bytes becomes one at which parsers go wrong; nobody knows here what it means. */
static void change_number(uint8_t *at, unsigned width, size_t left, size_t size)
{
	uint64_t old = 0, top = width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
	const uint64_t values[] = { 0,           1,    top,      top - 1,  top / 2,      top / 2 + 1,     top / 8 + 1,
				    top / 4 + 1, size, size - 1, size + 1, left - width, left - width + 1 };
	unsigned which = draw() % (sizeof(values) / sizeof(*values) + 3);

	memcpy(&old, at, width);
	switch (which) {
	case 0:
		old++;
		break;
	case 1:
		old--;
		break;
	case 2:
		old *= 2;
		break;
	default:
		old = values[which - 3];
	}
	memcpy(at, &old, width);
}

static void variants(uint8_t *data, size_t size)
{
	uint8_t *old = malloc(size + 1);

	if (!old)
		abort();
	feed(data, size);
	memcpy(old, data, size);
	for (size_t i = 0; i < cuts && i < size; i++)
		feed(data, size <= cuts ? i : size * i / cuts);
	for (unsigned i = 0; i < changes && size; i++) {
		size_t at = draw() % size;
		unsigned width = 1u << draw() % 4;

		if (i % 4 == 0)
			data[at] ^= (uint8_t)(1 << draw() % 8);
		else if (i % 4 == 1)
			data[at] = (uint8_t)draw();
		else if ((at -= at % (width < 4 ? width : 4)) + width <= size)
			change_number(data + at, width, size - at, size);
		feed(data, size);
		memcpy(data, old, size);
	}
	free(old);
}

static int replay_file(const char *path)
{
	uint8_t *data = malloc(FILE_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t n = 0;

	if (!data || fd < 0) {
		perror(path);
		exit(1);
	}
	while (size < FILE_MAX && (n = read(fd, data + size, FILE_MAX - size)) > 0)
		size += (size_t)n;
	close(fd);
	if (n < 0) { /* a folder, for one */
		free(data);
		return 0;
	}
	if (exactly)
		feed(data, size);
	else
		variants(data, size);
	free(data);
	return 1;
}

/* A corpus of many files has fewer variants of each: a test takes seconds. */
static void set_share(DIR *dir)
{
	unsigned count = 0, share;

	while (readdir(dir))
		count++;
	rewinddir(dir);
	share = count ? INPUTS / count : INPUTS;
	cuts = share / 8 < CUTS ? share / 8 : CUTS;
	changes = share - share / 8 < CHANGES ? share - share / 8 : CHANGES;
}

static void take(void *to, size_t size)
{
	if (fread(to, 1, size, stdin) != size) {
		fprintf(stderr, "replay: the mutants are cut\n");
		exit(1);
	}
}

static void read_mutants(void)
{
	const uint32_t end_bit = UINT32_C(1) << 31;
	static uint8_t seed[FILE_MAX], changed[FILE_MAX];
	uint32_t head[2], edit[2], ends;

	while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
		if (head[0] > FILE_MAX)
			abort();
		take(seed, head[0]);
		memcpy(changed, seed, head[0]);
		for (uint32_t i = 0; i < head[1]; i++) {
			take(edit, sizeof(edit));
			ends = edit[1] & end_bit;
			edit[1] &= ~end_bit;
			if (edit[0] > head[0] || edit[1] > head[0] - edit[0])
				abort();
			take(changed + edit[0], edit[1]);
			feed(changed, ends ? edit[0] + edit[1] : head[0]);
			memcpy(changed + edit[0], seed + edit[0], edit[1]);
		}
	}
}

int main(int argc, char **argv)
{
	unsigned files = 0;
	uint8_t nothing[1] = { 0 };

	feed(nothing, 0);
	for (int i = 1; i < argc; i++) {
		DIR *dir;
		struct dirent *entry;

		if (!strcmp(argv[i], "-e")) {
			exactly = true;
			continue;
		}
		if (!strcmp(argv[i], "-m")) {
			read_mutants();
			continue;
		}
		dir = opendir(argv[i]);
		if (!dir) {
			perror(argv[i]);
			return 1;
		}
		set_share(dir);
		while ((entry = readdir(dir))) {
			char path[4096];

			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			files += (unsigned)replay_file(path);
		}
		closedir(dir);
	}
	printf("%u files, %lu inputs\n", files, runs);
	return 0;
}
