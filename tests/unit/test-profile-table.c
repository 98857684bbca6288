/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples into tables: hand-made streams whose sums can be done in the head. */
#include <string.h>

#include <linux/perf_event.h>

#include "profile/profile.h"
#include "test.h"

/* Three functions of 0x100 bytes from 0x1000 on; the process decides about the module from exec to exec. */
static size_t name(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return,
		   struct rt_frame *ret, size_t max)
{
	static const char *const functions[] = { "leaf", "middle", "outer" };
	uint64_t at = pc - is_return;

	ret[0] = (struct rt_frame){ .address = pc };
	if (at >> 63) {
		ret[0].function = "sys_kernel";
		ret[0].entry = 0xffffffff81000000;
		ret[0].module = "[kernel.kallsyms]";
		return 1;
	}
	if (at < 0x1000 || at >= 0x1300)
		return 1;
	ret[0].function = functions[(at - 0x1000) / 0x100];
	ret[0].entry = at & ~0xffull;
	ret[0].module = time_ns < 1000 ? "/bin/first" : "/bin/second";
	ret[0].module_id = time_ns < 1000 ? 1 : 2;
	return 1;
}

static struct rt_namer namer = { .name = name };

static struct rt_error *sample(struct rt_profile *p, uint32_t tid, uint64_t time_ns, uint64_t ip, const uint64_t *chain,
			       size_t count)
{
	struct rt_profile_sample s = {
		.pid = 7, .tid = tid, .time_ns = time_ns, .period = 10, .ip = ip, .chain = chain, .chain_count = count
	};

	return rt_profile_sample(p, &s);
}

static const struct rt_profile_row *row(const struct rt_profile_table *t, const char *function, const char *module)
{
	for (size_t i = 0; i < t->row_count; i++) {
		const struct rt_profile_symbol *s = &t->rows[i].symbol;

		if (s->function && !strcmp(s->function, function) && !strcmp(s->module, module))
			return &t->rows[i];
	}
	return NULL;
}

TEST(rows_and_callers)
{
	_cleanup_(rt_profile_destroyp) struct rt_profile *p = NULL;
	const uint64_t deep[] = { PERF_CONTEXT_USER, 0x1010, 0x1120, 0x1230 };
	const uint64_t shallow[] = { PERF_CONTEXT_USER, 0x1015, 0x1230 };
	const uint64_t recursive[] = { PERF_CONTEXT_USER, 0x1010, 0x1120, 0x1125, 0x1230 };
	const struct rt_profile_table *t;
	const struct rt_profile_row *leaf, *middle;

	assert_ok(rt_profile_create(&namer, &p));
	assert_ok(rt_profile_comm(p, 7, 7, "prog", true));
	for (int i = 0; i < 3; i++)
		assert_ok(sample(p, 7, 10, 0x1010, deep, 4));
	assert_ok(sample(p, 7, 20, 0x1015, shallow, 3));
	assert_ok(sample(p, 7, 30, 0x1010, recursive, 5));
	assert_ok(rt_profile_table(p, 0, &t));
	assert_int_equal(t->samples, 5);
	assert_int_equal(t->period, 50);
	assert_true(t->has_chains);
	leaf = row(t, "leaf", "/bin/first");
	assert_non_null(leaf);
	assert_ptr_equal(leaf, &t->rows[0]);
	assert_string_equal(leaf->comm, "prog");
	assert_int_equal(leaf->samples, 5);
	assert_int_equal(leaf->total_samples, 5);
	assert_int_equal(leaf->caller_count, 2);
	assert_string_equal(leaf->callers[0].symbol.function, "middle");
	assert_int_equal(leaf->callers[0].samples, 4);
	assert_string_equal(leaf->callers[1].symbol.function, "outer");
	assert_int_equal(leaf->callers[1].samples, 1);
	assert_int_equal(leaf->callers[0].child_count, 2);
	middle = row(t, "middle", "/bin/first");
	assert_non_null(middle);
	assert_int_equal(middle->samples, 0);
	/* twice in the recursive chain, once in the total */
	assert_int_equal(middle->total_samples, 4);
	assert_int_equal(row(t, "outer", "/bin/first")->total_period, 50);
}

