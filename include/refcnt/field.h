/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Structs whose fields are told once, so that mode checked can put a handle before them and no access is written by
 * hand:
 *
 *     #define CONN_FIELDS(field, array) \
 *             field(conn, int, fd)      \
 *             array(conn, char, peer, 16)
 *
 *     REFCNT_STRUCT(conn, CONN_FIELDS);
 *     static void conn_release(struct conn *c) { close(conn_fd(c)); conn_dealloc(c); }
 *     REFCNT_STRUCT_DEFINE(conn, conn_release);
 *
 * makes struct conn and, for a field, conn_fd(c), conn_set_fd(c, value), conn_fd_at(c) (its address); for an array
 * conn_peer(c), its first element. A struct of many fields, bit-fields among them, may be the one field of another:
 * conn_own_at(c)->fd. In every mode but checked c->fd works as well; there it does not compile: struct
 * conn is a handle. Handles are made by conn_alloc(), there is no conn_init().
 */
#ifndef REFCNT_FIELD_H
#define REFCNT_FIELD_H

#include "define.h"

#if REFCNT_MODE == REFCNT_CHECKED
#define REFCNT_STRUCT_OF_(name) struct name##_object
#define REFCNT_FIELDS_OF_(p) (p)->refcnt_object
#else
#define REFCNT_STRUCT_OF_(name) struct name
#define REFCNT_FIELDS_OF_(p) (p)
#endif

#define REFCNT_FIELD_MEMBER_(name, type, field) type field;
#define REFCNT_ARRAY_MEMBER_(name, type, field, n) type field[n];
#define REFCNT_FIELD_ACCESS_(name, type, field) \
	REFCNT_INLINE type name##_##field(const struct name *p) \
	{ \
		return REFCNT_FIELDS_OF_(p)->field; \
	} \
	REFCNT_INLINE void name##_set_##field(struct name *p, type value) \
	{ \
		REFCNT_FIELDS_OF_(p)->field = value; \
	} \
	REFCNT_INLINE type *name##_##field##_at(struct name *p) \
	{ \
		return &REFCNT_FIELDS_OF_(p)->field; \
	}
#define REFCNT_ARRAY_ACCESS_(name, type, field, n) \
	REFCNT_INLINE type *name##_##field(struct name *p) \
	{ \
		return REFCNT_FIELDS_OF_(p)->field; \
	}

#if REFCNT_MODE == REFCNT_CHECKED

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && !defined(REFCNT_SANITIZER)
#error "REFCNT_CHECKED is for -fsanitize=address (another that reports: -DREFCNT_SANITIZER); without: REFCNT_ALIAS"
#endif

#define REFCNT_STRUCT(name, FIELDS) \
	struct name { \
		struct name##_object *refcnt_object; \
	}; \
	struct name##_object { \
		struct refcnt refcnt_refs; \
		struct name refcnt_home; /* a handle that is nobody's, as long as the object lives */ \
		FIELDS(REFCNT_FIELD_MEMBER_, REFCNT_ARRAY_MEMBER_) \
	}; \
	FIELDS(REFCNT_FIELD_ACCESS_, REFCNT_ARRAY_ACCESS_) \
	REFCNT_INLINE void name##_dealloc(struct name *p); \
	struct refcnt

/* Each handle is a block of its own that holds the object's address; what reads it is instrumented. */
#define REFCNT_STRUCT_DEFINE(name, release) \
	REFCNT_CLASS_(name, struct name##_object); \
	__attribute__((__constructor__(101), __unused__)) static void name##_refcnt_start_(void) \
	{ \
		refcnt_lib_checked(); \
	} \
	REFCNT_INLINE void name##_dealloc(struct name *p) \
	{ \
		refcnt_lib_dealloc(&name##_refcnt_class, &p->refcnt_object->refcnt_refs, p->refcnt_object); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE struct name *name##_handle_(struct name##_object *object) \
	{ \
		struct name *handle = REFCNT_CAST_(struct name *, malloc(sizeof(*handle))); \
\
		if (!handle) \
			__builtin_trap(); \
		handle->refcnt_object = object; \
		return handle; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE struct name *name##_alloc_more(size_t extra) \
	{ \
		struct name##_object *object = REFCNT_NONE_; \
		struct name *handle; \
\
		if (extra <= SIZE_MAX - sizeof(*object)) \
			object = REFCNT_CAST_(struct name##_object *, calloc(1, sizeof(*object) + extra)); \
		if (!object) \
			return REFCNT_NONE_; \
		handle = name##_handle_(object); \
		object->refcnt_home.refcnt_object = object; \
		refcnt_lib_handle_get(&name##_refcnt_class, &object->refcnt_refs, object, handle, true); \
		return handle; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE struct name *name##_get(struct name *p) \
	{ \
		struct name##_object *object = p->refcnt_object; \
		struct name *handle = name##_handle_(object); \
\
		refcnt_lib_handle_get(&name##_refcnt_class, &object->refcnt_refs, object, handle, false); \
		return handle; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE struct name *name##_get_not_zero(struct name *p) \
	{ \
		struct name##_object *object = p->refcnt_object; \
		struct name *handle = name##_handle_(object); \
\
		if (refcnt_lib_handle_get_not_zero(&name##_refcnt_class, &object->refcnt_refs, object, handle)) \
			return handle; \
		free(handle); \
		return REFCNT_NONE_; \
	} \
	REFCNT_INLINE bool name##_put(struct name *p) \
	{ \
		struct name##_object *object = p->refcnt_object; \
		bool last = refcnt_lib_handle_put(&name##_refcnt_class, &object->refcnt_refs, object, p); \
\
		if (last) \
			release(p); \
		free(p); \
		return last; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE struct name *name##_get_tracked(struct name *p, struct refcnt_dir *dir, \
								      struct refcnt_tracker *cookie) \
	{ \
		(void)dir; /* the handle is the cookie */ \
		(void)cookie; \
		return name##_get(p); \
	} \
	REFCNT_INLINE bool name##_put_tracked(struct name *p, struct refcnt_tracker *cookie) \
	{ \
		(void)cookie; \
		return name##_put(p); \
	} \
	REFCNT_INLINE uint32_t name##_count(const struct name *p) \
	{ \
		return refcnt_count_read(&p->refcnt_object->refcnt_refs); \
	} \
	REFCNT_INLINE bool name##_same(const struct name *a, const struct name *b) \
	{ \
		return (a ? a->refcnt_object : REFCNT_NONE_) == (b ? b->refcnt_object : REFCNT_NONE_); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE void *name##_more(struct name *p) \
	{ \
		return p->refcnt_object + 1; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE struct name *name##_home(struct name *p) \
	{ \
		return &p->refcnt_object->refcnt_home; \
	} \
	REFCNT_DEFINE_COMMON_(name, struct name)

#else

#define REFCNT_STRUCT(name, FIELDS) \
	struct name { \
		struct refcnt refcnt_refs; \
		FIELDS(REFCNT_FIELD_MEMBER_, REFCNT_ARRAY_MEMBER_) \
	}; \
	FIELDS(REFCNT_FIELD_ACCESS_, REFCNT_ARRAY_ACCESS_) \
	REFCNT_INLINE void name##_dealloc(struct name *p); \
	struct refcnt

#define REFCNT_STRUCT_DEFINE(name, release) REFCNT_DEFINE(name, struct name, refcnt_refs, release)

#endif

#endif
