/* SPDX-License-Identifier: GPL-2.0-only */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/intern.h"
#include "base/proc.h"
#include "base/sink.h"
#include "base/text.h"
#include "engine/mapped.h"
#include "engine/marker_counter.h"
#include "engine/markers_priv.h"
#include "probe/definition.h"
#include "probe/marker_text.h"
#include "probe/near.h"

enum { NOTES_MAX = 6, CLOSE_MS = 2000, TRIES_MAX = 50 };

static void wanted_deinit(struct rt_wanted_marker *w)
{
	free(w->provider);
	free(w->name);
	free(w->file);
	free(w->modifiers);
}

struct rt_error *rt_markers_create(const struct rt_marker_target *target, int tracefs, int tracefs_errno,
				   struct rt_markers **ret)
{
	struct rt_markers *m = calloc(1, sizeof(*m));

	if (!m)
		return rt_error_nomem();
	m->target = *target;
	m->tracefs = tracefs;
	m->tracefs_errno = tracefs_errno;
	rt_sink_init_memory(&m->note);
	rt_sink_init_memory(&m->missed);
	rt_sink_init_memory(&m->fix);
	rt_sink_init_memory(&m->warning);
	rt_sink_init_memory(&m->debugged);
	rt_sink_init_memory(&m->unraised);
	*ret = m;
	return NULL;
}

/* The kernel lets go of an event when its last perf event is taken down, which may go on behind close(2). */
static void undefine(struct rt_markers *m, unsigned number)
{
	char line[RT_TRACEFS_GROUP_MAX + 32];

	snprintf(line, sizeof(line), "-:%s/m%u", m->group, number);
	for (int waited = 0; rt_tracefs_write(m->tracefs, line) == EBUSY && waited < CLOSE_MS; waited += 10)
		poll(NULL, 0, 10);
}

void rt_markers_destroy(struct rt_markers *m)
{
	for (size_t i = 0; i < m->defined.len; i++) {
		undefine(m, m->defined.data[i].number);
		free(m->defined.data[i].group);
		free(m->defined.data[i].name);
	}
	rt_vec_deinit(&m->defined);
	for (size_t i = 0; i < m->wanted.len; i++)
		wanted_deinit(&m->wanted.data[i]);
	rt_vec_deinit(&m->wanted);
	rt_vec_deinit(&m->skewed);
	rt_vec_deinit(&m->pending);
	rt_vec_deinit(&m->written);
	rt_semaphores_destroyp(&m->semaphores);
	rt_marker_files_close(&m->files);
	rt_sink_deinit(&m->note);
	rt_sink_deinit(&m->missed);
	rt_sink_deinit(&m->fix);
	rt_sink_deinit(&m->warning);
	rt_sink_deinit(&m->debugged);
	rt_sink_deinit(&m->unraised);
	rt_decoder_destroyp(&m->decoder);
	free(m);
}

/* ---- names ---- */

static const char *behind_prefix(const char *text, bool *ret_only)
{
	bool told = *text == '%';

	text += told;
	*ret_only = told || !strncmp(text, "sdt:", 4) || strchr(text, '@');
	return !strncmp(text, "sdt_", 4) || !strncmp(text, "sdt:", 4) ? text + 4 : NULL;
}

bool rt_markers_is_name(const char *text, bool *ret_only)
{
	const char *rest = behind_prefix(text, ret_only);

	return rest && *rest && *rest != ':' && strchr(rest, ':');
}

static struct rt_error *parse_strings(const char *text, const char *list, uint32_t *ret)
{
	if (!strcmp(list, "none"))
		return NULL;
	for (const char *at = list; *at; at += *at == '+') {
		size_t len = strcspn(at, "+");
		uint64_t n;

		if (!rt_parse_u64(at, len, 10, &n) || !n || n > 32)
			return rt_error_fix(rt_error_new(RT_E_USAGE, "-e '%s': '%.*s' is no number of an argument",
							 text, (int)len, at),
					    "arguments that point to texts, by number: string=1+2; or string=none");
		*ret |= 1u << (n - 1);
		at += len;
	}
	return NULL;
}

/* "PROVIDER:NAME[:string=...|:MODIFIERS][@FILE]" */
static struct rt_error *parse(const char *text, struct rt_wanted_marker *ret)
{
	bool only;
	const char *rest = behind_prefix(text, &only), *at = strchr(rest, '@');
	size_t len = at ? (size_t)(at - rest) : strlen(rest), provider = strcspn(rest, ":");
	size_t name = provider + 1 < len ? strcspn(rest + provider + 1, ":@") : 0;
	const char *more = rest + provider + 1 + name;
	_cleanup_free_ char *list = NULL;

