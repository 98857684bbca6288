/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BTF, the type information of BPF programs and of the kernel, from raw bytes
 * (no split BTF). Source of the format: the kernel's Documentation/bpf/btf.rst.
 * Its byte order is told by its magic. Hostile input is expected: a damaged
 * part gives no answers, never a fault. Immutable after opening.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

enum rt_btf_kind {
	RT_BTF_VOID,
	RT_BTF_INT,
	RT_BTF_PTR,
	RT_BTF_ARRAY,
	RT_BTF_STRUCT,
	RT_BTF_UNION,
	RT_BTF_ENUM,
	RT_BTF_FWD,
	RT_BTF_TYPEDEF,
	RT_BTF_VOLATILE,
	RT_BTF_CONST,
	RT_BTF_RESTRICT,
	RT_BTF_FUNC,
	RT_BTF_FUNC_PROTO,
	RT_BTF_VAR,
	RT_BTF_DATASEC,
	RT_BTF_FLOAT,
	RT_BTF_DECL_TAG,
	RT_BTF_TYPE_TAG,
	RT_BTF_ENUM64,
	RT_BTF_KINDS
};

struct rt_btf_type {
	enum rt_btf_kind kind;
	const char *name; /* "" where it has none */
	uint16_t vlen;    /* members, enumerators, parameters, variables; of a FUNC: its linkage */
	bool kind_flag;
	uint32_t size;     /* INT, STRUCT, UNION, ENUM, ENUM64, DATASEC, FLOAT: bytes; else 0 */
	uint32_t type;     /* the others: id of the type it refers to; else 0. ARRAY: of its element */
	uint32_t elements; /* ARRAY */
	uint8_t encoding;  /* INT: bit 0 signed, 1 char, 2 bool; else 0 */
};

/* Member of a STRUCT or UNION, parameter of a FUNC_PROTO, variable of a DATASEC, enumerator. */
struct rt_btf_member {
	const char *name; /* of a DATASEC: of the variable */
	uint32_t type;    /* 0 for enumerators */
	uint32_t offset;  /* STRUCT, UNION: bits; DATASEC: bytes */
	uint32_t size;    /* STRUCT, UNION: bits of a bit field, else 0; DATASEC: bytes */
	uint64_t value;   /* enumerators, sign-extended where signed */
};

struct rt_btf;

/*
 * Copies bytes. RT_E_FORMAT when the header is not BTF's. Types are read up to the
 * first that is cut or of a kind that is newer than we are: rt_btf_whole() tells.
 */
RT_CHECK struct rt_error *rt_btf_create(struct rt_bytes bytes, struct rt_btf **ret);
void rt_btf_destroy(struct rt_btf *btf);
RT_CLEANUP(struct rt_btf *, rt_btf_destroy);
bool rt_btf_whole(const struct rt_btf *btf);

/* The string at this offset of the string part, or NULL. Lives as long as btf. */
const char *rt_btf_string(const struct rt_btf *btf, uint32_t offset);

/* Types have ids 1..count; 0 is void. */
uint32_t rt_btf_count(const struct rt_btf *btf);
/* false: no such type. id 0 gives void. */
bool rt_btf_type(const struct rt_btf *btf, uint32_t id, struct rt_btf_type *ret);
/* Member number index (from 0) of type id; false: it has none such. */
bool rt_btf_member(const struct rt_btf *btf, uint32_t id, uint32_t index, struct rt_btf_member *ret);
/* Name of FUNC id; NULL when id is no function or has no name. */
const char *rt_btf_function(const struct rt_btf *btf, uint32_t id);
/* Id of the first type of this kind and name; 0: none. */
uint32_t rt_btf_find(const struct rt_btf *btf, enum rt_btf_kind kind, const char *name);
