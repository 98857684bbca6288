/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads suppressions, line by line: hostile text, so what is not understood is an error and never a rule for all. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "elf/demangle.h"
#include "probe/spec.h"
#include "report/suppress.h"

enum { RULES_MAX = 100000, FRAMES_MAX = 512, QUOTE_MAX = 60 };

#define ALL_KINDS (1U << RT_LEAK | 1U << RT_EXTRA_PUT | 1U << RT_USE_AFTER_PUT | 1U << RT_RACY_UPDATE)

/* Without blanks around it, not NUL-terminated. */
struct line {
	const char *text;
	size_t len;
};

struct reader {
	const char *next, *end;
	const char *file;
	size_t number; /* of the line that was read last */
	struct rt_suppressions rules;
};

static struct rt_error *fault(const struct reader *r, struct line line, const char *what, const char *fix)
{
	char quoted[QUOTE_MAX + 4];
	size_t n = line.len < QUOTE_MAX ? line.len : QUOTE_MAX;

	for (size_t i = 0; i < n; i++)
		quoted[i] = isprint((unsigned char)line.text[i]) ? line.text[i] : '?';
	snprintf(quoted + n, 4, "%s", n < line.len ? "..." : "");
	return rt_error_fix(rt_error_new(RT_E_SUPPRESSION, "%s: line %zu: '%s': %s", r->file, r->number, quoted, what),
			    "%s", fix);
}

static bool read_line(struct reader *r, struct line *ret)
{
	const char *end, *start = r->next;

	if (start == r->end)
		return false;
	end = memchr(start, '\n', (size_t)(r->end - start));
	r->next = end ? end + 1 : r->end;
	end = end ?: r->end;
	r->number++;
	while (start < end && isspace((unsigned char)*start))
		start++;
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	*ret = (struct line){ start, (size_t)(end - start) };
	return true;
}

/* The next line that is neither empty nor a comment. */
static bool read_word(struct reader *r, struct line *ret)
{
	while (read_line(r, ret)) {
		if (ret->len && *ret->text != '#')
			return true;
	}
	return false;
}

static bool is(struct line line, const char *text)
{
	return line.len == strlen(text) && !memcmp(line.text, text, line.len);
}

static bool starts(struct line line, const char *text)
{
	return line.len >= strlen(text) && !memcmp(line.text, text, strlen(text));
}

/* What stands behind the first n bytes, without blanks before it. */
static struct line behind(struct line line, size_t n)
{
	while (n < line.len && isspace((unsigned char)line.text[n]))
		n++;
	return (struct line){ line.text + n, line.len - n };
}

static char *copy(struct line line)
{
	return strndup(line.text, line.len);
}

/* true: a text that fits everything, which is never what somebody wanted to say. */
static bool fits_all(struct line line)
{
	for (size_t i = 0; i < line.len; i++) {
		if (line.text[i] != '*' && line.text[i] != '^' && line.text[i] != '$')
			return false;
	}
	return true;
}

/*
 * As a glob of ours. quoted: characters that mean something to us and nothing there. around: it may begin and end
 * anywhere but for ^ and $ (LeakSanitizer).
 */
static char *foreign_glob(struct line line, const char *quoted, bool around)
{
	bool begin = around && line.len && *line.text == '^',
	     end = around && line.len && line.text[line.len - 1] == '$';
	char *glob = malloc(2 * line.len + 3), *to = glob;

	if (!glob)
		return NULL;
	if (around && !begin)
		*to++ = '*';
	for (size_t i = begin; i < line.len - (end && line.len > begin); i++) {
		if (strchr(quoted, line.text[i]))
			*to++ = '\\';
		*to++ = line.text[i];
	}
	if (around && !end)
		*to++ = '*';
	*to = 0;
	return glob;
}

static struct rt_rule *add_rule(struct reader *r)
{
	struct rt_rule *rule = rt_vec_add(&r->rules.rules);

	if (!rule)
		return NULL;
	rule->line = r->number;
	rule->max = UINT64_MAX;
	rule->file = strdup(r->file);
	return rule->file ? rule : NULL;
}

static struct rt_error *read_sanitizer(struct reader *r, struct line line)
{
	struct line pattern = behind(line, strlen("leak:"));
	struct rt_rule *rule;

	if (fits_all(pattern))
		return fault(r, line, "a rule for every leak", "name a function, file or module: leak:parse_header");
	rule = add_rule(r);
	if (!rule)
		return rt_error_nomem();
	rule->kinds = 1U << RT_LEAK;
	rule->name = copy(line);
	rule->any = foreign_glob(pattern, "?[\\", true);
	return rule->name && rule->any ? NULL : rt_error_nomem();
}

