/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/lines.h"

#include <string.h>

#include "base/fs.h"
#include "base/map.h"
#include "insn/insn.h"

enum { FUNCTION_BYTES = 16 << 20 };

struct start {
	uint64_t addr;
	bool refused;
};

struct reading {
	const struct rt_image *image;
	struct rt_dwarf *dwarf;
	struct rt_decoder *decoder; /* NULL: none for this machine */
	const char *file;
	uint32_t first, last;
	struct rt_lines *out;
	struct rt_map known; /* name of a file -> 1 + whether it is the one */
	/* the instructions of one function */
	uint64_t from, to;
	RT_VEC(struct start) starts;
	struct rt_error *err;
};

bool rt_line_same_instance(const struct rt_line_place *a, const struct rt_line_place *b)
{
	return a->in.unit == b->in.unit && a->in.node == b->in.node;
}

bool rt_path_is(const char *path, const char *name)
{
	_cleanup_free_ char *whole = NULL, *part = NULL;
	size_t n, m;

	/* nearly all differ here, and there are as many as functions */
	if (strcmp(rt_basename(path), rt_basename(name)) != 0)
		return false;
	whole = rt_fs_plain_path(path);
	part = rt_fs_plain_path(name);
	if (!whole || !part)
		return false;
	/* both begin with a slash: a name that has none of its own may be anywhere */
	if (name[0] == '/')
		return !strcmp(whole, part);
	n = strlen(whole);
	m = strlen(part);
	return n >= m && !strcmp(whole + n - m, part);
}

/* Decodes the function around addr from its start on. */
static bool load(struct reading *r, uint64_t addr)
{
	struct rt_elfaddr start, end;
	struct rt_bytes code;
	bool lsda;

	if (addr >= r->from && addr < r->to)
		return true;
	if (!rt_dwarf_fde(r->dwarf, (struct rt_elfaddr){ addr }, &start, &end, &lsda) || end.v <= start.v ||
	    end.v - start.v > FUNCTION_BYTES)
		return false;
	rt_vec_clear(&r->starts);
	code = rt_image_at(r->image, start, end.v - start.v);
	r->from = start.v;
	r->to = end.v;
	for (size_t at = 0, length; at < code.size; at += length) {
		struct rt_insn insn;

		/* bytes that are no instruction are data between code: go on behind them */
		length = 1;
		if (!rt_decode(r->decoder, rt_bytes_make(code.data + at, code.size - at),
			       (struct rt_elfaddr){ start.v + at }, &insn))
			continue;
		length = insn.length;
		if (!rt_vec_push(&r->starts, ((struct start){ start.v + at, insn.cost == RT_COST_NEVER }))) {
			r->err = rt_error_nomem();
			return false;
		}
	}
	return true;
}

static const struct start *start_at(struct reading *r, uint64_t addr)
{
	size_t low = 0, high;

	if (!load(r, addr))
		return NULL;
	for (high = r->starts.len; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (r->starts.data[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->starts.len && r->starts.data[low].addr == addr ? &r->starts.data[low] : NULL;
}

static bool wants(const char *file, void *arg)
{
	struct reading *r = arg;
	/* interned: many units name the same files */
	uint64_t *slot = rt_map_put(&r->known, rt_key_make((uintptr_t)file, 0), NULL);

	if (!slot)
		return rt_path_is(file, r->file);
	if (!*slot)
		*slot = 1 + rt_path_is(file, r->file);
	return *slot == 2;
}

static bool take(const struct rt_row *row, void *arg)
{
	struct reading *r = arg;
	struct rt_line_place place = { .line = row->line, .address = row->addr };
	const struct start *start;

	if (row->line > r->out->last)
		r->out->last = row->line;
	if (!row->is_stmt || row->line < r->first || row->line > r->last)
		return true;
	start = r->decoder ? start_at(r, row->addr.v) : NULL;
	if ((r->decoder && !start) || !rt_dwarf_instance_of_row(r->dwarf, row, &place.in)) {
		r->out->torn++;
		return !r->err;
	}
	place.refused = start && start->refused;
	if (!rt_vec_push(&r->out->places, place))
		r->err = rt_error_nomem();
	return !r->err;
}

static int compare(const void *a, const void *b)
{
	const struct rt_line_place *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->in.unit != y->in.unit)
		return x->in.unit < y->in.unit ? -1 : 1;
	if (x->in.node != y->in.node)
		return x->in.node < y->in.node ? -1 : 1;
	return x->address.v < y->address.v ? -1 : x->address.v > y->address.v;
}

static void sort(struct rt_lines *lines)
{
	size_t kept = 0;

	if (!lines->places.len)
		return;
	qsort(lines->places.data, lines->places.len, sizeof(*lines->places.data), compare);
	for (size_t i = 1; i < lines->places.len; i++) {
		if (compare(&lines->places.data[kept], &lines->places.data[i]) != 0)
			lines->places.data[++kept] = lines->places.data[i];
	}
	lines->places.len = kept + 1;
}

struct rt_error *rt_lines_read(const struct rt_image *image, struct rt_dwarf *dwarf, const char *file, uint32_t first,
			       uint32_t last, struct rt_lines *ret)
{
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;
	struct reading r = { .image = image, .dwarf = dwarf, .file = file, .first = first, .last = last, .out = ret };
	struct rt_error *err;

	*ret = (struct rt_lines){ 0 };
	err = rt_decoder_create(image->machine, &decoder);
	if (rt_error_catch(&err, RT_E_UNSUPPORTED))
		ret->unchecked = true;
	RT_TRY(err);
	r.decoder = decoder;
	err = rt_dwarf_rows(dwarf, SIZE_MAX, wants, take, &r);
	rt_vec_deinit(&r.starts);
	rt_map_deinit(&r.known);
	if (!err)
		err = r.err;
	if (!err)
		sort(ret);
	return err;
}

void rt_lines_deinit(struct rt_lines *lines)
{
	rt_vec_deinit(&lines->places);
}
