/* SPDX-License-Identifier: GPL-2.0-only */
/* Which of the cache's definitions are those of a file. */
#include <string.h>

#include "probe/cached.h"

const char *rt_cached_mark(enum rt_cached_trust trust)
{
	static const char *const marks[] = {
		[RT_CACHED_SAME] = "", [RT_CACHED_UNVERIFIED] = "_unverified", [RT_CACHED_MISMATCH] = "_mismatch"
	};

	return marks[trust];
}

const char *rt_cached_marked(const char *event)
{
	static const char *const texts[] = {
		[RT_CACHED_UNVERIFIED] = "its definition was used on a file without build-id (--allow-unverified): it "
					 "may have hit wrong places",
		[RT_CACHED_MISMATCH] =
			"its definition was made for a file with another build-id (--allow-mismatch): it "
			"may have hit wrong places"
	};
	size_t len = strcspn(event, ":");

	for (unsigned i = RT_CACHED_UNVERIFIED; event[len] && i <= RT_CACHED_MISMATCH; i++) {
		const char *mark = rt_cached_mark((enum rt_cached_trust)i);
		size_t size = strlen(mark);

		if (len > size && !strncmp(event + len - size, mark, size))
			return texts[i];
	}
	return NULL;
}

struct search {
	const struct rt_cache *cache;
	const struct rt_image *image;
	const char *path, *group, *event;
	const struct rt_cached_allow *allow;
};

static bool has_fitting(const struct search *s, const struct rt_probes *probes)
{
	for (size_t i = 0; i < probes->entries.len; i++)
		if (rt_cached_fits(&probes->entries.data[i], s->group, s->event))
			return true;
	return false;
}

/* *ret_fits false: there are none that fit, and nothing to free. A file that cannot be read knows nothing. */
static struct rt_error *read_id(const struct search *s, const uint8_t *id, size_t size, struct rt_probes *ret,
				bool *ret_fits)
{
	struct rt_error *err = rt_cache_read_probes(s->cache, id, size, ret);

	*ret_fits = false;
	if (err && err->code == RT_E_NOMEM)
		return err;
	if (err) {
		rt_error_free(err);
		return NULL;
	}
	*ret_fits = has_fitting(s, ret);
	if (!*ret_fits) {
		rt_probes_deinit(ret);
		*ret = (struct rt_probes){ 0 };
	}
	return NULL;
}

struct others {
	const struct rt_cache_item *best; /* NULL: none */
	size_t count;                     /* of them, or 1 when it is the file's own path that counts */
};

static struct rt_error *look_at_others(const struct search *s, const struct rt_cache_item *items, size_t count,
				       struct others *ret)
{
	for (size_t i = 0; i < count; i++) {
		const struct rt_cache_item *item = &items[i];
		struct rt_probes probes;
		bool fits = false;

		if (!item->has[RT_CACHE_PROBES] || !item->path)
			continue;
		RT_TRY(read_id(s, item->id, item->id_size, &probes, &fits));
		if (!fits)
			continue;
		rt_probes_deinit(&probes);
		ret->best = item;
		ret->count++;
		if (!strcmp(item->path, s->path)) {
			ret->count = 1;
			return NULL;
		}
	}
	return NULL;
}

static struct rt_error *refuse(const struct search *s, const char *name, const char *why, bool mismatch)
{
	struct rt_error *err = rt_error_new(RT_E_BUILD_ID, "%s: %s", name, why);

	if (!mismatch)
		return rt_error_fix(err,
				    "link it with -Wl,--build-id; --allow-unverified uses it all the same, if you know "
				    "that it is the same file");
	return rt_error_fix(err,
			    "resolve it anew: reftrace probe add --cache -x %s ...; --allow-mismatch uses it all the "
			    "same, which may hit wrong places and break the program",
			    s->path);
}

static struct rt_error *judge(const struct search *s, const struct others *others, struct rt_cached_match *ret)
{
	bool mismatch = !s->image->build_id_is_hash && s->image->build_id_size;
	char own[2 * RT_BUILD_ID_WHOLE_MAX + 1], id[2 * RT_CACHE_ID_MAX + 1];
	_cleanup_free_ char *name = NULL;
	const struct rt_cache_item *item = others->best;
	bool fits;

	if (asprintf(&name, "%%%s%s%s", s->group ?: "", s->group ? ":" : "", s->event) < 0) {
		name = NULL;
		return rt_error_nomem();
	}
	if (!item)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "the build-id cache has no definition %s", name),
				    "list them: reftrace probe list --cache");
	if (others->count > 1)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND,
						 "%s: the build-id cache has it for %zu other files, not for %s", name,
						 others->count, s->path),
				    "list them: reftrace probe list --cache; resolve it anew: reftrace probe add "
				    "--cache -x %s ...",
				    s->path);
	rt_build_id_text(item->id, item->id_size, id);
	if (asprintf(&ret->why,
		     mismatch ? "it was made for %s with build-id %s, and %s has %s"
			      : "it was made for %s with build-id %s, and %s has none%s",
		     item->path, id, s->path,
		     mismatch ? rt_build_id_text(s->image->build_id, s->image->build_id_size, own) : "") < 0) {
		ret->why = NULL;
		return rt_error_nomem();
	}
	if (mismatch ? !s->allow->mismatch : !s->allow->unverified)
		return refuse(s, name, ret->why, mismatch);
	ret->trust = mismatch ? RT_CACHED_MISMATCH : RT_CACHED_UNVERIFIED;
	RT_TRY(read_id(s, item->id, item->id_size, &ret->probes, &fits));
	return fits ? NULL : rt_error_new(RT_E_NOT_FOUND, "%s is gone from the build-id cache", name);
}

struct rt_error *rt_cached_match(const struct rt_cache *cache, const struct rt_image *image, const char *path,
				 const char *group, const char *event, const struct rt_cached_allow *allow,
				 struct rt_cached_match *ret)
{
	const struct search s = { cache, image, path, group, event, allow };
	struct rt_cache_item *items = NULL;
	struct others others = { 0 };
	struct rt_error *err;
	size_t count = 0;
	bool fits;

	*ret = (struct rt_cached_match){ RT_CACHED_SAME };
	RT_TRY(read_id(&s, image->build_id, image->build_id_size, &ret->probes, &fits));
	if (fits)
		return NULL;
	err = rt_cache_list(cache, &items, &count);
	if (!err)
		err = look_at_others(&s, items, count, &others);
	if (!err)
		err = judge(&s, &others, ret);
	rt_cache_items_free(items, count);
	return err;
}

void rt_cached_match_deinit(struct rt_cached_match *match)
{
	rt_probes_deinit(&match->probes);
	free(match->why);
}
