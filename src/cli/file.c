/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { TRIES = 100 };

static bool id_from(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && rt_parse_u64(text, strlen(text), 10, ret) && *ret < UINT32_MAX;
}

bool rt_invoking_user(uid_t *ret_uid, gid_t *ret_gid)
{
	uint64_t uid, gid;

	if (geteuid() || !id_from("SUDO_UID", &uid) || !id_from("SUDO_GID", &gid) || !uid)
		return false;
	*ret_uid = (uid_t)uid;
	*ret_gid = (gid_t)gid;
	return true;
}

struct rt_error *rt_user_cache_root(char **ret)
{
	const char *told = getenv("PERF_BUILDID_DIR");
	struct passwd pw, *found = NULL;
	char buffer[16384], *root;
	uid_t uid;
	gid_t gid;

	*ret = NULL;
	if ((told && *told) || !rt_invoking_user(&uid, &gid) || getpwuid_r(uid, &pw, buffer, sizeof(buffer), &found) ||
	    !found || !found->pw_dir || !*found->pw_dir)
		return NULL;
	if (asprintf(&root, "%s/.debug", found->pw_dir) < 0)
		return rt_error_nomem();
	*ret = root;
	return NULL;
}

/* What we made as root is the user's behind sudo. */
static struct rt_error *give(const char *path, int fd)
{
	uid_t uid;
	gid_t gid;

	if (rt_invoking_user(&uid, &gid) && fchown(fd, uid, gid))
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot give %s to its user", path);
	return NULL;
}

/* Is fd still the file at path? Who wrote it may have put another in its place. */
static bool is_at(const char *path, const struct stat *mine)
{
	struct stat there;

	return !stat(path, &there) && there.st_dev == mine->st_dev && there.st_ino == mine->st_ino;
}

/*
 * Empties fd, which is path, when no other reftrace writes it: the lock goes with the last copy of fd. What was mapped
 * and cut would end its reader by SIGBUS. *ret_gone: another file is at path by now.
 */
static struct rt_error *take_over(const char *path, int fd, bool *ret_gone)
{
	struct stat st;

	*ret_gone = false;
	/* a device is everybody's */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return NULL;
	/* other errors: a file system without locks */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return rt_error_fix(
			rt_error_new(RT_E_UNWRITABLE, "cannot write %s: a reftrace is writing it right now", path),
			"wait until it has ended, or name another file with -o, -w or --json=FILE");
	*ret_gone = !is_at(path, &st);
	if (!*ret_gone && st.st_size && ftruncate(fd, 0))
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot empty %s", path);
	return NULL;
}

static struct rt_error *create(const char *path, int *ret, bool *ret_gone)
{
	/* a link that another user left in a shared folder must not lead root elsewhere */
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	bool ours = fd >= 0;

	if (!ours && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return rt_error_fix(rt_error_errno(RT_E_UNWRITABLE, errno, "cannot write %s", path),
				    "name another file with -o, -w or --json=FILE");
	if (ours)
		RT_TRY(give(path, fd));
	RT_TRY(take_over(path, fd, ret_gone));
	*ret = rt_take_fd(&fd);
	return NULL;
}

struct rt_error *rt_file_create(const char *path, int *ret)
{
	for (unsigned tries = 0; tries < TRIES; tries++) {
		bool gone = false;
		int fd = -1;

		RT_TRY(create(path, &fd, &gone));
		if (!gone) {
			*ret = fd;
			return NULL;
		}
		close(fd);
	}
	return rt_error_new(RT_E_UNWRITABLE, "cannot write %s: others keep putting new files in its place", path);
}

/* A name beside path that is nobody else's, for one moment or for as long as it takes; NULL: out of memory. */
static char *name_beside(const char *path)
{
	char *name;

	return asprintf(&name, "%s.%d-%d.tmp", path, getpid(), gettid()) < 0 ? NULL : name;
}

struct rt_error *rt_file_create_unnamed(const char *path, int *ret, char **ret_name)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -1;

	if (!folder)
		return rt_error_nomem();
	fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	if (fd < 0) {
		name = name_beside(path);
		if (!name)
			return rt_error_nomem();
		unlink(name);
		RT_TRY(rt_file_create(name, &fd));
	} else {
		RT_TRY(give(path, fd));
	}
	*ret = rt_take_fd(&fd);
	*ret_name = rt_take(name);
	return NULL;
}

struct rt_error *rt_file_replace(int fd, const char *name, const char *path)
{
	_cleanup_free_ char *made = NULL;
	char self[32];
	struct rt_error *err = NULL;

	if (!name) {
		made = name_beside(path);
		if (!made)
			return rt_error_nomem();
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		unlink(made);
		if (linkat(AT_FDCWD, self, AT_FDCWD, made, AT_SYMLINK_FOLLOW))
			return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot write %s", made);
	}
	if (rename(name ?: made, path))
		err = rt_error_errno(RT_E_UNWRITABLE, errno, "cannot put %s in the place of %s", name ?: made, path);
	if (err && made)
		unlink(made);
	return err;
}
