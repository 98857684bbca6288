// SPDX-License-Identifier: GPL-2.0-only
#include "bpfimage/bpfimage.h"
#include "bpfprog/describe.h"
#include "bpfprog/watch_priv.h"
#include "event/blob.h"

/* One program on its way: what is known, from wherever. */
struct program {
	struct rt_bpf_dump dump;
	struct rt_bytes btf; /* empty: not at hand */
	uint8_t *btf_owned;
	const struct rt_bpf_copy *copy; /* NULL: asked for */
	uint32_t lost;
};

static void program_deinit(struct program *p)
{
	rt_bpf_dump_deinit(&p->dump);
	free(p->btf_owned);
}

static struct rt_error *send(struct rt_bpf_watch *w, enum rt_blob what, uint32_t id, const void *data, size_t size)
{
	if (!w->sink)
		return NULL;
	return rt_blob_emit(w->sink, what, id, rt_bytes_make(data, size));
}

/* BTF travels once, whoever has it at hand. */
static struct rt_error *send_btf(struct rt_bpf_watch *w, struct program *p)
{
	uint32_t id = p->dump.info.btf_id, size = 0;
	struct rt_error *err;

	if (!id || rt_map_get(&w->btfs, rt_key_make(id, 0)))
		return NULL;
	if (!p->btf.size && p->copy && !(p->lost >> RT_ARRAY_BTF & 1))
		return NULL; /* it comes with the program that it was copied with */
	if (!p->btf.size) {
		err = rt_bpf_btf_read(id, &p->btf_owned, &size);
		if (err) {
			p->lost |= 1u << RT_ARRAY_BTF;
			rt_error_free(err);
			return NULL;
		}
		p->btf = rt_bytes_make(p->btf_owned, size);
	}
	p->lost &= ~(1u << RT_ARRAY_BTF);
	if (!rt_map_put(&w->btfs, rt_key_make(id, 0), NULL))
		return rt_error_nomem();
	return send(w, RT_BLOB_BTF, id, p->btf.data, p->btf.size);
}

static struct rt_error *send_prog(struct rt_bpf_watch *w, const struct program *p)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;

	if (!w->sink)
		return NULL;
	RT_TRY(rt_bpf_image_encode(&p->dump.info, &data, &size));
	return send(w, RT_BLOB_BPF_PROG, p->dump.info.id, data, size);
}

struct rt_error *rt_bpf_emit_extra(struct rt_bpf_watch *w, struct rt_bpf_entry *e)
{
	struct rt_bpf_image image = { .info = { .id = e->id } };
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_free_ char **attached = NULL;
	size_t size;

	e->extra_due = false;
	if (!w->sink)
		return NULL;
	attached = calloc(e->attached.len + 1, sizeof(*attached));
	if (!attached)
		return rt_error_nomem();
	for (size_t i = 0; i < e->attached.len; i++)
		attached[i] = e->attached.data[i].text;
	memcpy(image.info.tag, e->tag, sizeof(image.info.tag));
	image.map_ids = e->map_ids;
	image.map_names = e->map_names;
	image.map_count = e->map_names ? e->maps : 0;
	image.loader = e->loader_pid ? e->loader : NULL;
	image.loader_pid = e->loader_pid;
	image.load_ns = e->load_ns;
	image.unload_ns = e->unload_ns;
	image.attached = attached;
	image.attached_count = e->attached.len;
	image.lost = e->lost_text;
	RT_TRY(rt_bpf_extra_encode(&image, &data, &size));
	return send(w, RT_BLOB_BPF_EXTRA, e->id, data, size);
}

static struct rt_bpf_entry *add_entry(struct rt_bpf_watch *w, struct program *p)
{
	const struct bpf_prog_info *info = &p->dump.info;
	struct rt_bpf_entry *e = rt_bpf_catalog_add(&w->catalog, info->id);
	uint64_t unload;

	if (!e)
		return NULL;
	rt_bpf_entry_describe(e, info, p->btf, p->copy);
	if (rt_map_remove(&w->unloads, rt_key_make(info->id, 0), &unload)) {
		e->unload_ns = unload;
		e->gone = true;
	}
	return e;
}

static struct rt_error *send_losses(struct rt_bpf_watch *w, struct rt_bpf_entry *e, uint32_t lost, const char *why)
{
	_cleanup_free_ char *words = NULL;