#define KINDS_TEXT "RefTrace:Leak, RefTrace:ExtraPut, RefTrace:UseAfterPut, RefTrace:RacyUpdate or RefTrace:Any"

/* "RefTrace:Leak,ExtraPut" */
static struct rt_error *read_own_kinds(const struct reader *r, struct line line, unsigned *ret)
{
	static const struct {
		const char *name;
		unsigned kinds;
	} words[] = {
		{ "Leak", 1U << RT_LEAK },
		{ "ExtraPut", 1U << RT_EXTRA_PUT },
		{ "UseAfterPut", 1U << RT_USE_AFTER_PUT },
		{ "RacyUpdate", 1U << RT_RACY_UPDATE },
		{ "Any", ALL_KINDS },
	};
	struct line rest = behind(line, strlen("RefTrace:"));

	for (;;) {
		const char *comma = memchr(rest.text, ',', rest.len);
		struct line word = { rest.text, comma ? (size_t)(comma - rest.text) : rest.len };
		unsigned kinds = 0;

		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			kinds |= is(word, words[i].name) ? words[i].kinds : 0;
		if (!kinds)
			return fault(r, line, "no such kind of finding", "choose " KINDS_TEXT);
		*ret |= kinds;
		if (!comma)
			return NULL;
		rest = behind(rest, word.len + 1);
	}
}

/* "tool1,tool2:kind" of valgrind. Another tool's rule is legal, and takes nothing here. */
static bool is_foreign_kind(struct line line, unsigned *ret)
{
	const char *colon = memchr(line.text, ':', line.len);
	struct line kind;

	if (!colon || colon == line.text)
		return false;
	for (const char *c = line.text; c < colon; c++) {
		if (!rt_is_word(*c) && *c != ',' && *c != '-')
			return false;
	}
	kind = behind(line, (size_t)(colon - line.text) + 1);
	if (!kind.len)
		return false;
	/* Memcheck:Leak, Memcheck,Addrcheck:Leak */
	*ret = is(kind, "Leak") && memmem(line.text, (size_t)(colon - line.text), "Memcheck", 8) ? 1U << RT_LEAK : 0;
	return true;
}

static struct rt_error *set_once(const struct reader *r, struct line line, struct line value, char **ret)
{
	if (*ret)
		return fault(r, line, "said twice in one rule", "write two rules");
	if (!value.len)
		return fault(r, line, "nothing behind the colon", "name it, or leave the line out");
	*ret = copy(value);
	return *ret ? NULL : rt_error_nomem();
}

/* valgrind knows no classes of characters, and C++ by mangled names */
static char *valgrind_glob(struct line line)
{
	_cleanup_free_ char *name = copy(line), *plain = NULL;

	if (!name)
		return NULL;
	if (starts(line, "_Z") && !rt_glob_is(name))
		plain = rt_demangle_name(name);
	if (!plain)
		return foreign_glob(line, "[\\", false);
	return foreign_glob((struct line){ plain, strlen(plain) }, "*?[\\", false);
}

static struct rt_error *read_frame(const struct reader *r, struct line line, bool own, struct rt_rule *rule, bool *ret)
{
	static const char *const words[] = { "fun:", "obj:", "src:" };
	struct rt_rule_frame *frame;
	unsigned kind = 0;

	*ret = true;
	while (kind < RT_RULE_ANY && !starts(line, words[kind]))
		kind++;
	if (kind == RT_RULE_ANY && !is(line, "...")) {
		*ret = false;
		return NULL;
	}
	if (rule->frames.len == FRAMES_MAX)
		return fault(r, line, "too many frames in one rule", "leave out the outer ones");
	frame = rt_vec_add(&rule->frames);
	if (!frame)
		return rt_error_nomem();
	frame->kind = kind;
	if (kind == RT_RULE_ANY)
		return NULL;
	line = behind(line, 4);
	if (!line.len)
		return fault(r, (struct line){ words[kind], 4 }, "nothing behind the colon", "name it, or write ...");
	frame->glob = own ? copy(line) : valgrind_glob(line);
	return frame->glob ? NULL : rt_error_nomem();
}

static struct rt_error *read_own(const struct reader *r, struct line line, struct rt_rule *rule)
{
	const struct {
		const char *word;
		char **to;
	} keys[] = {
		{ "type:", &rule->type },
		{ "class:", &rule->klass },
		{ "guilty:", &rule->guilty },
		{ "site:", &rule->site },
	};
	bool frame;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (starts(line, keys[i].word))
			return set_once(r, line, behind(line, strlen(keys[i].word)), keys[i].to);
	}
	if (starts(line, "max:")) {
		struct line n = behind(line, 4);

		if (!rt_parse_u64(n.text, n.len, 10, &rule->max) || !n.len)
			return fault(r, line, "no number of objects", "for example: max:20");
		return NULL;
	}
	RT_TRY(read_frame(r, line, true, rule, &frame));
	if (frame)
		return NULL;
	return fault(r, line, "no line of a rule",
		     "choose type: class: guilty: site: max: fun: obj: src: ... or } (man 5 reftrace.suppressions)");
}

