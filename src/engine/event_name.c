// SPDX-License-Identifier: GPL-2.0-only
#include "engine/event_name.h"

#include <string.h>

#include "base/text.h"
#include "engine/event_name_priv.h"
#include "engine/markers.h"
#include "probe/near.h"

#define HW(name_, config_) \
	{ \
		name_, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config_ \
	}
#define SW(name_, config_) \
	{ \
		name_, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config_ \
	}

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} generic[] = {
	HW("cycles", CPU_CYCLES),
	HW("cpu-cycles", CPU_CYCLES),
	HW("instructions", INSTRUCTIONS),
	HW("cache-references", CACHE_REFERENCES),
	HW("cache-misses", CACHE_MISSES),
	HW("branches", BRANCH_INSTRUCTIONS),
	HW("branch-instructions", BRANCH_INSTRUCTIONS),
	HW("branch-misses", BRANCH_MISSES),
	HW("bus-cycles", BUS_CYCLES),
	HW("ref-cycles", REF_CPU_CYCLES),
	HW("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HW("idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HW("stalled-cycles-backend", STALLED_CYCLES_BACKEND),
	HW("idle-cycles-backend", STALLED_CYCLES_BACKEND),
	SW("cpu-clock", CPU_CLOCK),
	SW("task-clock", TASK_CLOCK),
	SW("page-faults", PAGE_FAULTS),
	SW("faults", PAGE_FAULTS),
	SW("minor-faults", PAGE_FAULTS_MIN),
	SW("major-faults", PAGE_FAULTS_MAJ),
	SW("context-switches", CONTEXT_SWITCHES),
	SW("cs", CONTEXT_SWITCHES),
	SW("cpu-migrations", CPU_MIGRATIONS),
	SW("migrations", CPU_MIGRATIONS),
	SW("alignment-faults", ALIGNMENT_FAULTS),
	SW("emulation-faults", EMULATION_FAULTS),
	SW("cgroup-switches", CGROUP_SWITCHES),
	SW("bpf-output", BPF_OUTPUT),
	SW("dummy", DUMMY),
};

static void desc_deinit(struct rt_event_desc *desc)
{
	free(desc->name);
	free(desc->group);
	free(desc->tracepoint);
	free(desc->folder);
	free(desc->path);
}

void rt_event_list_deinit(struct rt_event_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		desc_deinit(&list->data[i]);
	rt_vec_deinit(list);
}

#define MODIFIERS \
	"modifiers: u (user code), k (kernel code), h (hypervisor), G, H (guests, host), p (precise, up to ppp), P " \
	"(as precise as can be), D (always counted)"

struct modifiers {
	bool user, kernel, hv, guest, host, pinned;
	uint8_t precise;
};

static bool read_modifiers(const char *text, struct modifiers *m)
{
	for (const char *p = text; *p; p++) {
		switch (*p) {
		case 'u':
			m->user = true;
			break;
		case 'k':
			m->kernel = true;
			break;
		case 'h':
			m->hv = true;
			break;
		case 'G':
			m->guest = true;
			break;
		case 'H':
			m->host = true;
			break;
		case 'D':
			m->pinned = true;
			break;
		case 'P':
			m->precise = 3;
			break;
		case 'p':
			if (m->precise++ >= 3)
				return false;
			break;
		default:
			return false;
		}
	}
	return true;
}

/* What perf makes of "u", "kG", "ppp": what is named is kept, the rest of its kind left out. */
static struct rt_error *parse_modifiers(const char *whole, const char *text, struct rt_event_desc *desc)
{
	struct modifiers m = { 0 };

	if (!*text || !read_modifiers(text, &m))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' in -e '%s' is no modifier", text, whole), MODIFIERS);
	if (m.user || m.kernel || m.hv) {
		desc->exclude_user = !m.user;
		desc->exclude_kernel = !m.kernel;
		desc->exclude_hv = !m.hv;
	}
	/* as perf has it: with k or h alone, guests are counted too */
	desc->exclude_guest = m.user || m.precise;
	if (m.guest || m.host) {
		desc->exclude_guest = !m.guest;
		desc->exclude_host = !m.host;
	}
	desc->precise = m.precise;
	desc->pinned = m.pinned;
	return NULL;
}

static struct rt_error *push(struct rt_event_list *list, struct rt_event_desc *desc)
{
	if (list->len >= RT_EVENTS_MAX) {
		desc_deinit(desc);
		return rt_error_new(RT_E_LIMIT, "more than %d events", RT_EVENTS_MAX);
	}
	if (!desc->name || !rt_vec_push(list, *desc)) {
		desc_deinit(desc);
		return rt_error_nomem();
	}
	return NULL;
}

static bool find_generic(const char *name, struct rt_event_desc *desc)
{
	uint64_t raw;

	for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++) {
		if (!strcmp(generic[i].name, name)) {
			desc->type = generic[i].type;
			desc->config = generic[i].config;
			return true;
		}
	}
	if (rt_event_cache(name, desc))
		return true;
	if (*name == 'r' && rt_parse_u64(name + 1, strlen(name + 1), 16, &raw)) {
		desc->type = PERF_TYPE_RAW;
		desc->config = raw;
		return true;
	}
	return false;
}

