/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/sdt.h"
#include "workdir.h"

static const char program[] = "#include <sys/sdt.h>\n"
			      "int main(int argc, char **argv) {\n"
			      "	long x = argc * 3;\n"
			      "	DTRACE_PROBE(app, start);\n"
			      "	DTRACE_PROBE2(app, get, argv, x);\n"
			      "	DTRACE_PROBE3(lib, put, x, argv[0], 1);\n"
			      "	return 0; }\n";

static const char semaphores[] = "#define _SDT_HAS_SEMAPHORES 1\n"
				 "unsigned short app_start_semaphore, app_get_semaphore, lib_put_semaphore;\n";

/* readelf's lines: "provider name location base semaphore" */
static char *oracle(struct workdir *f, const char *name)
{
	return workdir_output(f,
			      "readelf -nW %s | tr '\\n' ' ' | grep -o 'Provider: [^ ]* *Name: [^ ]* *Location: [^ ]* "
			      "Base: [^ ]* Semaphore: [^ ]*' | awk '{ print $2, $4, $6, $8, $10 }' | tr -d ,",
			      name);
}

/* moved: how far .stapsdt.base stands from where the notes say */
static void check(struct workdir *f, const char *name, long long moved)
{
	struct rt_sdt_marker *markers = NULL;
	struct rt_image *image = NULL;
	char *lines = oracle(f, name);
	size_t n = 0, at = 0;

	assert_ok(rt_image_open(workdir_path(f, name), &image));
	assert_ok(rt_sdt_read(image, &markers, &n));
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), at++) {
		unsigned long long location, base, semaphore;
		char provider[32], marker[32];

		assert_int_equal(
			sscanf(line, "%31s %31s %llx %llx %llx", provider, marker, &location, &base, &semaphore), 5);
		assert_true(at < n);
		assert_string_equal(markers[at].provider, provider);
		assert_string_equal(markers[at].name, marker);
		assert_int_equal(markers[at].location.v, location + (unsigned long long)moved);
		assert_int_equal(markers[at].semaphore.v, semaphore ? semaphore + (unsigned long long)moved : 0);
	}
	assert_int_equal(at, n);
	assert_int_equal(n, 3);
	assert_string_equal(markers[0].args, "");
	assert_non_null(strchr(markers[1].args, '@'));
	/* the probe is a nop */
	if (!moved)
		assert_int_equal(rt_image_at(image, markers[0].location, 1).data[0], 0x90);
	free(lines);
	free(markers);
	rt_image_destroy(image);
}

TEST(same_as_readelf)
{
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc p.c -o p");
	check(&f, "p", 0);
	workdir_run(&f, "gcc -no-pie p.c -o q");
	check(&f, "q", 0);
	workdir_remove(&f);
}

TEST(semaphores)
{
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_write(&f, "head.h", semaphores);
	workdir_run(&f, "gcc -include head.h p.c -o p && readelf -nW p | grep -q 'Semaphore: 0x0*[1-9a-f]'");
	check(&f, "p", 0);
	workdir_remove(&f);
}

/* what prelink does: the section moves, the notes keep their old base */
TEST(moved_base)
{
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_write(&f, "head.h", semaphores);
	workdir_run(&f, "gcc -include head.h p.c -o p && objcopy --change-section-address .stapsdt.base+0x1000 p moved "
			"2>/dev/null");
	check(&f, "moved", 0x1000);
	workdir_remove(&f);
}

TEST(none_and_damaged)
{
	struct rt_sdt_marker *markers = NULL;
	struct rt_image *image = NULL;
	struct workdir f;
	size_t n = 1;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_write(&f, "e.c", "int main(void) { return 0; }\n");
	workdir_run(&f, "gcc e.c -o e && gcc p.c -o p");
	assert_ok(rt_image_open(workdir_path(&f, "e"), &image));
	assert_ok(rt_sdt_read(image, &markers, &n));
	assert_int_equal(n, 0);
	free(markers);
	rt_image_destroy(image);
	/* the second note is cut: the first one is still told */
	workdir_run(&f, "objcopy -O binary --set-section-flags .note.stapsdt=alloc -j .note.stapsdt p notes && "
			"head -c 90 notes > cut && objcopy --update-section .note.stapsdt=cut p d");
	assert_ok(rt_image_open(workdir_path(&f, "d"), &image));
	assert_code(rt_sdt_read(image, &markers, &n), RT_E_FORMAT);
	assert_int_equal(n, 1);
	assert_string_equal(markers[0].name, "start");
	free(markers);
	rt_image_destroy(image);
	workdir_remove(&f);
}

TEST_MAIN();
