/* SPDX-License-Identifier: GPL-2.0-only */
/* tests/golden/NAME.events: each says in "#:" lines what the verdict has to be, and nothing else may be in it. */
#include <dirent.h>

#include "lifetime.h"

/* what a file tells of each finding, where it tells it of one */
struct asked {
	bool others, claims;
};

static void append(char *out, size_t size, const struct rt_finding *f, const char *what, struct asked asked)
{
	static const char *const kinds[] = { "leak", "extra-put", "use-after-put", "racy-update" };
	static const char *const roles[] = { "missing-put", "extra-get", "extra-put", "use", "racy-update" };
	size_t at = strlen(out);

	snprintf(out + at, size - at, "#: %s %s %s %s %s %llu\n", what, kinds[f->kind], f->type, roles[f->role],
		 f->guilty.function ?: "?", (unsigned long long)f->objects);
	if (asked.claims) {
		at = strlen(out);
		snprintf(out + at, size - at, "#: claimed %.2f\n", f->confidence);
	}
	if (asked.others && f->alternative_count) {
		at = strlen(out);
		snprintf(out + at, size - at, "#: or %s\n", f->alternatives[0].frame.function ?: "?");
	}
}

static void golden(const char *path)
{
	char want[4096] = "", have[4096] = "", line[1024];
	_cleanup_fclose_ FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t len = 0;
	struct story s;
	struct asked asked = { 0 };
	bool completeness = false;

	assert_non_null(f);
	assert_true(getdelim(&text, &len, 0, f) > 0);
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "#: ", 3))
			continue;
		completeness |= strstr(line, "complete") != NULL;
		asked.others |= !strncmp(line, "#: or ", 6);
		asked.claims |= !strncmp(line, "#: claimed ", 11);
		strncat(want, line, sizeof(want) - strlen(want) - 1);
	}
	s = story_run(text, NULL);
	for (size_t i = 0; i < s.verdict->finding_count; i++)
		append(have, sizeof(have), &s.verdict->findings[i], "finding", asked);
	for (size_t i = 0; i < s.verdict->suspect_count; i++)
		append(have, sizeof(have), &s.verdict->suspects[i], "suspect", asked);
	for (size_t i = 0; i < s.verdict->alive_count && strstr(want, "#: alive"); i++) {
		const struct rt_alive *a = &s.verdict->alive[i];

		snprintf(have + strlen(have), sizeof(have) - strlen(have), "#: alive %s %s %llu\n", a->type, a->reason,
			 (unsigned long long)a->objects);
	}
	if (completeness)
		strncat(have, s.verdict->trust.complete ? "#: complete\n" : "#: incomplete\n",
			sizeof(have) - strlen(have) - 1);
	if (strcmp(have, want)) {
		story_print(s.verdict);
		print_error("%s: expected\n%sand is\n%s", path, want, have);
		fail();
	}
	story_end(&s);
	free(text);
}

TEST(every_file)
{
	const char *root = getenv("RT_SOURCE_ROOT");
	char path[4096];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/tests/golden", root ? root : ".");
	dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));) {
		if (!strstr(d->d_name, ".events"))
			continue;
		snprintf(path, sizeof(path), "%s/tests/golden/%s", root ? root : ".", d->d_name);
		golden(path);
		n++;
	}
	closedir(dir);
	assert_true(n >= 12);
}

TEST_MAIN();
