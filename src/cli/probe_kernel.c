/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/probe_kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "elf/build_id.h"
#include "elf/kallsyms.h"
#include "report/words.h"

enum { OPT_KERNEL = 0x1100, OPT_KALLSYMS, OPT_NOTES, KALLSYMS_MAX = 64 << 20, BTF_MAX = 64 << 20, BTF_MAGIC = 0xeb9f };

static const char running_btf[] = "/sys/kernel/btf/vmlinux";
static const char running_kallsyms[] = "/proc/kallsyms";
static const char running_notes[] = "/sys/kernel/notes";

static const struct argp_option own[] = {
	{ "vmlinux", 'k', "FILE", 0, "functions of a kernel: its vmlinux, or its BTF", 3 },
	{ "kernel", OPT_KERNEL, NULL, 0, "the same, of the kernel that runs here", 3 },
	{ "kallsyms", OPT_KALLSYMS, "FILE", 0, "the host's /proc/kallsyms, where symbols lack", 3 },
	{ "notes", OPT_NOTES, "FILE", 0, "the host's /sys/kernel/notes, for BTF alone", 3 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_probe_options *options = state->input;

	switch (key) {
	case 'k':
		options->vmlinux = arg;
		return 0;
	case OPT_KERNEL:
		options->running = true;
		return 0;
	case OPT_KALLSYMS:
		options->kallsyms = arg;
		return 0;
	case OPT_NOTES:
		options->notes = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_probe_kernel_argp = { own, parse };

bool rt_probe_of_kernel(const struct rt_probe_options *options)
{
	return options->vmlinux || options->running;
}

static struct rt_error *read_kallsyms(const char *path, struct rt_probe_plan *p)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	RT_TRY(rt_fs_read(AT_FDCWD, path, KALLSYMS_MAX, &text, &size));
	rt_symtab_destroy(p->symtab);
	p->symtab = NULL;
	RT_TRY(rt_symtab_of_kallsyms(rt_bytes_make(text, size), &p->symtab));
	if (!p->symtab->count)
		return rt_error_fix(rt_error_new(RT_E_UNREADABLE, "%s holds no addresses of the kernel", path),
				    "they are hidden from all but root (kernel.kptr_restrict): copy it with sudo");
	return rt_kernel_init(p->symtab, p->btf, &p->kernel);
}

/* Symbols by themselves tell no build-id: do they know the places and sizes of what the file holds? */
static struct rt_error *check_symbols(struct rt_probe_plan *p, const char *kallsyms, uint64_t btf_size)
{
	uint64_t start, end;
	size_t compared = 0;
	bool fits = true;

	if (p->image->elf)
		fits = rt_kernel_is_of(&p->kernel, p->image, &compared);
	if (btf_size && rt_kernel_offset(&p->kernel, "__start_BTF", &start) &&
	    rt_kernel_offset(&p->kernel, "__stop_BTF", &end)) {
		fits = fits && end - start == btf_size;
		compared++;
	}
	if (!fits)
		return rt_error_fix(
			rt_error_new(RT_E_BUILD_ID, "%s is of another kernel than %s", kallsyms, p->image->name),
			"take both from one host, with the same uname -v");
	if (!compared &&
	    !rt_vec_push(&p->notes, rt_format(&p->arena, "nothing in %s tells whether it is of the same kernel as %s",
					      kallsyms, p->image->name)))
		return rt_error_nomem();
	return NULL;
}

/* BTF alone has no machine code; what the answer asks of a file is its name and its machine. */
static struct rt_error *bare_image(const char *name, struct rt_probe_plan *p)
{
	p->image = calloc(1, sizeof(*p->image));
	if (!p->image)
		return rt_error_nomem();
	p->image->root_fd = -1;
	p->image->name = strdup(name);
	return p->image->name ? NULL : rt_error_nomem();
}

static struct rt_error *open_btf(const struct rt_probe_options *o, struct rt_bytes bytes, const char *name,
				 struct rt_probe_plan *p)
{
	struct rt_build_id id;

	if (!o->kallsyms || !o->notes)
		return rt_error_fix(
			rt_error_new(RT_E_USAGE, "%s is BTF: it tells neither addresses nor the build-id", name),
			"--kallsyms=FILE --notes=FILE, copies of %s (as root) and %s of the host", running_kallsyms,
			running_notes);
	RT_TRY(rt_btf_create(bytes, &p->btf));
	RT_TRY(bare_image(name, p));
	RT_TRY(read_kallsyms(o->kallsyms, p));
	if (rt_symtab_find(p->symtab, "entry_SYSCALL_64"))
		p->image->machine = RT_MACHINE_X86_64;
	if (!rt_build_id_of_notes(o->notes, &id))
		return rt_error_new(RT_E_FORMAT, "%s holds no build-id", o->notes);
	memcpy(p->image->build_id, id.id, id.size);
	p->image->build_id_size = id.size;
	return check_symbols(p, o->kallsyms, bytes.size);
}

/* Without debug information: symbols, and what BTF the file has. */
static struct rt_error *open_symbols(const struct rt_probe_options *o, struct rt_probe_plan *p)
{
	struct rt_bytes bytes = { 0 };
	struct rt_elfaddr addr;

	rt_dwarf_destroy(p->dwarf);
	p->dwarf = NULL;
	if (rt_image_section(p->image, ".BTF", &bytes, &addr))
		RT_TRY(rt_btf_create(bytes, &p->btf));
	if (rt_symtab_find(p->symtab, "_text"))
		return rt_kernel_init(p->symtab, p->btf, &p->kernel);
	if (!o->kallsyms)
		return rt_error_fix(rt_error_new(RT_E_STRIPPED, "%s has no symbols", p->image->name),
				    "--kallsyms=FILE, a copy of the host's /proc/kallsyms (made as root)");
	RT_TRY(read_kallsyms(o->kallsyms, p));
	return check_symbols(p, o->kallsyms, bytes.size);
}

/* BTF has its magic number in either byte order. */
static bool is_btf(int fd)
{
	uint8_t magic[2];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       ((magic[0] == (BTF_MAGIC & 255) && magic[1] == BTF_MAGIC >> 8) ||
		(magic[1] == (BTF_MAGIC & 255) && magic[0] == BTF_MAGIC >> 8));
}

static struct rt_error *open_named(const struct rt_probe_options *o, const char *name, struct rt_probe_plan *p)
{
	_cleanup_free_ char *btf = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err;
	size_t size;

	RT_TRY(rt_fs_open_file(AT_FDCWD, name, false, &fd));
	if (is_btf(fd)) {
		/* read: sysfs of kernels before 6.16 maps none of its files */
		RT_TRY(rt_fs_read_fd(fd, name, BTF_MAX, &btf, &size));
		return open_btf(o, rt_bytes_make(btf, size), name, p);
	}
	err = rt_image_open_fd(fd, name, &p->image);
	if (err && err->code == RT_E_NOT_ELF)
		return rt_error_fix(err, "of a packed vmlinuz: scripts/extract-vmlinux of Linux unpacks it");
	RT_TRY(err);
	RT_TRY(rt_image_find_debug(p->image, AT_FDCWD));
	RT_TRY(rt_symtab_create(p->image, &p->symtab));
	RT_TRY(rt_dwarf_create(p->image, &p->dwarf));
	if (!rt_dwarf_present(p->dwarf))
		return open_symbols(o, p);
	if (o->kallsyms)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "%s has symbols of its own", name),
				    "leave --kallsyms out");
	return rt_kernel_init(p->symtab, NULL, &p->kernel);
}

