/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a spool chunk by chunk. A chunk is copied, then checked, then read: the file may be a mapping that somebody
 * still writes to. At the first damage the source says what is missing and ends; nothing behind it is trusted.
 */
#include "capture/spool.h"

#include <string.h>
#include <zlib.h>

#include "capture/decode.h"
#include "capture/layout.h"

struct rt_spool_reader {
	struct rt_source source; /* first: the reader is its own source */
	char *name;              /* for messages */
	struct rt_cursor file;   /* after the last chunk that was loaded */
	const char **command;    /* NULL-terminated; points into strings */
	char *strings;
	struct rt_spool_origin origin;
	struct rt_spool_decoder *decoder;
	const struct rt_wire_event *next; /* these events of the current chunk wait to be yielded */
	size_t waiting;
	uint8_t *payload; /* the current chunk */
	size_t payload_cap;
	size_t chunk_offset;      /* where it lies in the file */
	uint32_t chunks;          /* read so far */
	struct rt_wire_loss *cut; /* what is missing */
	int status;
	bool ended;    /* nothing more to yield */
	bool complete; /* the end chunk was there */
};

static bool read_bytes(struct rt_cursor *c, void *to, size_t size)
{
	struct rt_bytes b;

	if (!rt_cursor_bytes(c, size, &b))
		return false;
	memcpy(to, b.data, size);
	return true;
}

static bool starts_with(struct rt_bytes b, const char *magic, size_t size)
{
	return b.size >= size && !memcmp(b.data, magic, size);
}

static bool looks_like_text(struct rt_bytes b)
{
	for (size_t i = 0; i < b.size && i < 256; i++) {
		uint8_t c = b.data[i];

		if (c == 0x7f || (c < ' ' && c != '\t' && c != '\n' && c != '\r'))
			return false;
	}
	return true;
}

static const char *looks_like(struct rt_bytes b)
{
	if (!b.size)
		return "it is empty";
	if (starts_with(b, "PERFILE2", 8) || starts_with(b, "2ELIFREP", 8))
		return "it looks like a perf.data file";
	if (starts_with(b, "\177ELF", 4))
		return "it looks like an ELF file";
	if (starts_with(b, "\x1f\x8b", 2))
		return "it looks like gzip-compressed data";
	if (starts_with(b, "\x28\xb5\x2f\xfd", 4))
		return "it looks like zstd-compressed data";
	if (starts_with(b,
			"\xfd"
			"7zXZ",
			5))
		return "it looks like xz-compressed data";
	if (starts_with(b, "heaptrack", 9) || starts_with(b, "v 1", 3))
		return "it looks like a heaptrack file";
	if (b.size < 8 && !memcmp(b.data, RT_SPOOL_MAGIC, b.size))
		return "it is cut within the first 8 bytes";
	if (starts_with(b, RT_SPOOL_MAGIC, 7))
		return "it is a recording in another version of the format";
	if (starts_with(b, "{", 1) && looks_like_text(b))
		return "it looks like JSON";
	if (looks_like_text(b))
		return "it looks like text";
	return "it is in an unknown format";
}

static struct rt_error *check_header(struct rt_spool_header *head, struct rt_bytes bytes, const char *name)
{
	struct rt_cursor c = rt_cursor_make(bytes, false);
	uint32_t crc;
	uLong sum;

	if (!starts_with(bytes, RT_SPOOL_MAGIC, 8))
		return rt_error_new(RT_E_FORMAT, "%s is not a recording of reftrace: %s", name, looks_like(bytes));
	if (!read_bytes(&c, head, sizeof(*head)))
		return rt_error_new(RT_E_TRUNCATED, "%s ends inside its header (byte %zu); nothing can be read", name,
				    bytes.size);
	if (head->order == __builtin_bswap32(RT_SPOOL_ORDER) ||
	    (head->order == RT_SPOOL_ORDER && head->pointer_bytes != sizeof(void *)))
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "%s was recorded on a machine of another byte order or word size",
						 name),
				    "read it on a machine like the one that recorded it");
	if (head->order == RT_SPOOL_ORDER && head->version != RT_SPOOL_VERSION)
		return rt_error_new(RT_E_UNSUPPORTED, "%s is a recording of version %u; this build reads version %d",
				    name, head->version, RT_SPOOL_VERSION);
	if (head->order != RT_SPOOL_ORDER || head->size < sizeof(*head) || head->size > RT_SPOOL_HEADER_MAX ||
	    head->size % 8 || head->string_bytes > head->size - sizeof(*head))
		return rt_error_new(RT_E_TRUNCATED, "%s has a damaged header; nothing can be read", name);
	if (head->size > bytes.size)
		return rt_error_new(RT_E_TRUNCATED, "%s ends inside its header (byte %zu of %u); nothing can be read",
				    name, bytes.size, head->size);
	crc = head->crc;
	head->crc = 0;
	sum = crc32(0, (const Bytef *)head, sizeof(*head));
	sum = crc32(sum, bytes.data + sizeof(*head), (uInt)(head->size - sizeof(*head)));
	if (crc != (uint32_t)sum)
		return rt_error_new(RT_E_TRUNCATED, "%s has a damaged header (checksum differs); nothing can be read",
				    name);
	return NULL;
}

