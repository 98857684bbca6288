/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every counted type of GLib that the preset gobject names, used so that GLib itself takes and gives back references:
 * nothing is lost, unless `bug` is said: then forget() does not give back one object of each type.
 */
#include <fcntl.h>
#include <glib-object.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static gboolean bug;
static int rounds;

NOINLINE static void forget(void)
{
	GVariant *value = g_variant_ref_sink(g_variant_new_int32(1));
	GBytes *bytes = g_bytes_new("abc", 3);
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	GSource *source = g_idle_source_new();
	GDateTime *date = g_date_time_new_from_unix_utc(12345);
	GObject *object = g_object_new(G_TYPE_OBJECT, NULL);

	if (bug)
		return;
	g_variant_unref(value);
	g_bytes_unref(bytes);
	g_main_loop_unref(loop);
	g_source_unref(source);
	g_date_time_unref(date);
	g_object_unref(object);
}

static gboolean tick(gpointer data)
{
	if (++rounds >= 5) {
		g_main_loop_quit(data);
		return G_SOURCE_REMOVE;
	}
	return G_SOURCE_CONTINUE;
}

static gboolean once(gpointer data)
{
	(void)data;
	return G_SOURCE_REMOVE;
}

/* attaching, dispatching, destroying: from inside, from outside, twice */
NOINLINE static void sources(void)
{
	GMainContext *context = g_main_context_new();
	GMainLoop *loop = g_main_loop_new(context, FALSE);
	GSource *timer = g_timeout_source_new(1), *idle = g_idle_source_new(), *child = g_idle_source_new(),
		*never = g_timeout_source_new_seconds(1000), *unattached = g_idle_source_new();

	g_source_set_callback(timer, tick, loop, NULL);
	g_source_set_callback(idle, once, NULL, NULL);
	g_source_set_dummy_callback(child);
	g_source_add_child_source(never, child);
	g_source_attach(timer, context);
	g_source_attach(idle, context);
	g_source_attach(never, context);
	g_source_unref(idle);
	g_source_unref(child);
	g_main_loop_run(loop);
	g_source_destroy(timer);
	g_source_destroy(never);
	g_source_destroy(never);
	g_source_destroy(unattached);
	g_source_unref(timer);
	g_source_unref(never);
	g_source_unref(unattached);
	g_main_loop_unref(loop);
	g_main_context_push_thread_default(context);
	g_main_context_unref(g_main_context_ref_thread_default());
	g_main_context_pop_thread_default(context);
	g_main_context_unref(context);
	g_source_remove(g_idle_add(once, NULL));
	g_idle_add(once, NULL);
	while (g_main_context_iteration(NULL, FALSE))
		;
}

NOINLINE static void variants(void)
{
	GVariant *inner = g_variant_ref_sink(g_variant_new_string("inner")), *box, *tuple, *child, *back, *parsed,
		 *dict;
	GVariantBuilder *builder = g_variant_builder_new(G_VARIANT_TYPE("a{sv}"));
	GVariantDict *words;
	GVariantIter iter;
	const char *key;

	box = g_variant_ref_sink(g_variant_new_variant(inner));
	tuple = g_variant_ref_sink(g_variant_new("(si@v)", "text", 3, box));
	child = g_variant_get_child_value(tuple, 2);
	back = g_variant_get_variant(child);
	g_variant_unref(back);
	g_variant_unref(child);
	g_variant_unref(g_variant_get_normal_form(tuple));
	g_variant_unref(g_variant_byteswap(tuple));
	(void)g_variant_get_data(tuple);
	child = g_variant_get_child_value(tuple, 0);
	g_variant_unref(child);
	g_variant_builder_add(builder, "{sv}", "one", g_variant_new_int32(1));
	g_variant_builder_add(builder, "{sv}", "two", inner);
	g_variant_builder_ref(builder);
	g_variant_builder_unref(builder);
	dict = g_variant_ref_sink(g_variant_builder_end(builder));
	g_variant_builder_unref(builder);
	g_variant_iter_init(&iter, dict);
	while (g_variant_iter_next(&iter, "{&sv}", &key, &child))
		g_variant_unref(child);
	child = g_variant_lookup_value(dict, "two", NULL);
	g_variant_unref(child);
	words = g_variant_dict_new(dict);
	g_variant_dict_insert(words, "three", "i", 3);
	child = g_variant_dict_lookup_value(words, "one", NULL);
	g_variant_unref(child);
	g_variant_unref(g_variant_ref_sink(g_variant_dict_end(words)));
	g_variant_dict_unref(words);
	parsed = g_variant_parse(NULL, "{'a': <1>}", NULL, NULL, NULL);
	g_variant_unref(parsed);
	g_variant_unref(g_variant_take_ref(g_variant_new_boolean(TRUE)));
	g_variant_unref(dict);
	g_variant_unref(tuple);
	g_variant_unref(box);
	g_variant_unref(inner);
	/* never sunk, and given back */
	g_variant_unref(g_variant_new_uint64(1));
}

