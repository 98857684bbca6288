/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Naming frames. The analysis asks for the same few addresses over and over:
 * each (module, file offset) is named once and the answer is kept.
 */
#include "symbol/chain.h"

#include <stdio.h>
#include <string.h>

#include "elf/demangle.h"
#include "insn/taken.h"
#include "symbol/parts.h"

#define RT_SCOPES_MAX 64

const char *rt_chain_text(struct rt_chain *chain, const char *text)
{
	uint32_t id = text ? rt_intern_string(&chain->strings, text) : 0;

	return id ? rt_intern_text(&chain->strings, id) : NULL;
}

static struct rt_chain_module *get_module(struct rt_chain *chain, uint32_t id)
{
	uint64_t *slot = rt_map_get(&chain->module_by_id, rt_key_make(id, 0));

	return slot ? &chain->modules.data[*slot - 1] : NULL;
}

struct rt_chain_module *rt_chain_module(struct rt_chain *chain, uint32_t id)
{
	struct rt_chain_module *module = get_module(chain, id);
	uint64_t *slot;

	if (module)
		return module;
	module = rt_vec_add(&chain->modules);
	slot = module ? rt_map_put(&chain->module_by_id, rt_key_make(id, 0), NULL) : NULL;
	if (!slot) {
		chain->modules.len -= module != NULL;
		return NULL;
	}
	*slot = chain->modules.len;
	*module = (struct rt_chain_module){ .id = id, .path = "" };
	return module;
}

struct rt_error *rt_chain_record(struct rt_chain *chain, const struct rt_wire_head *record)
{
	const struct rt_wire_module *wire = (const struct rt_wire_module *)(const void *)record;
	struct rt_chain_module *module;
	_cleanup_free_ char *path = NULL;

	if (record->kind != RT_WIRE_MODULE || record->size < sizeof(*wire))
		return NULL;
	path = strndup(wire->path, record->size - sizeof(*wire));
	module = path ? rt_chain_module(chain, wire->id) : NULL;
	if (!module)
		return rt_error_nomem();
	/* told twice: the answers that were given stay true */
	if (module->path[0])
		return NULL;
	module->path = rt_chain_text(chain, path);
	if (!module->path) {
		module->path = "";
		return rt_error_nomem();
	}
	module->content_hash = wire->content_hash;
	module->build_id_size = wire->build_id_size <= RT_BUILD_ID_MAX ? wire->build_id_size : 0;
	memcpy(module->build_id, wire->build_id, module->build_id_size);
	return NULL;
}

struct rt_error *rt_chain_give_image(struct rt_chain *chain, uint32_t id, const struct rt_image *image)
{
	struct rt_chain_module *module = rt_chain_module(chain, id);

	if (!module)
		return rt_error_nomem();
	if (!module->tried)
		module->image = image;
	return NULL;
}

void rt_chain_give_vdso(struct rt_chain *chain, const struct rt_image *image)
{
	chain->vdso = image;
}

/* The source name behind a linker's name: clones of the compiler and mangling taken off. */
static const char *source_name(struct rt_chain *chain, const char *linkage)
{
	static const char *const clones[] = { ".isra.", ".part.", ".constprop.", ".cold", ".lto_priv.", ".llvm." };
	_cleanup_free_ char *bare = strdup(linkage), *nice = NULL;

	if (!bare)
		return NULL;
	for (size_t i = 0; i < sizeof(clones) / sizeof(*clones); i++) {
		char *at = strstr(bare, clones[i]);

		if (at && at > bare)
			*at = '\0';
	}
	if (!chain->options.no_demangle)
		nice = rt_demangle_name(bare);
	return rt_chain_text(chain, nice ?: bare);
}

static struct rt_frame blank(const struct rt_chain_module *module, uint64_t address)
{
	struct rt_frame frame = { .address = address };

	if (!module)
		return frame;
	frame.module = module->path[0] ? module->path : NULL;
	frame.module_id = module->id;
	frame.build_id_size = module->build_id_size;
	memcpy(frame.build_id, module->build_id, sizeof(frame.build_id));
	return frame;
}

static size_t name_by_scopes(struct rt_chain *chain, struct rt_chain_module *module, struct rt_elfaddr pc,
			     struct rt_frame blank_frame, struct rt_frame *ret)
{
	struct rt_scope scopes[RT_SCOPES_MAX];
	size_t n = rt_dwarf_scopes(module->dwarf, pc, scopes, RT_SCOPES_MAX);
	const struct rt_symbol *symbol;