TEST(exec_and_threads)
{
	_cleanup_(rt_profile_destroyp) struct rt_profile *p = NULL;
	const struct rt_profile_table *t;

	assert_ok(rt_profile_create(&namer, &p));
	assert_ok(rt_profile_comm(p, 7, 7, "sh", true));
	assert_ok(sample(p, 7, 10, 0x1010, NULL, 0));
	assert_ok(rt_profile_fork(p, 7, 7, 8, false));
	assert_ok(sample(p, 8, 11, 0x1010, NULL, 0));
	/* the same address is another program's now */
	assert_ok(rt_profile_comm(p, 7, 7, "prog", true));
	assert_ok(sample(p, 7, 2000, 0x1010, NULL, 0));
	assert_ok(sample(p, 9, 2000, 0x5000, NULL, 0));
	assert_ok(rt_profile_table(p, 0, &t));
	assert_int_equal(t->row_count, 3);
	assert_false(t->has_chains);
	assert_int_equal(row(t, "leaf", "/bin/first")->samples, 2);
	assert_string_equal(row(t, "leaf", "/bin/first")->comm, "sh");
	assert_int_equal(row(t, "leaf", "/bin/second")->samples, 1);
	assert_string_equal(row(t, "leaf", "/bin/second")->comm, "prog");
	for (size_t i = 0; i < t->row_count; i++) {
		if (!t->rows[i].symbol.function) {
			assert_string_equal(t->rows[i].comm, ":9");
			assert_int_equal(t->rows[i].symbol.address, 0x5000);
		}
	}
}

TEST(hits_by_instruction)
{
	_cleanup_(rt_profile_destroyp) struct rt_profile *p = NULL;
	const struct rt_profile_table *t;
	const struct rt_profile_hit *hits;
	size_t count;

	assert_ok(rt_profile_create(&namer, &p));
	assert_ok(sample(p, 7, 10, 0x1020, NULL, 0));
	assert_ok(sample(p, 7, 10, 0x1010, NULL, 0));
	assert_ok(sample(p, 7, 10, 0x1020, NULL, 0));
	assert_ok(sample(p, 7, 10, 0x1110, NULL, 0));
	assert_ok(rt_profile_table(p, 0, &t));
	assert_ok(rt_profile_hits(p, 0, &row(t, "leaf", "/bin/first")->symbol, &hits, &count));
	assert_int_equal(count, 2);
	assert_int_equal(hits[0].address, 0x1010);
	assert_int_equal(hits[0].samples, 1);
	assert_int_equal(hits[1].address, 0x1020);
	assert_int_equal(hits[1].period, 20);
}

TEST(kernel_part_of_a_chain)
{
	_cleanup_(rt_profile_destroyp) struct rt_profile *p = NULL;
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER, 0x1120, 0x1230 };
	const struct rt_profile_table *t;
	const struct rt_profile_row *kernel;
	struct rt_profile_sample bad = { .event = RT_PROFILE_EVENTS };

	assert_ok(rt_profile_create(&namer, &p));
	assert_ok(sample(p, 7, 10, 0xffffffff81000010, chain, 5));
	assert_ok(rt_profile_table(p, 0, &t));
	kernel = row(t, "sys_kernel", "[kernel.kallsyms]");
	assert_non_null(kernel);
	assert_true(kernel->symbol.kernel);
	assert_int_equal(kernel->caller_count, 1);
	assert_string_equal(kernel->callers[0].symbol.function, "middle");
	assert_string_equal(kernel->callers[0].children[0].symbol.function, "outer");
	assert_code(rt_profile_sample(p, &bad), RT_E_LIMIT);
}

TEST_MAIN();
