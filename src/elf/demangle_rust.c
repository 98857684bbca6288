/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of Rust symbols: the v0 scheme (RFC 2603, "_R...") and the older one ("_ZN...17h<16 hexadecimal digits>E").
 * Back references make a short name long and deep, so depth, steps and text have limits; what goes beyond stays
 * mangled.
 */
#include "elf/demangle.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	DEPTH_MAX = 128,
	STEPS_MAX = 20000, /* paths, types and constants that are read, those by back references included */
	TEXT_MAX = 16384,  /* bytes of a name */
	POINTS_MAX = 512,  /* characters of an identifier that is not ASCII */
	LIFETIMES_MAX = 26,
};

struct rust {
	const char *text; /* behind "_R" */
	size_t at, end;
	char *out;
	size_t len;
	unsigned depth, steps;
	unsigned lifetimes; /* that binders around here have named */
	unsigned silent;    /* what is read is not a part of the name */
	bool bad;
};

struct identifier {
	const char *text;
	size_t len;
	bool unicode;
};

static void fail(struct rust *r)
{
	r->bad = true;
	r->at = r->end;
}

static void put(struct rust *r, const char *text, size_t len)
{
	if (r->bad || r->silent)
		return;
	if (len > TEXT_MAX - r->len) {
		fail(r);
		return;
	}
	memcpy(r->out + r->len, text, len);
	r->len += len;
}

static void puts_(struct rust *r, const char *text)
{
	put(r, text, strlen(text));
}

static char peek(const struct rust *r)
{
	return r->at < r->end ? r->text[r->at] : '\0';
}

static char next(struct rust *r)
{
	if (r->at < r->end)
		return r->text[r->at++];
	fail(r);
	return '\0';
}

static bool eat(struct rust *r, char c)
{
	if (peek(r) != c)
		return false;
	r->at++;
	return true;
}

static uint64_t decimal(struct rust *r)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)peek(r)))
		fail(r);
	/* no number begins with a zero that is not all of it */
	if (eat(r, '0'))
		return 0;
	while (isdigit((unsigned char)peek(r)) && v <= UINT32_MAX)
		v = v * 10 + (uint64_t)(next(r) - '0');
	return v;
}

/* "_" is 0, "0_" is 1 */
static uint64_t base62(struct rust *r)
{
	uint64_t v = 0;

	if (eat(r, '_'))
		return 0;
	for (char c; (c = next(r)) && c != '_';) {
		unsigned digit = isdigit((unsigned char)c)   ? (unsigned)(c - '0')
				 : islower((unsigned char)c) ? (unsigned)(c - 'a') + 10
				 : isupper((unsigned char)c) ? (unsigned)(c - 'A') + 36
							     : 62;

		if (digit == 62 || __builtin_mul_overflow(v, 62, &v) || __builtin_add_overflow(v, digit, &v))
			fail(r);
	}
	if (v == UINT64_MAX)
		fail(r);
	return v + 1;
}

/* [tag base-62]: 0 where there is none */
static uint64_t optional(struct rust *r, char tag)
{
	uint64_t v = eat(r, tag) ? base62(r) : UINT64_MAX;

	return v == UINT64_MAX ? 0 : v + 1;
}

static struct identifier identifier(struct rust *r)
{
	struct identifier id = { .unicode = eat(r, 'u') };
	uint64_t len = decimal(r);

	eat(r, '_');
	if (r->bad || len > r->end - r->at) {
		fail(r);
		return (struct identifier){ .text = "" };
	}
	id.text = r->text + r->at;
	id.len = (size_t)len;
	r->at += id.len;
	return id;
}

