/* SPDX-License-Identifier: GPL-2.0-only */
#include "maps/maps.h"
#include "test.h"

static void feed_map(struct rt_maps *maps, uint32_t pid, uint64_t time, uint64_t start, uint64_t end, uint64_t offset,
		     uint32_t module)
{
	struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .pid = pid, .time_ns = time },
				   .start = start,
				   .end = end,
				   .file_offset = offset,
				   .module = module };

	assert_ok(rt_maps_record(maps, &map.head));
}

static void feed_unmap(struct rt_maps *maps, uint32_t pid, uint64_t time, uint64_t start, uint64_t end)
{
	struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_UNMAP, .pid = pid, .time_ns = time },
				   .start = start,
				   .end = end };

	assert_ok(rt_maps_record(maps, &map.head));
}

static void feed_task(struct rt_maps *maps, uint8_t kind, uint32_t pid, uint64_t time, uint32_t other)
{
	struct rt_wire_task task = { .head = { .size = sizeof(task), .kind = kind, .pid = pid, .time_ns = time },
				     .other = other };

	assert_ok(rt_maps_record(maps, &task.head));
}

/* Module at addr, 0 = none. */
static uint32_t at(const struct rt_maps *maps, uint32_t pid, uint64_t time, uint64_t addr)
{
	struct rt_mapping mapping;

	if (!rt_maps_find(maps, pid, time, (struct rt_vaddr){ addr }, &mapping))
		return 0;
	assert_true(mapping.start <= addr && addr < mapping.end);
	return mapping.module;
}

TEST(replaced_and_unmapped)
{
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	struct rt_mapping m;

	assert_ok(rt_maps_create(&maps));
	feed_map(maps, 1, 10, 0x1000, 0x5000, 0x100, 1);
	feed_map(maps, 1, 20, 0x2000, 0x3000, 0, 2);
	feed_unmap(maps, 1, 30, 0x1000, 0x5000);
	assert_int_equal(at(maps, 1, 10, 0x2800), 1);
	assert_int_equal(at(maps, 1, 19, 0x2800), 1);
	assert_int_equal(at(maps, 1, 20, 0x2800), 2);
	assert_int_equal(at(maps, 1, 25, 0x3000), 1);
	assert_int_equal(at(maps, 1, 30, 0x3000), 0);
	assert_int_equal(at(maps, 1, 25, 0x5000), 0);
	assert_int_equal(at(maps, 1, 25, 0x0fff), 0);
	assert_int_equal(at(maps, 2, 25, 0x2000), 0);
	assert_true(rt_maps_find(maps, 1, 12, (struct rt_vaddr){ 0x1234 }, &m));
	assert_int_equal(m.start, 0x1000);
	assert_int_equal(m.end, 0x5000);
	assert_int_equal(m.offset.v, 0x100);
}

TEST(event_older_than_its_map)
{
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;

	assert_ok(rt_maps_create(&maps));
	feed_map(maps, 1, 200, 0x1000, 0x2000, 0, 9);
	feed_map(maps, 1, 100, 0x1000, 0x2000, 0, 3);
	assert_int_equal(at(maps, 1, 50, 0x1000), 3);
	assert_int_equal(at(maps, 1, 150, 0x1000), 3);
	assert_int_equal(at(maps, 1, 200, 0x1000), 9);
}