	for (size_t i = 0; i < n; i++) {
		const struct rt_scope *s = &scopes[i];

		ret[i] = blank_frame;
		ret[i].linkage = s->linkage;
		/* a linkage name that is no mangling (asm labels) is not what the source says */
		if (s->linkage && strncmp(s->linkage, "_Z", 2) == 0)
			ret[i].function = source_name(chain, s->linkage);
		if (!ret[i].function)
			ret[i].function = s->function;
		ret[i].file = s->file;
		ret[i].line = s->line;
		ret[i].returns = s->returns;
		ret[i].entry = s->entry.v;
		ret[i].inlined = s->inlined && i + 1 < n;
	}
	symbol = n && !ret[n - 1].linkage && module->symtab ? rt_symtab_at(module->symtab, pc) : NULL;
	if (symbol && !symbol->plt && ret[n - 1].function && strcmp(symbol->name, ret[n - 1].function) != 0)
		ret[n - 1].linkage = symbol->name;
	return n;
}

static void name_by_symbol(struct rt_chain *chain, struct rt_chain_module *module, struct rt_elfaddr pc,
			   struct rt_frame *ret)
{
	const struct rt_symbol *symbol = module->symtab ? rt_symtab_at(module->symtab, pc) : NULL;
	struct rt_elfaddr start, end;
	struct rt_source_line line;
	bool lsda;

	if (module->dwarf && rt_dwarf_line(module->dwarf, pc, &line)) {
		ret->file = line.file;
		ret->line = line.line;
	}
	if (!symbol) {
		/* unwind information is in stripped files as well: it tells functions apart */
		if (module->dwarf && rt_dwarf_fde(module->dwarf, pc, &start, &end, &lsda))
			ret->entry = start.v;
		return;
	}
	ret->entry = symbol->addr.v;
	if (symbol->plt) {
		_cleanup_free_ char *stub = NULL;

		if (asprintf(&stub, "%s@plt", source_name(chain, symbol->name) ?: symbol->name) >= 0)
			ret->function = rt_chain_text(chain, stub);
		ret->linkage = symbol->name;
		return;
	}
	ret->function = source_name(chain, symbol->name);
	if (ret->function && strcmp(ret->function, symbol->name) != 0)
		ret->linkage = symbol->name;
}

/* A clone suffix of C stays: it is other code than the function of that name; names of C++ lose it with their types. */
static const char *table_name(struct rt_chain *chain, const struct rt_symbol *symbol)
{
	const char *name = strncmp(symbol->full, "_Z", 2) == 0 ? source_name(chain, symbol->name) : NULL;
	_cleanup_free_ char *stub = NULL;

	if (!symbol->plt)
		return name ?: rt_chain_text(chain, symbol->full);
	return asprintf(&stub, "%s@plt", name ?: symbol->name) < 0 ? NULL : rt_chain_text(chain, stub);
}

static void add_table_name(struct rt_chain *chain, const struct rt_chain_module *module, struct rt_elfaddr pc,
			   struct rt_frame *ret)
{
	const struct rt_symbol *symbol = module->symtab ? rt_symtab_code_at(module->symtab, pc) : NULL;

	if (!symbol)
		return;
	ret->symbol = table_name(chain, symbol);
	ret->symbol_entry = symbol->addr.v;
}

/* ELF address that the call just before pc goes to; 0: no direct call. Only x86-64 so far. */
static uint64_t call_target(const struct rt_chain_module *module, uint64_t pc)
{
	enum { CALL = 5 }; /* e8 and a signed distance of 4 bytes */
	struct rt_bytes code;
	int32_t distance;

	if (module->image->machine != RT_MACHINE_X86_64 || pc < CALL)
		return 0;
	code = rt_image_at(module->image, (struct rt_elfaddr){ pc - CALL }, CALL);
	if (code.size < CALL || code.data[0] != 0xe8)
		return 0;
	memcpy(&distance, code.data + 1, sizeof(distance));
	return pc + (uint64_t)(int64_t)distance;
}