static void put_point(struct rust *r, uint32_t c)
{
	char utf8[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		utf8[i] = (char)(0x80 | (c & 0x3f));
	utf8[0] = n == 1 ? (char)c : (char)((0xf00 >> n) | c);
	put(r, utf8, n);
}

/* RFC 3492, with "_" for its "-". */
static void put_punycode(struct rust *r, const struct identifier *id)
{
	const char *basic_end = memrchr(id->text, '_', id->len), *in = basic_end ? basic_end + 1 : id->text;
	uint32_t points[POINTS_MAX], n = 128, i = 0, bias = 72;
	size_t count = 0;

	for (const char *c = id->text; basic_end && c < basic_end && count < POINTS_MAX; c++)
		points[count++] = (unsigned char)*c;
	for (bool first = true; in < id->text + id->len; first = false) {
		uint32_t before = i, weight = 1, delta, k = 36;

		for (;; k += 36) {
			uint32_t digit, low = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
			char c = in < id->text + id->len ? *in++ : '-';

			digit = islower((unsigned char)c) ? (uint32_t)(c - 'a') : (uint32_t)(c - '0') + 26;
			if (!isalnum((unsigned char)c) || isupper((unsigned char)c) ||
			    digit > (UINT32_MAX - i) / weight) {
				fail(r);
				return;
			}
			i += digit * weight;
			if (digit < low)
				break;
			if (weight > UINT32_MAX / (36 - low)) {
				fail(r);
				return;
			}
			weight *= 36 - low;
		}
		if (count == POINTS_MAX) {
			fail(r);
			return;
		}
		count++;
		delta = (i - before) / (first ? 700 : 2);
		delta += delta / (uint32_t)count;
		for (k = 0; delta > 35 * 26 / 2; k += 36)
			delta /= 35;
		bias = k + 36 * delta / (delta + 38);
		n += i / (uint32_t)count;
		i %= (uint32_t)count;
		if (n > 0x10ffff || (n >= 0xd800 && n < 0xe000)) {
			fail(r);
			return;
		}
		memmove(points + i + 1, points + i, (count - 1 - i) * sizeof(*points));
		points[i++] = n;
	}
	for (size_t k = 0; k < count; k++)
		put_point(r, points[k]);
}

static void put_identifier(struct rust *r, const struct identifier *id)
{
	if (id->unicode)
		put_punycode(r, id);
	else
		put(r, id->text, id->len);
}

static void put_number(struct rust *r, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	puts_(r, text);
}

/* index: from the innermost binder outwards, from 1; 0 is '_ */
static void put_lifetime(struct rust *r, uint64_t index)
{
	puts_(r, "'");
	if (!index) {
		puts_(r, "_");
	} else if (index > r->lifetimes) {
		fail(r);
	} else {
		char name = (char)('a' + (r->lifetimes - index) % LIFETIMES_MAX);

		put(r, &name, 1);
		if (r->lifetimes - index >= LIFETIMES_MAX)
			put_number(r, (r->lifetimes - index) / LIFETIMES_MAX);
	}
}

static bool enter(struct rust *r)
{
	if (r->bad || r->depth >= DEPTH_MAX || ++r->steps > STEPS_MAX) {
		fail(r);
		return false;
	}
	r->depth++;
	return true;
}

static bool read_path(struct rust *r, bool in_type, bool open);
static void read_type(struct rust *r);
static void read_const(struct rust *r);

/* Where a back reference leads, which is before it; false: nowhere. *ret_back: where to go on. */
static bool follow(struct rust *r, size_t *ret_back)
{
	size_t start = r->at - 1;
	uint64_t to = base62(r);

	*ret_back = r->at;
	/* what is not told is not read again either */
	if (r->bad || to >= start || r->silent) {
		if (r->bad || to >= start)
			fail(r);
		return false;
	}
	r->at = (size_t)to;
	return true;
}

static void generic_arguments(struct rust *r)
{
	for (bool first = true; !r->bad && !eat(r, 'E'); first = false) {
		puts_(r, first ? "" : ", ");
		if (eat(r, 'L'))
			put_lifetime(r, base62(r));
		else if (eat(r, 'K'))
			read_const(r);
		else
			read_type(r);
	}
}

static void silent_path(struct rust *r)
{
	r->silent++;
	optional(r, 's');
	read_path(r, false, false);
	r->silent--;
}

static void nested(struct rust *r, bool in_type)
{
	char space = next(r);
	struct identifier id;
	uint64_t number;

	if (!isalpha((unsigned char)space))
		fail(r);
	read_path(r, in_type, false);
	number = optional(r, 's');
	id = identifier(r);
	if (islower((unsigned char)space)) {
		if (id.len) {
			puts_(r, "::");
			put_identifier(r, &id);
		}
		return;
	}
	puts_(r, "::{");
	if (space == 'C')
		puts_(r, "closure");
	else if (space == 'S')
		puts_(r, "shim");
	else
		put(r, &space, 1);
	if (id.len) {
		puts_(r, ":");
		put_identifier(r, &id);
	}
	puts_(r, "#");
	put_number(r, number);
	puts_(r, "}");
}

/* open: generic arguments stay open for what a trait object adds; true: they are. */
static bool read_path(struct rust *r, bool in_type, bool open)
{
	struct identifier id;
	bool opened = false;
	size_t back;
	char tag;

	if (!enter(r))
		return false;
	tag = next(r);
	switch (tag) {
	case 'C':
		optional(r, 's');
		id = identifier(r);
		put_identifier(r, &id);
		break;
	case 'N':
		nested(r, in_type);
		break;
	case 'M':
	case 'X':
	case 'Y':
		if (tag != 'Y')
			silent_path(r);
		puts_(r, "<");
		read_type(r);
		if (tag != 'M') {
			puts_(r, " as ");
			read_path(r, true, false);
		}
		puts_(r, ">");
		break;
	case 'I':
		read_path(r, in_type, false);
		puts_(r, in_type ? "<" : "::<");
		generic_arguments(r);
		opened = open;
		puts_(r, open ? "" : ">");
		break;
	case 'B':
		if (follow(r, &back))
			opened = read_path(r, in_type, open);
		if (!r->bad)
			r->at = back;
		break;
	default:
		fail(r);
	}
	r->depth--;
	return opened;
}

static const char *basic_type(char tag)
{
	/* from a to z */
	static const char *const names[26] = { "i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
					       "usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
					       "i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!" };

	return tag >= 'a' && tag <= 'z' ? names[tag - 'a'] : NULL;
}

/* "for<'a, 'b> ": how many lifetimes it has named */
static unsigned binder(struct rust *r)
{
	uint64_t count = optional(r, 'G');

	if (count > LIFETIMES_MAX) {
		fail(r);
		return 0;
	}
	puts_(r, count ? "for<" : "");
	for (uint64_t i = 0; i < count; i++) {
		puts_(r, i ? ", " : "");
		r->lifetimes++;
		put_lifetime(r, 1);
	}
	puts_(r, count ? "> " : "");
	return (unsigned)count;
}

static void function_type(struct rust *r)
{
	unsigned named = binder(r);

	puts_(r, eat(r, 'U') ? "unsafe " : "");
	if (eat(r, 'K')) {
		struct identifier abi = { .text = "C", .len = 1 };

		if (!eat(r, 'C'))
			abi = identifier(r);
		puts_(r, "extern \"");
		for (size_t i = 0; i < abi.len; i++)
			put(r, abi.text[i] == '_' ? "-" : abi.text + i, 1);
		puts_(r, "\" ");
	}
	puts_(r, "fn(");
	for (bool first = true; !r->bad && !eat(r, 'E'); first = false) {
		puts_(r, first ? "" : ", ");
		read_type(r);
	}
	puts_(r, ")");
	/* nothing is said of a result that is none */
	if (!eat(r, 'u')) {
		puts_(r, " -> ");
		read_type(r);
	}
	r->lifetimes -= named;
}

static void trait_object(struct rust *r)
{
	unsigned named;

	puts_(r, "dyn ");
	named = binder(r);
	for (bool first = true; !r->bad && !eat(r, 'E'); first = false) {
		bool open;

		puts_(r, first ? "" : " + ");
		open = read_path(r, true, true);
		while (!r->bad && eat(r, 'p')) {
			struct identifier id = identifier(r);

			puts_(r, open ? ", " : "<");
			open = true;
			put_identifier(r, &id);
			puts_(r, " = ");
			read_type(r);
		}
		puts_(r, open ? ">" : "");
	}
	r->lifetimes -= named;
	if (!eat(r, 'L')) {
		fail(r);
	} else {
		uint64_t lifetime = base62(r);

		if (lifetime) {
			puts_(r, " + ");
			put_lifetime(r, lifetime);
		}
	}
}

static void reference(struct rust *r, bool mutable)
{
	puts_(r, "&");
	if (eat(r, 'L')) {
		uint64_t lifetime = base62(r);

		if (lifetime) {
			put_lifetime(r, lifetime);
			puts_(r, " ");
		}
	}
	puts_(r, mutable ? "mut " : "");
	read_type(r);
}

static void tuple(struct rust *r)
{
	unsigned count = 0;

	puts_(r, "(");
	for (; !r->bad && !eat(r, 'E'); count++) {
		puts_(r, count ? ", " : "");
		read_type(r);
	}
	puts_(r, count == 1 ? ",)" : ")");
}

static void read_type(struct rust *r)
{
	const char *basic;
	size_t back;
	char tag;

	if (!enter(r))
		return;
	tag = next(r);
	basic = basic_type(tag);
	switch (tag) {
	case 'A':
	case 'S':
		puts_(r, "[");
		read_type(r);
		if (tag == 'A') {
			puts_(r, "; ");
			read_const(r);
		}
		puts_(r, "]");
		break;
	case 'T':
		tuple(r);
		break;
	case 'R':
	case 'Q':
		reference(r, tag == 'Q');
		break;
	case 'P':
	case 'O':
		puts_(r, tag == 'P' ? "*const " : "*mut ");
		read_type(r);
		break;
	case 'F':
		function_type(r);
		break;
	case 'D':
		trait_object(r);
		break;
	case 'B':
		if (follow(r, &back))
			read_type(r);
		if (!r->bad)
			r->at = back;
		break;
	default:
		if (basic) {
			puts_(r, basic);
			break;
		}
		/* a path */
		if (!r->bad)
			r->at--;
		read_path(r, true, false);
	}
	r->depth--;
}

/* Hexadecimal digits up to "_". *ret_small: the value is in *ret. */
static struct identifier hexadecimal(struct rust *r, bool *ret_small, uint64_t *ret)
{
	struct identifier digits = { .text = r->text + r->at };

	*ret = 0;
	for (char c; (c = next(r)) && c != '_'; digits.len++) {
		if (!isdigit((unsigned char)c) && (c < 'a' || c > 'f'))
			fail(r);
		*ret = *ret << 4 | (uint64_t)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
	}
	*ret_small = digits.len <= 16;
	return digits;
}

static void put_character(struct rust *r, uint64_t v)
{
	static const char named[][3] = { "\tt", "\nn", "\rr", "''", "\\\\" };
	char text[16];

	if (v > 0x10ffff || (v >= 0xd800 && v < 0xe000)) {
		fail(r);
		return;
	}
	puts_(r, "'");
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if ((uint64_t)named[i][0] == v) {
			puts_(r, "\\");
			put(r, named[i] + 1, 1);
			puts_(r, "'");
			return;
		}
	if (v < 0x20 || v == 0x7f) {
		snprintf(text, sizeof(text), "\\u{%x}", (unsigned)v);
		puts_(r, text);
	} else {
		put_point(r, (uint32_t)v);
	}
	puts_(r, "'");
}

static void read_const(struct rust *r)
{
	struct identifier digits;
	uint64_t v;
	size_t back;
	bool small;
	char tag;

	if (!enter(r))
		return;
	tag = next(r);
	if (tag == 'p') {
		puts_(r, "_");
	} else if (tag == 'B') {
		if (follow(r, &back))
			read_const(r);
		if (!r->bad)
			r->at = back;
	} else if (tag && strchr("aslxnihtmyoj", tag)) {
		if (strchr("aslxni", tag) && eat(r, 'n'))
			puts_(r, "-");
		digits = hexadecimal(r, &small, &v);
		if (small) {
			put_number(r, v);
		} else {
			puts_(r, "0x");
			put(r, digits.text, digits.len);
		}
	} else if (tag == 'b' || tag == 'c') {
		hexadecimal(r, &small, &v);
		if (!small || (tag == 'b' && v > 1))
			fail(r);
		else if (tag == 'c')
			put_character(r, v);
		else
			puts_(r, v ? "true" : "false");
	} else {
		fail(r);
	}
	r->depth--;
}

static char *demangle_v0(const char *name)
{
	_cleanup_free_ char *out = malloc(TEXT_MAX + 1);
	struct rust r = { .text = name + 2, .end = strcspn(name + 2, ".$"), .out = out };
	const char *behind = r.text + r.end;

	/* a number there is a later version of the scheme */
	if (!out || !isupper((unsigned char)peek(&r)))
		return NULL;
	read_path(&r, false, false);
	/* the crate that the instance was made for */
	if (!r.bad && r.at < r.end)
		silent_path(&r);
	if (r.bad || r.at != r.end || !r.len)
		return NULL;
	/* parts that the compiler split off keep what tells them apart */
	if (strncmp(behind, ".llvm.", 6) != 0)
		puts_(&r, behind);
	if (r.bad)
		return NULL;
	out[r.len] = '\0';
	return strdup(out);
}

/* "$LT$" and the like at s; 0: it is none. */
static size_t escape(const char *s, size_t len, uint32_t *ret)
{
	static const struct {
		const char *text;
		char c;
	} table[] = { { "$SP$", '@' }, { "$BP$", '*' }, { "$RF$", '&' }, { "$LT$", '<' },
		      { "$GT$", '>' }, { "$LP$", '(' }, { "$RP$", ')' }, { "$C$", ',' } };
	size_t n = 2;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t size = strlen(table[i].text);

		if (len >= size && !memcmp(s, table[i].text, size)) {
			*ret = (unsigned char)table[i].c;
			return size;
		}
	}
	if (len < 4 || s[0] != '$' || s[1] != 'u')
		return 0;
	for (*ret = 0; n < len && n < 8 && isxdigit((unsigned char)s[n]) && !isupper((unsigned char)s[n]); n++)
		*ret = *ret << 4 | (uint32_t)(isdigit((unsigned char)s[n]) ? s[n] - '0' : s[n] - 'a' + 10);
	return n > 2 && n < len && s[n] == '$' && *ret >= 0x20 && *ret <= 0x10ffff ? n + 1 : 0;
}

