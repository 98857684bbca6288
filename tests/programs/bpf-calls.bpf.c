/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls helpers that the kernel leaves calls of; bpf-hot.c loads and runs it. */
typedef unsigned long long u64;
typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))

struct {
	int (*type)[1]; /* BPF_MAP_TYPE_HASH */
	int (*max_entries)[64];
	u32 *key;
	u64 *value;
} table SEC(".maps");

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_get_current_comm)(void *buf, u32 size) = (void *)16;

__attribute__((noinline)) int helping(u32 n)
{
	u64 v = n, *p;
	char comm[16];

	for (int i = 0; i < 30; i++) {
		u32 k = v & 31;

		v += bpf_ktime_get_ns();
		bpf_map_update_elem(&table, &k, &v, 0);
		p = bpf_map_lookup_elem(&table, &k);
		if (p)
			v += *p;
		bpf_get_current_comm(comm, sizeof(comm));
		v += comm[0];
		for (int j = 0; j < 40; j++)
			v ^= v << 13 ^ v >> 7;
	}
	return v;
}

SEC("raw_tp/sys_enter") int call_main(void *ctx)
{
	return helping(3);
}

char LICENSE[] SEC("license") = "GPL";