	if (!name || provider >= len || (at && !at[1]))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "-e '%s' names no marker", text),
				    "write sdt_PROVIDER:NAME, or sdt_PROVIDER:NAME@FILE");
	ret->provider = strndup(rest, provider);
	ret->name = strndup(rest + provider + 1, name);
	ret->file = at ? strdup(at + 1) : NULL;
	if (!ret->provider || !ret->name || (at && !ret->file))
		return rt_error_nomem();
	if (more >= rest + len)
		return NULL;
	if (strncmp(more, ":string=", 8) != 0) {
		ret->modifiers = strndup(more + 1, (size_t)(rest + len - more) - 1);
		return ret->modifiers ? NULL : rt_error_nomem();
	}
	ret->told = true;
	list = strndup(more + 8, (size_t)(rest + len - more) - 8);
	return list ? parse_strings(text, list, &ret->strings) : rt_error_nomem();
}

/* ---- definitions ---- */

struct search {
	struct rt_markers *m;
	const char *text; /* as written */
	size_t wanted;    /* index */
	size_t first;     /* of m->defined: what this search has defined */
	size_t fitting;
	const struct rt_sdt_marker *marker; /* that is being defined */
	char *why;                          /* the first that could not be; owned */
};

static void note(struct rt_markers *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct rt_markers *m, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (m->note.len && memmem(m->note.buffer, m->note.len, text, strlen(text)))
		return;
	if (m->notes++ < NOTES_MAX)
		rt_sink_printf(&m->note, "%s%s", m->note.len ? "; " : "", text);
	else if (m->notes == NOTES_MAX + 1)
		rt_sink_puts(&m->note, "; and more");
}

static void say_dropped(void *arg, unsigned n, const struct rt_operand *operand, const char *why)
{
	struct search *s = arg;

	note(s->m, "argument %u (%.*s) of sdt_%s:%s is left out: %s", n, (int)operand->text_len, operand->text,
	     s->marker->provider, s->marker->name, why);
}

static struct rt_error *refuse(struct search *s, const char *path, const char *why)
{
	if (!s->why && asprintf(&s->why, "%s: %s", path, why) < 0) {
		s->why = NULL;
		return rt_error_nomem();
	}
	note(s->m, "sdt_%s:%s in %s is left out: %s", s->marker->provider, s->marker->name, path, why);
	return NULL;
}

const char *rt_markers_unarmable(struct rt_markers *m, const struct rt_image *image, struct rt_elfaddr address)
{
	struct rt_error *err = NULL;
	struct rt_insn insn;

	if (!m->decoder)
		err = rt_decoder_create(image->machine, &m->decoder);
	rt_error_free(err);
	/* a machine that we cannot read: the kernel says what it takes */
	if (!m->decoder)
		return NULL;
	if (!rt_decode(m->decoder, rt_image_at(image, address, 16), address, &insn))
		return "there is no code at its place";
	return insn.cost == RT_COST_NEVER || insn.cost == RT_COST_AVOID ? "its instruction cannot be probed here"
									: NULL;
}

static struct rt_error *write_line(struct search *s, const struct rt_marker_holder *h, const char *event, bool quiet,
				   int *ret_errnum)
{
	const struct rt_wanted_marker *w = &s->m->wanted.data[s->wanted];
	struct rt_definition_options options = { .event = event,
						 .no_semaphore = !rt_markers_by_kernel(s->m),
						 .strings = w->told ? w->strings
								    : rt_marker_texts(h->image, h->dwarf, s->marker),
						 .dropped = quiet ? NULL : say_dropped,
						 .arg = s };
	struct rt_marker_file file = { .image = h->image, .symtab = h->symtab };
	_cleanup_(rt_sink_deinit) struct rt_sink line;
	char path[64];

	/* what was looked at, whatever lies at its path by now */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", h->fd);
	file.path = path;
	rt_sink_init_memory(&line);
	RT_TRY(rt_marker_definition(&file, s->marker, &options, &line));
	RT_TRY(rt_sink_end(&line));
	*ret_errnum = rt_tracefs_write(s->m->tracefs, line.buffer);
	return NULL;
}

