/* SPDX-License-Identifier: GPL-2.0-only */
/* What an image owns, and the setters that keep it so. */
#include "bpfimage/parts.h"

enum { LOST_MAX = 4096 };

void rt_bpf_image_destroy(struct rt_bpf_image *image)
{
	struct rt_bpf_storage *storage;

	if (!image)
		return;
	storage = image->storage;
	for (size_t i = 0; i < image->map_count; i++)
		free(image->map_names[i]);
	for (size_t i = 0; i < image->attached_count; i++)
		free(image->attached[i]);
	for (size_t i = 0; i < image->symbol_count; i++)
		free(image->symbols[i].name);
	free(image->map_names);
	free(image->map_ids);
	free(image->attached);
	free(image->symbols);
	free(image->loader);
	free(image->lost);
	free(image->functions);
	free(image->lines);
	if (storage) {
		rt_btf_destroy(storage->btf);
		rt_arena_deinit(&storage->arena);
	}
	free(storage);
	free(image);
}

const struct rt_btf *rt_bpf_image_btf(const struct rt_bpf_image *image)
{
	const struct rt_bpf_storage *storage = image->storage;

	return storage->btf;
}

/* Makes room for one more element where count has reached a power of two. */
static bool grow(void *array, size_t count, size_t size)
{
	void *old, *new;

	if (count & (count - 1))
		return true;
	memcpy(&old, array, sizeof(old));
	new = realloc(old, (count ? count * 2 : 1) * size);
	if (!new)
		return false;
	memcpy(array, &new, sizeof(new));
	return true;
}

static struct rt_error *too_many(const struct rt_bpf_image *image, const char *what)
{
	return rt_error_new(RT_E_LIMIT, "bpf program %u has too many %s", image->info.id, what);
}

struct rt_error *rt_bpf_image_set_loader(struct rt_bpf_image *image, uint32_t pid, const char *comm)
{
	char *copy = comm ? strdup(comm) : NULL;

	if (comm && !copy)
		return rt_error_nomem();
	free(image->loader);
	image->loader = copy;
	image->loader_pid = pid;
	return NULL;
}

struct rt_error *rt_bpf_image_set_map_name(struct rt_bpf_image *image, uint32_t id, const char *name)
{
	_cleanup_free_ char *copy = strdup(name);

	if (!copy)
		return rt_error_nomem();
	for (size_t i = 0; i < image->map_count; i++) {
		if (image->map_ids[i] == id) {
			free(image->map_names[i]);
			image->map_names[i] = rt_take(copy);
			return NULL;
		}
	}
	if (image->map_count >= RT_BPF_MAPS_MAX)
		return too_many(image, "maps");
	if (!grow(&image->map_ids, image->map_count, sizeof(*image->map_ids)) ||
	    !grow(&image->map_names, image->map_count, sizeof(*image->map_names)))
		return rt_error_nomem();
	image->map_ids[image->map_count] = id;
	image->map_names[image->map_count++] = rt_take(copy);
	return NULL;
}

struct rt_error *rt_bpf_image_add_attached(struct rt_bpf_image *image, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);

	if (image->attached_count >= RT_BPF_NAMES_MAX)
		return too_many(image, "attach points");
	if (!copy || !grow(&image->attached, image->attached_count, sizeof(*image->attached)))
		return rt_error_nomem();
	image->attached[image->attached_count++] = rt_take(copy);
	return NULL;
}

struct rt_error *rt_bpf_image_add_lost(struct rt_bpf_image *image, const char *text)
{
	size_t have = image->lost ? strlen(image->lost) : 0;
	char *whole;

	if (have + strlen(text) > LOST_MAX)
		return NULL; /* said often enough */
	if (asprintf(&whole, "%s%s%s", image->lost ?: "", image->lost ? "; " : "", text) < 0)
		return rt_error_nomem();
	free(image->lost);
	image->lost = whole;
	return NULL;
}

/* Index of the first symbol at or behind address. */
static size_t symbol_index(const struct rt_bpf_image *image, uint64_t address)
{
	size_t low = 0, high = image->symbol_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (image->symbols[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct rt_error *rt_bpf_image_add_symbol(struct rt_bpf_image *image, uint64_t address, const char *name)
{
	_cleanup_free_ char *copy = strdup(name);
	size_t at = symbol_index(image, address);

	if (!copy)
		return rt_error_nomem();
	if (at < image->symbol_count && image->symbols[at].address == address) {
		free(image->symbols[at].name);
		image->symbols[at].name = rt_take(copy);
		return NULL;
	}
	if (image->symbol_count >= RT_BPF_NAMES_MAX)
		return too_many(image, "kernel symbols");
	if (!grow(&image->symbols, image->symbol_count, sizeof(*image->symbols)))
		return rt_error_nomem();
	memmove(image->symbols + at + 1, image->symbols + at, (image->symbol_count - at) * sizeof(*image->symbols));
	image->symbols[at] = (struct rt_bpf_symbol){ address, rt_take(copy) };
	image->symbol_count++;
	return NULL;
}

const char *rt_bpf_symbol_at(const struct rt_bpf_image *image, uint64_t address)
{
	size_t at = symbol_index(image, address);

	return at < image->symbol_count && image->symbols[at].address == address ? image->symbols[at].name : NULL;
}

const char *rt_bpf_map_name(const struct rt_bpf_image *image, uint32_t id)
{
	for (size_t i = 0; i < image->map_count; i++) {
		if (image->map_ids[i] == id)
			return *image->map_names[i] ? image->map_names[i] : NULL;
	}
	return NULL;
}
