/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/probe_cached.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "cli/file.h"
#include "elf/sdt.h"
#include "insn/insn.h"
#include "probe/definition.h"
#include "report/words.h"

enum { SWEEP_MAX = 64 << 20, INSN_BYTES = 16 };

struct rt_error *rt_probe_cache_open(bool create, struct rt_cache **ret)
{
	_cleanup_free_ char *root = NULL;
	struct rt_error *err;
	uid_t uid;
	gid_t gid;
	bool as_user = rt_invoking_user(&uid, &gid);

	RT_TRY(rt_user_cache_root(&root));
	if (as_user && create)
		rt_fs_act_as(uid, gid);
	err = rt_cache_open(root, create, ret);
	if (as_user && create)
		rt_fs_act_as(geteuid(), getegid());
	if (!err || create || err->code == RT_E_NOMEM)
		return err;
	/* without a home there is no cache: it has nothing */
	rt_error_free(err);
	*ret = NULL;
	return NULL;
}

/* ---- which file ---- */

/* Is what lies at the item's path the file that the cache saw there? */
static bool is_it(const struct rt_cache_item *item, const char *path)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err = rt_image_open(path, &image);

	rt_error_free(err);
	return !err && image->build_id_size == item->id_size && !memcmp(image->build_id, item->id, item->id_size);
}

/* The path where it is now; NULL: none of those where it was seen. */
static const char *where(const struct rt_cache_item *item)
{
	if (is_it(item, item->path))
		return item->path;
	for (size_t i = 0; i < item->others.len; i++)
		if (is_it(item, item->others.data[i]))
			return item->others.data[i];
	return NULL;
}

struct holders {
	const struct rt_cache_item *first, *there; /* NULL: none */
	const char *path;                          /* of there */
	size_t count, there_count;
};

static struct rt_error *find_holders(const struct rt_cache *cache, const struct rt_request *r,
				     const struct rt_cache_item *items, size_t count, struct holders *ret)
{
	for (size_t i = 0; i < count; i++) {
		struct rt_probes probes;
		const char *path;
		bool fits = false;

		if (!items[i].has[RT_CACHE_PROBES] || !items[i].path || *items[i].path != '/')
			continue;
		RT_TRY(rt_cache_read_probes(cache, items[i].id, items[i].id_size, &probes));
		for (size_t k = 0; k < probes.entries.len; k++)
			fits |= rt_cached_fits(&probes.entries.data[k], r->provider, r->function);
		rt_probes_deinit(&probes);
		if (!fits)
			continue;
		ret->first = ret->first ?: &items[i];
		ret->count++;
		path = where(&items[i]);
		if (!path)
			continue;
		ret->there = ret->there ?: &items[i];
		ret->path = ret->path ?: path;
		ret->there_count++;
	}
	return NULL;
}

static struct rt_error *choose(const struct rt_request *r, const struct holders *h, const struct rt_cache_item **ret)
{
	char id[2 * RT_CACHE_ID_MAX + 1];

	if (!h->count)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "the build-id cache has no definition '%s'", r->text),
				    "list them: reftrace probe list --cache; or -x FILE");
	if (h->there_count > 1 || (!h->there_count && h->count > 1))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "the build-id cache has '%s' for %zu files", r->text,
						 h->there_count ?: h->count),
				    "-x FILE says which; list them: reftrace probe list --cache");
	*ret = h->there ?: h->first;
	/* the file that is there is judged like any other */
	if (h->there || !faccessat(AT_FDCWD, h->first->path, R_OK, AT_EACCESS))
		return NULL;
	return rt_error_fix(
		rt_error_new(RT_E_NOT_FOUND, "the build-id cache has '%s' for %s (build-id %s), which is not there",
			     r->text, h->first->path, rt_build_id_text(h->first->id, h->first->id_size, id)),
		"-x FILE: where it lies now");
}

struct rt_error *rt_probe_cached_path(struct rt_probe_plan *p, const char **ret)
{
	const struct rt_cache_item *item = NULL;
	struct rt_cache_item *items = NULL;
	struct holders holders = { 0 };
	struct rt_error *err;
	size_t count = 0;

	if (p->requests[0].kind != RT_REQUEST_MARKER)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: in which file?"),
				    "-x FILE: a program or library; %%GROUP:EVENT needs none: reftrace probe list "
				    "--cache");
	RT_TRY(rt_probe_cache_open(false, &p->cache));
	err = p->cache ? rt_cache_list(p->cache, &items, &count) : NULL;
	if (!err)
		err = find_holders(p->cache, &p->requests[0], items, count, &holders);
	if (!err)
		err = choose(&p->requests[0], &holders, &item);
	if (!err) {
		*ret = rt_format(&p->arena, "%s", holders.path ?: item->path);
		err = *ret ? NULL : rt_error_nomem();
	}
	rt_cache_items_free(items, count);
	return err;
}

