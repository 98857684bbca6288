/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bystanders: programs of which all files that the dynamic linker will load are known, have nothing to trace, and ask
 * for no other file (dlopen). Most processes of a test suite are such: shells, sed, diff. To bring an engine into one
 * costs more than all that it does.
 *
 * Only at its end it is known whether that was right. The C library loads files by itself, too (name services,
 * character sets), and a folder may have got another file meanwhile: what came in nevertheless is told as not traced,
 * and the program never is a bystander again. One that becomes another program by exec(2) takes what it had with it:
 * that is not looked at.
 */
#include <elf.h>
#include <sys/stat.h>

#include "engine/libraries.h"
#include "session/batch.h"
#include "session/internal.h"
#include "symbol/opens.h"

enum { ASKED_MAX = 4 };

typedef RT_VEC(const char *) name_vec;

/* Which files a program has. */
struct rt_bystander {
	uint64_t digest; /* of what else decides that */
	bool yes;        /* these are all */
	unsigned asked;  /* how often in vain */
	struct rt_libraries files;
	struct rt_libraries opened; /* the same, and what they may open by names in their code */
};

static bool same_file(uint32_t pid, const char *what)
{
	struct stat its, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, what);
	if (stat(path, &its))
		return false;
	snprintf(path, sizeof(path), "/proc/self/%s", what);
	return !stat(path, &ours) && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

/* What the environment tells the dynamic linker; texts are of data. false: something that we do not follow. */
static bool ask_environment(const char *data, size_t size, struct rt_libraries_options *ret)
{
	for (size_t i = 0; i < size; i += strlen(data + i) + 1) {
		const char *entry = data + i;

		if (!strncmp(entry, "LD_LIBRARY_PATH=", 16))
			ret->library_path = entry + 16;
		else if (!strncmp(entry, "LD_PRELOAD=", 11))
			ret->preload = entry + 11;
		else if (!strncmp(entry, "LD_AUDIT=", 9))
			return false;
	}
	return data != NULL;
}

static struct rt_error *opens_of(struct rt_module *m, const struct rt_opens **ret)
{
	const struct rt_symtab *symtab;

	if (!m->opens) {
		RT_TRY(rt_module_symtab(m, &symtab));
		m->opens = calloc(1, sizeof(*m->opens));
		if (!m->opens)
			return rt_error_nomem();
		RT_TRY(rt_opens_find(m->image, symtab, m->opens));
	}
	*ret = m->opens;
	return NULL;
}

static bool has_nothing(const struct rt_module *m)
{
	return m && m->planned && m->symtab && !m->point_nr && !m->watched;
}

/* Points belong to modules alone, and p is a program that we know, in the files that we see. */
static bool may_be(const struct rt_session *s, const struct rt_process *p)
{
	return has_nothing(rt_session_module(s, p->main_module)) && !s->call_nr && s->root_running && !p->attached &&
	       rt_proc_auxv(p->tgid, AT_BASE) && same_file(p->tgid, "root") && same_file(p->tgid, "ns/mnt") &&
	       access("/etc/ld.so.preload", F_OK) != 0;
}

static struct rt_module *module_at(const struct rt_session *s, const char *path)
{
	struct rt_key key;
	const uint64_t *id = rt_session_file(path, &key) ? rt_map_get(&s->files, key) : NULL;

	return id ? rt_session_module(s, (uint32_t)*id) : NULL;
}

/* Whether the file, which nobody has mapped so far, may have points. */
static bool may_matter(const struct rt_session *s, const char *path)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	struct rt_error *err = rt_image_open(path, &image);
	struct rt_module m = { .image = image };
	bool matters;

	if (!err)
		err = rt_symtab_create(image, &symtab);
	m.symtab = symtab;
	/* what a scan would find in it is not known before; nor what it opens itself */
	matters = err || s->options.scan || rt_image_has_name(image, "dlopen") || rt_image_has_name(image, "dlmopen");
	for (size_t i = 0; i < s->batches.len && !matters; i++)
		matters = rt_batch_matters(s->batches.data[i], &m);
	rt_error_free(err);
	return matters;
}

/* The same, asked once. */
static struct rt_error *ask_unmapped(struct rt_session *s, const char *path, bool *ret)
{
	bool fresh = false;
	struct rt_key key;
	uint64_t *known;

	*ret = true;
	if (!rt_session_file(path, &key))
		return NULL;
	known = rt_map_put(&s->unmapped, key, &fresh);
	if (!known)
		return rt_error_nomem();
	if (fresh)
		*known = may_matter(s, path);
	*ret = *known;
	return NULL;
}

/* Whether none of the files has anything to trace, as they are now. known: all of them were mapped by somebody. */
static struct rt_error *have_nothing(struct rt_session *s, const struct rt_libraries *files, bool known, bool *ret)
{
	*ret = true;
	for (size_t i = 0; i < files->paths.len && *ret; i++) {
		const struct rt_module *m = module_at(s, files->paths.data[i]);
		bool matters = true;

		if (!m && !known)
			RT_TRY(ask_unmapped(s, files->paths.data[i], &matters));
		*ret = m ? has_nothing(m) : !matters;
	}
	return NULL;
}