/* where the jump at `at` leads: e9 and a signed distance of 4 bytes, or eb and one of 1; 0: it is none */
static uint64_t jump_target(const struct rt_chain_module *module, uint64_t at)
{
	enum { NEAR = 5, SHORT = 2 };
	struct rt_bytes code;
	int32_t distance;

	if (module->image->machine != RT_MACHINE_X86_64)
		return 0;
	code = rt_image_at(module->image, (struct rt_elfaddr){ at }, SHORT);
	if (code.size >= SHORT && code.data[0] == 0xeb)
		return at + SHORT + (uint64_t)(int64_t)(int8_t)code.data[1];
	code = rt_image_at(module->image, (struct rt_elfaddr){ at }, NEAR);
	if (code.size < NEAR || code.data[0] != 0xe9)
		return 0;
	memcpy(&distance, code.data + 1, sizeof(distance));
	return at + NEAR + (uint64_t)(int64_t)distance;
}

/* offset: of the instruction to look up; the pc is behind it when that is a call. */
static size_t name_place(struct rt_chain *chain, struct rt_chain_module *module, uint64_t offset, bool is_return,
			 struct rt_frame *ret)
{
	struct rt_elfaddr at;
	size_t n = 0;

	rt_chain_open(chain, module);
	if (!module->image || (!rt_image_address(module->image, (struct rt_foff){ offset }, true, &at) &&
			       !rt_image_address(module->image, (struct rt_foff){ offset }, false, &at))) {
		ret[0] = blank(module, offset + is_return);
		return 1;
	}
	ret[0] = blank(module, at.v + is_return);
	if (module->dwarf)
		n = name_by_scopes(chain, module, at, ret[0], ret);
	if (!n) {
		name_by_symbol(chain, module, at, &ret[0]);
		n = 1;
	}
	add_table_name(chain, module, at, &ret[n - 1]);
	return n;
}

/* The kept answer for a place, made if new. NULL: out of memory. */
static const struct rt_chain_answer *answer(struct rt_chain *chain, struct rt_chain_module *module, uint64_t offset,
					    bool is_return)
{
	struct rt_key key = rt_key_make(offset, (uint64_t)module->id << 1 | is_return);
	uint64_t *slot = rt_map_get(&chain->answer_by_place, key);
	struct rt_frame frames[RT_SCOPES_MAX];
	struct rt_chain_answer made;

	if (slot)
		return &chain->answers.data[*slot - 1];
	made.first = chain->frames.len;
	made.count = name_place(chain, module, offset, is_return, frames);
	/* kept as an ELF address: processes have the module at different places */
	if (module->image)
		frames[made.count - 1].callee =
			is_return ? call_target(module, frames[0].address) : jump_target(module, frames[0].address);
	for (size_t i = 0; i < made.count; i++) {
		if (!rt_vec_push(&chain->frames, frames[i]))
			return NULL;
	}
	if (!rt_vec_push(&chain->answers, made))
		return NULL;
	slot = rt_map_put(&chain->answer_by_place, key, NULL);
	if (slot)
		*slot = chain->answers.len;
	return &chain->answers.data[chain->answers.len - 1];
}

static size_t chain_name(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return,
			 struct rt_frame *ret, size_t max)
{
	struct rt_chain *chain = (struct rt_chain *)self;
	const struct rt_chain_answer *known;
	struct rt_chain_module *module;
	struct rt_mapping mapping;
	struct rt_vaddr at;
	size_t n;

	if (!max)
		return 0;
	/* a call may be the last instruction of its function, even of its mapping */
	at.v = pc - (is_return && pc);
	if (at.v >> 63 || !rt_maps_find(chain->maps, pid, time_ns, at, &mapping)) {
		const struct rt_chain_code *code = rt_chain_find_code(chain, time_ns, at.v);

		if (code)
			rt_chain_name_code(chain, code, pc, is_return, &ret[0]);
		else
			ret[0] = blank(NULL, pc);
		return 1;
	}
	module = rt_chain_module(chain, mapping.module);
	known = module ? answer(chain, module, mapping.offset.v + (at.v - mapping.start), is_return) : NULL;
	if (!known) {
		ret[0] = blank(module, pc);
		return 1;
	}
	n = known->count < max ? known->count : max;
	memcpy(ret, &chain->frames.data[known->first], n * sizeof(*ret));
	if (ret[n - 1].callee) {
		uint64_t behind =
			rt_chain_behind_stub(chain, module, pid, time_ns, (struct rt_elfaddr){ ret[n - 1].callee });

		ret[n - 1].callee = behind ?: ret[n - 1].callee + pc - ret[n - 1].address;
	}
	return n;
}

