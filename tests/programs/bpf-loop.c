// SPDX-License-Identifier: GPL-2.0-only
/*
 * bpf-loop OBJECT N [THREADS [MODE [ARG]]]: loads the BPF object N times in each thread and
 * closes it at once. Before closing, for every EVERYth (environment EVERY), what the kernel itself
 * tells of the program is printed as digests:
 *
 *   prog ID TAG digest(jited) digest(xlated) digest(line info) digest(jited line info) digest(func info)
 *        digest(ksyms) digest(func lens) digest(tags) digest(map ids) BTF-ID digest(BTF) name name...
 *
 * MODE: close (the default); pin PATH: pins the last one; link: attaches the last one by a
 * link that is pinned at PATH; fd: a child keeps its descriptor and sleeps until it is killed,
 * its pid is printed; run NUMBER: attaches the last one, starts NUMBER processes, closes it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *object, *mode = "close", *argument;
static int loads, every;
static pthread_mutex_t print = PTHREAD_MUTEX_INITIALIZER;

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* FNV-1a, as tests/live/test_bpf.py does it */
static unsigned long long digest(const void *data, size_t size)
{
	unsigned long long h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size; i++)
		h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3ull;
	return h;
}

static void tell(int fd)
{
	static __thread unsigned char room[9][1 << 16];
	struct bpf_prog_info info = { 0 };
	struct bpf_btf_info btf = { 0 };
	unsigned size = sizeof(info);
	int btf_fd;

	info.jited_prog_len = info.xlated_prog_len = 1 << 16;
	info.nr_map_ids = info.nr_jited_ksyms = info.nr_jited_func_lens = info.nr_func_info = info.nr_line_info =
		info.nr_jited_line_info = info.nr_prog_tags = 1000;
	info.func_info_rec_size = 8;
	info.line_info_rec_size = 16;
	info.jited_line_info_rec_size = 8;
	info.jited_prog_insns = (unsigned long)room[0];
	info.xlated_prog_insns = (unsigned long)room[1];
	info.line_info = (unsigned long)room[2];
	info.jited_line_info = (unsigned long)room[3];
	info.func_info = (unsigned long)room[4];
	info.jited_ksyms = (unsigned long)room[5];
	info.jited_func_lens = (unsigned long)room[6];
	info.prog_tags = (unsigned long)room[7];
	info.map_ids = (unsigned long)room[8];
	if (bpf_obj_get_info_by_fd(fd, &info, &size)) {
		perror("info");
		exit(1);
	}
	pthread_mutex_lock(&print);
	printf("prog %u ", info.id);
	for (int i = 0; i < 8; i++)
		printf("%02x", info.tag[i]);
	printf(" %llx %llx %llx %llx %llx %llx %llx %llx %llx", digest(room[0], info.jited_prog_len),
	       digest(room[1], info.xlated_prog_len), digest(room[2], info.nr_line_info * 16),
	       digest(room[3], info.nr_jited_line_info * 8), digest(room[4], info.nr_func_info * 8),
	       digest(room[5], info.nr_jited_ksyms * 8), digest(room[6], info.nr_jited_func_lens * 4),
	       digest(room[7], info.nr_prog_tags * 8), digest(room[8], info.nr_map_ids * 4));
	btf_fd = bpf_btf_get_fd_by_id(info.btf_id);
	btf.btf = (unsigned long)room[0];
	btf.btf_size = sizeof(room[0]);
	size = sizeof(btf);
	if (btf_fd < 0 || bpf_obj_get_info_by_fd(btf_fd, &btf, &size)) {
		perror("btf");
		exit(1);
	}
	printf(" %u %llx\n", info.btf_id, digest(room[0], btf.btf_size));
	pthread_mutex_unlock(&print);
	close(btf_fd);
}

static void keep(struct bpf_object *o)
{
	struct bpf_program *p = bpf_object__next_program(o, NULL);
	int fd = bpf_program__fd(p), ready[2];
	char byte;

	if (!strcmp(mode, "pin")) {
		if (bpf_obj_pin(fd, argument))
			perror("pin");
	} else if (!strcmp(mode, "link")) {
		struct bpf_link *link = bpf_program__attach(p);

		if (!link || bpf_link__pin(link, argument))
			perror("link");
		else
			bpf_link__disconnect(link);
	} else if (!strcmp(mode, "run")) {
		struct bpf_link *link = bpf_program__attach(p);

		for (int i = atoi(argument); link && i > 0; i--) {
			pid_t child = fork();

			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
		}
		bpf_link__destroy(link);
	} else if (!strcmp(mode, "fd")) {
		pid_t child;

		if (pipe(ready))
			exit(1);
		child = fork();
		if (!child) {
			setsid();
			fclose(stdout);
			close(2);
			close(ready[1]);
			if (read(ready[0], &byte, 1) < 0)
				_exit(1);
			for (;;)
				pause();
		}
		printf("child %d\n", (int)child);
	}
}

static void *work(void *arg)
{
	for (int i = 0; i < loads; i++) {
		struct bpf_object *o = bpf_object__open_file(object, NULL);
		struct bpf_program *p;

		if (!o || bpf_object__load(o)) {
			fprintf(stderr, "load: %s\n", strerror(errno));
			exit(1);
		}
		bpf_object__for_each_program(p, o)
		{
			if (every && i % every == 0)
				tell(bpf_program__fd(p));
		}
		if (i == loads - 1)
			keep(o);
		bpf_object__close(o);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 3 ? atoi(argv[3]) : 1;
	pthread_t id[64];

	if (argc < 3 || threads > 64)
		return 2;
	libbpf_set_print(quiet);
	object = argv[1];
	loads = atoi(argv[2]);
	mode = argc > 4 ? argv[4] : "close";
	argument = argc > 5 ? argv[5] : "";
	every = getenv("EVERY") ? atoi(getenv("EVERY")) : 0;
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&id[i], NULL, work, NULL))
			return 1;
	}
	for (int i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	printf("loaded %d\n", loads * threads);
	return 0;
}