	if (!lost)
		return NULL;
	w->catalog.lost_programs++;
	words = rt_bpf_lost_words(lost);
	e->lost = lost;
	if (!words || asprintf(&e->lost_text, "%s: %s", words, why) < 0) {
		e->lost_text = NULL;
		return rt_error_nomem();
	}
	return send(w, RT_BLOB_BPF_LOST, e->id, e->lost_text, strlen(e->lost_text));
}

/* Catalog and blobs. ret_entry is NULL where the catalog is full: the blobs are sent all the same. */
static struct rt_error *emit(struct rt_bpf_watch *w, struct program *p, struct rt_bpf_entry **ret_entry)
{
	RT_TRY(send_btf(w, p));
	*ret_entry = add_entry(w, p);
	return send_prog(w, p);
}

/* Replaces an incomplete copy by the kernel's own answer, if the program still lives. */
static void complete(struct program *p)
{
	const struct rt_load_start *s = &p->copy->start;
	struct rt_bpf_dump asked;
	struct rt_error *err = rt_bpf_dump_read(s->head.id, &asked);

	if (err) {
		rt_error_free(err);
		return;
	}
	if (memcmp(asked.info.tag, s->tag, sizeof(s->tag)) != 0 || asked.info.load_time != s->load_time) {
		rt_bpf_dump_deinit(&asked); /* another one of the same id */
		return;
	}
	rt_bpf_dump_deinit(&p->dump);
	p->dump = asked;
	p->lost &= 1u << RT_ARRAY_BTF;
}

struct rt_error *rt_bpf_emit_copy(struct rt_bpf_watch *w, const struct rt_bpf_copy *copy)
{
	_cleanup_(program_deinit) struct program p = { .copy = copy, .lost = copy->lost };
	const struct rt_bpf_buffer *btf = &copy->array[RT_ARRAY_BTF];
	struct rt_bpf_entry *e;

	RT_TRY(rt_bpf_copy_dump(copy, &p.dump));
	if (btf->have && !(p.lost >> RT_ARRAY_BTF & 1))
		p.btf = rt_bytes_make(btf->data, btf->have);
	if (p.lost || copy->start.flags & RT_LOAD_DEVICE)
		complete(&p);
	RT_TRY(emit(w, &p, &e));
	rt_map_remove(&w->expected, rt_key_make(copy->start.head.id, 0), NULL);
	if (!e)
		return NULL;
	e->loader_pid = copy->start.pid;
	snprintf(e->loader, sizeof(e->loader), "%.16s", copy->start.comm);
	e->load_ns = copy->start.time_ns;
	e->attach_type = copy->start.attach_type;
	RT_TRY(send_losses(w, e, p.lost, "the ring between kernel and reftrace was full, or memory could not be read"));
	return rt_bpf_emit_extra(w, e);
}

struct rt_error *rt_bpf_emit_asked(struct rt_bpf_watch *w, uint32_t id, uint32_t pid, const char *comm,
				   uint64_t load_ns, bool before)
{
	_cleanup_(program_deinit) struct program p = { 0 };
	struct rt_bpf_entry *e;

	RT_TRY(rt_bpf_dump_read(id, &p.dump));
	RT_TRY(emit(w, &p, &e));
	if (!e)
		return NULL;
	e->loader_pid = pid;
	snprintf(e->loader, sizeof(e->loader), "%.16s", comm ?: "");
	e->load_ns = load_ns;
	e->before = before;
	RT_TRY(send_losses(w, e, p.lost, "it was gone when the kernel was asked for it"));
	return rt_bpf_emit_extra(w, e);
}

struct rt_error *rt_bpf_emit_lost(struct rt_bpf_watch *w, uint32_t id, uint32_t pid, const char *comm, uint64_t load_ns,
				  const char *why)
{
	struct rt_bpf_entry *e = rt_bpf_catalog_add(&w->catalog, id);
	uint64_t unload;

	if (!e) {
		w->catalog.lost_programs++;
		return NULL;
	}
	e->loader_pid = pid;
	snprintf(e->loader, sizeof(e->loader), "%.16s", comm ?: "");
	e->load_ns = load_ns;
	if (rt_map_remove(&w->unloads, rt_key_make(id, 0), &unload)) {
		e->unload_ns = unload;
		e->gone = true;
	}
	RT_TRY(send_losses(w, e, 1u << RT_ARRAY_START, why));
	return rt_bpf_emit_extra(w, e);
}
