/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies of the kernel's code: R/[kernel.kcore]/<hex>/<YYYYmmddHHMMSShh>/{kcore,kallsyms,modules}, without a link from
 * .build-id, readable by their owner alone. A copy is made in a folder that perf does not see, and renamed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "cache/parts.h"
#include "elf/build_id.h"
#include "elf/kcore.h"

enum { TEXT_MAX = 64 << 20, CHUNK = 1 << 18, TRIES = 100 };

static const char *const names[] = { "kallsyms", "modules" };
enum { KALLSYMS, MODULES, TEXTS };

/* The folder that the kcore is in. */
struct kernel {
	const char *path; /* of its kcore */
	int folder, kcore;
	struct rt_build_id id;
	struct rt_bytes text[TEXTS];
};

static void kernel_deinit(struct kernel *k)
{
	rt_closep(&k->folder);
	rt_closep(&k->kcore);
	for (size_t i = 0; i < TEXTS; i++)
		free((void *)(uintptr_t)k->text[i].data);
}

static struct rt_error *read_text(int folder, const char *name, struct rt_bytes *ret)
{
	char *text;
	size_t size;

	RT_TRY(rt_fs_read(folder, name, TEXT_MAX, &text, &size));
	*ret = rt_bytes_make(text, size);
	return NULL;
}

/* As perf does: the notes are those of the sysfs beside the proc that the kcore is in. */
static struct rt_error *open_kernel(const char *path, struct kernel *k)
{
	_cleanup_free_ char *folder = strdup(path), *notes = NULL;
	char *slash = folder ? strrchr(folder, '/') : NULL;

	if (!folder)
		return rt_error_nomem();
	if (!slash || strcmp(slash, "/kcore") != 0)
		return rt_error_new(RT_E_USAGE, "%s is not called kcore", path);
	slash[slash == folder] = 0;
	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &k->kcore));
	k->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->folder < 0)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot open %s", folder);
	if (asprintf(&notes, "%s/../sys/kernel/notes", folder) < 0)
		return rt_error_nomem();
	if (!rt_build_id_of_notes(notes, &k->id) || !rt_cache_takes(k->id.size))
		return rt_error_new(RT_E_NOT_FOUND, "the kernel's build-id is not in %s", notes);
	for (size_t i = 0; i < TEXTS; i++)
		RT_TRY(read_text(k->folder, names[i], &k->text[i]));
	return NULL;
}

static struct rt_error *plan(const struct kernel *k, struct rt_kcore *ret)
{
	_cleanup_free_ uint8_t *head = malloc(RT_KCORE_HEAD_MAX);
	size_t have = 0;
	ssize_t n = 1;

	if (!head)
		return rt_error_nomem();
	while (have < RT_KCORE_HEAD_MAX && n > 0) {
		n = pread(k->kcore, head + have, RT_KCORE_HEAD_MAX - have, (off_t)have);
		if (n < 0)
			return rt_error_errno(RT_E_UNREADABLE, errno, "cannot read %s", k->path);
		have += (size_t)n;
	}
	return rt_error_wrap(rt_kcore_plan(rt_bytes_make(head, have), k->text[KALLSYMS], k->text[MODULES],
					   (uint64_t)sysconf(_SC_PAGESIZE), ret),
			     "%s", k->path);
}

/* Whether the texts in a folder tell of the same kernel and modules. */
static struct rt_error *compare(const struct kernel *k, int folder, bool *ret_same)
{
	struct rt_bytes text[TEXTS] = { { NULL, 0 } };
	struct rt_error *err = NULL;

	*ret_same = false;
	for (size_t i = 0; i < TEXTS && !err; i++)
		err = read_text(folder, names[i], &text[i]);
	if (!err)
		*ret_same = rt_kcore_is_same(k->text[KALLSYMS], k->text[MODULES], text[KALLSYMS], text[MODULES]);
	for (size_t i = 0; i < TEXTS; i++)
		free((void *)(uintptr_t)text[i].data);
	return err;
}