/* where the function around the address begins and ends */
static bool find_function(const struct rt_chain_module *module, struct rt_elfaddr at, struct rt_elfaddr *ret_start,
			  struct rt_elfaddr *ret_end)
{
	const struct rt_symbol *symbol;
	bool lsda;

	if (module->dwarf && rt_dwarf_fde(module->dwarf, at, ret_start, ret_end, &lsda))
		return true;
	symbol = module->symtab ? rt_symtab_at(module->symtab, at) : NULL;
	if (!symbol || symbol->plt)
		return false;
	*ret_start = symbol->addr;
	ret_end->v = symbol->addr.v + symbol->size;
	return true;
}

static enum rt_chain_given declared_given(const struct rt_chain_module *module, struct rt_elfaddr at)
{
	return module->dwarf ? rt_chain_given(module->dwarf, at) : RT_CHAIN_GIVEN_UNKNOWN;
}

/* The module's code can be read. */
static bool has_code(struct rt_chain *chain, struct rt_chain_module *module)
{
	rt_chain_open(chain, module);
	if (!module->image || module->image->machine != RT_MACHINE_X86_64)
		return false;
	if (!chain->decoder_tried) {
		chain->decoder_tried = true;
		rt_error_free(rt_decoder_create(RT_MACHINE_X86_64, &chain->decoder));
	}
	return chain->decoder;
}

static uint8_t find_hands(struct rt_chain *chain, struct rt_chain_module *module, uint64_t offset)
{
	struct rt_scope scopes[RT_SCOPES_MAX];
	struct rt_elfaddr at, after, start, end;
	enum rt_chain_given given;
	uint8_t hands;
	size_t n;

	if (!has_code(chain, module) || !rt_image_address(module->image, (struct rt_foff){ offset }, true, &at))
		return 0;
	after = (struct rt_elfaddr){ at.v + 1 };
	hands = rt_result_is_taken(module->image, chain->decoder, after) ? RT_HANDS_TAKEN : 0;
	if (!find_function(module, at, &start, &end))
		return hands;
	given = declared_given(module, at);
	if (given == RT_CHAIN_GIVEN_ANYTHING ||
	    (given == RT_CHAIN_GIVEN_UNKNOWN && rt_chain_is_blind(module->image, chain->decoder, start, end, after)))
		hands |= RT_HANDS_BLIND;
	if (rt_chain_goes_on(module->image, module->symtab, chain->decoder, start, end, after))
		hands |= RT_HANDS_AGAIN;
	/* what the function returns its declaration says, where there is one, and it is not "anything" */
	n = module->dwarf ? rt_dwarf_scopes(module->dwarf, at, scopes, RT_SCOPES_MAX) : 0;
	if (!n || rt_returns_anything(scopes[n - 1].returns))
		hands |= rt_chain_hands(module->image, chain->decoder, start, end, after);
	return hands;
}

/* The module that the process has at this address, and which byte of its file; NULL: none. */
static struct rt_chain_module *module_at(struct rt_chain *chain, uint32_t pid, uint64_t time_ns, uint64_t address,
					 uint64_t *ret_offset)
{
	struct rt_mapping mapping;

	if (!address || address >> 63 ||
	    !rt_maps_find(chain->maps, pid, time_ns, (struct rt_vaddr){ address }, &mapping))
		return NULL;
	*ret_offset = mapping.offset.v + (address - mapping.start);
	return rt_chain_module(chain, mapping.module);
}

/* [start, end) of the function that begins at this place of the file; false: none does, or its code is not known */
static bool begins_at(struct rt_chain *chain, struct rt_chain_module *module, uint64_t offset,
		      struct rt_elfaddr *ret_start, struct rt_elfaddr *ret_end)
{
	struct rt_elfaddr at;

	return has_code(chain, module) && rt_image_address(module->image, (struct rt_foff){ offset }, true, &at) &&
	       find_function(module, at, ret_start, ret_end) && ret_start->v == at.v;
}