/* Since Linux 4.20. What cannot be read is believed to be one. */
static bool kernel_raises(const struct rt_markers *m)
{
	_cleanup_free_ char *text = NULL;

	rt_error_free(rt_fs_read(m->tracefs, "README", 1 << 20, &text, NULL));
	return !text || strstr(text, "ref_ctr_offset");
}

struct rt_error *rt_markers_refused(const struct rt_markers *m, const char *text, const char *what, int errnum)
{
	struct rt_error *err;

	if (errnum == EACCES || errnum == EPERM)
		return rt_error_fix(rt_error_errno(RT_E_PRIVILEGE, errnum, "-e '%s': cannot define uprobes", text),
				    "sudo reftrace record -e %s ...", text);
	err = rt_error_errno(RT_E_KERNEL, errnum, "-e '%s': the kernel does not take the probe of %s", text, what);
	if (errnum == EINVAL && rt_markers_by_kernel(m) && !kernel_raises(m))
		return rt_error_fix(err, "this kernel raises no semaphores (Linux 4.20 does): --semaphore=write");
	/* our lines are what the kernel takes: it is somebody else's that this one does not go with */
	if (errnum == EINVAL)
		return rt_error_fix(err, RT_MARKER_CONFLICT_FIX);
	return errnum == ENOENT || errnum == ENODEV
		       ? rt_error_fix(err, "a kernel with CONFIG_UPROBE_EVENTS is needed: reftrace doctor")
		       : err;
}

/* A further place of an event that this search has defined: the kernel takes it where the arguments are the same. */
static struct rt_error *append(struct search *s, const struct rt_marker_holder *h, bool *ret)
{
	*ret = false;
	for (size_t i = s->first; i < s->m->defined.len && !*ret; i++) {
		const struct rt_defined_event *d = &s->m->defined.data[i];
		char event[RT_TRACEFS_GROUP_MAX + 32];
		int errnum;

		if (strcmp(d->group + 4, s->marker->provider) != 0 || strcmp(d->name, s->marker->name) != 0)
			continue;
		snprintf(event, sizeof(event), "%s/m%u", s->m->group, d->number);
		RT_TRY(write_line(s, h, event, true, &errnum));
		*ret = !errnum;
	}
	return NULL;
}

unsigned rt_markers_next_number(const struct rt_markers *m)
{
	return m->defined.len ? m->defined.data[m->defined.len - 1].number + 1 : 0;
}

struct rt_error *rt_markers_defined(struct rt_markers *m, const char *group, const char *name)
{
	unsigned number = rt_markers_next_number(m);
	struct rt_defined_event *d = rt_vec_add(&m->defined);

	if (!d) {
		undefine(m, number);
		return rt_error_nomem();
	}
	*d = (struct rt_defined_event){ number, strdup(group), strdup(name) };
	return d->group && d->name ? NULL : rt_error_nomem();
}

static struct rt_error *define(struct search *s, const struct rt_marker_holder *h)
{
	struct rt_markers *m = s->m;
	_cleanup_free_ char *group = NULL;
	char event[RT_TRACEFS_GROUP_MAX + 32];
	int errnum;

	if (asprintf(&group, "sdt_%s", s->marker->provider) < 0) {
		group = NULL;
		return rt_error_nomem();
	}
	snprintf(event, sizeof(event), "%s/m%u", m->group, rt_markers_next_number(m));
	RT_TRY(write_line(s, h, event, false, &errnum));
	if (errnum)
		return rt_markers_refused(m, s->text, group, errnum);
	return rt_markers_defined(m, group, s->marker->name);
}

/* One place is one probe, however often the notes name it. */
static bool is_repeated(const struct rt_marker_holder *h, size_t index)
{
	const struct rt_sdt_marker *m = &h->markers[index];

	for (size_t i = 0; i < index; i++)
		if (h->markers[i].location.v == m->location.v && !strcmp(h->markers[i].name, m->name) &&
		    !strcmp(h->markers[i].provider, m->provider))
			return true;
	return false;
}

static struct rt_error *note_skewed(struct search *s, const struct rt_marker_holder *h)
{
	struct rt_markers *m = s->m;
	struct rt_skewed_counter k = { .file = (size_t)(h - m->files.list.data),
				       .marker = (size_t)(s->marker - h->markers) };
	struct stat st;