TEST(fork_and_exec)
{
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	uint32_t child = RT_PID_MAKE(7, 0), execed = RT_PID_MAKE(7, 1);

	assert_ok(rt_maps_create(&maps));
	feed_map(maps, 1, 10, 0x1000, 0x2000, 0, 1);
	feed_task(maps, RT_WIRE_FORK, 1, 20, child);
	feed_map(maps, 1, 30, 0x1000, 0x2000, 0, 2);
	feed_map(maps, child, 40, 0x8000, 0x9000, 0, 3);
	feed_task(maps, RT_WIRE_EXEC, execed, 50, 0);
	feed_map(maps, execed, 51, 0x1000, 0x2000, 0, 4);
	assert_int_equal(at(maps, child, 35, 0x1000), 1);
	assert_int_equal(at(maps, 1, 35, 0x1000), 2);
	assert_int_equal(at(maps, child, 45, 0x8000), 3);
	assert_int_equal(at(maps, 1, 45, 0x8000), 0);
	assert_int_equal(at(maps, execed, 60, 0x1000), 4);
	assert_int_equal(at(maps, execed, 60, 0x8000), 0);
	/* the parent's record came late, but is older than the fork */
	feed_map(maps, 1, 15, 0x4000, 0x5000, 0, 5);
	assert_int_equal(at(maps, child, 35, 0x4000), 5);
	/* grandchild */
	feed_task(maps, RT_WIRE_FORK, child, 45, 9);
	assert_int_equal(at(maps, 9, 46, 0x4000), 5);
	assert_int_equal(at(maps, 9, 46, 0x8000), 3);
}

TEST(pid_used_again)
{
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;

	assert_ok(rt_maps_create(&maps));
	feed_map(maps, 1, 1, 0x1000, 0x2000, 0, 1);
	feed_map(maps, 2, 1, 0x1000, 0x2000, 0, 2);
	feed_task(maps, RT_WIRE_FORK, 1, 10, 7);
	feed_map(maps, 7, 11, 0x3000, 0x4000, 0, 3);
	feed_task(maps, RT_WIRE_EXIT, 7, 15, 0);
	feed_task(maps, RT_WIRE_FORK, 2, 20, 7);
	assert_int_equal(at(maps, 7, 12, 0x1000), 1);
	assert_int_equal(at(maps, 7, 12, 0x3000), 3);
	assert_int_equal(at(maps, 7, 22, 0x1000), 2);
	assert_int_equal(at(maps, 7, 22, 0x3000), 0);
	/* a damaged stream: a process that is its own parent */
	feed_task(maps, RT_WIRE_FORK, 5, 20, 5);
	assert_int_equal(at(maps, 5, 22, 0x1000), 0);
}

struct seen {
	struct rt_mapping list[16];
	size_t count, stop;
};

static bool keep(const struct rt_mapping *mapping, void *arg)
{
	struct seen *seen = arg;

	assert_true(seen->count < 16);
	seen->list[seen->count++] = *mapping;
	return seen->count != seen->stop;
}

TEST(each_in_order)
{
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	struct seen seen = { 0 };

	assert_ok(rt_maps_create(&maps));
	feed_map(maps, 1, 10, 0x8000, 0x9000, 0, 4);
	feed_map(maps, 1, 10, 0x1000, 0x5000, 0x100, 1);
	feed_map(maps, 1, 20, 0x2000, 0x3000, 0, 2);
	feed_task(maps, RT_WIRE_FORK, 1, 30, 7);
	feed_unmap(maps, 7, 31, 0x4000, 0x8800);
	feed_map(maps, 7, 99, 0xa000, 0xb000, 0, 8);
	rt_maps_each(maps, 7, 40, keep, &seen);
	assert_int_equal(seen.count, 4);
	assert_int_equal(seen.list[0].start, 0x1000);
	assert_int_equal(seen.list[0].end, 0x2000);
	assert_int_equal(seen.list[1].module, 2);
	assert_int_equal(seen.list[2].start, 0x3000);
	assert_int_equal(seen.list[2].end, 0x4000);
	assert_int_equal(seen.list[2].offset.v, 0x2100);
	assert_int_equal(seen.list[3].start, 0x8800);
	assert_int_equal(seen.list[3].offset.v, 0x800);
	seen = (struct seen){ .stop = 2 };
	rt_maps_each(maps, 7, 40, keep, &seen);
	assert_int_equal(seen.count, 2);
}

