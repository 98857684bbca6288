/* SPDX-License-Identifier: GPL-2.0-only */
#include <elf.h>
#include <fcntl.h>

#include "elf/image.h"
#include "workdir.h"

static const char program[] = "#include <stdio.h>\n"
			      "int counter = 3;\n"
			      "static int twice(int x) { return 2 * x; }\n"
			      "int (*volatile fn)(int) = twice;\n"
			      "int main(void) { printf(\"%d\\n\", fn(counter)); return 0; }\n";

static struct rt_image *open_image(struct workdir *f, const char *name)
{
	struct rt_image *image = NULL;

	assert_ok(rt_image_open(workdir_path(f, name), &image));
	return image;
}

static void check_build_id(struct workdir *f, const char *name)
{
	struct rt_image *image = open_image(f, name);
	char text[2 * RT_BUILD_ID_MAX + 1];
	char *want = workdir_output(f, "readelf -n %s | sed -n 's/.*Build ID: //p' | tr -d '\\n'", name);

	assert_false(image->build_id_is_hash);
	assert_string_equal(rt_build_id_text(image->build_id, image->build_id_size, text), want);
	free(want);
	rt_image_destroy(image);
}

/* readelf's program headers: each PT_LOAD is there, and addresses and offsets lead to each other */
static void check_segments(struct workdir *f, const char *name)
{
	struct rt_image *image = open_image(f, name);
	char *lines = workdir_output(f, "readelf -lW %s | awk '$1 == \"LOAD\" { print $2, $3, $5 }'", name);
	size_t n = 0;

	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), n++) {
		unsigned long long offset, vaddr, filesz;
		struct rt_foff back = { 1 };
		struct rt_elfaddr addr;

		assert_int_equal(sscanf(line, "%llx %llx %llx", &offset, &vaddr, &filesz), 3);
		assert_true(n < image->segment_count);
		assert_int_equal(image->segments[n].start.v, vaddr);
		assert_int_equal(image->segments[n].end.v, vaddr + filesz);
		assert_int_equal(image->segments[n].offset.v, offset);
		assert_true(rt_image_offset(image, (struct rt_elfaddr){ vaddr + filesz - 1 }, &back));
		assert_int_equal(back.v, offset + filesz - 1);
		assert_int_equal(rt_image_at(image, (struct rt_elfaddr){ vaddr + filesz - 1 }, 100).size, 1);
		if (image->segments[n].flags & PF_X) {
			assert_true(rt_image_address(image, back, true, &addr));
			assert_int_equal(addr.v, vaddr + filesz - 1);
		}
	}
	assert_int_equal(n, image->segment_count);
	assert_true(n > 0);
	free(lines);
	rt_image_destroy(image);
}

TEST(kinds_of_programs)
{
	static const char *const flags[] = { "-fPIE -pie", "-no-pie", "-static", "-fuse-ld=gold", "-fuse-ld=lld" };
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		workdir_run(&f, "gcc -g %s -Wl,--build-id p.c -o p", flags[i]);
		check_build_id(&f, "p");
		check_segments(&f, "p");
		workdir_run(&f, "strip p && objcopy --strip-section-headers p bare 2>/dev/null || cp p bare");
		check_build_id(&f, "p");
		check_segments(&f, "bare");
	}
	workdir_remove(&f);
}

TEST(content_hash_without_note)
{
	struct workdir f;
	struct rt_image *image;
	char text[2 * RT_BUILD_ID_MAX + 1], *want;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc -Wl,--build-id=none p.c -o p");
	/* every length modulo the block size of the hash */
	for (unsigned i = 0; i < 64; i++) {
		workdir_run(&f, "printf x >> p");
		image = open_image(&f, "p");
		want = workdir_output(&f, "sha1sum p | cut -c 1-40 | tr -d '\\n'");
		assert_true(image->build_id_is_hash);
		assert_string_equal(rt_build_id_text(image->build_id, image->build_id_size, text), want);
		free(want);
		rt_image_destroy(image);
	}
	workdir_remove(&f);
}

TEST(needed_libraries)
{
	struct workdir f;
	struct rt_image *image;
	const char **names = NULL;
	size_t n = 0, at = 0;
	char *want;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc p.c -o p -Wl,--no-as-needed -lm -lpthread -ldl");
	image = open_image(&f, "p");
	want = workdir_output(&f, "readelf -d p | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p'");
	assert_ok(rt_image_needed(image, &names, &n));
	for (char *line = strtok(want, "\n"); line; line = strtok(NULL, "\n"), at++) {
		assert_true(at < n);
		assert_string_equal(names[at], line);
	}
	assert_int_equal(at, n);
	assert_true(n >= 2);
	free(want);
	free(names);
	rt_image_destroy(image);
	workdir_remove(&f);
}

