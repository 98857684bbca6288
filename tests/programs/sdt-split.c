/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A marker with a semaphore that lies in a page of its own, in the midst of a writable segment; done by lines of
 * standard input, each answered by its own first word:
 *
 *     pass N       the marker, N times, where its semaphore is raised; says how often it was
 *     split, join  the pages around that of the semaphore lose their write access, so that the segment is three
 *                  mappings, and get it back
 *     again        the semaphore's page of the file is mapped privately once more
 *     load FILE    the same of this library (built from this file with -DLIBRARY) from now on; unload: it goes
 *     fork         a child goes on instead, until it is told to exit; its parent waits
 *     exec         the program begins anew; vfork: another one runs meanwhile, in a child
 *
 * Says "semaphore ADDRESS" at the start and after each load. A second marker, `other`, has the same semaphore.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

/* in assembly: what lies beside a variable is the compiler's choice otherwise */
__asm__(".pushsection .probes,\"aw\",@progbits\n"
	".balign 4096\n.space 8192\n"
	".globl split_hit_semaphore\n.hidden split_hit_semaphore\n"
	"split_hit_semaphore: .space 8192\n.popsection\n");
extern volatile unsigned short split_hit_semaphore;

#define split_other_semaphore split_hit_semaphore

int split_pass(int number);
volatile unsigned short *split_counter(void);

int split_pass(int number)
{
	int passed = 0;

	for (int i = 0; i < number; i++) {
		if (!split_hit_semaphore)
			continue;
		STAP_PROBE1(split, hit, i);
		STAP_PROBE1(split, other, i);
		passed++;
	}
	return passed;
}

volatile unsigned short *split_counter(void)
{
	return &split_hit_semaphore;
}

#ifndef LIBRARY
static struct {
	void *library;
	int (*pass)(int number);
	volatile unsigned short *counter;
	const char *path;
} now;

static void use(void *library, const char *path)
{
	volatile unsigned short *(*counter)(void) = library ? dlsym(library, "split_counter") : split_counter;

	now.library = library;
	now.pass = library ? dlsym(library, "split_pass") : split_pass;
	now.counter = counter();
	now.path = path;
	printf("semaphore %lx\n", (unsigned long)(uintptr_t)now.counter);
}

/* The page before that of the semaphore, and the one behind it. */
static void protect(int access)
{
	char *page = (char *)((uintptr_t)now.counter & ~(uintptr_t)(PAGE - 1));

	if (mprotect(page - PAGE, PAGE, access) || mprotect(page + PAGE, PAGE, access))
		abort();
}

/* Where the file has the page, /proc/self/maps knows. */
static void map_again(void)
{
	uintptr_t page = (uintptr_t)now.counter & ~(uintptr_t)(PAGE - 1), start, end;
	FILE *maps = fopen("/proc/self/maps", "r");
	int fd = open(now.path, O_RDONLY);
	unsigned long offset;
	char line[512];

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && page >= start && page < end &&
		    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)(offset + page - start)) ==
			    MAP_FAILED)
			abort();
	fclose(maps);
	close(fd);
}

/* What was read already must not be read by both. */
static void fork_and_wait(void)
{
	pid_t child = fork();

	if (child)
		waitpid(child, NULL, 0);
}

static void run_other(void)
{
	pid_t child = vfork();

	if (!child) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

int main(void)
{
	static char path[512];
	char line[512];

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	use(NULL, "/proc/self/exe");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "pass ", 5)) {
			printf("pass %d\n", now.pass(atoi(line + 5)));
			continue;
		}
		if (!strcmp(line, "split") || !strcmp(line, "join"))
			protect(*line == 's' ? PROT_READ : PROT_READ | PROT_WRITE);
		else if (!strcmp(line, "again"))
			map_again();
		else if (!strcmp(line, "fork"))
			fork_and_wait();
		else if (!strcmp(line, "vfork"))
			run_other();
		else if (!strcmp(line, "exec"))
			execl("/proc/self/exe", "sdt-split", NULL);
		else if (!strcmp(line, "exit"))
			_exit(0);
		else if (!strcmp(line, "pid"))
			printf("pid %d\n", getpid());
		else if (!strncmp(line, "load ", 5))
			use(dlopen(strcpy(path, line + 5), RTLD_NOW), path);
		else if (!strcmp(line, "unload") && !dlclose(now.library))
			use(NULL, "/proc/self/exe");
		puts(line);
	}
	return 0;
}
#endif
