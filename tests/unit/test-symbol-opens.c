/* SPDX-License-Identifier: GPL-2.0-only */
/* Which files a module has loaded by dlopen(), as its code tells. */
#include "symbol/opens.h"
#include "workdir.h"

struct variant {
	const char *flags, *code;
	bool all;
	const char *names; /* "a,b"; where all are known */
};

#define LOADS "#include <dlfcn.h>\n#include <stddef.h>\n"

static const struct variant variants[] = {
	{ "", "int f(int x) { return x + 1; }", true, "" },
	{ "", "int f_dlopen(int x) { return x + 1; }", true, "" },
	{ "", LOADS "void *f(void) { return dlopen(\"one.so\", RTLD_NOW) ? NULL : NULL; }", true, "one.so" },
	{ "",
	  LOADS "int g(void); int f(int x) { void *a = dlopen(\"one.so\", RTLD_NOW); g(); return x && !a && "
		"!dlopen(\"two.so\", RTLD_LAZY); }",
	  true, "one.so,two.so" },
	/* the end of one branch is the beginning of none */
	{ "", LOADS "int f(int x) { return dlopen(x ? \"one.so\" : \"two.so\", RTLD_NOW) != NULL; }", false, NULL },
	{ "", LOADS "int f(const char *x) { return dlopen(x, RTLD_NOW) != NULL; }", false, NULL },
	{ "", LOADS "int f(void) { return dlopen(NULL, RTLD_NOW) != NULL; }", false, NULL },
	/* what lies where it can be written may be something else by then */
	{ "", LOADS "char name[64] = \"one.so\"; int f(void) { return dlopen(name, RTLD_NOW) != NULL; }", false, NULL },
	/* a tail call */
	{ "-O2", LOADS "void *f(void) { return dlopen(\"one.so\", RTLD_NOW); }", false, NULL },
	{ "", LOADS "void *(*f(void))(const char *, int) { return dlopen; }", false, NULL },
	{ "", LOADS "void *(*const table[])(const char *, int) = { dlopen };", false, NULL },
	{ "-fno-plt", LOADS "int f(void) { return dlopen(\"one.so\", RTLD_NOW) != NULL; }", false, NULL },
	{ "", LOADS "int f(void) { return dlmopen(LM_ID_NEWLM, \"one.so\", RTLD_NOW) != NULL; }", false, NULL },
	/* who has the function is asked for others */
	{ "", "void *dlopen(const char *f, int x) { (void)f; return x ? (void *)1 : (void *)0; }", true, "" },
};

static const char *const builds[] = { "-O2", "-O0", "-O2 -fcf-protection -Wl,-z,now", "-O2 -fuse-ld=gold",
				      "-O2 -fuse-ld=lld" };

static bool has_names(const struct rt_opens *opens, const char *names)
{
	char text[256] = "";

	for (size_t i = 0; i < opens->names.len; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "", opens->names.data[i]);
	return !strcmp(text, names);
}

TEST(names_in_code)
{
	struct workdir w;

	workdir_make(&w);
	for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
		const struct variant *v = &variants[i];

		workdir_write(&w, "m.c", v->code);
		for (size_t k = 0; k < sizeof(builds) / sizeof(*builds); k++) {
			struct rt_symtab *symtab = NULL;
			struct rt_image *image = NULL;
			struct rt_opens opens;

			workdir_run(&w, "gcc -w -D_GNU_SOURCE -shared -fPIC %s %s m.c -o m.so", builds[k], v->flags);
			assert_ok(rt_image_open(workdir_path(&w, "m.so"), &image));
			assert_ok(rt_symtab_create(image, &symtab));
			assert_ok(rt_opens_find(image, symtab, &opens));
			if (v->all != opens.all)
				fail_msg("%s, %s: %s", v->code, builds[k], opens.all ? "all" : "not all");
			if (v->all && !has_names(&opens, v->names))
				fail_msg("%s, %s: other names", v->code, builds[k]);
			rt_opens_deinit(&opens);
			rt_symtab_destroy(symtab);
			rt_image_destroy(image);
		}
	}
	workdir_remove(&w);
}

/* A program whose file is not position independent has addresses of stubs in its code. */
TEST(programs)
{
	static const char *const flags[] = { "-fPIE -pie", "-no-pie -fno-pie" };
	struct workdir w;

	workdir_make(&w);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		for (unsigned taken = 0; taken < 2; taken++) {
			struct rt_symtab *symtab = NULL;
			struct rt_image *image = NULL;
			struct rt_opens opens;

			workdir_write(&w, "p.c",
				      taken ? LOADS
					      "void *(*volatile at)(const char *, int); int main(int c, char **v) "
					      "{ at = dlopen; return at(v[c - 1], RTLD_NOW) != NULL; }"
					    : LOADS "int main(void) { return dlopen(\"one.so\", RTLD_NOW) != NULL; }");
			workdir_run(&w, "gcc -w -O2 %s p.c -o p", flags[i]);
			assert_ok(rt_image_open(workdir_path(&w, "p"), &image));
			assert_ok(rt_symtab_create(image, &symtab));
			assert_ok(rt_opens_find(image, symtab, &opens));
			assert_int_equal(opens.all, !taken);
			assert_true(taken || has_names(&opens, "one.so"));
			rt_opens_deinit(&opens);
			rt_symtab_destroy(symtab);
			rt_image_destroy(image);
		}
	}
	workdir_remove(&w);
}

TEST_MAIN();