	if (!rt_markers_by_kernel(m) || !rt_counter_is_skewed(h->image, s->marker) || fstat(h->fd, &st))
		return NULL;
	k.dev = st.st_dev;
	k.ino = st.st_ino;
	if (!rt_vec_push(&m->skewed, k))
		return rt_error_nomem();
	/* what runs already is as it should be */
	if (m->target.command || m->target.every_process)
		note(m,
		     "%s: the kernel raises the counters of its markers in the wrong place at its start (a page of the "
		     "file is mapped twice); they are put right a moment later, what passes before is not seen",
		     h->path);
	return NULL;
}

static struct rt_error *define_marker(struct search *s, const struct rt_marker_holder *h)
{
	struct rt_foff location, semaphore;
	const char *why = rt_sdt_offsets(h->image, s->marker, &location, &semaphore);
	bool done;

	if (!why)
		why = rt_markers_unarmable(s->m, h->image, s->marker->location);
	if (why)
		return refuse(s, h->path, why);
	RT_TRY(append(s, h, &done));
	if (!done)
		RT_TRY(define(s, h));
	RT_TRY(rt_markers_note_written(s->m, h->fd, h->image, location, semaphore));
	if (s->m->written.len)
		note(s->m, "%s", RT_SEMAPHORE_WRITE_NOTE);
	return note_skewed(s, h);
}

static struct rt_error *define_file(struct search *s, const struct rt_marker_holder *h)
{
	const struct rt_wanted_marker *w = &s->m->wanted.data[s->wanted];

	for (size_t i = 0; i < h->count; i++) {
		s->marker = &h->markers[i];
		if (!rt_marker_fits(s->marker, w->provider, w->name) || is_repeated(h, i))
			continue;
		s->fitting++;
		RT_TRY(define_marker(s, h));
	}
	return NULL;
}

/* ---- events ---- */

static struct rt_error *add_event(const struct rt_markers *m, const struct rt_defined_event *d,
				  struct rt_event_list *list)
{
	struct rt_event_desc desc = { .kind = RT_EVENT_TRACEPOINT, .type = PERF_TYPE_TRACEPOINT };
	_cleanup_free_ char *text = NULL;
	struct rt_event_desc *kept;
	char path[RT_TRACEFS_GROUP_MAX + 64];

	snprintf(path, sizeof(path), "events/%s/m%u/id", m->group, d->number);
	RT_TRY(rt_fs_read(m->tracefs, path, 64, &text, NULL));
	if (!rt_parse_u64(text, strcspn(text, "\n"), 10, &desc.config))
		return rt_error_new(RT_E_FORMAT, "%s holds no number", path);
	if (list->len >= RT_EVENTS_MAX)
		return rt_error_fix(rt_error_new(RT_E_LIMIT, "more than %d events", RT_EVENTS_MAX),
				    "name fewer markers");
	kept = rt_vec_add(list);
	if (!kept)
		return rt_error_nomem();
	*kept = desc;
	if (asprintf(&kept->name, "%s:%s", d->group, d->name) < 0)
		kept->name = NULL;
	kept->group = strdup(d->group);
	if (asprintf(&kept->folder, "%s/m%u", m->group, d->number) < 0)
		kept->folder = NULL;
	kept->tracepoint = strdup(d->name);
	return kept->name && kept->group && kept->folder && kept->tracepoint ? NULL : rt_error_nomem();
}

struct rt_error *rt_markers_add_events(const struct rt_markers *m, size_t first, struct rt_event_list *list)
{
	for (size_t i = first; i < m->defined.len; i++)
		RT_TRY(add_event(m, &m->defined.data[i], list));
	return NULL;
}

/* Near names of all files that were looked at. names owns them. */
static struct rt_error *offer(const struct rt_marker_files *files, struct rt_intern *names, struct rt_near *near)
{
	for (size_t f = 0; f < files->list.len; f++) {
		const struct rt_marker_holder *h = &files->list.data[f];

		for (size_t i = 0; i < h->count; i++) {
			char text[RT_MARKER_NAME_MAX];
			uint32_t id;

			if (!rt_marker_name(&h->markers[i], text))
				continue;
			text[3] = '_'; /* "sdt:" */
			id = rt_intern_string(names, text);
			if (!id)
				return rt_error_nomem();
			rt_near_offer(near, rt_intern_text(names, id));
		}
	}
	return NULL;
}

/* There is one: a name of it was offered. */
static const char *first_with_markers(const struct rt_marker_files *files)
{
	size_t i = 0;

	while (i + 1 < files->list.len && !files->list.data[i].count)
		i++;
	return files->list.data[i].path;
}

