/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel gave, as an entry of perf's BPF_PROG_INFO feature: arrays in the order of their bits, each
 * rounded up to 8 bytes. */
#include "bpfimage/parts.h"

enum { HEAD_BYTES = 16 };

static uint64_t round_up(uint64_t n)
{
	return (n + 7) & ~UINT64_C(7);
}

struct plan {
	struct bpf_prog_info info; /* pointers are offsets */
	uint64_t arrays, data_len;
	uint64_t sizes[RT_BPF_PARTS];
};

static void plan_part(const struct bpf_prog_info *from, enum rt_bpf_part part, struct plan *plan)
{
	uint32_t count = rt_bpf_part_count(from, part), element = rt_bpf_part_element(from, part);

	rt_bpf_part_set_pointer(&plan->info, part, 0);
	if (!rt_bpf_part_pointer(from, part) || !count || element < rt_bpf_part_least(part)) {
		rt_bpf_part_set_count(&plan->info, part, 0);
		return;
	}
	plan->sizes[part] = (uint64_t)count * element;
	plan->arrays |= UINT64_C(1) << part;
	rt_bpf_part_set_pointer(&plan->info, part, plan->data_len);
	plan->data_len += round_up(plan->sizes[part]);
}

static void put_head(uint8_t *to, const struct plan *plan)
{
	uint32_t lengths[2] = { RT_BPF_INFO_BYTES, (uint32_t)plan->data_len };
	size_t known = sizeof(plan->info) < RT_BPF_INFO_BYTES ? sizeof(plan->info) : RT_BPF_INFO_BYTES;

	memcpy(to, lengths, sizeof(lengths));
	memcpy(to + sizeof(lengths), &plan->arrays, sizeof(plan->arrays));
	memcpy(to + HEAD_BYTES, &plan->info, known);
}

struct rt_error *rt_bpf_image_encode(const struct bpf_prog_info *info, uint8_t **ret, size_t *ret_size)
{
	struct plan plan = { .info = *info };
	uint8_t *entry, *data;

	for (int p = 0; p < RT_BPF_PARTS; p++)
		plan_part(info, p, &plan);
	if (plan.data_len > RT_BPF_DATA_MAX)
		return rt_error_new(RT_E_LIMIT, "bpf program %u has %llu bytes of code and lines", info->id,
				    (unsigned long long)plan.data_len);
	entry = calloc(1, HEAD_BYTES + RT_BPF_INFO_BYTES + plan.data_len);
	if (!entry)
		return rt_error_nomem();
	put_head(entry, &plan);
	data = entry + HEAD_BYTES + RT_BPF_INFO_BYTES;
	for (int p = 0; p < RT_BPF_PARTS; p++) {
		const void *from = (const void *)(uintptr_t)rt_bpf_part_pointer(info, p);

		if (plan.arrays >> p & 1)
			memcpy(data + rt_bpf_part_pointer(&plan.info, p), from, plan.sizes[p]);
	}
	*ret = entry;
	*ret_size = HEAD_BYTES + RT_BPF_INFO_BYTES + plan.data_len;
	return NULL;
}