/* RT_HANDS_JUMPED, or 0: what the function that begins at this address does */
static uint8_t find_jump(struct rt_chain *chain, uint32_t pid, uint64_t time_ns, uint64_t callee)
{
	uint64_t offset;
	struct rt_chain_module *module = module_at(chain, pid, time_ns, callee, &offset);
	struct rt_elfaddr start, end;

	if (!module || !begins_at(chain, module, offset, &start, &end))
		return 0;
	return declared_given(module, start) != RT_CHAIN_GIVEN_STRUCTURE &&
			       rt_chain_is_blind(module->image, chain->decoder, start, end, (struct rt_elfaddr){ 0 })
		       ? RT_HANDS_JUMPED
		       : 0;
}

/* as of leaves_by_place, of the function that begins at this place */
static uint64_t find_leaves(struct rt_chain *chain, struct rt_chain_module *module, uint64_t offset)
{
	struct rt_elfaddr start, end, at = { 0 };

	if (begins_at(chain, module, offset, &start, &end))
		at = rt_chain_leaves(module->image, module->symtab, chain->decoder, start, end);
	return at.v ? at.v - start.v + 1 : 0;
}

static uint64_t chain_leaves(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t callee)
{
	struct rt_chain *chain = (struct rt_chain *)self;
	uint64_t offset, *slot;
	struct rt_chain_module *module = module_at(chain, pid, time_ns, callee, &offset);
	bool made;

	slot = module ? rt_map_put(&chain->leaves_by_place, rt_key_make(offset, module->id), &made) : NULL;
	if (!slot)
		return 0;
	if (made)
		*slot = find_leaves(chain, module, offset);
	return *slot ? callee + *slot - 1 : 0;
}

static uint8_t chain_hands(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc)
{
	struct rt_chain *chain = (struct rt_chain *)self;
	struct rt_frame frames[RT_SCOPES_MAX];
	uint64_t offset, *slot;
	struct rt_chain_module *module = pc ? module_at(chain, pid, time_ns, pc - 1, &offset) : NULL;
	bool made;

	slot = module ? rt_map_put(&chain->hands_by_place, rt_key_make(offset, module->id), &made) : NULL;
	if (!slot)
		return 0;
	if (made) {
		uint8_t hands = find_hands(chain, module, offset);
		size_t n = chain_name(self, pid, time_ns, pc, true, frames, RT_SCOPES_MAX);

		*slot = hands | (n ? find_jump(chain, pid, time_ns, frames[n - 1].callee) : 0);
	}
	return (uint8_t)*slot;
}

/* as of waits_by_place: rt_chain_callback() of the call before this place */
static uint64_t find_callback(struct rt_chain *chain, struct rt_chain_module *module, uint64_t offset)
{
	struct rt_elfaddr at, start, end;
	bool given = false;
	uint64_t found;

	if (!has_code(chain, module) || !rt_image_address(module->image, (struct rt_foff){ offset }, true, &at) ||
	    !find_function(module, at, &start, &end))
		return 0;
	found = rt_chain_callback(module->image, module->symtab, chain->decoder, start, end,
				  (struct rt_elfaddr){ at.v + 1 }, &given);
	return found << 1 | given;
}

static uint64_t chain_callback(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool *ret_given)
{
	struct rt_chain *chain = (struct rt_chain *)self;
	uint64_t offset, *slot;
	struct rt_chain_module *module = pc ? module_at(chain, pid, time_ns, pc - 1, &offset) : NULL;
	struct rt_elfaddr address;
	bool made;

	*ret_given = false;
	slot = module ? rt_map_put(&chain->waits_by_place, rt_key_make(offset, module->id), &made) : NULL;
	if (!slot)
		return 0;
	if (made)
		*slot = find_callback(chain, module, offset);
	*ret_given = *slot & 1;
	return *slot >> 1 && rt_image_address(module->image, (struct rt_foff){ offset }, true, &address)
		       ? pc - 1 + ((*slot >> 1) - address.v)
		       : 0;
}

/* the line of the function itself, of what is inlined there that of the call; 0: unknown */
static uint32_t line_at(struct rt_chain_module *module, struct rt_elfaddr at)
{
	struct rt_scope scopes[RT_SCOPES_MAX];
	size_t n = rt_dwarf_scopes(module->dwarf, at, scopes, RT_SCOPES_MAX);

	return n ? scopes[n - 1].line : 0;
}

static size_t chain_skips(struct rt_namer *self, const struct rt_frame *from, const uint64_t *places, size_t nr,
			  struct rt_branch *ret, size_t max)
{
	struct rt_chain *chain = (struct rt_chain *)self;
	struct rt_chain_module *module = from->module_id && !from->inlined ? get_module(chain, from->module_id) : NULL;
	struct rt_elfaddr start, end, (*found)[2];
	size_t n, lines = 0;