static size_t with_markers(const struct rt_marker_files *files)
{
	size_t n = 0;

	for (size_t i = 0; i < files->list.len; i++)
		n += files->list.data[i].count != 0;
	return n;
}

static struct rt_error *not_found(struct search *s)
{
	const struct rt_marker_files *files = &s->m->files;
	const struct rt_wanted_marker *w = &s->m->wanted.data[s->wanted];
	_cleanup_free_ char *plain = NULL;
	struct rt_near near = { 0 };
	struct rt_intern names = { 0 };
	struct rt_error *err;

	if (asprintf(&plain, "sdt_%s:%s", w->provider, w->name) < 0) {
		plain = NULL;
		return rt_error_nomem();
	}
	near.wanted = plain;
	err = offer(files, &names, &near);
	if (!err && files->other_id)
		err = rt_error_fix(
			rt_error_new(RT_E_NOT_FOUND,
				     "-e '%s': the build-id cache knows it in %s, which has another build-id "
				     "now",
				     s->text, files->other_id),
			"reftrace cache add %s", files->other_id);
	else if (!err)
		err = rt_error_new(RT_E_NOT_FOUND, "-e '%s': no such marker in %zu file%s%s (%zu with markers)%s",
				   s->text, files->looked_at, files->looked_at == 1 ? "" : "s",
				   w->file ? "" : " of the target and the build-id cache", with_markers(files),
				   files->damaged ? "; some have damaged SDT notes" : "");
	if (err->code == RT_E_NOT_FOUND && near.count)
		err = rt_error_fix(err, "did you mean %s%s%s? all of a file: reftrace probe markers %s", near.names[0],
				   near.count > 1 ? ", or " : "", near.count > 1 ? near.names[1] : "",
				   first_with_markers(files));
	else if (err->code == RT_E_NOT_FOUND && !err->fix)
		err = rt_error_fix(err,
				   "a library that is loaded later: -e '%s@/path/to/library', or, for every "
				   "recording, reftrace cache add /path/to/library",
				   plain);
	rt_intern_deinit(&names);
	return err;
}

static struct rt_error *define_all(struct search *s)
{
	struct rt_marker_files *files = &s->m->files;
	const struct rt_wanted_marker w = s->m->wanted.data[s->wanted];
	size_t own = files->list.len, index = SIZE_MAX;

	if (w.file) {
		RT_TRY(rt_error_wrap(rt_marker_files_add(files, w.file, &index), "-e '%s'", s->text));
		return index == SIZE_MAX ? NULL : define_file(s, &files->list.data[index]);
	}
	for (size_t i = 0; i < own; i++)
		RT_TRY(define_file(s, &files->list.data[i]));
	/* a library that is loaded later may have it, too; every provider's markers are asked of the target alone */
	if (s->fitting && rt_event_is_glob(w.provider))
		return NULL;
	RT_TRY(rt_marker_files_cached(files, w.provider, w.name));
	for (size_t i = own; i < files->list.len; i++)
		RT_TRY(define_file(s, &files->list.data[i]));
	return NULL;
}

struct rt_error *rt_markers_prepare(struct rt_markers *m)
{
	size_t busy;

	if (m->looked)
		return NULL;
	if (!rt_tracefs_own_group(m->group))
		return rt_error_new(RT_E_SYSTEM, "cannot read our own start time");
	/* what is left of killed ones arms nothing, but stands in the way of nobody else either */
	rt_error_free(rt_tracefs_cleanup_stale(AT_FDCWD, &busy));
	m->looked = true;
	return rt_marker_files_open(&m->target, &m->files);
}

struct rt_error *rt_markers_find(struct rt_markers *m, const char *text, struct rt_event_list *list,
				 const char **ret_modifiers)
{
	struct search s = { .m = m, .text = text, .wanted = m->wanted.len, .first = m->defined.len };
	struct rt_wanted_marker *w = rt_vec_add(&m->wanted);
	struct rt_error *err;

	if (!w)
		return rt_error_nomem();
	RT_TRY(parse(text, w));
	if (m->tracefs < 0)
		return rt_event_no_tracefs(text, m->tracefs_errno);
	RT_TRY(rt_markers_prepare(m));
	err = define_all(&s);
	if (!err && !s.fitting)
		err = not_found(&s);
	else if (!err && s.first == m->defined.len)
		err = rt_error_new(RT_E_UNARMED, "-e '%s': %s", text, s.why ?: "it cannot be probed");
	free(s.why);
	*ret_modifiers = m->wanted.data[s.wanted].modifiers;
	return err ? err : rt_markers_add_events(m, s.first, list);
}