static struct rt_error *unknown(const char *text, const char *name)
{
	struct rt_near near = { .wanted = name };
	struct rt_error *err = rt_error_new(RT_E_USAGE, "there is no event '%s'", text);

	for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++)
		rt_near_offer(&near, generic[i].name);
	if (near.count > 1)
		return rt_error_fix(err, "did you mean %s, or %s?", near.names[0], near.names[1]);
	if (near.count)
		return rt_error_fix(err, "did you mean %s?", near.names[0]);
	return rt_error_fix(err, "write cycles, cpu-clock, page-faults, ...; SYS:NAME for a tracepoint; "
				 "u:PATH:FUNCTION for a uprobe");
}

static void exclude(struct rt_event_list *list, size_t first, const struct rt_event_desc *modifiers)
{
	for (size_t i = first; i < list->len; i++) {
		list->data[i].exclude_user = modifiers->exclude_user;
		list->data[i].exclude_kernel = modifiers->exclude_kernel;
		list->data[i].exclude_hv = modifiers->exclude_hv;
		list->data[i].exclude_host = modifiers->exclude_host;
		list->data[i].exclude_guest = modifiers->exclude_guest;
	}
}

/* SYS:NAME[:MODIFIERS]; colon stands behind SYS. */
static struct rt_error *parse_tracepoint(const char *text, const char *colon, const struct rt_event_places *places,
					 struct rt_event_list *list)
{
	_cleanup_free_ char *group = strndup(text, (size_t)(colon - text)), *name = strdup(colon + 1);
	struct rt_event_desc modifiers = { .exclude_guest = true };
	size_t first = list->len;
	char *second;

	if (!group || !name)
		return rt_error_nomem();
	second = strchr(name, ':');
	if (second) {
		RT_TRY(parse_modifiers(text, second + 1, &modifiers));
		*second = 0;
	}
	RT_TRY(rt_event_tracepoints(group, name, places->tracefs, places->tracefs_errno, list));
	exclude(list, first, &modifiers);
	return NULL;
}

/*
 * A marker of the target comes before an event of that name in tracefs: who defined that, and for which file, is not
 * known.
 */
static struct rt_error *parse_marker(const char *text, bool only, const struct rt_event_places *places,
				     struct rt_event_list *list)
{
	struct rt_event_desc modifiers = { .exclude_guest = true };
	size_t first = list->len;
	const char *letters = NULL;
	struct rt_error *err = rt_markers_find(places->markers, text, list, &letters);

	if (err && err->code == RT_E_NOT_FOUND && !only) {
		struct rt_error *other = parse_tracepoint(text, strchr(text, ':'), places, list);

		/* what there is to say about markers says more */
		rt_error_free(other ?: rt_take(err));
		return other ? err : NULL;
	}
	if (!err && letters)
		err = parse_modifiers(text, letters, &modifiers);
	if (!err)
		exclude(list, first, &modifiers);
	return err;
}

