// SPDX-License-Identifier: GPL-2.0-only
/* The watch in a build without BPF (no clang or bpftool, or not x86-64): says so. */
#include "bpfprog/bpfprog.h"

static struct rt_error *unsupported(void)
{
	return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "this reftrace was built without BPF"),
			    "build it with clang, bpftool and libbpf-dev installed");
}

struct rt_error *rt_bpf_watch_create(const struct rt_bpf_watch_options *options, struct rt_bpf_watch **ret)
{
	return unsupported();
}

struct rt_error *rt_bpf_watch_follow(struct rt_bpf_watch *watch, uint32_t pid)
{
	return unsupported();
}

int rt_bpf_watch_fd(const struct rt_bpf_watch *watch)
{
	return -1;
}

struct rt_error *rt_bpf_watch_drain(struct rt_bpf_watch *watch, struct rt_event_sink *sink)
{
	return unsupported();
}

struct rt_error *rt_bpf_watch_existing(struct rt_bpf_watch *watch, struct rt_event_sink *sink)
{
	return unsupported();
}

struct rt_error *rt_bpf_watch_finish(struct rt_bpf_watch *watch, struct rt_event_sink *sink)
{
	return unsupported();
}

struct rt_bpf_catalog *rt_bpf_watch_catalog(struct rt_bpf_watch *watch)
{
	return NULL;
}

const char *rt_bpf_watch_limit(const struct rt_bpf_watch *watch)
{
	return NULL;
}

void rt_bpf_watch_destroy(struct rt_bpf_watch *watch)
{
}

struct rt_bpf_entry *rt_bpf_catalog_find(const struct rt_bpf_catalog *catalog, uint32_t id)
{
	return NULL;
}

const char *rt_bpf_entry_name(const struct rt_bpf_entry *entry)
{
	return entry->name;
}

struct rt_error *rt_bpf_catalog_refresh(struct rt_bpf_catalog *catalog)
{
	return unsupported();
}

struct rt_error *rt_bpf_catalog_alive(struct rt_bpf_catalog *catalog)
{
	return unsupported();
}

void rt_bpf_catalog_deinit(struct rt_bpf_catalog *catalog)
{
}

const char *rt_bpf_type_name(uint32_t type)
{
	return "?";
}

const char *rt_bpf_attach_name(uint32_t attach_type)
{
	return "?";
}

const char *rt_bpf_link_name(uint32_t link_type)
{
	return "link";
}