static bool only_wildcards(const struct rt_rule *rule)
{
	const char *const globs[] = { rule->type, rule->klass, rule->guilty, rule->site };

	for (size_t i = 0; i < sizeof(globs) / sizeof(*globs); i++) {
		if (globs[i] && globs[i][strspn(globs[i], "*")])
			return false;
	}
	for (size_t i = 0; i < rule->frames.len; i++) {
		const char *glob = rule->frames.data[i].glob;

		if (glob && glob[strspn(glob, "*")])
			return false;
	}
	return true;
}

/* Behind "{": name, kind, then lines up to "}". */
static struct rt_error *read_block(struct reader *r)
{
	struct rt_rule *rule = add_rule(r);
	size_t first = r->number;
	bool own, frame = false;
	struct line line = { "{", 1 };

	if (!rule)
		return rt_error_nomem();
	if (!read_word(r, &line) || is(line, "}"))
		return fault(r, line, "a rule without a name", "put a name into the line behind {");
	rule->name = copy(line);
	if (!rule->name)
		return rt_error_nomem();
	if (!read_word(r, &line))
		return fault(r, line, "the file ends inside a rule", "add its kind, and a line with }");
	own = starts(line, "RefTrace:");
	if (own)
		RT_TRY(read_own_kinds(r, line, &rule->kinds));
	else if (!is_foreign_kind(line, &rule->kinds))
		return fault(r, line, "no kind of finding", "choose " KINDS_TEXT ", or valgrind's Memcheck:Leak");
	for (;;) {
		if (!read_word(r, &line)) {
			r->number = first;
			return fault(r, (struct line){ "{", 1 }, "the rule that begins here has no end",
				     "add a line with }");
		}
		if (is(line, "}"))
			break;
		if (own) {
			RT_TRY(read_own(r, line, rule));
		} else if (rule->kinds && !starts(line, "match-leak-kinds:")) {
			RT_TRY(read_frame(r, line, false, rule, &frame));
			if (!frame)
				return fault(r, line, "no frame of valgrind's", "choose fun: obj: src: ... or }");
		}
	}
	if (rule->kinds && only_wildcards(rule)) {
		r->number = rule->line;
		return fault(r, line, "this rule would hide everything",
			     "say which: type:NAME, guilty:FUNCTION, site:FILE:LINE or fun:FUNCTION");
	}
	return NULL;
}

static struct rt_error *read_all(struct reader *r)
{
	struct line line;

	while (read_word(r, &line)) {
		if (r->rules.rules.len == RULES_MAX)
			return fault(r, line, "too many rules", "at most 100000 in one file");
		if (starts(line, "leak:"))
			RT_TRY(read_sanitizer(r, line));
		else if (is(line, "{"))
			RT_TRY(read_block(r));
		else
			return fault(r, line, "not understood",
				     "expected { of a rule, leak:PATTERN, or # and a comment");
	}
	return NULL;
}

static struct rt_error *no_text(const char *file)
{
	return rt_error_fix(rt_error_new(RT_E_SUPPRESSION, "%s is no text: it has bytes 0", file),
			    "make one: reftrace report --gen-suppressions -i RECORDING");
}

static void free_rule(struct rt_rule *rule)
{
	for (size_t i = 0; i < rule->frames.len; i++)
		free(rule->frames.data[i].glob);
	rt_vec_deinit(&rule->frames);
	free(rule->name);
	free(rule->file);
	free(rule->type);
	free(rule->klass);
	free(rule->guilty);
	free(rule->site);
	free(rule->any);
}

void rt_suppressions_deinit(struct rt_suppressions *suppressions)
{
	for (size_t i = 0; i < suppressions->rules.len; i++)
		free_rule(&suppressions->rules.data[i]);
	rt_vec_deinit(&suppressions->rules);
}

struct rt_error *rt_suppressions_parse(const char *text, size_t size, const char *file, struct rt_suppressions *ret)
{
	struct reader r = { .next = text, .end = text + size, .file = file };
	struct rt_error *err = size && memchr(text, 0, size) ? no_text(file) : read_all(&r);

	if (!err && !rt_vec_reserve(&ret->rules, ret->rules.len + r.rules.rules.len))
		err = rt_error_nomem();
	for (size_t i = 0; !err && i < r.rules.rules.len; i++)
		(void)rt_vec_push(&ret->rules, r.rules.rules.data[i]);
	if (!err)
		r.rules.rules.len = 0; /* they have moved */
	rt_suppressions_deinit(&r.rules);
	return err;
}