/* Is the same kernel there already, in this folder of a time? */
static bool is_there(const struct kernel *k, int above, const char *time)
{
	_cleanup_close_ int folder = openat(above, time, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool same;

	if (folder < 0 || fstatat(folder, "kcore", &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	/* what cannot be read is not the same */
	rt_error_free(compare(k, folder, &same));
	return same;
}

static bool any_is_there(const struct kernel *k, int above)
{
	int fd = openat(above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		rt_closep(&fd);
	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && is_there(k, above, entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

static int create(int folder, const char *name)
{
	return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
}

/* false: errno; *ret_unread: of the source */
static bool copy_piece(const struct kernel *k, int to, const struct rt_kcore_piece *p, bool *ret_unread)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);

	if (!chunk || lseek(to, (off_t)p->to.v, SEEK_SET) < 0)
		return false;
	for (uint64_t at = 0; at < p->size;) {
		size_t want = p->size - at < CHUNK ? p->size - at : CHUNK;
		ssize_t n = pread(k->kcore, chunk, want, (off_t)(p->from.v + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : EIO;
			*ret_unread = true;
			return false;
		}
		if (!rt_cache_write(to, rt_bytes_make(chunk, (size_t)n)))
			return false;
		at += (uint64_t)n;
	}
	return true;
}

static struct rt_error *write_kcore(const struct rt_cache *cache, const struct kernel *k, const struct rt_kcore *plan,
				    int folder)
{
	_cleanup_close_ int fd = create(folder, "kcore");
	bool fine = fd >= 0 && rt_cache_write(fd, rt_bytes_make(plan->head, plan->head_size)), unread = false;

	for (size_t i = 0; i < plan->count && fine; i++)
		fine = copy_piece(k, fd, &plan->pieces[i], &unread);
	if (unread)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot read %s", k->path);
	return fine ? NULL : rt_cache_unwritable(cache, "kcore");
}

/* Modules that came or went while their memory was copied make it a copy of nothing. */
static struct rt_error *check_still(const struct kernel *k)
{
	bool same;

	RT_TRY(compare(k, k->folder, &same));
	if (same)
		return NULL;
	return rt_error_fix(rt_error_new(RT_E_UNREADABLE, "modules were loaded or unloaded meanwhile"),
			    "once more: reftrace cache add %s", k->path);
}

static struct rt_error *fill(const struct rt_cache *cache, const struct kernel *k, const struct rt_kcore *plan,
			     int folder)
{
	for (size_t i = 0; i < TEXTS; i++) {
		_cleanup_close_ int fd = create(folder, names[i]);

		if (fd < 0 || !rt_cache_write(fd, k->text[i]))
			return rt_cache_unwritable(cache, names[i]);
	}
	RT_TRY(write_kcore(cache, k, plan, folder));
	return check_still(k);
}

/* Gives the folder the name of this moment, local time, as perf does. */
static bool name_by_time(int above, const char *temp)
{
	struct timespec now;
	char text[32];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	for (unsigned i = 0; i < TRIES; i++) {
		unsigned hundredths = (unsigned)(now.tv_nsec / 10000000) + i;
		time_t second = now.tv_sec + hundredths / 100;

		if (!localtime_r(&second, &tm) || !strftime(text, sizeof(text) - 2, "%Y%m%d%H%M%S", &tm))
			return false;
		snprintf(text + strlen(text), 3, "%02u", hundredths % 100);
		if (!renameat2(above, temp, above, text, RENAME_NOREPLACE))
			return true;
		if (errno != EEXIST)
			return false;
	}
	return false;
}

static struct rt_error *keep(const struct rt_cache *cache, const struct kernel *k, const struct rt_kcore *plan,
			     int above)
{
	_cleanup_close_ int folder = -1;
	struct rt_error *err;
	char temp[64];

	snprintf(temp, sizeof(temp), ".kcore.%d.tmp", getpid());
	(void)rt_cache_drop_tree(above, temp);
	if (mkdirat(above, temp, 0755))
		return rt_cache_unwritable(cache, RT_CACHE_KCORES);
	folder = openat(above, temp, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = folder < 0 ? rt_cache_unwritable(cache, RT_CACHE_KCORES) : fill(cache, k, plan, folder);
	if (!err && !name_by_time(above, temp))
		err = rt_cache_unwritable(cache, RT_CACHE_KCORES);
	if (err)
		(void)rt_cache_drop_tree(above, temp);
	return err;
}

static struct rt_error *put(struct rt_cache *cache, const struct kernel *k, bool *ret_new)
{
	_cleanup_free_ char *below = rt_cache_kcore_folder(k->id.id, k->id.size);
	_cleanup_close_ int lock = -1, above = -1;
	struct rt_kcore p = { 0 };
	struct rt_error *err;

	if (!below)
		return rt_error_nomem();
	if (cache->fd < 0)
		return rt_error_new(RT_E_UNWRITABLE, "the build-id cache %s is not there", cache->root);
	RT_TRY(plan(k, &p));
	RT_TRY(rt_cache_lock(cache, &lock));
	above = rt_cache_make_folder(cache->fd, below);
	if (above < 0)
		return rt_cache_unwritable(cache, below);
	*ret_new = !any_is_there(k, above);
	err = *ret_new ? keep(cache, k, &p, above) : NULL;
	if (err)
		rt_cache_drop_folder(cache, below);
	return err;
}

struct rt_error *rt_cache_put_kcore(struct rt_cache *cache, const char *path, bool *ret_new)
{
	struct kernel k = { .path = path, .folder = -1, .kcore = -1 };
	struct rt_error *err = open_kernel(path, &k);

	if (!err)
		err = put(cache, &k, ret_new);
	kernel_deinit(&k);
	return err;
}

char *rt_cache_kcore_folder(const uint8_t *id, size_t size)
{
	_cleanup_free_ char *link = rt_cache_link(id, size);

	return link ? rt_cache_below(RT_CACHE_KCORES, link) : NULL;
}
