/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any text as the arguments of an SDT marker, for both machines: each is found, lies in the text, is what it says, and
 * is the same when it stands alone.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/image.h"
#include "probe/operand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_power(uint8_t n)
{
	return n == 1 || n == 2 || n == 4 || n == 8;
}

static void check_operand(const struct rt_operand *o, uint16_t machine)
{
	uint8_t registers = machine == RT_MACHINE_AARCH64 ? 32 : 17;

	if (!o->text_len || (o->size && !is_power(o->size)) || o->kind > RT_OPERAND_UNKNOWN)
		abort();
	if (o->kind == RT_OPERAND_UNKNOWN) {
		if (!o->why || !*o->why)
			abort();
		return;
	}
	if (o->why || (o->base != RT_REG_NONE && o->base >= registers) ||
	    (o->index != RT_REG_NONE && (o->index >= registers || !is_power(o->scale))))
		abort();
	if ((o->kind == RT_OPERAND_REG && o->base == RT_REG_NONE) ||
	    (o->kind == RT_OPERAND_CONST && (o->base != RT_REG_NONE || o->index != RT_REG_NONE)))
		abort();
	if ((o->kind == RT_OPERAND_SYMBOL || o->kind == RT_OPERAND_ADDRESS) != (o->symbol != NULL))
		abort();
	if (o->symbol &&
	    (!o->symbol_len || o->symbol < o->text || o->symbol_len > o->text_len - (size_t)(o->symbol - o->text)))
		abort();
}

static void check_alone(const struct rt_operand *o, uint16_t machine)
{
	_cleanup_free_ char *text = strndup(o->text, o->text_len);
	const char *at = text;
	struct rt_operand again;

	if (!text)
		return;
	if (!rt_operand_next(&at, machine, &again) || *at || again.kind != o->kind || again.size != o->size ||
	    again.is_signed != o->is_signed || again.is_float != o->is_float || again.base != o->base ||
	    again.index != o->index || again.value != o->value || again.symbol_len != o->symbol_len ||
	    rt_operand_next(&at, machine, &again))
		abort();
}

static void ask(const char *text, uint16_t machine)
{
	const char *at = text, *before = text;
	struct rt_operand o;

	for (; rt_operand_next(&at, machine, &o); before = at) {
		if (at <= before || o.text < before || o.text + o.text_len != at)
			abort();
		check_operand(&o, machine);
		check_alone(&o, machine);
	}
	if (before[strspn(before, " ")])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* up to the first NUL, in as many bytes as it has */
	_cleanup_free_ char *text = strndup((const char *)data, size);

	if (!text)
		return 0;
	ask(text, RT_MACHINE_X86_64);
	ask(text, RT_MACHINE_AARCH64);
	return 0;
}