static struct rt_error *id_of(const struct rt_cache *cache, const struct rt_request *r, uint8_t id[RT_CACHE_ID_MAX],
			      size_t *ret_size)
{
	struct rt_cache_item *items = NULL;
	struct holders h = { 0 };
	size_t count = 0;
	struct rt_error *err = cache ? rt_cache_list(cache, &items, &count) : NULL;

	if (!err)
		err = find_holders(cache, r, items, count, &h);
	/* the file itself need not be on this host */
	if (!err && (!h.count || (h.count > 1 && h.there_count != 1)))
		err = choose(r, &h, &h.first);
	if (!err && h.count) {
		const struct rt_cache_item *item = h.there ?: h.first;

		memcpy(id, item->id, item->id_size);
		*ret_size = item->id_size;
	}
	rt_cache_items_free(items, count);
	return err;
}

struct rt_error *rt_probe_cached_id(const struct rt_cache *cache, const char *name, uint8_t id[RT_CACHE_ID_MAX],
				    size_t *ret_size)
{
	struct rt_request r;
	struct rt_error *err = rt_request_parse(name, &r);

	if (!err)
		err = id_of(cache, &r, id, ret_size);
	rt_request_deinit(&r);
	return err;
}

/* ---- lines from the cache ---- */

struct addition {
	struct rt_probe_plan *plan;
	const struct rt_probe_options *options;
	const struct rt_probe_events *taken;
	const struct rt_request *request;
	const char *mark;
	size_t first; /* of the plan's lines: those of the entry that is added */
};

/* Without a look at symbols or debug information, which may be long, or not be there. false: not known */
static bool is_instruction(const struct rt_image *image, struct rt_elfaddr address)
{
	struct rt_elfaddr start;

	if (image->machine != RT_MACHINE_X86_64)
		return false;
	/* all code before it, where nothing tells the function: decoding comes into step by itself */
	if (!rt_image_unwind_start(image, address, &start) && !rt_image_code_start(image, address, &start))
		return false;
	if (address.v - start.v > SWEEP_MAX)
		return false;
	return rt_x86_holds_probe(rt_image_at(image, start, address.v - start.v + INSN_BYTES), address.v - start.v);
}

/* What stands in the cache is as good as who may write there: a place that nobody would probe is none. */
static struct rt_error *check_line(const struct addition *a, const struct rt_cached_line *line, const char *text)
{
	struct rt_request request = { .kind = RT_REQUEST_ADDRESS, .text = text };
	struct rt_answer_module module;
	struct rt_elfaddr address;
	struct rt_answer answer;
	struct rt_error *err;

	if (!rt_image_address(a->plan->image, line->offset, true, &address))
		return rt_error_new(RT_E_UNARMED, "0x%" PRIx64 " is not in the code of %s", line->offset.v,
				    a->plan->path);
	if (!a->plan->is_kernel && is_instruction(a->plan->image, address))
		return NULL;
	RT_TRY(rt_probe_plan_read(a->plan, a->options));
	module = rt_probe_plan_module(a->plan, a->options);
	request.offset = address.v;
	err = rt_answer_request(&request, &module, &answer);
	rt_answer_deinit(&answer);
	return err;
}

static struct rt_error *add_line(struct addition *a, const char *text)
{
	struct rt_probe_plan *p = a->plan;
	const struct rt_request *r = a->request;
	struct rt_probe_line line = { .first = true, .request = (size_t)(r - p->requests) };
	struct rt_cached_line c;
	const char *event;

	if (!rt_cached_read(text, &c))
		return NULL;
	RT_TRY(rt_error_wrap(check_line(a, &c, text), "%%%s:%s of the build-id cache", c.group, c.event));
	line.group = rt_format(&p->arena, "%.*s%s", (int)(RT_REQUEST_NAME_MAX - strlen(a->mark)), r->group ?: c.group,
			       a->mark);
	event = r->event ?: rt_format(&p->arena, "%s", c.event);
	for (size_t i = a->first; i < p->lines.len; i++) {
		if (strcmp(p->lines.data[i].group, line.group) != 0 || strcmp(p->lines.data[i].wanted, event) != 0)
			continue;
		line.event = p->lines.data[i].event;
		line.first = false;
	}
	line.wanted = event;
	if (!line.event)
		RT_TRY(rt_probe_plan_name(p, a->taken, true, a->options->force, line.group, event, &line.event));
	line.text = rt_format(&p->arena, "%c:%s/%s %s:0x%" PRIx64 "%s%s", c.at_return ? 'r' : 'p', line.group,
			      line.event, p->path, c.offset.v,
			      c.semaphore.v ? rt_format(&p->arena, "(0x%" PRIx64 ")", c.semaphore.v) : "", c.arguments);
	return rt_vec_push(&p->lines, line) ? NULL : rt_error_nomem();
}

static struct rt_error *add_entry(struct addition *a, const struct rt_probes_entry *e)
{
	/* another entry's event of the same name may have other arguments */
	a->first = a->plan->lines.len;
	for (size_t i = 0; i < e->lines.len; i++)
		RT_TRY(add_line(a, e->lines.data[i]));
	return NULL;
}

static struct addition begin(struct rt_probe_plan *p, const struct rt_probe_options *options,
			     const struct rt_probe_events *taken, const struct rt_request *r)
{
	return (struct addition){ p, options, taken, r, "", p->lines.len };
}