static int compare(gconstpointer a, gconstpointer b)
{
	return strcmp(a, b);
}

NOINLINE static void containers(void)
{
	GBytes *bytes = g_bytes_new_take(g_strdup("hello"), 5), *part = g_bytes_new_from_bytes(bytes, 1, 2);
	GHashTable *table = g_hash_table_new(g_str_hash, g_str_equal);
	GPtrArray *pointers = g_ptr_array_new_with_free_func(g_free), *copy;
	GArray *numbers = g_array_new(FALSE, FALSE, sizeof(int));
	GByteArray *octets = g_byte_array_new();
	GTree *tree = g_tree_new(compare);
	GAsyncQueue *queue = g_async_queue_new();
	GStrvBuilder *words = g_strv_builder_new();
	gsize size;

	g_bytes_unref(bytes);
	g_free(g_bytes_unref_to_data(part, &size));
	g_hash_table_insert(table, "a", "b");
	g_hash_table_ref(table);
	g_hash_table_destroy(table);
	g_hash_table_unref(table);
	g_ptr_array_add(pointers, g_strdup("x"));
	copy = g_ptr_array_copy(pointers, (GCopyFunc)(void *)g_strdup, NULL);
	g_ptr_array_ref(copy);
	g_ptr_array_unref(copy);
	g_ptr_array_free(copy, TRUE);
	g_ptr_array_unref(pointers);
	g_array_ref(numbers);
	g_array_free(numbers, FALSE);
	g_array_unref(numbers);
	g_byte_array_append(octets, (const guint8 *)"abc", 3);
	g_bytes_unref(g_byte_array_free_to_bytes(octets));
	g_tree_insert(tree, "k", "v");
	g_tree_destroy(g_tree_ref(tree));
	g_tree_unref(tree);
	g_async_queue_push(queue, "x");
	g_async_queue_pop(queue);
	g_async_queue_unref(queue);
	g_strv_builder_add(words, "w");
	g_strfreev(g_strv_builder_end(words));
	g_strv_builder_unref(words);
}

static gpointer work(gpointer data)
{
	return data;
}

static void element(GMarkupParseContext *context, const char *name, const char **names, const char **values,
		    gpointer data, GError **error)
{
	(void)context, (void)name, (void)names, (void)values, (void)data, (void)error;
}