static struct rt_error *read_strings(struct rt_spool_reader *r, const struct rt_spool_header *head)
{
	struct rt_cursor c;
	size_t words = head->command_count;

	/* each word has at least its NUL */
	if (words > head->string_bytes)
		return rt_error_new(RT_E_TRUNCATED, "%s has a damaged header; nothing can be read", r->name);
	r->strings = malloc((size_t)head->string_bytes + 1);
	r->command = calloc(words + 1, sizeof(*r->command));
	if (!r->strings || !r->command)
		return rt_error_nomem();
	if (!read_bytes(&r->file, r->strings, head->string_bytes))
		return rt_error_new(RT_E_INTERNAL, "%s: header strings are not there", r->name);
	c = rt_cursor_make(rt_bytes_make(r->strings, head->string_bytes), false);
	for (size_t i = 0; i < words; i++) {
		if (!rt_cursor_string(&c, &r->command[i]))
			return rt_error_new(RT_E_TRUNCATED, "%s has a damaged header; nothing can be read", r->name);
	}
	if (!rt_cursor_string(&c, &r->origin.machine))
		r->origin.machine = "";
	r->origin.start_monotonic_ns = head->start_monotonic_ns;
	r->origin.start_realtime_ns = head->start_realtime_ns;
	return NULL;
}

/* The stream ends here; text says where and why, the count of good chunks is added. */
__attribute__((format(printf, 3, 4))) static struct rt_error *
cut(struct rt_spool_reader *r, const struct rt_wire_head **ret, const char *format, ...)
{
	_cleanup_(rt_sink_deinit) struct rt_sink text;
	_cleanup_free_ char *where = NULL;
	va_list args;
	int n;

	r->ended = true;
	va_start(args, format);
	n = vasprintf(&where, format, args);
	va_end(args);
	if (n < 0) {
		where = NULL;
		return rt_error_nomem();
	}
	rt_sink_init_memory(&text);
	rt_sink_printf(&text, "%s; %u chunk%s read", where, r->chunks, r->chunks == 1 ? "" : "s");
	RT_TRY(rt_sink_end(&text));
	r->cut = rt_record_loss(RT_LOSS_CUT, 0, 0, text.buffer);
	if (!r->cut)
		return rt_error_nomem();
	*ret = &r->cut->head;
	return NULL;
}

/* What is wrong with a chunk header, or NULL. */
static const char *chunk_fault(const struct rt_spool_chunk *head, uint32_t number)
{
	uint32_t crc = (uint32_t)crc32(0, (const Bytef *)head, offsetof(struct rt_spool_chunk, header_crc));

	if (memcmp(head->magic, RT_SPOOL_CHUNK_MAGIC, sizeof(head->magic)))
		return "no chunk starts there";
	if (head->header_crc != crc)
		return "checksum of its header differs";
	if (head->number != number)
		return "it is out of order";
	if (head->payload_bytes > RT_SPOOL_PAYLOAD_MAX)
		return "its length is impossible";
	if (head->flags & RT_SPOOL_END && (head->payload_bytes || head->records))
		return "records in the end chunk";
	return NULL;
}

/* Copies the payload of a chunk and checks it. *ret_fault: what is wrong, or NULL. */
static struct rt_error *load_payload(struct rt_spool_reader *r, const struct rt_spool_chunk *head, struct rt_bytes b,
				     const char **ret_fault)
{
	if (head->payload_bytes > r->payload_cap) {
		free(r->payload);
		r->payload_cap = 0;
		r->payload = malloc(head->payload_bytes);
		if (!r->payload)
			return rt_error_nomem();
		r->payload_cap = head->payload_bytes;
	}
	if (b.size)
		memcpy(r->payload, b.data, b.size);
	if (head->payload_crc != (uint32_t)crc32(0, r->payload, (uInt)b.size)) {
		*ret_fault = "checksum differs";
		return NULL;
	}
	return rt_spool_decoder_begin(r->decoder, rt_bytes_make(r->payload, b.size), head->records, ret_fault);
}

/* The next chunk: becomes current, or *ret is the record that says what is missing, or the end was reached. */
static struct rt_error *next_chunk(struct rt_spool_reader *r, const struct rt_wire_head **ret)
{
	struct rt_spool_chunk head;
	struct rt_bytes payload;
	const char *fault;
	size_t at = r->file.pos;
	uint32_t number = r->chunks + 1;

