// SPDX-License-Identifier: GPL-2.0-only
/* Tables of mounts: read, searched, compared, copied, one in another; and what a context makes of a line of fstab. */
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *folder;

static struct libmnt_table *table(const char *name, struct libmnt_cache *cache)
{
	struct libmnt_table *tb;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	tb = mnt_new_table_from_file(path);
	if (tb && cache)
		mnt_table_set_cache(tb, cache);
	return tb;
}

/* the file systems of from that are of this kind, in a table of their own */
static struct libmnt_table *some_of(struct libmnt_table *from, const char *kind)
{
	struct libmnt_iter *itr = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_table *tb = mnt_new_table();
	struct libmnt_fs *fs;

	while (!mnt_table_next_fs(from, itr, &fs)) {
		struct libmnt_fs *copy;

		if (!mnt_fs_match_fstype(fs, kind))
			continue;
		copy = mnt_copy_fs(NULL, fs);
		mnt_fs_append_options(copy, "nodev");
		mnt_table_add_fs(tb, copy);
		mnt_unref_fs(copy);
	}
	mnt_free_iter(itr);
	return tb;
}

static void look(struct libmnt_table *tb)
{
	struct libmnt_iter *itr = mnt_new_iter(MNT_ITER_BACKWARD);
	struct libmnt_fs *root = NULL, *fs, *kept;

	mnt_table_get_root_fs(tb, &root);
	while (root && !mnt_table_next_child_fs(tb, itr, root, &fs))
		printf("%s\n", mnt_fs_get_target(fs));
	fs = mnt_table_find_target(tb, "/home/kzak", MNT_ITER_BACKWARD);
	if (fs) {
		kept = fs;
		mnt_ref_fs(kept);
		mnt_table_remove_fs(tb, fs);
		printf("without %s: %d\n", mnt_fs_get_target(kept), mnt_table_get_nents(tb));
		mnt_table_insert_fs(tb, 0, NULL, kept);
		mnt_unref_fs(kept);
	}
	mnt_free_iter(itr);
}

static void differences(const char *old, const char *new)
{
	struct libmnt_table *a = table(old, NULL), *b = table(new, NULL);
	struct libmnt_tabdiff *diff = mnt_new_tabdiff();
	struct libmnt_iter *itr = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *was, *is;
	int how;

	if (mnt_diff_tables(diff, a, b) > 0)
		while (!mnt_tabdiff_next_change(diff, itr, &was, &is, &how))
			printf("%d %s\n", how, mnt_fs_get_target(is ? is : was));
	mnt_diff_tables(diff, b, a);
	mnt_free_iter(itr);
	mnt_free_tabdiff(diff);
	mnt_unref_table(b);
	mnt_unref_table(a);
}

static void move(struct libmnt_table *from, struct libmnt_table *to)
{
	struct libmnt_fs *fs;

	for (int i = 0; i < 3 && !mnt_table_first_fs(from, &fs); i++)
		mnt_table_move_fs(from, to, i & 1, NULL, fs);
}

static void context(struct libmnt_cache *cache)
{
	struct libmnt_context *cxt = mnt_new_context();
	struct libmnt_table *fstab = table("fstab", cache);
	struct libmnt_fs *fs = mnt_new_fs(), *saved;

	mnt_context_set_cache(cxt, cache);
	mnt_context_set_fstab(cxt, fstab);
	mnt_context_set_target(cxt, "/home/foo");
	mnt_context_apply_fstab(cxt);
	printf("%s\n", mnt_context_get_source(cxt) ? mnt_context_get_source(cxt) : "none");
	mnt_context_reset_status(cxt);
	mnt_fs_set_target(fs, "/mnt");
	mnt_context_set_fs(cxt, fs);
	saved = mnt_context_get_fs(cxt);
	printf("%s\n", mnt_fs_get_target(saved));
	mnt_unref_fs(fs);
	mnt_unref_table(fstab);
	mnt_free_context(cxt);
}

int main(int argc, char **argv)
{
	struct libmnt_cache *cache = mnt_new_cache();

	folder = argc > 1 ? argv[1] : ".";
	for (int i = 0; i < 4; i++) {
		struct libmnt_table *tb = table("mountinfo", cache), *some,
				    *fstab = table("fstab", i & 1 ? cache : NULL);

		some = some_of(tb, i & 1 ? "tmpfs" : "ext4");
		look(tb);
		differences("mountinfo", i & 1 ? "mountinfo_u" : "mountinfo_mv");
		move(tb, some);
		mnt_table_find_source(fstab, "LABEL=foo", MNT_ITER_FORWARD);
		context(cache);
		mnt_unref_table(fstab);
		mnt_unref_table(some);
		mnt_unref_table(tb);
	}
	mnt_unref_cache(cache);
	return 0;
}