/* ---- what comes later ---- */

/* false: it has to be tried again */
static bool raise_counter(const struct rt_markers *m, struct rt_pending_counter *p)
{
	const struct rt_skewed_counter *k = &m->skewed.data[p->skewed];
	const struct rt_marker_holder *h = &m->files.list.data[k->file];

	return rt_counter_raise(p->pid, h->image, &h->markers[k->marker], p->bias) != RT_COUNTER_NOT_YET ||
	       ++p->tries >= TRIES_MAX;
}

struct rt_error *rt_markers_settle(struct rt_markers *m)
{
	size_t left = 0;

	for (size_t i = 0; i < m->pending.len; i++)
		if (!raise_counter(m, &m->pending.data[i]))
			m->pending.data[left++] = m->pending.data[i];
	m->pending.len = left;
	return m->semaphores ? rt_semaphores_settle(m->semaphores) : NULL;
}

/* The counters of a file in a process that maps its code now. */
struct rt_error *rt_markers_began(struct rt_markers *m, uint32_t pid, const struct rt_maps_line *line)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!m->skewed.len && !m->written.len)
		return NULL;
	fd = rt_mapped_file(pid, line);
	if (fd < 0 || fstat(fd, &st))
		return NULL;
	RT_TRY(rt_markers_raise(m, pid, line, &st));
	for (size_t i = 0; i < m->skewed.len; i++) {
		const struct rt_skewed_counter *k = &m->skewed.data[i];
		struct rt_pending_counter p = { .pid = pid, .skewed = i };

		if (k->dev != st.st_dev || k->ino != st.st_ino ||
		    !rt_counter_bias(m->files.list.data[k->file].image, line->start, line->offset, &p.bias))
			continue;
		if (!raise_counter(m, &p) && !rt_vec_push(&m->pending, p))
			return rt_error_nomem();
	}
	return NULL;
}

bool rt_markers_wanted(const struct rt_markers *m)
{
	return m->wanted.len || m->defined.len;
}

struct rt_error *rt_markers_mapped(struct rt_markers *m, uint32_t pid, const struct rt_maps_line *line)
{
	size_t index;

	RT_TRY(rt_marker_files_mapped(&m->files, pid, line, &index));
	if (index == SIZE_MAX)
		return NULL;
	m->files.list.data[index].late = true;
	for (size_t i = 0; i < m->files.list.data[index].count; i++) {
		const struct rt_sdt_marker *marker = &m->files.list.data[index].markers[i];

		for (size_t k = 0; k < m->wanted.len; k++) {
			const struct rt_wanted_marker *w = &m->wanted.data[k];

			if (!w->provider || w->file || !rt_marker_fits(marker, w->provider, w->name))
				continue;
			rt_sink_printf(&m->missed, "%ssdt_%s:%s in %s", m->missed.len ? ", " : "", marker->provider,
				       marker->name, line->path);
			if (!m->fix.len)
				rt_sink_printf(&m->fix, "reftrace cache add %s, and record again", line->path);
			return NULL;
		}
	}
	return NULL;
}

struct rt_error *rt_markers_check_debuggers(const struct rt_markers *m)
{
	for (size_t i = 0; i < m->target.pid_count; i++)
		RT_TRY(rt_proc_check_untraced(m->target.pids[i]));
	return NULL;
}

void rt_markers_find_debuggers(struct rt_markers *m)
{
	_cleanup_error_ struct rt_error *err = rt_markers_check_debuggers(m);

	if (err && err->code == RT_E_TRACED)
		rt_sink_printf(
			&m->debugged,
			"%s: a breakpoint that it has set at a place of ours becomes ours when it is taken away, "
			"and ends the program that comes there; next time %s, and attach it when the recording "
			"has ended",
			err->message, err->fix);
}

const char *rt_markers_debugged(const struct rt_markers *m)
{
	return m->debugged.len ? m->debugged.buffer : NULL;
}

const char *rt_markers_note(const struct rt_markers *m)
{
	return m->note.len ? m->note.buffer : NULL;
}

const char *rt_markers_warning(const struct rt_markers *m)
{
	return m->warning.len ? m->warning.buffer : NULL;
}

const char *rt_markers_missed(const struct rt_markers *m, const char **ret_fix)
{
	*ret_fix = m->fix.buffer;
	return m->missed.len ? m->missed.buffer : NULL;
}