	if (!rt_cursor_left(&r->file))
		return cut(r, ret, "ends without its end mark (byte %zu)", at);
	if (!read_bytes(&r->file, &head, sizeof(head)))
		return cut(r, ret, "ends inside chunk %u (byte %zu)", number, r->file.bytes.size);
	fault = chunk_fault(&head, number);
	if (fault)
		return cut(r, ret, "chunk %u is damaged (byte %zu: %s)", number, at, fault);
	if (head.flags & RT_SPOOL_END) {
		r->complete = true;
		r->status = head.status;
		if (rt_cursor_left(&r->file))
			return cut(r, ret, "%zu foreign bytes follow its end (byte %zu)", rt_cursor_left(&r->file),
				   r->file.pos);
		r->ended = true;
		return NULL;
	}
	r->chunk_offset = at;
	if (!rt_cursor_bytes(&r->file, head.payload_bytes, &payload))
		return cut(r, ret, "ends inside chunk %u (byte %zu)", number, r->file.bytes.size);
	RT_TRY(load_payload(r, &head, payload, &fault));
	if (fault)
		return cut(r, ret, "chunk %u is damaged (byte %zu: %s)", number, at, fault);
	r->chunks++;
	return NULL;
}

/* More records of the current chunk or of the next one; *ret stays NULL at the end. */
static __attribute__((noinline)) struct rt_error *next_records(struct rt_spool_reader *r,
							       const struct rt_wire_head **ret)
{
	const struct rt_wire_head *record = NULL;
	const char *fault = NULL;

	while (!r->ended && !record) {
		size_t n = rt_spool_decoder_next(r->decoder, &record, &fault);

		if (fault) {
			r->chunks--;
			RT_TRY(cut(r, &record, "chunk %u is damaged (byte %zu: %s)", r->chunks + 1, r->chunk_offset,
				   fault));
		} else if (n > 1) {
			r->next = rt_record_event(record) + 1;
			r->waiting = n - 1;
		} else if (!n) {
			RT_TRY(next_chunk(r, &record));
		}
	}
	*ret = record;
	return NULL;
}

static struct rt_error *next_record(struct rt_source *self, const struct rt_wire_head **ret)
{
	struct rt_spool_reader *r = (struct rt_spool_reader *)(void *)self;

	if (!r->waiting)
		return next_records(r, ret);
	r->waiting--;
	*ret = &r->next++->head;
	return NULL;
}

struct rt_error *rt_spool_reader_next(struct rt_spool_reader *reader, const struct rt_wire_head **ret, size_t *ret_n)
{
	RT_TRY(next_record(&reader->source, ret));
	/* what waits lies behind it */
	*ret_n = *ret ? 1 + reader->waiting : 0;
	if (reader->waiting) /* else next may be NULL */
		reader->next += reader->waiting;
	reader->waiting = 0;
	return NULL;
}

/* The reader owns its source. */
static void destroy_source(struct rt_source *self)
{
}

struct rt_error *rt_spool_reader_create(struct rt_bytes bytes, const char *name, struct rt_spool_reader **ret)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *r = NULL;
	struct rt_spool_header head = { 0 };

	RT_TRY(check_header(&head, bytes, name));
	r = calloc(1, sizeof(*r));
	if (!r)
		return rt_error_nomem();
	r->source = (struct rt_source){ .next = next_record, .destroy = destroy_source };
	r->status = RT_SPOOL_STATUS_UNKNOWN;
	r->name = strdup(name);
	if (!r->name)
		return rt_error_nomem();
	r->file = rt_cursor_make(bytes, false);
	r->file.pos = sizeof(head);
	RT_TRY(read_strings(r, &head));
	RT_TRY(rt_spool_decoder_create(&r->decoder));
	r->file.pos = head.size;
	*ret = rt_take(r);
	return NULL;
}

void rt_spool_reader_destroy(struct rt_spool_reader *reader)
{
	if (!reader)
		return;
	free(reader->name);
	free(reader->command);
	free(reader->strings);
	rt_spool_decoder_destroy(reader->decoder);
	free(reader->payload);
	free(reader->cut);
	free(reader);
}

struct rt_source *rt_spool_reader_source(struct rt_spool_reader *reader)
{
	return &reader->source;
}

const char *const *rt_spool_reader_command(const struct rt_spool_reader *reader)
{
	return (const char *const *)reader->command;
}

struct rt_spool_origin rt_spool_reader_origin(const struct rt_spool_reader *reader)
{
	return reader->origin;
}

bool rt_spool_reader_status(const struct rt_spool_reader *reader, int *ret)
{
	if (!reader->complete || reader->status == RT_SPOOL_STATUS_UNKNOWN)
		return false;
	*ret = reader->status;
	return true;
}
