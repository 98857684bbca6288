/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One function, instruction by instruction, with its source lines and how often
 * each was hit. Builders make an annotation from an ELF function or a BPF
 * function; renderers turn it into text. An annotation owns all that it shows:
 * what it was built from may be gone.
 */
#pragma once

#include "base/sink.h"
#include "dwarf/dwarf.h"
#include "elf/symtab.h"
#include "event/names.h"

struct rt_bpf_image;

#define RT_NO_LINE SIZE_MAX

struct rt_annotation_line {
	uint64_t address;      /* ELF address, JITed address, or position of the eBPF instruction */
	struct rt_bytes bytes; /* of the instruction */
	const char *text;      /* "jne 0x1a2c" */
	size_t stem; /* text[0, stem) stands before the address that it jumps to or calls; 0: it names no address */
	const char
		*target_name;  /* function that it calls or jumps to, "obj_put", "memcpy@plt"; NULL = none or unknown */
	size_t target;         /* index of the line that it jumps to; RT_NO_LINE = none here */
	uint32_t label;        /* from 1: another line jumps here; 0 = none does */
	const char *file;      /* NULL = unknown */
	uint32_t line, column; /* 0 = unknown */
	const char *inlined;   /* function that the line belongs to where it was inlined; NULL = the function itself */
	const char *source;    /* text of that line, NULL = cannot be read */
	uint64_t *hits;        /* one for each event */
};

struct rt_annotation {
	const char *function; /* "mix_hash" */
	const char *module;   /* path; "bpf program 42 (main_prog)" */
	bool xlated;          /* eBPF instructions, addresses are positions; else machine code */
	uint64_t base;        /* what to subtract for display: JITed code lies far up; 0 for ELF */
	const char *const *events;
	size_t event_count; /* at least 1 */
	uint64_t *totals;   /* for each event: hits of the whole recording */
	uint64_t *hits;     /* for each event: hits in this function */
	struct rt_annotation_line *lines;
	size_t line_count;
	const char *note; /* what is missing or inexact, one sentence; NULL */
	void *storage;
};

void rt_annotation_destroy(struct rt_annotation *annotation);
RT_CLEANUP(struct rt_annotation *, rt_annotation_destroy);

/* What was sampled. Hits outside of the function are left out (and count in totals). */
struct rt_annotate_hit {
	uint64_t address; /* ELF address in an ELF function, JITed address in a BPF function */
	uint64_t count;
	uint32_t event; /* index in events */
};
struct rt_annotate_hits {
	const char *const *events;
	size_t event_count;     /* 1..RT_ANNOTATE_EVENTS */
	const uint64_t *totals; /* for each event; NULL: the sum of all hits given here */
	const struct rt_annotate_hit *hits;
	size_t count;
};
enum { RT_ANNOTATE_EVENTS = 16 };

struct rt_annotate_elf {
	const char *path;             /* as recorded; for messages */
	const struct rt_image *image; /* NULL: it could not be found, which is the error */
	const struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;    /* NULL: no source lines */
	struct rt_namer *namer;    /* for the text of source lines; NULL: none */
	uint32_t module;           /* namer's id of the module */
	const char *function;      /* name as in the symbol table; NULL: address tells */
	struct rt_elfaddr address; /* any address in the function */
	const uint8_t *build_id;   /* as recorded */
	uint8_t build_id_size;     /* 0 = not recorded: any file will do */
};

/*
 * RT_E_NOT_FOUND without the file, RT_E_BUILD_ID when it is another one,
 * RT_E_NO_FUNCTION, RT_E_FORMAT when it holds no code, RT_E_UNSUPPORTED for machines that
 * insn/ cannot decode. Each says what to do.
 */
RT_CHECK struct rt_error *rt_annotate_elf(const struct rt_annotate_elf *what, const struct rt_annotate_hits *hits,
					  struct rt_annotation **ret);

struct rt_annotate_bpf {
	const struct rt_bpf_image *image;
	const char *function;   /* name or symbol; NULL: address tells */
	uint64_t address;       /* any JITed address in the function */
	uint16_t machine;       /* EM_* that it was JITed for */
	struct rt_namer *namer; /* names kernel functions that it calls; NULL: those that the image has */
	bool xlated;            /* show eBPF instructions: hits are placed at the first instruction of their line */
};

/* RT_E_NO_FUNCTION; RT_E_NOT_FOUND when the code was not kept; RT_E_UNSUPPORTED for other machines. */
RT_CHECK struct rt_error *rt_annotate_bpf(const struct rt_annotate_bpf *what, const struct rt_annotate_hits *hits,
					  struct rt_annotation **ret);

/*
 * Why a kernel symbol without a file cannot be annotated ("bpf_trampoline_6442:
 * code is not kept by the kernel"). Never NULL.
 */
RT_CHECK struct rt_error *rt_annotate_no_code(const char *symbol);

struct rt_annotate_options {
	unsigned width; /* columns, 0 = 80; cuts source lines, never numbers or instructions */
	bool color;     /* escape codes allowed */
	bool bytes;     /* the bytes of each instruction */
	bool no_source; /* instructions only */
	bool hide_cold; /* one line for a run of instructions without hits */
};

RT_CHECK struct rt_error *rt_annotate_text(const struct rt_annotation *annotation,
					   const struct rt_annotate_options *options, struct rt_sink *sink);
