// SPDX-License-Identifier: GPL-2.0-only
/* The life of a small repository in the current folder: commits, a merge, diffs, patches, notes, a stash, a clone. */
#include <git2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static git_signature *me;

static void file(const char *path, const char *text, int more)
{
	FILE *f = fopen(path, "w");

	for (int i = 0; f && i < 12; i++)
		fprintf(f, "%s %d\n", i == more ? "changed" : text, i);
	if (f)
		fclose(f);
}

static void commit(git_repository *repo, const char *path, const char *message, git_oid *id)
{
	git_commit *parent = NULL;
	git_index *index;
	git_tree *tree;
	git_oid tree_id;

	if (git_repository_index(&index, repo))
		return;
	git_index_add_bypath(index, path);
	git_index_write(index);
	git_index_write_tree(&tree_id, index);
	git_index_free(index);
	git_tree_lookup(&tree, repo, &tree_id);
	if (!git_reference_name_to_id(id, repo, "HEAD"))
		git_commit_lookup(&parent, repo, id);
	git_commit_create_v(id, repo, "HEAD", me, me, NULL, message, tree, parent ? 1 : 0, parent);
	git_commit_free(parent);
	git_tree_free(tree);
}

static int each_line(const git_diff_delta *d, const git_diff_hunk *h, const git_diff_line *l, void *lines)
{
	(void)d, (void)h, (void)l;
	++*(int *)lines;
	return 0;
}

static void diffs(git_repository *repo, const git_oid *from, const git_oid *to)
{
	git_diff_find_options renames = GIT_DIFF_FIND_OPTIONS_INIT;
	git_diff_options options = GIT_DIFF_OPTIONS_INIT;
	git_tree *old = NULL, *new = NULL;
	git_object *a, *b;
	git_diff *diff, *parsed, *work;
	git_diff_stats *stats;
	git_buf text = { 0 };
	git_patch *patch;
	git_oid patch_id;
	int lines = 0;

	git_object_lookup(&a, repo, from, GIT_OBJECT_COMMIT);
	git_object_lookup(&b, repo, to, GIT_OBJECT_COMMIT);
	git_object_peel((git_object **)&old, a, GIT_OBJECT_TREE);
	git_commit_tree(&new, (git_commit *)b);
	git_diff_tree_to_tree(&diff, repo, old, new, NULL);
	git_diff_tree_to_workdir_with_index(&work, repo, old, NULL);
	git_diff_merge(work, diff);
	git_diff_find_similar(diff, &renames);
	git_diff_get_stats(&stats, diff);
	git_diff_stats_free(stats);
	git_diff_foreach(diff, NULL, NULL, NULL, each_line, &lines);
	git_diff_patchid(&patch_id, diff, NULL);
	for (size_t i = 0; i < git_diff_num_deltas(diff); i++)
		if (!git_patch_from_diff(&patch, diff, i)) {
			git_patch_print(patch, each_line, &lines);
			git_patch_free(patch);
		}
	git_diff_to_buf(&text, diff, GIT_DIFF_FORMAT_PATCH);
	if (!git_diff_from_buffer(&parsed, text.ptr, text.size)) {
		if (!git_patch_from_diff(&patch, parsed, 0))
			git_patch_free(patch);
		git_diff_foreach(parsed, NULL, NULL, NULL, each_line, &lines);
		git_apply(repo, parsed, GIT_APPLY_LOCATION_INDEX, NULL);
		git_apply(repo, parsed, GIT_APPLY_LOCATION_WORKDIR, NULL);
		git_diff_free(parsed);
	}
	git_buf_dispose(&text);
	git_diff_commit_as_email(&text, repo, (git_commit *)b, 1, 1, 0, &options);
	git_buf_dispose(&text);
	git_diff_free(work);
	git_diff_free(diff);
	if (!git_patch_from_buffers(&patch, "a\nb\n", 4, "x", "a\nc\n", 4, "x", NULL))
		git_patch_free(patch);
	git_tree_free(old);
	git_tree_free(new);
	git_object_free(a);
	git_object_free(b);
}

