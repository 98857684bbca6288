/* SPDX-License-Identifier: GPL-2.0-only */
/* Opening the file of a module, only if it is the one that was recorded. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "elf/build_id.h"
#include "symbol/parts.h"

#define RT_NOTES_MAX 1000

char *rt_chain_path(const struct rt_chain *chain, const char *path)
{
	char *joined;

	return asprintf(&joined, "%s%s", chain->symfs ?: "", path) < 0 ? NULL : joined;
}

static void note(struct rt_chain *chain, const struct rt_chain_module *module, const char *what)
{
	char *text;

	if (chain->notes.len >= RT_NOTES_MAX || asprintf(&text, "%s: %s", rt_basename(module->path), what) < 0)
		return;
	if (!rt_vec_push(&chain->notes, text))
		free(text);
}

static void hint(struct rt_chain *chain, const struct rt_chain_module *module, const char *what)
{
	char *text;

	if (chain->hints.len >= RT_NOTES_MAX || asprintf(&text, "%s: %s", module->path, what) < 0)
		return;
	if (!rt_vec_push(&chain->hints, text))
		free(text);
}

/* err is used up. */
static void note_error(struct rt_chain *chain, const struct rt_chain_module *module, struct rt_error *err)
{
	note(chain, module, err->message);
	rt_error_free(err);
}

static bool same_build(const struct rt_chain_module *module, const struct rt_image *image)
{
	if (!module->build_id_size)
		return true;
	return module->content_hash == image->build_id_is_hash &&
	       rt_build_id_fits(image->build_id, image->build_id_size, module->build_id, module->build_id_size);
}

static struct rt_error *find_debug(const struct rt_chain *chain, struct rt_image *image)
{
	_cleanup_close_ int root = -1;

	if (!chain->symfs)
		return rt_image_find_debug(image, AT_FDCWD);
	root = open(chain->symfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot open %s", chain->symfs);
	return rt_image_find_debug(image, root);
}

/* The module's own file, by its path. */
static struct rt_error *open_path(struct rt_chain *chain, const struct rt_chain_module *module, struct rt_image **ret)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_free_ char *path = rt_chain_path(chain, module->path);

	if (!path)
		return rt_error_nomem();
	RT_TRY(rt_image_open(path, &image));
	if (!same_build(module, image))
		return rt_error_new(
			RT_E_BUILD_ID,
			"build-id differs, the file is not the one that was recorded: its names are not used");
	*ret = rt_take(image);
	return NULL;
}

/* A part that a cache keeps under the module's build-id. false: none has it. */
static bool open_kept(const struct rt_chain *chain, const struct rt_chain_module *module, enum rt_cache_part part,
		      int *ret_fd)
{
	for (size_t i = 0; chain->options.caches && chain->options.caches[i]; i++) {
		_cleanup_error_ struct rt_error *err = NULL;

		err = rt_cache_get(chain->options.caches[i], module->build_id, module->build_id_size, part, ret_fd);
		if (!err)
			return true;
	}
	return false;
}

static bool open_cache(struct rt_chain *chain, const struct rt_chain_module *module, struct rt_image **ret)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_error_ struct rt_error *err = NULL;
	_cleanup_close_ int fd = -1;

	if (!module->build_id_size || !open_kept(chain, module, RT_CACHE_ELF, &fd))
		return false;
	err = rt_image_open_fd(fd, module->path, &image);
	if (err || !same_build(module, image))
		return false;
	*ret = rt_take(image);
	return true;
}

/* What the installed files do not tell may be in a cache: a debug file, or the program before it was stripped. */
static void complete(struct rt_chain *chain, const struct rt_chain_module *module, struct rt_image *image)
{
	static const enum rt_cache_part parts[] = { RT_CACHE_DEBUG, RT_CACHE_ELF };
	struct rt_error *err = find_debug(chain, image);

	if (err)
		note_error(chain, module, err);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !image->debug; i++) {
		_cleanup_close_ int fd = -1;

		if (module->build_id_size && open_kept(chain, module, parts[i], &fd))
			rt_error_free(rt_image_give_debug(image, fd, module->path));
	}
	err = chain->options.fetch ? chain->options.fetch(chain->options.fetch_arg, image) : NULL;
	if (err)
		note_error(chain, module, err);
}

static void open_file(struct rt_chain *chain, struct rt_chain_module *module)
{
	struct rt_image *image = NULL;
	struct rt_error *err;

	if (!strcmp(module->path, "[vdso]")) {
		if (chain->vdso && same_build(module, chain->vdso))
			module->image = chain->vdso;
		else if (open_cache(chain, module, &image))
			module->image = module->owned = image;
		return;
	}
	/* other things without a file */
	if (module->path[0] != '/')
		return;
	err = open_path(chain, module, &image);
	if (err && open_cache(chain, module, &image)) {
		rt_error_free(err);
	} else if (err) {
		note_error(chain, module, err);
		return;
	}
	complete(chain, module, image);
	module->image = module->owned = image;
}

void rt_chain_open(struct rt_chain *chain, struct rt_chain_module *module)
{
	struct rt_error *err;

	if (module->tried)
		return;
	module->tried = true;
	if (!module->image)
		open_file(chain, module);
	if (!module->image)
		return;
	err = rt_symtab_create(module->image, &module->symtab);
	if (err)
		note_error(chain, module, err);
	err = rt_dwarf_create(module->image, &module->dwarf);
	if (err)
		note_error(chain, module, err);
	if (module->symtab && module->symtab->stripped && !(module->dwarf && rt_dwarf_present(module->dwarf)))
		hint(chain, module, "no symbols (stripped): only exported functions have names");
}

const struct rt_image *rt_chain_image(struct rt_chain *chain, uint32_t id, const char **ret_path)
{
	uint64_t *slot = rt_map_get(&chain->module_by_id, rt_key_make(id, 0));
	struct rt_chain_module *module = slot ? &chain->modules.data[*slot - 1] : NULL;

	if (ret_path)
		*ret_path = module ? module->path : "";
	if (!module)
		return NULL;
	rt_chain_open(chain, module);
	return module->image;
}

void rt_chain_close(struct rt_chain_module *module)
{
	rt_dwarf_destroy(module->dwarf);
	rt_symtab_destroy(module->symtab);
	rt_image_destroy(module->owned);
}