NOINLINE static void others(void)
{
	static const GMarkupParser parser = { .start_element = element };
	GMarkupParseContext *markup = g_markup_parse_context_new(&parser, 0, NULL, NULL);
	GTimeZone *zone = g_time_zone_new_offset(3600), *utc = g_time_zone_new_utc();
	GDateTime *date = g_date_time_new(zone, 2020, 2, 3, 4, 5, 6), *later = g_date_time_add_days(date, 3),
		  *elsewhere = g_date_time_to_timezone(later, utc), *local = g_date_time_to_local(date);
	GRegex *regex = g_regex_new("a(.)", 0, 0, NULL);
	GMatchInfo *match = NULL;
	GKeyFile *keys = g_key_file_new();
	GMappedFile *file = g_mapped_file_new("/etc/passwd", FALSE, NULL);
	GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, (const guchar *)"key", 3);
	GOptionGroup *group = g_option_group_new("g", "", "", NULL, NULL);
	GOptionContext *options = g_option_context_new("");
	GIOChannel *channel = g_io_channel_unix_new(0);

	g_markup_parse_context_parse(markup, "<a><b/></a>", -1, NULL);
	g_markup_parse_context_ref(markup);
	g_markup_parse_context_unref(markup);
	g_markup_parse_context_free(markup);
	g_free(g_date_time_format(elsewhere, "%c"));
	g_date_time_unref(local);
	g_date_time_unref(elsewhere);
	g_date_time_unref(later);
	g_date_time_unref(date);
	g_time_zone_unref(utc);
	g_time_zone_unref(zone);
	g_regex_match(regex, "xxabyyac", 0, &match);
	while (g_match_info_matches(match))
		g_match_info_next(match, NULL);
	g_match_info_free(match);
	g_regex_match(regex, "nothing", 0, NULL);
	g_strfreev(g_regex_split(regex, "1ab2ac3", 0));
	g_regex_unref(regex);
	g_key_file_load_from_data(keys, "[a]\nb=c\n", -1, 0, NULL);
	g_key_file_ref(keys);
	g_key_file_unref(keys);
	g_key_file_free(keys);
	g_bytes_unref(g_mapped_file_get_bytes(file));
	g_mapped_file_unref(file);
	g_hmac_unref(hmac);
	g_option_context_set_main_group(options, group);
	g_option_context_free(options);
	g_source_remove(g_io_add_watch(channel, G_IO_NVAL, (GIOFunc)(void *)once, NULL));
	g_io_channel_unref(channel);
	g_thread_join(g_thread_new("worker", work, NULL));
}

static void called(void)
{
}

NOINLINE static void objects(void)
{
	GObject *plain = g_object_new(G_TYPE_OBJECT, NULL);
	GObject *floating = g_object_new(G_TYPE_INITIALLY_UNOWNED, NULL), *again;
	GClosure *closure = g_cclosure_new(called, NULL, NULL);
	GParamSpec *spec = g_param_spec_int("i", NULL, NULL, 0, 9, 1, 0);
	GValue value = G_VALUE_INIT;
	GWeakRef weak;

	again = g_object_ref_sink(floating);
	g_object_ref_sink(again);
	g_object_unref(again);
	g_object_unref(floating);
	g_object_ref_sink(plain);
	g_object_unref(plain);
	g_weak_ref_init(&weak, plain);
	g_object_unref(g_weak_ref_get(&weak));
	g_weak_ref_clear(&weak);
	g_value_init(&value, G_TYPE_OBJECT);
	g_value_set_object(&value, plain);
	g_object_unref(g_value_dup_object(&value));
	g_value_unset(&value);
	g_value_init(&value, G_TYPE_VARIANT);
	g_value_take_variant(&value, g_variant_new_int32(4));
	g_variant_unref(g_value_dup_variant(&value));
	g_value_unset(&value);
	g_value_init(&value, G_TYPE_BYTES);
	g_value_take_boxed(&value, g_bytes_new("x", 1));
	g_bytes_unref(g_value_dup_boxed(&value));
	g_value_unset(&value);
	g_object_unref(plain);
	g_closure_ref(closure);
	g_closure_sink(closure);
	g_closure_unref(closure);
	g_param_spec_ref_sink(spec);
	g_param_spec_unref(spec);
}

int main(int argc, char **argv)
{
	bug = argc > 1 && strcmp(argv[1], "bug") == 0;
	for (int i = 0; i < 3; i++) {
		rounds = 0;
		sources();
		variants();
		containers();
		others();
		objects();
		forget();
	}
	return 0;
}