	if (!module || !has_code(chain, module) || !module->dwarf ||
	    !find_function(module, (struct rt_elfaddr){ from->address - 1 }, &start, &end))
		return 0;
	found = calloc(max, sizeof(*found));
	n = found ? rt_chain_skips(module->image, module->symtab, chain->decoder, start, end, from->address, places, nr,
				   found, max)
		  : 0;
	for (size_t i = 0; i < n; i++) {
		const struct rt_branch b = { line_at(module, found[i][0]), line_at(module, found[i][1]) };

		if (b.line && (!lines || ret[lines - 1].line != b.line || ret[lines - 1].to != b.to))
			ret[lines++] = b;
	}
	free(found);
	return lines;
}

static const char *chain_source_line(struct rt_namer *self, uint32_t module_id, const char *file, uint32_t line,
				     bool *ret_stale)
{
	struct rt_chain *chain = (struct rt_chain *)self;
	bool stale = false;
	const char *text = rt_chain_source_line(chain, get_module(chain, module_id), file, line, &stale);

	if (ret_stale)
		*ret_stale = stale;
	return text;
}

struct rt_error *rt_chain_create(const struct rt_maps *maps, const struct rt_chain_options *options,
				 struct rt_chain **ret)
{
	_cleanup_(rt_chain_destroyp) struct rt_chain *chain = calloc(1, sizeof(*chain));

	if (!chain)
		return rt_error_nomem();
	chain->namer = (struct rt_namer){ .name = chain_name,
					  .source_line = chain_source_line,
					  .hands = chain_hands,
					  .callback = chain_callback,
					  .leaves = chain_leaves,
					  .skips = chain_skips };
	chain->maps = maps;
	if (options)
		chain->options = *options;
	if (chain->options.symfs && chain->options.symfs[0]) {
		size_t len;

		chain->symfs = strdup(chain->options.symfs);
		if (!chain->symfs)
			return rt_error_nomem();
		len = strlen(chain->symfs);
		while (len && chain->symfs[len - 1] == '/')
			chain->symfs[--len] = '\0';
		if (!len) {
			free(chain->symfs);
			chain->symfs = NULL;
		}
	}
	*ret = rt_take(chain);
	return NULL;
}

void rt_chain_destroy(struct rt_chain *chain)
{
	if (!chain)
		return;
	for (size_t i = 0; i < chain->modules.len; i++)
		rt_chain_close(&chain->modules.data[i]);
	for (size_t i = 0; i < chain->notes.len; i++)
		free(chain->notes.data[i]);
	for (size_t i = 0; i < chain->sources.len; i++) {
		free(chain->sources.data[i].text);
		rt_vec_deinit(&chain->sources.data[i].lines);
	}
	rt_vec_deinit(&chain->modules);
	for (size_t i = 0; i < chain->hints.len; i++)
		free(chain->hints.data[i]);
	rt_vec_deinit(&chain->notes);
	rt_vec_deinit(&chain->hints);
	rt_vec_deinit(&chain->sources);
	rt_vec_deinit(&chain->fixed);
	rt_vec_deinit(&chain->loaded);
	rt_vec_deinit(&chain->frames);
	rt_vec_deinit(&chain->answers);
	rt_map_deinit(&chain->module_by_id);
	rt_map_deinit(&chain->answer_by_place);
	rt_map_deinit(&chain->hands_by_place);
	rt_map_deinit(&chain->leaves_by_place);
	rt_map_deinit(&chain->waits_by_place);
	rt_decoder_destroy(chain->decoder);
	rt_map_deinit(&chain->source_by_name);
	rt_intern_deinit(&chain->strings);
	free(chain->symfs);
	free(chain);
}

struct rt_namer *rt_chain_namer(struct rt_chain *chain)
{
	return &chain->namer;
}

size_t rt_chain_notes(const struct rt_chain *chain, const char *const **ret)
{
	*ret = (const char *const *)chain->notes.data;
	return chain->notes.len;
}

size_t rt_chain_hints(const struct rt_chain *chain, const char *const **ret)
{
	*ret = (const char *const *)chain->hints.data;
	return chain->hints.len;
}