TEST(sections)
{
	struct workdir f;
	struct rt_image *image;
	struct rt_elfaddr addr = { 0 };
	struct rt_bytes bytes;
	char *want;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc p.c -o p && objcopy -O binary -j .text p text");
	image = open_image(&f, "p");
	want = workdir_output(&f, "readelf -SW p | sed -n 's/.* \\.text *PROGBITS *\\([0-9a-f]*\\) .*/\\1/p'");
	assert_true(rt_image_section(image, ".text", &bytes, &addr));
	assert_int_equal(addr.v, strtoull(want, NULL, 16));
	free(want);
	want = workdir_output(&f, "stat -c %%s text");
	assert_int_equal(bytes.size, strtoull(want, NULL, 10));
	free(want);
	assert_false(rt_image_section(image, ".bss", &bytes, NULL));
	assert_false(rt_image_section(image, ".nowhere", &bytes, NULL));
	assert_false(rt_image_section(image, "", &bytes, NULL));
	rt_image_destroy(image);
	workdir_remove(&f);
}

static bool finds_debug(struct workdir *f, const char *name, int root_fd)
{
	struct rt_image *image = open_image(f, name);
	bool found;

	assert_ok(rt_image_find_debug(image, root_fd));
	found = image->debug;
	if (found)
		assert_true(image->debug->bytes.size > 0);
	rt_image_destroy(image);
	return found;
}

TEST(debug_file_by_link)
{
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	for (unsigned with_id = 0; with_id < 2; with_id++) {
		workdir_run(&f, "gcc -g p.c -o p -Wl,--build-id=%s", with_id ? "sha1" : "none");
		workdir_run(&f, "objcopy --only-keep-debug p p.dbg && objcopy -S --add-gnu-debuglink=p.dbg p q");
		assert_true(finds_debug(&f, "q", AT_FDCWD));
		workdir_run(&f, "mkdir -p .debug && mv p.dbg .debug/");
		assert_true(finds_debug(&f, "q", AT_FDCWD));
		/* another program's debug file under the right name */
		workdir_run(&f, "sed s/counter/kounter/ p.c > o.c && gcc -g o.c -o o -Wl,--build-id=%s",
			    with_id ? "sha1" : "none");
		workdir_run(&f, "objcopy --only-keep-debug o .debug/p.dbg");
		assert_false(finds_debug(&f, "q", AT_FDCWD));
		workdir_run(&f, "echo none > .debug/p.dbg");
		assert_false(finds_debug(&f, "q", AT_FDCWD));
		workdir_run(&f, "rm .debug/p.dbg && mkfifo .debug/p.dbg");
		assert_false(finds_debug(&f, "q", AT_FDCWD));
		workdir_run(&f, "rm -rf .debug");
		assert_false(finds_debug(&f, "q", AT_FDCWD));
	}
	workdir_remove(&f);
}

TEST(debug_file_by_build_id_below_root)
{
	struct workdir f;
	int root;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	workdir_run(&f, "gcc -g p.c -o p -Wl,--build-id=0x1234567890 && mkdir -p root/usr/lib/debug/.build-id/12");
	workdir_run(&f, "objcopy --only-keep-debug p root/usr/lib/debug/.build-id/12/34567890.debug && strip p");
	root = open(workdir_path(&f, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	assert_true(finds_debug(&f, "p", root));
	assert_false(finds_debug(&f, "p", AT_FDCWD));
	/* an absolute link counts from the root that was handed in */
	workdir_run(&f, "mv root/usr/lib/debug/.build-id/12/34567890.debug root/d");
	workdir_run(&f, "ln -s /d root/usr/lib/debug/.build-id/12/34567890.debug");
	assert_true(finds_debug(&f, "p", root));
	workdir_run(&f, "mv root/d d && ln -sf ../../../../../../d root/usr/lib/debug/.build-id/12/34567890.debug");
	assert_false(finds_debug(&f, "p", root));
	close(root);
	workdir_remove(&f);
}

TEST(refusals)
{
	struct workdir f;
	struct rt_image *image = NULL;

	workdir_make(&f);
	workdir_write(&f, "text", "no program at all, only words");
	workdir_write(&f, "empty", "");
	workdir_write(&f, "head", "\177ELF\2\1\1");
	workdir_write(&f, "cut", "\177ELF\2\1\1 and sixteen bytes of ELF, then nothing");
	assert_code(rt_image_open(workdir_path(&f, "text"), &image), RT_E_NOT_ELF);
	assert_code(rt_image_open(workdir_path(&f, "empty"), &image), RT_E_NOT_ELF);
	assert_code(rt_image_open(workdir_path(&f, "head"), &image), RT_E_NOT_ELF);
	assert_code(rt_image_open(workdir_path(&f, "cut"), &image), RT_E_FORMAT);
	assert_code(rt_image_open(workdir_path(&f, "absent"), &image), RT_E_NOT_FOUND);
	assert_code(rt_image_open(f.dir, &image), RT_E_UNREADABLE);
	assert_null(image);
	workdir_remove(&f);
}

TEST_MAIN();