static void put_legacy(struct rust *r, const char *s, size_t len)
{
	uint32_t c;

	/* no identifier begins with a sign */
	if (len > 1 && s[0] == '_' && s[1] == '$') {
		s++;
		len--;
	}
	while (len) {
		size_t n = escape(s, len, &c);

		if (n) {
			put_point(r, c);
		} else if (len > 1 && s[0] == '.' && s[1] == '.') {
			puts_(r, "::");
			n = 2;
		} else {
			put(r, s, n = 1);
		}
		s += n;
		len -= n;
	}
}

static bool is_hash(const struct identifier *id)
{
	if (id->len != 17 || id->text[0] != 'h')
		return false;
	for (size_t i = 1; i < id->len; i++)
		if (!isxdigit((unsigned char)id->text[i]))
			return false;
	return true;
}

static char *demangle_legacy(const char *name)
{
	_cleanup_free_ char *out = malloc(TEXT_MAX + 1);
	struct rust r = { .text = name + 3, .end = strlen(name + 3), .out = out };
	struct identifier id = { .len = 0 };

	if (!out)
		return NULL;
	while (!r.bad && peek(&r) != 'E') {
		uint64_t len;

		if (id.len) {
			puts_(&r, r.len ? "::" : "");
			put_legacy(&r, id.text, id.len);
		}
		len = decimal(&r);
		if (!len || len > r.end - r.at)
			return NULL;
		id = (struct identifier){ .text = r.text + r.at, .len = (size_t)len };
		r.at += id.len;
	}
	/* behind the E are no types, only what split the function */
	if (r.bad || !r.len || !is_hash(&id) || (r.text[r.at + 1] && r.text[r.at + 1] != '.'))
		return NULL;
	out[r.len] = '\0';
	return strdup(out);
}

char *rt_demangle_rust(const char *name)
{
	if (!strncmp(name, "_R", 2))
		return demangle_v0(name);
	return strncmp(name, "_ZN", 3) ? NULL : demangle_legacy(name);
}