static void merging(git_repository *repo, const git_oid *base)
{
	const char *names[2] = { "refs/heads/side", NULL };
	git_checkout_options checkout = GIT_CHECKOUT_OPTIONS_INIT;
	git_rebase_options rebasing = GIT_REBASE_OPTIONS_INIT;
	git_annotated_commit *ours, *theirs;
	git_reference *head, *side, *branch;
	git_merge_options options = GIT_MERGE_OPTIONS_INIT;
	git_rebase_operation *operation;
	git_index *index;
	git_commit *from, *a, *b;
	git_rebase *rebase;
	git_object *target;
	git_oid id;

	git_commit_lookup(&from, repo, base);
	git_branch_create(&branch, repo, "side", from, 0);
	git_repository_head(&head, repo);
	git_repository_set_head(repo, "refs/heads/side");
	checkout.checkout_strategy = GIT_CHECKOUT_FORCE;
	git_checkout_head(repo, &checkout);
	file("side.txt", "side", 3);
	commit(repo, "side.txt", "on the side", &id);
	file("a.txt", "one", 9);
	commit(repo, "a.txt", "both", &id);
	git_reference_lookup(&side, repo, names[0]);
	git_reference_peel((git_object **)&b, side, GIT_OBJECT_COMMIT);
	git_reference_peel((git_object **)&a, head, GIT_OBJECT_COMMIT);
	git_merge_base(&id, repo, git_commit_id(a), git_commit_id(b));
	git_merge_commits(&index, repo, a, b, &options);
	git_index_free(index);
	git_repository_set_head(repo, git_reference_name(head));
	git_checkout_tree(repo, (git_object *)a, &checkout);
	git_annotated_commit_from_ref(&theirs, repo, side);
	git_annotated_commit_lookup(&ours, repo, git_commit_id(a));
	git_merge(repo, (const git_annotated_commit **)&theirs, 1, &options, &checkout);
	git_repository_state_cleanup(repo);
	git_reset(repo, (git_object *)a, GIT_RESET_HARD, &checkout);
	git_cherrypick(repo, b, NULL);
	git_repository_state_cleanup(repo);
	git_reset(repo, (git_object *)a, GIT_RESET_HARD, &checkout);
	git_revert(repo, a, NULL);
	git_repository_state_cleanup(repo);
	git_revparse_single(&target, repo, "HEAD");
	git_reset(repo, target, GIT_RESET_HARD, &checkout);
	git_object_free(target);
	if (!git_rebase_init(&rebase, repo, theirs, ours, NULL, &rebasing)) {
		while (!git_rebase_next(&operation, rebase))
			git_rebase_commit(&id, rebase, NULL, me, NULL, NULL);
		git_rebase_abort(rebase);
		git_rebase_free(rebase);
	}
	git_annotated_commit_free(ours);
	git_annotated_commit_free(theirs);
	git_commit_free(a);
	git_commit_free(b);
	git_commit_free(from);
	git_reference_free(branch);
	git_reference_free(side);
	git_reference_free(head);
}

static int each_note(const git_oid *note, const git_oid *of, void *repo)
{
	git_object *o;

	(void)note;
	if (!git_object_lookup(&o, repo, of, GIT_OBJECT_ANY))
		git_object_free(o);
	return 0;
}

static int each_status(const char *path, unsigned flags, void *many)
{
	(void)path, (void)flags;
	++*(int *)many;
	return 0;
}

static void looks(git_repository *repo, const git_oid *id)
{
	const char *words[] = { "*.txt", "sub" };
	git_describe_options describing = GIT_DESCRIBE_OPTIONS_INIT;
	git_strarray specs = { (char **)words, 2 };
	git_reference_iterator *refs;
	git_describe_result *described;
	git_pathspec_match_list *list;
	git_status_list *statuses;
	git_config *config, *snapshot;
	git_object *target, *other;
	git_reference *ref;
	git_revwalk *walk;
	git_pathspec *spec;
	git_reflog *log;
	git_blame *blame;
	git_index *index;
	git_tree *tree;
	git_oid seen;
	git_blob *blob;
	git_tag *tag;
	int many = 0;

	git_object_lookup(&target, repo, id, GIT_OBJECT_COMMIT);
	git_tag_create(&seen, repo, "first", target, me, "a tag", 0);
	git_tag_lookup(&tag, repo, &seen);
	git_tag_peel(&other, tag);
	git_object_free(other);
	git_tag_free(tag);
	git_tag_create_lightweight(&seen, repo, "light", target, 0);
	git_note_create(&seen, repo, NULL, me, me, id, "a note", 0);
	git_note_foreach(repo, NULL, each_note, repo);
	git_note_remove(repo, NULL, me, me, id);
	git_revparse_ext(&other, &ref, repo, "HEAD~1^{tree}");
	git_object_free(other);
	git_reference_free(ref);
	if (!git_revparse_single(&other, repo, "HEAD:sub/b.txt"))
		git_object_free(other);
	if (!git_revparse_single(&other, repo, "HEAD:none/b.txt"))
		git_object_free(other);
	git_describe_commit(&described, target, &describing);
	git_describe_result_free(described);
	git_revwalk_new(&walk, repo);
	git_revwalk_push_glob(walk, "refs/heads/*");
	git_revwalk_hide(walk, id);
	while (!git_revwalk_next(&seen, walk))
		;
	git_revwalk_free(walk);
	git_reference_iterator_new(&refs, repo);
	while (!git_reference_next(&ref, refs)) {
		git_reference *resolved = NULL;

		git_reference_resolve(&resolved, ref);
		git_reference_free(resolved);
		git_reference_free(ref);
	}
	git_reference_iterator_free(refs);
	git_reflog_read(&log, repo, "HEAD");
	git_reflog_free(log);
	git_status_list_new(&statuses, repo, NULL);
	git_status_list_free(statuses);
	git_status_foreach(repo, each_status, &many);
	git_blame_file(&blame, repo, "a.txt", NULL);
	git_blame_free(blame);
	git_repository_config(&config, repo);
	git_config_set_string(config, "one.two", "three");
	git_config_snapshot(&snapshot, config);
	git_config_get_bool(&many, snapshot, "core.bare");
	git_config_delete_entry(config, "one.two");
	git_config_free(snapshot);
	git_config_free(config);
	git_pathspec_new(&spec, &specs);
	git_commit_tree(&tree, (git_commit *)target);
	git_pathspec_match_tree(&list, tree, GIT_PATHSPEC_FIND_FAILURES, spec);
	git_pathspec_match_list_free(list);
	git_pathspec_match_workdir(&list, repo, 0, spec);
	git_pathspec_match_list_free(list);
	git_pathspec_free(spec);
	git_blob_create_from_workdir(&seen, repo, "a.txt");
	git_blob_lookup(&blob, repo, &seen);
	git_blob_free(blob);
	git_index_new(&index);
	git_index_read_tree(index, tree);
	git_index_free(index);
	git_tree_free(tree);
	git_object_free(target);
}

