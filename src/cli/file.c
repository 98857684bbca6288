/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

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

struct rt_error *rt_file_create(const char *path, int *ret)
{
	/* a link that another user left in a shared folder must not lead root elsewhere */
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	bool ours = fd >= 0;
	uid_t uid;
	gid_t gid;

	if (!ours && errno == EEXIST)
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return rt_error_fix(rt_error_errno(RT_E_UNWRITABLE, errno, "cannot write %s", path),
				    "name another file with -o, -w or --json=FILE");
	if (ours && rt_invoking_user(&uid, &gid) && fchown(fd, uid, gid))
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot give %s to its user", path);
	*ret = rt_take_fd(&fd);
	return NULL;
}