static struct rt_error *has_no_part(struct rt_session *s, const struct rt_bystander *b, bool *ret)
{
	RT_TRY(have_nothing(s, &b->files, true, ret));
	return *ret ? have_nothing(s, &b->opened, false, ret) : NULL;
}

/* The names that the files open, as far as they are known. *ret_all: no others are opened. */
static struct rt_error *add_opened(const struct rt_session *s, const struct rt_libraries *files, name_vec *ret,
				   bool *ret_all)
{
	const struct rt_opens *opens = NULL;

	for (size_t i = 0; i < files->paths.len && *ret_all; i++) {
		struct rt_module *m = module_at(s, files->paths.data[i]);

		if (!m)
			continue;
		RT_TRY(opens_of(m, &opens));
		*ret_all = opens->all;
		for (size_t k = 0; k < opens->names.len; k++)
			if (!rt_vec_push(ret, opens->names.data[k]))
				return rt_error_nomem();
	}
	return NULL;
}

/* All files that p will have from the beginning, and those that it may open. */
static struct rt_error *find_files(struct rt_session *s, const struct rt_process *p,
				   struct rt_libraries_options *options, struct rt_bystander *b)
{
	name_vec names = { 0 };
	struct rt_error *err;
	char program[64];
	size_t count;

	rt_libraries_deinit(&b->files);
	rt_libraries_deinit(&b->opened);
	b->files = b->opened = (struct rt_libraries){ .unsure = false };
	snprintf(program, sizeof(program), "/proc/%u/exe", p->tgid);
	RT_TRY(rt_libraries_of(program, options, &b->files));
	b->yes = !b->files.unsure;
	if (b->yes)
		RT_TRY(have_nothing(s, &b->files, true, &b->yes));
	err = b->yes ? add_opened(s, &b->files, &names, &b->yes) : NULL;
	options->opened = names.data;
	options->opened_count = count = names.len;
	if (b->yes && names.len && !err)
		err = rt_libraries_of(program, options, &b->opened);
	b->yes = b->yes && !b->opened.unsure;
	if (b->yes && !err)
		err = have_nothing(s, &b->opened, false, &b->yes);
	/* what is opened opens no more: it has the same names again */
	rt_vec_clear(&names);
	if (b->yes && count && !err)
		err = add_opened(s, &b->opened, &names, &b->yes);
	b->yes = b->yes && names.len == count;
	rt_vec_deinit(&names);
	return err;
}

void rt_bystander_forget(struct rt_module *m)
{
	if (m->bystander) {
		rt_libraries_deinit(&m->bystander->files);
		rt_libraries_deinit(&m->bystander->opened);
	}
	free(m->bystander);
	if (m->opens)
		rt_opens_deinit(m->opens);
	free(m->opens);
	m->bystander = NULL;
	m->opens = NULL;
}

/* What decides which files a program has, beside itself: what is preloaded, and the linker's list of libraries. */
static uint64_t digest_of(const struct rt_libraries_options *options)
{
	const char *preload = options->preload ?: "";
	struct stat st = { 0 };

	(void)stat("/etc/ld.so.cache", &st);
	uint64_t words[] = { st.st_dev, st.st_ino, (uint64_t)st.st_ctim.tv_sec, (uint64_t)st.st_ctim.tv_nsec };

	return rt_hash(rt_hash(1, words, sizeof(words)), preload, strlen(preload)) | 1;
}

struct rt_error *rt_session_find_bystander(struct rt_session *s, struct rt_process *p)
{
	struct rt_module *m = rt_session_module(s, p->main_module);
	struct rt_libraries_options options = { 0 };
	_cleanup_free_ char *data = NULL;
	uint64_t digest;
	size_t size;

	if (!may_be(s, p))
		return NULL;
	data = rt_proc_environment(p->tgid, &size);
	if (!ask_environment(data, size, &options))
		return NULL;
	digest = digest_of(&options);
	/* in the program's own folders another file may be by now */
	if (m->bystander && m->bystander->yes && m->bystander->digest == digest && !options.library_path)
		return has_no_part(s, m->bystander, &p->bystander);
	if (!m->bystander && !(m->bystander = calloc(1, sizeof(*m->bystander))))
		return rt_error_nomem();
	if (m->bystander->asked == ASKED_MAX)
		return NULL;
	m->bystander->digest = digest;
	RT_TRY(find_files(s, p, &options, m->bystander));
	m->bystander->asked += !m->bystander->yes;
	p->bystander = m->bystander->yes;
	return NULL;
}

struct rt_error *rt_session_check_bystander(struct rt_session *s, struct rt_process *p)
{
	struct rt_module *program = rt_session_module(s, p->main_module);

	if (!p->bystander || p->shares_mm)
		return NULL;
	RT_TRY(rt_session_sync(s, p));
	RT_TRY(rt_session_plan(s, p));
	for (size_t i = 0; i < p->maps.len; i++) {
		const struct rt_module *m = rt_session_module(s, p->maps.data[i].module);

		if (!m->point_nr)
			continue;
		program->watched = true;
		s->untraced = true;
		return rt_emit_loss(s, RT_LOSS_UNTRACED, rt_process_wire(p), 0,
				    "process %u (%s): it has loaded %s, which its files do not name", p->tgid,
				    rt_module_basename(program), rt_module_basename(m));
	}
	return NULL;
}
