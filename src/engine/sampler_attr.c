// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is asked of perf_event_open(2), and what is given up where the kernel refuses: each choice is tried, no version
 * is looked at.
 */
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/fs.h"
#include "base/text.h"
#include "engine/sampler_priv.h"

#define DEFAULT_FREQUENCY 4000
/* What perf asks for: all general registers, ip, flags, cs and ss (asm/perf_regs.h). */
#ifdef __x86_64__
#define USER_REGS UINT64_C(0xff0fff)
#else
#define USER_REGS UINT64_C(0)
#endif
#define FIX_PARANOID "sudo reftrace record ..., or: sudo sysctl kernel.perf_event_paranoid=%d"

int rt_sampler_perf_open(struct perf_event_attr *attr, int pid, int cpu)
{
	return (int)syscall(__NR_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

bool rt_sampler_number(const struct rt_sampler *s, const char *path, int64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	char whole[256];
	struct rt_error *err;
	uint64_t value;
	bool minus;

	snprintf(whole, sizeof(whole), "%s%s", s->options.root_fd == AT_FDCWD ? "/" : "", path);
	err = rt_fs_read(s->options.root_fd, whole, 256, &text, NULL);
	if (err) {
		rt_error_free(err);
		return false;
	}
	minus = *text == '-';
	if (!rt_parse_u64(text + minus, strcspn(text + minus, "\n"), 10, &value) || value > INT64_MAX)
		return false;
	*ret = minus ? -(int64_t)value : (int64_t)value;
	return true;
}

static struct rt_error *denied(const struct rt_sampler *s, const struct rt_sampler_event *event, int errnum)
{
	int64_t paranoid = 0;
	bool known = rt_sampler_number(s, "proc/sys/kernel/perf_event_paranoid", &paranoid);
	bool tracepoint = event->desc && event->desc->kind != RT_EVENT_CPU;
	int need = tracepoint ? -1 : s->options.system_wide ? 0 : event->attr.exclude_kernel ? 2 : 1;
	struct rt_error *err;

	if (known && paranoid > need) {
		err = rt_error_errno(RT_E_PARANOID, errnum,
				     "%s may not be recorded %s: kernel.perf_event_paranoid is %d", event->name,
				     s->options.system_wide ? "system-wide" : "by this user", (int)paranoid);
		return rt_error_fix(err, FIX_PARANOID, need);
	}
	err = rt_error_errno(RT_E_PRIVILEGE, errnum, "%s may not be recorded by this user", event->name);
	return rt_error_fix(err, "sudo reftrace record ... (needed: CAP_PERFMON, or CAP_SYS_ADMIN, in the first user "
				 "namespace; and the process must be yours)");
}

struct rt_error *rt_sampler_refused(const struct rt_sampler *s, const struct rt_sampler_event *event, int errnum)
{
	struct rt_error *err;

	/* a PMU that cannot interrupt refuses each sample */
	if (event->desc && event->desc->pmu && (errnum == EINVAL || errnum == EOPNOTSUPP))
		return rt_error_fix(
			rt_error_errno(RT_E_UNSUPPORTED, errnum,
				       "%s cannot be sampled: its PMU only counts, or takes no such setting",
				       event->name),
			"count it: perf stat -e %s; sample: record -e cpu-clock", event->name);
	switch (errnum) {
	case EACCES:
	case EPERM:
		return denied(s, event, errnum);
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return rt_error_fix(
			rt_error_errno(RT_E_UNSUPPORTED, errnum, "this machine cannot count %s", event->name),
			"a machine without CPU counters (a virtual one): record -e cpu-clock");
	case EMFILE:
	case ENFILE:
		return rt_error_fix(rt_error_errno(RT_E_LIMIT, errnum, "too many open files for %s", event->name),
				    "ulimit -n 100000 (one file per event, thread and CPU), or name fewer events");
	case EBUSY:
		return rt_error_fix(
			rt_error_errno(RT_E_UNSUPPORTED, errnum, "somebody else uses the counter of %s", event->name),
			"end the other profiler, or record -e cpu-clock");
	default:
		break;
	}
	err = rt_error_errno(RT_E_KERNEL, errnum, "the kernel does not take the event %s", event->name);
	return errnum == EINVAL && !strncmp(event->name, "sdt_", 4) ? rt_error_fix(err, RT_MARKER_CONFLICT_FIX) : err;
}

static struct rt_error *too_fast(uint64_t frequency, uint64_t most)
{
	return rt_error_fix(rt_error_new(RT_E_USAGE, "-F %llu is more than the kernel allows (%llu)",
					 (unsigned long long)frequency, (unsigned long long)most),
			    "-F max, or: sudo sysctl kernel.perf_event_max_sample_rate=%llu",
			    (unsigned long long)frequency);
}

/* Resolves -F max and the default; in attr as the kernel wants it. */
static struct rt_error *rate(const struct rt_sampler *s, const struct rt_event_desc *desc, struct perf_event_attr *attr)
{
	uint64_t frequency = desc->frequency ?: s->options.frequency;
	uint64_t period = desc->period ?: desc->frequency ? 0 : s->options.period;
	int64_t most = 0;

	if (period) {
		attr->sample_period = period;
		return NULL;
	}
	if (!frequency && desc->kind != RT_EVENT_CPU) {
		attr->sample_period = 1;
		return NULL;
	}
	if (rt_sampler_number(s, "proc/sys/kernel/perf_event_max_sample_rate", &most) && most > 0) {
		if (frequency == UINT64_MAX || (!frequency && most < DEFAULT_FREQUENCY))
			frequency = (uint64_t)most;
		if (frequency > (uint64_t)most)
			return too_fast(frequency, (uint64_t)most);
	} else if (frequency == UINT64_MAX) {
		frequency = DEFAULT_FREQUENCY;
	}
	attr->freq = 1;
	attr->sample_freq = frequency ? frequency : DEFAULT_FREQUENCY;
	return NULL;
}

static void attr_base(const struct rt_sampler *s, struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.size = PERF_ATTR_SIZE_VER7,
		.sample_type = RT_SAMPLE_BASE,
		.read_format = RT_FORMAT_LOST,
		.disabled = 1,
		.inherit = !s->options.system_wide && !s->options.no_follow,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
	};
}

static struct rt_error *attr_of(const struct rt_sampler *s, const struct rt_event_desc *desc,
				struct perf_event_attr *attr)
{
	attr_base(s, attr);
	attr->type = desc->type;
	attr->config = desc->config;
	attr->config1 = desc->config1;
	attr->config2 = desc->config2;
	attr->exclude_user = desc->exclude_user;
	attr->exclude_kernel = desc->exclude_kernel;
	attr->exclude_hv = desc->exclude_hv;
	attr->exclude_host = desc->exclude_host;
	attr->exclude_guest = desc->exclude_guest;
	attr->pinned = desc->pinned;
	attr->precise_ip = desc->precise & 3;
	if (s->options.call_graph)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (s->options.call_graph && s->options.stack_bytes) {
		if (!USER_REGS)
			return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "stacks are copied on x86-64 only"),
					    "--call-graph fp, of code built with -fno-omit-frame-pointer");
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = USER_REGS;
		attr->sample_stack_user = s->options.stack_bytes;
		attr->exclude_callchain_user = 1;
	}
	if (desc->kind == RT_EVENT_TRACEPOINT)
		attr->sample_type |= PERF_SAMPLE_RAW;
	if (desc->kind == RT_EVENT_CPU && attr->type == PERF_TYPE_SOFTWARE &&
	    (attr->config == PERF_COUNT_SW_PAGE_FAULTS || attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	     attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ))
		attr->sample_type |= PERF_SAMPLE_ADDR;
	if (desc->kind == RT_EVENT_UPROBE) {
		int64_t type;

		if (!rt_sampler_number(s, "sys/bus/event_source/devices/uprobe/type", &type))
			return rt_error_new(RT_E_KERNEL, "this kernel has no uprobe events (Linux 4.17)");
		attr->type = (uint32_t)type;
		attr->uprobe_path = (uint64_t)(uintptr_t)desc->path;
		attr->probe_offset = desc->offset;
	}
	return rate(s, desc, attr);
}