/* Against a plain array of pages that is painted record by record. */
TEST(many_records_against_a_table)
{
	enum { PAGES = 64, STEPS = 3000 };
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	static uint32_t table[STEPS + 1][PAGES];
	uint32_t seed = 1;

	assert_ok(rt_maps_create(&maps));
	for (uint32_t t = 1; t <= STEPS; t++) {
		uint32_t from, len;
		bool gone;

		seed = seed * 1103515245 + 12345;
		from = (seed >> 8) % PAGES;
		len = 1 + (seed >> 16) % (PAGES - from);
		gone = (seed >> 28) % 4 == 0;
		memcpy(table[t], table[t - 1], sizeof(table[t]));
		for (uint32_t p = from; p < from + len; p++)
			table[t][p] = gone ? 0 : t;
		if (gone)
			feed_unmap(maps, 1, t, from * 16, (from + len) * 16);
		else
			feed_map(maps, 1, t, from * 16, (from + len) * 16, 0, t);
		if (t % 7 == 0)
			assert_int_equal(at(maps, 1, t, from * 16), table[t][from]);
	}
	for (uint32_t t = PAGES; t <= STEPS; t += 13) {
		for (uint32_t p = 0; p < PAGES; p++) {
			if (table[t][p])
				assert_int_equal(at(maps, 1, t, p * 16 + 3), table[t][p]);
		}
	}
}

TEST(lines_of_proc)
{
	char text[] = "55d0-55e0 r-xp 00001000 fe:01 1234                       /usr/bin/a b\n"
		      "7f00-7f10 rw-s 00000000 00:05 77 /tmp/x\\012y (deleted)\n"
		      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
		      "1000-2000 ---p 00000000 00:00 0 \n"
		      "3000-2000 ---p 00000000 00:00 0\n";
	struct rt_maps_line line;
	char *at = text;

	assert_true(rt_maps_parse_line(&at, &line));
	assert_int_equal(line.start, 0x55d0);
	assert_int_equal(line.end, 0x55e0);
	assert_int_equal(line.offset, 0x1000);
	assert_int_equal(line.dev_major, 0xfe);
	assert_int_equal(line.inode, 1234);
	assert_true(line.readable && !line.writable && line.executable && !line.shared && !line.deleted);
	assert_string_equal(line.path, "/usr/bin/a b");
	assert_true(rt_maps_parse_line(&at, &line));
	assert_true(line.deleted && line.shared && line.writable);
	assert_string_equal(line.path, "/tmp/x\ny");
	assert_true(rt_maps_parse_line(&at, &line));
	assert_int_equal(line.end, 0xffffffffff601000);
	assert_true(rt_maps_parse_line(&at, &line));
	assert_string_equal(line.path, "");
	assert_false(rt_maps_parse_line(&at, &line));
	at = text + strlen(text);
	assert_false(rt_maps_parse_line(&at, &line));
}

TEST(lines_refused)
{
	static const char *const bad[] = { "",
					   "\n",
					   "x",
					   "10-20",
					   "10-20 r-xp",
					   "10-20 r-xp 0 0:0",
					   "10-20 r-x 0 0:0 0",
					   "10-20 rrxp 0 0:0 0",
					   "10-20 r-xq 0 0:0 0",
					   "10-10 r-xp 0 0:0 0",
					   "10-20 r-xp 0 00 0",
					   "10-20 r-xp 0 0:0 0x1",
					   "-20 r-xp 0 0:0 0",
					   "11111111111111111-20 r-xp 0 0:0 0" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		_cleanup_free_ char *text = strdup(bad[i]);
		struct rt_maps_line line;
		char *at = text;

		if (rt_maps_parse_line(&at, &line))
			fail_msg("accepted: %s", bad[i]);
		assert_ptr_equal(at, text);
		assert_string_equal(text, bad[i]);
	}
}

TEST(own_maps)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "r");
	_cleanup_free_ char *text = calloc(1, 1 << 20);
	struct rt_maps_line line;
	bool code = false;
	size_t lines = 0, got;
	char *at = text;

	assert_non_null(f);
	got = fread(text, 1, (1 << 20) - 1, f);
	assert_true(got > 0);
	for (size_t i = 0; i < got; i++)
		lines += text[i] == '\n';
	while (rt_maps_parse_line(&at, &line)) {
		lines--;
		code |= line.executable && line.start <= (uintptr_t)&feed_map && (uintptr_t)&feed_map < line.end;
	}
	assert_int_equal(lines, 0);
	assert_true(code);
}

TEST_MAIN();