/* Whether path is a vmlinux of the build-id. */
static bool is_kernel_file(const char *path, const struct rt_build_id *id)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct rt_build_id has;

	return fd >= 0 && rt_build_id_of_file(fd, &has) && has.size == id->size && !memcmp(has.id, id->id, id->size);
}

/* Where distributions put the vmlinux of a kernel; else its own BTF. */
static struct rt_error *open_running(const struct rt_probe_options *o, struct rt_probe_plan *p)
{
	static const char *const places[] = { "/usr/lib/debug/boot/vmlinux-%s", "/usr/lib/debug/lib/modules/%s/vmlinux",
					      "/lib/modules/%s/build/vmlinux", "/boot/vmlinux-%s" };
	struct rt_probe_options told = *o;
	struct rt_build_id id;
	struct utsname name;

	if (uname(&name) || !rt_build_id_of_notes(running_notes, &id))
		return rt_error_fix(rt_error_new(RT_E_UNREADABLE, "%s tells no build-id", running_notes),
				    "-k FILE, the kernel's vmlinux");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *path = rt_format(&p->arena, "%.*s%s%s", (int)(strstr(places[i], "%s") - places[i]),
					     places[i], name.release, strstr(places[i], "%s") + 2);

		if (is_kernel_file(path, &id))
			return open_named(o, path, p);
	}
	if (faccessat(AT_FDCWD, running_btf, R_OK, 0))
		return rt_error_fix(
			rt_error_new(RT_E_NOT_FOUND, "there is no vmlinux of this kernel, and no %s", running_btf),
			"-k FILE, its vmlinux: linux-image-%s-dbg or the like has it", name.release);
	told.kallsyms = running_kallsyms;
	told.notes = running_notes;
	return open_named(&told, running_btf, p);
}

struct rt_error *rt_probe_kernel_open(const struct rt_probe_options *options, struct rt_probe_plan *plan)
{
	if (options->vmlinux && options->running)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "-k and --kernel name two kernels"), "tell one of them");
	if (options->file || options->common.symfs || options->common.list.target_ns)
		return rt_error_new(RT_E_USAGE, "a kernel is no file of programs: -x, --symfs and --target-ns are not "
						"for it");
	RT_TRY(options->running ? open_running(options, plan) : open_named(options, options->vmlinux, plan));
	plan->is_kernel = true;
	return rt_decoder_create(plan->image->machine ?: RT_MACHINE_X86_64, &plan->decoder);
}
