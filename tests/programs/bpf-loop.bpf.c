// SPDX-License-Identifier: GPL-2.0-only
/* A program with three sub-programs, two maps and a global: what bpf-loop loads. */
#define SEC(name) __attribute__((section(name), used))
#define noinline __attribute__((noinline))
typedef unsigned int u32;
typedef unsigned long long u64;

static void *(*lookup)(void *map, const void *key) = (void *)1;
static u32 (*prandom)(void) = (void *)7;

struct {
	int (*type)[2]; /* array */
	u32 *key;
	u64 *value;
	int (*max_entries)[16];
} loop_counts SEC(".maps");

u64 loop_total = 7;

static noinline u64 mix_hash(u64 v)
{
	v ^= v >> 33;
	v *= 0xff51afd7ed558ccdULL;
	return v ^ (v >> 33);
}

static noinline u64 add_up(u64 n)
{
	u64 sum = 0;

	for (int i = 0; i < 8; i++)
		sum += mix_hash(n + i);
	return sum;
}

static noinline int count(u32 key)
{
	u64 *value = lookup(&loop_counts, &key);

	if (!value)
		return 0;
	*value += 1;
	return 1;
}

SEC("raw_tp/task_newtask")
int a_program_with_a_long_name(void *ctx)
{
	u64 v = add_up(prandom());

	loop_total += v;
	count(v & 15);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