static void elsewhere(git_repository *repo)
{
	git_clone_options cloning = GIT_CLONE_OPTIONS_INIT;
	git_repository *there;
	git_worktree *worktree;
	git_submodule *module;
	git_packbuilder *pack;
	git_remote *remote;
	git_revwalk *walk;
	git_object *odd;
	git_oid id;

	git_packbuilder_new(&pack, repo);
	git_revwalk_new(&walk, repo);
	git_revwalk_push_head(walk);
	git_packbuilder_insert_walk(pack, walk);
	git_revwalk_free(walk);
	git_packbuilder_write(pack, NULL, 0, NULL, NULL);
	git_packbuilder_free(pack);
	if (!git_clone(&there, git_repository_workdir(repo), "../clone", &cloning)) {
		git_remote_lookup(&remote, there, "origin");
		git_remote_fetch(remote, NULL, NULL, NULL);
		git_remote_free(remote);
		git_reference_name_to_id(&id, there, "HEAD");
		if (!git_object_lookup_prefix(&odd, there, &id, 9, GIT_OBJECT_ANY))
			git_object_free(odd);
		git_repository_free(there);
	}
	if (!git_worktree_add(&worktree, repo, "tree", "../tree", NULL)) {
		if (!git_repository_open_from_worktree(&there, worktree))
			git_repository_free(there);
		git_worktree_free(worktree);
	}
	if (!git_submodule_add_setup(&module, repo, "../clone", "module", 1)) {
		if (!git_submodule_clone(&there, module, NULL))
			git_repository_free(there);
		git_submodule_add_finalize(module);
		git_submodule_free(module);
	}
	if (!git_submodule_lookup(&module, repo, "module")) {
		git_submodule_reload(module, 1);
		git_submodule_free(module);
	}
	if (!git_submodule_lookup(&module, repo, "none"))
		git_submodule_free(module);
}

int main(void)
{
	git_repository *repo;
	git_oid first, last, id;

	git_libgit2_init();
	for (int i = GIT_CONFIG_LEVEL_PROGRAMDATA; i <= GIT_CONFIG_LEVEL_GLOBAL; i++)
		git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, i, "");
	git_signature_new(&me, "Somebody", "somebody@example.org", 1700000000, 60);
	mkdir("repo", 0755);
	if (chdir("repo") || git_repository_init(&repo, ".", 0))
		return 1;
	file("a.txt", "one", -1);
	file(".gitignore", "*.o", -1);
	file(".gitattributes", "*.txt text", -1);
	commit(repo, "a.txt", "first", &first);
	mkdir("sub", 0755);
	file("sub/b.txt", "two", -1);
	file("sub/.gitignore", "*.x", -1);
	commit(repo, "sub/b.txt", "second", &last);
	file("a.txt", "one", 4);
	commit(repo, "a.txt", "third", &last);
	diffs(repo, &first, &last);
	merging(repo, &first);
	looks(repo, &last);
	file("a.txt", "one", 5);
	git_stash_save(&id, repo, me, "put aside", GIT_STASH_INCLUDE_UNTRACKED);
	git_stash_pop(repo, 0, NULL);
	elsewhere(repo);
	git_repository_free(repo);
	if (!git_repository_open_ext(&repo, "sub", 0, NULL)) {
		looks(repo, &last);
		git_repository_free(repo);
	}
	git_signature_free(me);
	return git_libgit2_shutdown();
}
