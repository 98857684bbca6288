/* SPDX-License-Identifier: GPL-2.0-only */
/* Three sub-programs with one hot loop each; bpf-hot.c says with *which one how often to run which. */
typedef unsigned long long u64;
typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))
#define SUB __attribute__((noinline)) static

struct {
	int (*type)[2]; /* BPF_MAP_TYPE_ARRAY */
	int (*max_entries)[1];
	u32 *key;
	u64 *value;
} state SEC(".maps");

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;

SUB u64 shifting(u64 x)
{
	for (int i = 0; i < 400; i++) {
		x ^= x << 13; /* HOT shifting */
		x ^= x >> 7;  /* HOT shifting */
	}
	return x;
}

SUB u64 dividing(u64 x)
{
	for (u64 i = 1; i < 400; i++)
		x += (x | 1) / (i | x); /* HOT dividing */
	return x;
}

SUB u64 multiplying(u64 x)
{
	for (int i = 0; i < 400; i++) {
		x = x * 6364136223846793005ull; /* HOT multiplying */
		x ^= x >> 29;                   /* HOT multiplying */
	}
	return x;
}

SEC("raw_tp/sys_enter") int hot_main(void *ctx)
{
	u32 key = 0;
	u64 *value = bpf_map_lookup_elem(&state, &key), x;

	if (!value)
		return 0;
	x = shifting(*value + 1);
	x += dividing(x);
	x += multiplying(x);
	*value = x;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