static struct rt_error *open_cache(struct rt_probe_plan *p)
{
	return p->cache ? NULL : rt_probe_cache_open(false, &p->cache);
}

struct rt_error *rt_probe_cached_add(struct rt_probe_plan *p, const struct rt_probe_options *options,
				     const struct rt_probe_events *taken, const struct rt_request *r)
{
	struct addition a = begin(p, options, taken, r);
	struct rt_cached_match match;
	struct rt_error *err;

	RT_TRY(open_cache(p));
	if (!p->cache)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "'%s': there is no build-id cache", r->text),
				    "name one in the environment: PERF_BUILDID_DIR=/path");
	err = rt_cached_match(p->cache, p->image, p->path, r->provider, r->function, &options->allow, &match);
	a.mark = rt_cached_mark(match.trust);
	if (!err && match.why &&
	    !rt_vec_push(&p->warnings, rt_format(&p->arena, "'%s' may hit wrong places: %s; its events are marked %s",
						 rt_clean(&p->arena, r->text), rt_clean(&p->arena, match.why), a.mark)))
		err = rt_error_nomem();
	for (size_t i = 0; !err && i < match.probes.entries.len; i++)
		if (rt_cached_fits(&match.probes.entries.data[i], r->provider, r->function))
			err = add_entry(&a, &match.probes.entries.data[i]);
	rt_cached_match_deinit(&match);
	return err;
}

struct rt_error *rt_probe_cached_instead(struct rt_probe_plan *p, const struct rt_probe_options *options,
					 const struct rt_probe_events *taken, const struct rt_request *r,
					 bool *ret_found)
{
	struct addition a = begin(p, options, taken, r);
	const struct rt_probes_entry *entry = NULL;
	struct rt_probes probes;
	struct rt_error *err;

	*ret_found = false;
	RT_TRY(open_cache(p));
	if (!p->cache)
		return NULL;
	RT_TRY(rt_cache_read_probes(p->cache, p->image->build_id, p->image->build_id_size, &probes));
	err = rt_cached_find(&probes, r, rt_probe_plan_group(p), &entry);
	if (!err && entry)
		err = add_entry(&a, entry);
	if (!err && p->lines.len > a.first &&
	    !rt_vec_push(&p->notes, rt_format(&p->arena, "'%s' is taken from the build-id cache: %s does not tell it",
					      rt_clean(&p->arena, r->text), rt_clean(&p->arena, p->path))))
		err = rt_error_nomem();
	*ret_found = !err && p->lines.len > a.first;
	rt_probes_deinit(&probes);
	return err;
}

/* ---- into the cache ---- */

/* All markers of the file: a cache with some of them would look as if there were no others. */
static struct rt_error *keep_markers(struct rt_probes *probes, const struct rt_probe_plan *p)
{
	struct rt_marker_file file = { .image = p->image, .symtab = p->symtab, .path = p->path };
	_cleanup_free_ struct rt_sdt_marker *markers = NULL;
	size_t count = 0, dropped;

	RT_TRY(rt_sdt_read(p->image, &markers, &count));
	return rt_marker_entries(&file, markers, count, probes, &dropped);
}

static struct rt_error *keep_request(struct rt_probes *probes, struct rt_probe_plan *p, size_t request)
{
	_cleanup_free_ const char **lines = calloc(p->lines.len + 1, sizeof(*lines));
	size_t count = 0;

	if (!lines)
		return rt_error_nomem();
	for (size_t i = 0; i < p->lines.len; i++)
		if (p->lines.data[i].request == request && p->lines.data[i].point)
			lines[count++] = p->lines.data[i].text;
	if (!count)
		return NULL;
	if (p->requests[request].kind == RT_REQUEST_MARKER && !p->requests[request].event)
		return keep_markers(probes, p);
	return rt_cached_set(probes, &p->requests[request], rt_probe_plan_group(p), lines, count);
}

static struct rt_error *change(struct rt_probes *probes, void *arg)
{
	struct rt_probe_plan *p = arg;

	for (size_t i = 0; i < p->count; i++)
		RT_TRY(keep_request(probes, p, i));
	return NULL;
}

static struct rt_error *keep(struct rt_probe_plan *p, struct rt_cache *cache)
{
	const struct rt_image *image = p->image;

	RT_TRY(rt_cache_put_fd(cache, image->build_id, image->build_id_size, p->path, RT_CACHE_ELF, p->fd, NULL));
	return rt_cache_change_probes(cache, image->build_id, image->build_id_size, p->path, change, p);
}

struct rt_error *rt_probe_cached_keep(struct rt_probe_plan *p)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct rt_error *err;
	uid_t uid;
	gid_t gid;
	bool as_user = rt_invoking_user(&uid, &gid);

	RT_TRY(rt_probe_cache_open(true, &cache));
	if (as_user)
		rt_fs_act_as(uid, gid);
	err = keep(p, cache);
	if (as_user)
		rt_fs_act_as(geteuid(), getegid());
	return err;
}
