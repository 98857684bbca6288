/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that would not be under us what they are by themselves. A sanitizer's runtime lays out the whole memory, so
 * that no engine's code has a place there; one that looks for leaks traces all threads at the end, and fails where
 * somebody else does. And the kernel gives a program no rights that its file has where an ordinary user traces it.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "base/fs.h"
#include "base/text.h"
#include "elf/sanitizer.h"
#include "session/internal.h"

/* ---- sanitizers ---- */

/* What the last one of these options says. */
static bool is_off(const char *options, const char *name, bool off)
{
	for (const char *at = options; (at = strstr(at, name)) != NULL;) {
		at += strlen(name);
		if (*at == '=')
			off = at[1] == '0' || at[1] == 'n' || at[1] == 'f';
	}
	return off;
}

/* One of the libraries that LD_PRELOAD names. */
static const struct rt_sanitizer *preloaded(const char *names)
{
	const struct rt_sanitizer *found = NULL;

	for (const char *at = names + strspn(names, ": "); *at && !found; at += strspn(at, ": ")) {
		size_t length = strcspn(at, ": ");
		_cleanup_free_ char *name = strndup(at, length);

		found = name ? rt_sanitizer_of_library(name) : NULL;
		at += length;
	}
	return found;
}

/* What the environment of a program that has just begun says. *sanitizer: of the program itself, or NULL. */
static void ask_environment(uint32_t pid, const struct rt_sanitizer **sanitizer, bool *ret_leaks)
{
	size_t size;
	_cleanup_free_ char *data = rt_proc_environment(pid, &size);
	bool off = false;

	for (size_t i = 0; i < size; i += strlen(data + i) + 1) {
		const char *entry = data + i;

		if (!strncmp(entry, "LD_PRELOAD=", 11) && !*sanitizer)
			*sanitizer = preloaded(entry + 11);
		else if (!strncmp(entry, "ASAN_OPTIONS=", 13) || !strncmp(entry, "LSAN_OPTIONS=", 13))
			off = is_off(entry + 13, "detect_leaks", off);
	}
	*ret_leaks = *sanitizer && (*sanitizer)->leaks && !off;
}

/* *ret: of p, whose program is m, or NULL. *ret_leaks: it will look for leaks. */
static struct rt_error *find_sanitizer(const struct rt_process *p, struct rt_module *m, const struct rt_sanitizer **ret,
				       bool *ret_leaks)
{
	const struct rt_symtab *symtab = NULL;

	*ret = NULL;
	if (m) {
		RT_TRY(rt_module_symtab(m, &symtab));
		RT_TRY(rt_image_sanitizer(m->image, symtab, ret));
	}
	ask_environment(p->tgid, ret, ret_leaks);
	return NULL;
}

/* ---- rights ---- */

/* Effective id of a process, by its line in status. */
static bool effective_id(uint32_t pid, const char *key, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	struct rt_error *err;
	const char *line;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	err = rt_fs_read(AT_FDCWD, path, 1 << 16, &text, NULL);
	if (err) {
		rt_error_free(err);
		return false;
	}
	line = strstr(text, key);
	line = line ? strchr(line, '\t') : NULL;     /* real */
	line = line ? strchr(line + 1, '\t') : NULL; /* effective */
	return line && rt_parse_u64(line + 1, strspn(line + 1, "0123456789"), 10, ret);
}

static bool lacks_capabilities(uint32_t pid, const char *file)
{
	struct vfs_ns_cap_data caps = { 0 };
	ssize_t n = getxattr(file, "security.capability", &caps, sizeof(caps));
	uint64_t granted, bound, has;

	if (n < (ssize_t)XATTR_CAPS_SZ_2)
		return false;
	granted = caps.data[0].permitted | (uint64_t)caps.data[1].permitted << 32;
	return rt_proc_status(pid, "CapBnd", 16, &bound) && rt_proc_status(pid, "CapPrm", 16, &has) &&
	       (granted & bound & ~has);
}

/* Whether the kernel has not given the program what its file says, and has no other reason than that it is traced. */
static bool lacks_rights(uint32_t pid)
{
	uint64_t none = 0, id;
	struct statvfs fs;
	struct stat st;
	char file[64];

	snprintf(file, sizeof(file), "/proc/%u/exe", pid);
	if (stat(file, &st) || statvfs(file, &fs) || fs.f_flag & ST_NOSUID ||
	    (rt_proc_status(pid, "NoNewPrivs", 10, &none) && none))
		return false;
	if (st.st_mode & S_ISUID && effective_id(pid, "\nUid:", &id) && id != st.st_uid)
		return true;
	if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && effective_id(pid, "\nGid:", &id) && id != st.st_gid)
		return true;
	return lacks_capabilities(pid, file);
}

/* ---- both ---- */

/* Nothing of it has run, or it was running before: then the answer is no. */
static bool may_refuse(const struct rt_session *s, const struct rt_process *p)
{
	return s->options.pid_count ? s->attaching : p->tgid == s->root && !s->root_running;
}

static const char *name_of(const struct rt_session *s, const struct rt_process *p)
{
	const struct rt_module *m = rt_session_module(s, p->main_module);

	return m ? rt_module_basename(m) : "?";
}

static struct rt_error *examine_rights(struct rt_session *s, struct rt_process *p)
{
	const char *name = name_of(s, p);
	struct rt_error *err, *loss;

	if (p->attached || !lacks_rights(p->tgid))
		return NULL;
	err = rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
					"%s has rights by its file (setuid, setgid, capabilities), which the kernel "
					"withholds from what an ordinary user traces",
					name),
			   "sudo reftrace ...: the program runs as you, with its rights");
	if (may_refuse(s, p))
		return err;
	loss = rt_emit_loss(s, RT_LOSS_RIGHTS, rt_process_wire(p), 0, "process %u (%s)", p->tgid, name);
	rt_error_free(err);
	return loss;
}

static struct rt_error *examine_sanitizer(struct rt_session *s, struct rt_process *p)
{
	const struct rt_sanitizer *sanitizer = NULL;
	struct rt_error *err, *loss;
	bool leaks = false;

	RT_TRY(find_sanitizer(p, rt_session_module(s, p->main_module), &sanitizer, &leaks));
	p->unfit = sanitizer ? sanitizer->name : NULL;
	if (!leaks)
		return NULL;
	err = rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
					"process %u (%s) is not traced: %s looks for its leaks at the end, and fails "
					"under a tracer",
					p->tgid, name_of(s, p), sanitizer->name),
			   "leave that search out: ASAN_OPTIONS=detect_leaks=0 reftrace ...");
	if (may_refuse(s, p))
		return err;
	p->foreign = p->let_go = s->untraced = true;
	loss = rt_emit_loss(s, RT_LOSS_UNTRACED, rt_process_wire(p), 0, "%s", err->message);
	rt_error_free(err);
	return loss;
}

struct rt_error *rt_session_examine(struct rt_session *s, struct rt_process *p)
{
	RT_TRY(examine_rights(s, p));
	return examine_sanitizer(s, p);
}
