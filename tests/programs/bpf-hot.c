/* SPDX-License-Identifier: GPL-2.0-only */
/* bpf-hot OBJECT N: loads OBJECT, attaches its program, makes N system calls, and unloads it before it ends. */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct bpf_object *object = bpf_object__open_file(argv[1], NULL);
	struct bpf_program *program;
	struct bpf_link *link;

	if (!object || bpf_object__load(object))
		return 1;
	program = bpf_object__next_program(object, NULL);
	link = bpf_program__attach(program);
	if (!link)
		return 1;
	for (long n = atol(argv[2]); n > 0; n--)
		syscall(SYS_getppid);
	bpf_link__destroy(link);
	bpf_object__close(object);
	puts("unloaded");
	return 0;
}