/* A definition of the build-id cache. */
static struct rt_error *parse_kept(const char *text, const struct rt_event_places *places, struct rt_event_list *list)
{
	struct rt_event_desc modifiers = { .exclude_guest = true };
	size_t first = list->len;
	const char *letters = NULL;

	RT_TRY(rt_markers_find_kept(places->markers, text, list, &letters));
	if (letters)
		RT_TRY(parse_modifiers(text, letters, &modifiers));
	exclude(list, first, &modifiers);
	return NULL;
}

/* What tracefs does not have may be one that the cache can define. */
static struct rt_error *parse_defined(const char *text, const char *colon, const struct rt_event_places *places,
				      struct rt_event_list *list)
{
	struct rt_error *err = parse_tracepoint(text, colon, places, list), *other;

	if (!err || err->code != RT_E_USAGE || !places->markers)
		return err;
	other = parse_kept(text, places, list);
	/* what there is to say about a definition that was found says more */
	if (other && other->code == RT_E_NOT_FOUND) {
		rt_error_free(other);
		return err;
	}
	rt_error_free(err);
	return other;
}

static struct rt_error *parse_pmu(const char *text, int pmus, struct rt_event_list *list)
{
	struct rt_event_desc desc = { .kind = RT_EVENT_CPU, .exclude_guest = true };
	const char *modifiers = "";
	struct rt_error *err = rt_event_pmu(text, pmus, &desc, &modifiers);

	if (!err && *modifiers)
		err = parse_modifiers(text, modifiers, &desc);
	if (err) {
		desc_deinit(&desc);
		return err;
	}
	if (!desc.name)
		desc.name = strdup(text);
	return push(list, &desc);
}

static struct rt_error *parse_one(const char *text, const struct rt_event_places *places, struct rt_event_list *list)
{
	struct rt_event_desc desc = { .kind = RT_EVENT_CPU };
	_cleanup_free_ char *name = NULL;
	const char *colon = strchr(text, ':');
	bool at_return = !strncmp(text, "ur:", 3), only;
	struct rt_error *err;

	if (!*text)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "-e names an empty event"), "write -e NAME,NAME");
	if (at_return || !strncmp(text, "u:", 2)) {
		err = rt_event_uprobe(text, colon + 1, at_return, &desc);
		if (err) {
			desc_deinit(&desc);
			return err;
		}
		desc.name = strdup(text);
		return push(list, &desc);
	}
	if (places->markers && rt_markers_is_name(text, &only))
		return parse_marker(text, only, places, list);
	if (places->markers && *text == '%')
		return parse_kept(text, places, list);
	if (rt_event_is_pmu(text))
		return parse_pmu(text, places->pmus, list);
	name = strndup(text, colon ? (size_t)(colon - text) : strlen(text));
	if (!name)
		return rt_error_nomem();
	desc.exclude_guest = true;
	if (find_generic(name, &desc)) {
		if (colon)
			RT_TRY(parse_modifiers(text, colon + 1, &desc));
		desc.name = strdup(text);
		return push(list, &desc);
	}
	if (colon)
		return parse_defined(text, colon, places, list);
	return unknown(text, name);
}

/* Bytes up to the comma behind the first event; commas between the slashes of a PMU's event are its own. */
static size_t length_of_one(const char *text)
{
	size_t len = rt_event_is_pmu(text) ? strcspn(text, "/") + 1 : 0;

	if (len)
		len += strcspn(text + len, "/");
	return len + strcspn(text + len, ",");
}

struct rt_error *rt_event_names_parse(const char *text, const struct rt_event_places *places,
				      struct rt_event_list *list)
{
	for (const char *p = text;; p++) {
		size_t len = length_of_one(p);
		_cleanup_free_ char *one = strndup(p, len);

		if (!one)
			return rt_error_nomem();
		RT_TRY(parse_one(one, places, list));
		p += len;
		if (!*p)
			return NULL;
	}
}

struct rt_error *rt_event_names_default(bool cycles, struct rt_event_list *list)
{
	const struct rt_event_places nowhere = { -1, ENOENT, -1, NULL };

	return rt_event_names_parse(cycles ? "cycles" : "cpu-clock", &nowhere, list);
}
