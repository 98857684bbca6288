/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands in for libFuzzer where there is none: feeds a fuzz target every file of the folders named on the command line,
 * then the same bytes cut and changed in ways that are the same at every run. The target aborts, or a sanitizer does,
 * when something is wrong. -e: exactly the files, without changes; -s: few changes, for targets that are slow.
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

enum { FILE_MAX = 1024 * 1024, CUTS = 64, FLIPS = 256, FILES = 24 };

static unsigned long runs;
static bool exactly;
static unsigned slow = 1, share = 1; /* a corpus of many files has fewer variants of each: a test takes seconds */

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

static void variants(uint8_t *data, size_t size)
{
	uint64_t random = 0x9e3779b97f4a7c15;

	feed(data, size);
	if (exactly)
		return;
	for (size_t i = 0; i < CUTS / share && i < size; i++)
		feed(data, size <= CUTS / share ? i : size * i * share / CUTS);
	for (unsigned i = 0; i < FLIPS / share && size; i++) {
		size_t at;
		uint8_t old;

		random = random * 6364136223846793005 + 1442695040888963407;
		at = (size_t)(random >> 33) % size;
		old = data[at];
		data[at] = i % 2 ? (uint8_t)(random >> 24) : (uint8_t)(old ^ 1 << (random >> 24) % 8);
		feed(data, size);
		data[at] = old;
	}
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
	variants(data, size);
	free(data);
	return 1;
}

static void set_share(DIR *dir)
{
	unsigned count = 0;

	while (readdir(dir))
		count++;
	rewinddir(dir);
	share = count > FILES ? count / FILES : 1;
	share *= slow;
	share = share > CUTS ? CUTS : share;
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
		if (!strcmp(argv[i], "-s")) {
			slow = 16;
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