/* Opens the event for a look, on ourselves or on a CPU. 0, or an errno. */
static int look(const struct rt_sampler *s, const struct perf_event_attr *attr, bool wide)
{
	struct perf_event_attr copy = *attr;
	int fd = rt_sampler_perf_open(&copy, wide ? -1 : 0, wide ? (int)s->cpus.data[0] : -1);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* What a kernel may not know, newest first; true when there was something left to give up. */
static bool give_up(struct perf_event_attr *attr, int errnum)
{
	bool privilege = errnum == EACCES || errnum == EPERM;

	if (errnum != EINVAL && errnum != E2BIG && !privilege)
		return false;
	if (attr->text_poke)
		attr->text_poke = 0;
	else if (attr->read_format && !privilege)
		attr->read_format = 0;
	else if (attr->build_id && !privilege)
		attr->build_id = 0;
	else if (attr->bpf_event)
		attr->bpf_event = 0;
	else if (attr->ksymbol)
		attr->ksymbol = 0;
	else if (attr->mmap2 && !privilege)
		attr->mmap2 = 0;
	else if (attr->precise_ip && !privilege)
		attr->precise_ip--;
	else
		return false;
	return true;
}

static int settle(const struct rt_sampler *s, struct perf_event_attr *attr, bool wide)
{
	int errnum;

	while ((errnum = look(s, attr, wide)) && give_up(attr, errnum))
		;
	return errnum;
}

static struct rt_error *add_event(struct rt_sampler *s, const struct rt_event_desc *desc, const char *name,
				  const struct perf_event_attr *attr, enum rt_sampler_scope scope)
{
	struct rt_sampler_event event = { .desc = desc, .name = name, .scope = scope, .attr = *attr };

	return rt_vec_push(&s->events, event) ? NULL : rt_error_nomem();
}

void rt_sampler_say(struct rt_sampler *s, const char *text)
{
	char *more = NULL;

	if (!s->note)
		more = strdup(text);
	else if (strstr(s->note, text) || asprintf(&more, "%s; %s", s->note, text) < 0)
		return;
	if (more) {
		free(s->note);
		s->note = more;
	}
}

/* Without the privilege to see the kernel, user code alone is better than nothing: said in the note. */
static bool user_only(struct rt_sampler *s, struct rt_event_desc *desc, struct perf_event_attr *attr)
{
	char *name;

	if (s->options.system_wide || desc->kind != RT_EVENT_CPU || strchr(desc->name, ':') ||
	    asprintf(&name, "%s:u", desc->name) < 0)
		return false;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	if (settle(s, attr, false)) {
		free(name);
		return false;
	}
	free(desc->name);
	desc->name = name;
	desc->exclude_kernel = desc->exclude_hv = true;
	rt_sampler_say(s, "only user code is sampled: the kernel's needs root, or sysctl kernel.perf_event_paranoid=1");
	return true;
}

static struct rt_error *check_event(struct rt_sampler *s, struct rt_event_desc *desc)
{
	struct perf_event_attr attr;
	int errnum;

	RT_TRY(attr_of(s, desc, &attr));
	errnum = settle(s, &attr, s->options.system_wide);
	if ((errnum == EACCES || errnum == EPERM) && user_only(s, desc, &attr))
		errnum = 0;
	if (errnum) {
		struct rt_sampler_event event = { .desc = desc, .name = desc->name, .attr = attr };

		return rt_sampler_refused(s, &event, errnum);
	}
	attr.enable_on_exec = !s->options.system_wide && s->enabled;
	return add_event(s, desc, desc->name, &attr, RT_SCOPE_TARGET);
}

static struct rt_error *default_event(struct rt_sampler *s)
{
	struct rt_event_list cycles = { 0 };
	struct perf_event_attr attr;
	struct rt_error *err = rt_event_names_default(true, &cycles);
	bool works = false;

	if (!err)
		err = attr_of(s, &cycles.data[0], &attr);
	if (!err) {
		int errnum = settle(s, &attr, s->options.system_wide);

		/* without the privilege the kernel does not even tell that there is no counter */
		if ((errnum == EACCES || errnum == EPERM) && !s->options.system_wide) {
			attr.exclude_kernel = attr.exclude_hv = 1;
			errnum = settle(s, &attr, false);
		}
		/* a refusal is one for any event: told with the better one's name */
		works = !errnum || errnum == EACCES || errnum == EPERM;
		if (!works)
			rt_sampler_say(s, "no CPU counters here: cpu-clock instead of cycles");
	}
	rt_event_list_deinit(&cycles);
	RT_TRY(err);
	return rt_event_names_default(works, &s->names);
}

/* Modules that come and go while it is recorded; done without where that is not allowed. */
static struct rt_error *modules(struct rt_sampler *s)
{
	/* with -a, the target is everything */
	const enum rt_sampler_scope scope = s->options.system_wide ? RT_SCOPE_TARGET : RT_SCOPE_SYSTEM;

	for (size_t i = 0; i < s->module_names.len; i++) {
		const struct rt_event_desc *desc = &s->module_names.data[i];
		struct perf_event_attr attr;

		attr_base(s, &attr);
		attr.type = desc->type;
		attr.config = desc->config;
		attr.sample_type |= PERF_SAMPLE_RAW;
		attr.sample_period = 1;
		attr.inherit = 0;
		if (!settle(s, &attr, true))
			RT_TRY(add_event(s, NULL, desc->name, &attr, scope));
	}
	return NULL;
}

/* What tells where samples lie: mappings, names, forks; and on every CPU what the kernel itself loads. */
static struct rt_error *sideband(struct rt_sampler *s)
{
	struct perf_event_attr attr, kernel;
	int errnum;

	attr_base(s, &attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = !s->options.system_wide;
	attr.sample_period = 1;
	kernel = attr;
	attr.mmap = attr.mmap2 = attr.build_id = attr.comm = attr.comm_exec = attr.task = 1;
	attr.mmap_data = s->options.stack_bytes != 0; /* perf reads unwind tables through these */
	kernel.exclude_kernel = 0;
	kernel.inherit = 0;
	kernel.ksymbol = kernel.bpf_event = kernel.text_poke = 1;
	if (s->options.system_wide)
		attr.ksymbol = attr.bpf_event = attr.text_poke = 1;
	errnum = settle(s, &attr, s->options.system_wide);
	s->sideband = s->events.len;
	if (errnum) {
		struct rt_sampler_event event = { .name = "dummy", .attr = attr };

		return rt_sampler_refused(s, &event, errnum);
	}
	attr.enable_on_exec = !s->options.system_wide;
	RT_TRY(add_event(s, NULL, "dummy:u", &attr, RT_SCOPE_TARGET));
	/* not allowed to look at every CPU, or nothing left to see there: done without */
	if (!s->options.system_wide && !settle(s, &kernel, true) && (kernel.ksymbol || kernel.text_poke))
		RT_TRY(add_event(s, NULL, "dummy", &kernel, RT_SCOPE_SYSTEM));
	return modules(s);
}

struct rt_error *rt_sampler_events(struct rt_sampler *s)
{
	if (!s->names.len)
		RT_TRY(default_event(s));
	for (size_t i = 0; i < s->names.len; i++)
		RT_TRY(check_event(s, &s->names.data[i]));
	return sideband(s);
}
