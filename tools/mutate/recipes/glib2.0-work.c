// SPDX-License-Identifier: GPL-2.0-only
/* Files, streams, variants, main contexts, tasks in threads, D-Bus between two ends of a socket, actions, a module. */
#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <sys/socket.h>

static void values(void)
{
	GVariantBuilder *builder = g_variant_builder_new(G_VARIANT_TYPE("a{sv}"));
	GVariant *all, *one, *two, *maybe, *child;
	GVariantDict *dict;
	GVariantIter iter;
	GBytes *bytes, *part;
	const gchar *key;

	for (int i = 0; i < 5; i++) {
		gchar *name = g_strdup_printf("key%d", i);

		g_variant_builder_add(builder, "{sv}", name,
				      i % 2 ? g_variant_new_int32(i) : g_variant_new_string(name));
		g_free(name);
	}
	all = g_variant_ref_sink(g_variant_builder_end(builder));
	g_variant_builder_unref(builder);
	g_variant_iter_init(&iter, all);
	while (g_variant_iter_loop(&iter, "{&sv}", &key, &one))
		if (!strcmp(key, "key3"))
			g_variant_get_int32(one);
	one = g_variant_lookup_value(all, "key2", G_VARIANT_TYPE_STRING);
	g_clear_pointer(&one, g_variant_unref);
	dict = g_variant_dict_new(all);
	g_variant_dict_insert(dict, "more", "(si)", "x", 4);
	two = g_variant_ref_sink(g_variant_dict_end(dict));
	g_variant_dict_unref(dict);
	bytes = g_variant_get_data_as_bytes(two);
	part = g_bytes_new_from_bytes(bytes, 0, g_bytes_get_size(bytes));
	maybe = g_variant_ref_sink(g_variant_new_from_bytes(G_VARIANT_TYPE("a{sv}"), part, FALSE));
	one = g_variant_byteswap(maybe);
	g_variant_unref(one);
	one = g_variant_get_normal_form(maybe);
	child = g_variant_get_child_value(two, 0);
	g_variant_equal(child, two);
	g_variant_unref(child);
	g_variant_unref(one);
	g_variant_unref(maybe);
	g_bytes_unref(part);
	g_bytes_unref(bytes);
	one = g_variant_parse(NULL, "{'a': <[1, 2]>, 'b': <('x', @ms nothing)>}", NULL, NULL, NULL);
	g_free(g_variant_print(one, TRUE));
	g_variant_unref(one);
	g_variant_unref(two);
	g_variant_unref(all);
}

static void files(void)
{
	GFile *here = g_file_new_for_path("."), *file = g_file_get_child(here, "a.txt"), *copy;
	GFileOutputStream *out = g_file_replace(file, NULL, FALSE, 0, NULL, NULL);
	GOutputStream *memory, *packed;
	GDataOutputStream *data;
	GDataInputStream *lines;
	GFileEnumerator *each;
	GFileInputStream *in;
	GConverter *converter;
	GInputStream *archive, *unpacked;
	GFileInfo *info;
	GBytes *bytes;
	gchar *line;

	data = g_data_output_stream_new(G_OUTPUT_STREAM(out));
	for (int i = 0; i < 20; i++)
		g_data_output_stream_put_string(data, "a line of text\n", NULL, NULL);
	g_output_stream_close(G_OUTPUT_STREAM(data), NULL, NULL);
	g_object_unref(data);
	g_object_unref(out);
	in = g_file_read(file, NULL, NULL);
	lines = g_data_input_stream_new(G_INPUT_STREAM(in));
	while ((line = g_data_input_stream_read_line(lines, NULL, NULL, NULL)))
		g_free(line);
	g_object_unref(lines);
	g_object_unref(in);
	in = g_file_read(file, NULL, NULL);
	memory = g_memory_output_stream_new_resizable();
	converter = G_CONVERTER(g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP, 6));
	packed = g_converter_output_stream_new(memory, converter);
	g_object_unref(converter);
	g_output_stream_splice(packed, G_INPUT_STREAM(in),
			       G_OUTPUT_STREAM_SPLICE_CLOSE_SOURCE | G_OUTPUT_STREAM_SPLICE_CLOSE_TARGET, NULL, NULL);
	g_object_unref(packed);
	g_object_unref(in);
	bytes = g_memory_output_stream_steal_as_bytes(G_MEMORY_OUTPUT_STREAM(memory));
	g_object_unref(memory);
	archive = g_memory_input_stream_new_from_bytes(bytes);
	converter = G_CONVERTER(g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP));
	unpacked = g_converter_input_stream_new(archive, converter);
	g_bytes_unref(g_input_stream_read_bytes(unpacked, 100, NULL, NULL));
	g_input_stream_skip(unpacked, 10, NULL, NULL);
	g_object_unref(unpacked);
	g_object_unref(converter);
	g_object_unref(archive);
	g_bytes_unref(bytes);
	copy = g_file_resolve_relative_path(here, "b.txt");
	g_file_copy(file, copy, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, NULL);
	info = g_file_query_info(copy, "standard::*,time::*", 0, NULL, NULL);
	g_file_set_attributes_from_info(file, info, 0, NULL, NULL);
	g_object_unref(info);
	g_file_copy_attributes(file, copy, G_FILE_COPY_ALL_METADATA, NULL, NULL);
	each = g_file_enumerate_children(here, "standard::*", 0, NULL, NULL);
	while ((info = g_file_enumerator_next_file(each, NULL, NULL))) {
		GFile *child = g_file_enumerator_get_child(each, info);
		GIcon *icon = g_file_info_get_icon(info);
		GIcon *emblemed = icon ? g_emblemed_icon_new(icon, NULL) : NULL;

		if (emblemed) {
			GVariant *text = g_icon_serialize(emblemed);

			if (text) {
				GIcon *again = g_icon_deserialize(text);

				g_clear_object(&again);
				g_variant_unref(text);
			}
			g_object_unref(emblemed);
		}
		g_object_unref(child);
		g_object_unref(info);
	}
	g_object_unref(each);
	g_file_move(copy, file, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, NULL);
	g_file_delete(copy, NULL, NULL);
	g_object_unref(copy);
	g_object_unref(file);
	g_object_unref(here);
}

static void work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	GBytes *bytes = data;

	(void)source;
	if (g_bytes_get_size(bytes) % 3 == 2)
		g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_FAILED, "on purpose");
	else if (!g_task_return_error_if_cancelled(task))
		g_task_return_pointer(task, g_bytes_ref(bytes), (GDestroyNotify)g_bytes_unref);
	(void)cancellable;
}

static unsigned pending;

static void done(GObject *source, GAsyncResult *result, gpointer loop)
{
	GBytes *bytes = g_task_propagate_pointer(G_TASK(result), NULL);

	(void)source;
	if (bytes)
		g_bytes_unref(bytes);
	if (!--pending)
		g_main_loop_quit(loop);
}

static gboolean tick(gpointer data)
{
	(void)data;
	return G_SOURCE_REMOVE;
}

static void read_done(GObject *source, GAsyncResult *result, gpointer loop)
{
	GFileInputStream *in = g_file_read_finish(G_FILE(source), result, NULL);

	g_clear_object(&in);
	if (!--pending)
		g_main_loop_quit(loop);
}

static void info_done(GObject *source, GAsyncResult *result, gpointer loop)
{
	GFileInfo *info = g_file_query_info_finish(G_FILE(source), result, NULL);

	g_clear_object(&info);
	if (!--pending)
		g_main_loop_quit(loop);
}

static void tasks(void)
{
	GMainContext *context = g_main_context_new();
	GMainLoop *loop = g_main_loop_new(context, FALSE);
	GCancellable *cancellable = g_cancellable_new();
	GFile *file = g_file_new_for_path("a.txt"), *none = g_file_new_for_path("none");

	g_main_context_push_thread_default(context);
	for (int i = 0; i < 12; i++) {
		GTask *task = g_task_new(file, i % 4 ? NULL : cancellable, done, loop);
		GSource *source = g_timeout_source_new(0);

		g_task_set_task_data(task, g_bytes_new("bytes", (gsize)(i % 5)), (GDestroyNotify)g_bytes_unref);
		g_task_run_in_thread(task, work);
		g_object_unref(task);
		g_source_set_callback(source, tick, g_object_ref(file), g_object_unref);
		g_source_attach(source, context);
		if (i % 3 == 0)
			g_source_destroy(source);
		g_source_unref(source);
		pending++;
	}
	for (int i = 0; i < 4; i++) {
		g_file_read_async(i % 2 ? file : none, 0, cancellable, read_done, loop);
		g_file_query_info_async(i % 2 ? file : none, "standard::*", 0, 0, NULL, info_done, loop);
		pending += 2;
	}
	g_main_loop_run(loop);
	while (g_main_context_iteration(context, FALSE))
		;
	g_main_context_pop_thread_default(context);
	g_object_unref(file);
	g_object_unref(none);
	g_object_unref(cancellable);
	g_main_loop_unref(loop);
	g_main_context_unref(context);
}

static void called(GDBusConnection *c, const gchar *sender, const gchar *path, const gchar *interface,
		   const gchar *method, GVariant *parameters, GDBusMethodInvocation *invocation, gpointer data)
{
	(void)c, (void)sender, (void)path, (void)interface, (void)parameters, (void)data;
	if (!strcmp(method, "Fail"))
		g_dbus_method_invocation_return_error(invocation, G_IO_ERROR, G_IO_ERROR_FAILED, "on purpose");
	else
		g_dbus_method_invocation_return_value(invocation, g_variant_new("(s)", "answer"));
}

static void signalled(GDBusConnection *c, const gchar *sender, const gchar *path, const gchar *interface,
		      const gchar *name, GVariant *parameters, gpointer loop)
{
	(void)c, (void)sender, (void)path, (void)interface, (void)name, (void)parameters;
	g_main_loop_quit(loop);
}

static void replied(GObject *source, GAsyncResult *result, gpointer loop)
{
	GVariant *answer = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, NULL);

	if (answer)
		g_variant_unref(answer);
	g_main_loop_quit(loop);
}

static const gchar INTERFACE[] = "<node><interface name='a.b'><method name='Ask'><arg type='s' direction='in'/><arg "
				 "type='s' direction='out'/></method>"
				 "<method name='Fail'/><signal name='Told'><arg type='i'/></signal><property name='P' "
				 "type='i' access='read'/></interface></node>";

static GVariant *property(GDBusConnection *c, const gchar *sender, const gchar *path, const gchar *interface,
			  const gchar *name, GError **error, gpointer data)
{
	(void)c, (void)sender, (void)path, (void)interface, (void)name, (void)error, (void)data;
	return g_variant_new_int32(7);
}

static GDBusConnection *end_of(GSocket *socket, gboolean server, const gchar *guid)
{
	GSocketConnection *stream = g_socket_connection_factory_create_connection(socket);
	GDBusConnection *c;

	/* what comes before the server has its objects waits */
	c = g_dbus_connection_new_sync(G_IO_STREAM(stream), server ? guid : NULL,
				       server ? G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER |
							G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_ALLOW_ANONYMOUS |
							G_DBUS_CONNECTION_FLAGS_DELAY_MESSAGE_PROCESSING
					      : G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT,
				       NULL, NULL, NULL);
	g_object_unref(stream);
	return c;
}

static gpointer serve(gpointer socket)
{
	static const GDBusInterfaceVTable table = { .method_call = called, .get_property = property };
	GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(INTERFACE, NULL);
	GMainContext *context = g_main_context_new();
	GSimpleActionGroup *actions = g_simple_action_group_new();
	GSimpleAction *action = g_simple_action_new("act", NULL);
	gchar *guid = g_dbus_generate_guid();
	GDBusConnection *c;
	guint id, exported;

	g_main_context_push_thread_default(context);
	c = end_of(socket, TRUE, guid);
	g_free(guid);
	g_action_map_add_action(G_ACTION_MAP(actions), G_ACTION(action));
	id = g_dbus_connection_register_object(c, "/a", node->interfaces[0], &table, NULL, NULL, NULL);
	exported = g_dbus_connection_export_action_group(c, "/b", G_ACTION_GROUP(actions), NULL);
	g_dbus_connection_start_message_processing(c);
	while (!g_dbus_connection_is_closed(c)) {
		g_main_context_iteration(context, TRUE);
		if (g_dbus_connection_is_closed(c))
			break;
	}
	g_dbus_connection_unregister_object(c, id);
	g_dbus_connection_unexport_action_group(c, exported);
	g_object_unref(c);
	while (g_main_context_iteration(context, FALSE))
		;
	g_main_context_pop_thread_default(context);
	g_object_unref(action);
	g_object_unref(actions);
	g_dbus_node_info_unref(node);
	g_main_context_unref(context);
	return NULL;
}

static gboolean ping(gpointer c)
{
	g_dbus_connection_emit_signal(c, NULL, "/a", "a.b", "Told", g_variant_new("(i)", 1), NULL);
	return G_SOURCE_REMOVE;
}

static void messages(void)
{
	GMainContext *context = g_main_context_new();
	GMainLoop *loop = g_main_loop_new(context, FALSE);
	GDBusConnection *c;
	GDBusProxy *proxy;
	GVariant *answer;
	GSocket *end[2];
	GThread *server;
	int fds[2];
	guint id;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return;
	for (int i = 0; i < 2; i++)
		end[i] = g_socket_new_from_fd(fds[i], NULL);
	server = g_thread_new("serve", serve, end[0]);
	g_main_context_push_thread_default(context);
	c = end_of(end[1], FALSE, NULL);
	for (int i = 0; i < 6; i++) {
		answer = g_dbus_connection_call_sync(c, NULL, "/a", "a.b", i % 3 ? "Ask" : "Fail",
						     i % 3 ? g_variant_new("(s)", "x") : NULL, NULL, 0, -1, NULL, NULL);
		if (answer)
			g_variant_unref(answer);
	}
	g_dbus_connection_call(c, NULL, "/a", "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, 0, -1,
			       NULL, replied, loop);
	g_main_loop_run(loop);
	proxy = g_dbus_proxy_new_sync(c, G_DBUS_PROXY_FLAGS_DO_NOT_AUTO_START, NULL, NULL, "/a", "a.b", NULL, NULL);
	answer = g_dbus_proxy_call_sync(proxy, "Ask", g_variant_new("(s)", "y"), 0, -1, NULL, NULL);
	g_clear_pointer(&answer, g_variant_unref);
	answer = g_dbus_proxy_get_cached_property(proxy, "P");
	g_clear_pointer(&answer, g_variant_unref);
	g_object_unref(proxy);
	id = g_dbus_connection_signal_subscribe(c, NULL, "a.b", "Told", "/a", NULL, 0, signalled, loop, NULL);
	g_dbus_connection_signal_unsubscribe(c, id);
	g_main_context_invoke(context, ping, c);
	answer = g_dbus_connection_call_sync(c, NULL, "/b", "org.gtk.Actions", "DescribeAll", NULL, NULL, 0, -1, NULL,
					     NULL);
	g_clear_pointer(&answer, g_variant_unref);
	g_dbus_connection_flush_sync(c, NULL, NULL);
	g_dbus_connection_close_sync(c, NULL, NULL);
	g_object_unref(c);
	while (g_main_context_iteration(context, FALSE))
		;
	g_main_context_pop_thread_default(context);
	g_thread_join(server);
	for (int i = 0; i < 2; i++)
		g_object_unref(end[i]);
	g_main_loop_unref(loop);
	g_main_context_unref(context);
}

static void models(void)
{
	GListStore *store = g_list_store_new(G_TYPE_OBJECT);
	GMenu *menu = g_menu_new(), *sub = g_menu_new();
	GSimpleActionGroup *group = g_simple_action_group_new();
	GPropertyAction *property;
	GSimpleAction *action;
	GMenuItem *item, *same;
	GBinding *binding;
	GObject *o;

	for (int i = 0; i < 6; i++) {
		o = G_OBJECT(g_simple_action_new("x", NULL));
		g_list_store_append(store, o);
		g_object_unref(o);
	}
	o = g_list_model_get_item(G_LIST_MODEL(store), 2);
	action = g_simple_action_new_stateful("state", NULL, g_variant_new_int32(1));
	binding = g_object_bind_property(o, "enabled", action, "enabled", G_BINDING_SYNC_CREATE);
	g_simple_action_set_enabled(G_SIMPLE_ACTION(o), FALSE);
	g_binding_unbind(binding);
	g_object_unref(o);
	g_list_store_remove(store, 1);
	property = g_property_action_new("p", action, "enabled");
	g_action_map_add_action(G_ACTION_MAP(group), G_ACTION(property));
	g_object_unref(property);
	g_action_map_add_action(G_ACTION_MAP(group), G_ACTION(action));
	g_action_group_change_action_state(G_ACTION_GROUP(group), "state", g_variant_new_int32(2));
	g_action_group_activate_action(G_ACTION_GROUP(group), "p", NULL);
	g_variant_unref(g_action_group_get_action_state(G_ACTION_GROUP(group), "state"));
	g_action_map_remove_action(G_ACTION_MAP(group), "p");
	g_object_unref(action);
	g_menu_append(sub, "inner", "app.inner");
	g_menu_append_submenu(menu, "outer", G_MENU_MODEL(sub));
	item = g_menu_item_new("one", "app.one(1)");
	g_menu_item_set_attribute(item, "extra", "s", "value");
	g_menu_append_item(menu, item);
	g_object_unref(item);
	same = g_menu_item_new_from_model(G_MENU_MODEL(menu), 0);
	g_menu_prepend_item(menu, same);
	g_object_unref(same);
	for (int i = 0; i < g_menu_model_get_n_items(G_MENU_MODEL(menu)); i++) {
		GMenuModel *linked = g_menu_model_get_item_link(G_MENU_MODEL(menu), i, G_MENU_LINK_SUBMENU);
		GVariant *label = g_menu_model_get_item_attribute_value(G_MENU_MODEL(menu), i, "label", NULL);

		g_clear_object(&linked);
		g_clear_pointer(&label, g_variant_unref);
	}
	g_menu_remove(menu, 0);
	g_object_unref(sub);
	g_object_unref(menu);
	g_object_unref(group);
	g_object_unref(store);
}

static void accepted(GObject *source, GAsyncResult *result, gpointer loop)
{
	GSocketConnection *c = g_socket_listener_accept_finish(G_SOCKET_LISTENER(source), result, NULL, NULL);

	if (c) {
		g_output_stream_write(g_io_stream_get_output_stream(G_IO_STREAM(c)), "hello\n", 6, NULL, NULL);
		g_io_stream_close(G_IO_STREAM(c), NULL, NULL);
		g_object_unref(c);
	}
	g_main_loop_quit(loop);
}

static gpointer connects(gpointer address)
{
	GSocketClient *client = g_socket_client_new();
	GSocketConnection *c = g_socket_client_connect(client, address, NULL, NULL);
	char text[16];

	if (c) {
		g_input_stream_read(g_io_stream_get_input_stream(G_IO_STREAM(c)), text, sizeof(text), NULL, NULL);
		g_object_unref(c);
	}
	g_object_unref(client);
	return NULL;
}

static void sockets(void)
{
	GSocketListener *listener = g_socket_listener_new();
	GSocketAddress *wanted = g_unix_socket_address_new("sock"), *address = NULL;
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	GSubprocess *child;
	GThread *thread;
	GBytes *said;

	if (g_socket_listener_add_address(listener, wanted, G_SOCKET_TYPE_STREAM, 0, NULL, &address, NULL)) {
		g_socket_listener_accept_async(listener, NULL, accepted, loop);
		thread = g_thread_new("connects", connects, address);
		g_main_loop_run(loop);
		g_thread_join(thread);
		g_object_unref(address);
	}
	g_object_unref(wanted);
	g_socket_listener_close(listener);
	g_object_unref(listener);
	child = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDIN_PIPE, NULL, "cat", NULL);
	if (child) {
		GBytes *told = g_bytes_new_static("to cat", 6);

		g_subprocess_communicate(child, told, NULL, &said, NULL, NULL);
		g_bytes_unref(told);
		g_bytes_unref(said);
		g_object_unref(child);
	}
	g_main_loop_unref(loop);
}

static void proxies(void)
{
	GProxyResolver *resolver = g_proxy_resolver_get_default();
	const char *uris[] = { "http://near.example/", "http://far.example/", "http://near.example/", "nonsense" };

	for (unsigned i = 0; i < G_N_ELEMENTS(uris); i++) {
		GSocketConnectable *to = g_network_address_parse_uri(uris[i], 80, NULL);

		g_strfreev(g_proxy_resolver_lookup(resolver, uris[i], NULL, NULL));
		if (to) {
			GSocketAddressEnumerator *each = g_socket_connectable_proxy_enumerate(to);

			g_object_unref(each);
			g_object_unref(to);
		}
	}
}

static void small(void)
{
	GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_bytes_unref);
	GPtrArray *array = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
	GKeyFile *keys = g_key_file_new();
	GTimeZone *zone = g_time_zone_new_utc();
	GDateTime *now = g_date_time_new(zone, 2024, 2, 3, 4, 5, 6), *later;
	GRegex *regex = g_regex_new("a(.)c", 0, 0, NULL);
	GMatchInfo *match;
	GMappedFile *mapped;
	GClosure *closure;

	for (int i = 0; i < 4; i++) {
		GBytes *b = g_bytes_new("abc", 3);

		g_ptr_array_add(array, g_bytes_ref(b));
		g_hash_table_insert(table, (gpointer) "same", b);
	}
	later = g_date_time_add_months(now, 1);
	g_date_time_unref(g_date_time_to_local(later));
	g_date_time_unref(later);
	g_date_time_unref(now);
	g_time_zone_unref(zone);
	g_key_file_load_from_data(keys, "[a]\nb=c\n", -1, 0, NULL);
	g_key_file_unref(keys);
	if (g_regex_match(regex, "abc", 0, &match))
		g_free(g_match_info_fetch(match, 1));
	g_match_info_unref(match);
	g_free(g_regex_replace(regex, "xabcx", -1, 0, "<\\1>", 0, NULL));
	g_regex_unref(regex);
	mapped = g_mapped_file_new("a.txt", FALSE, NULL);
	if (mapped) {
		g_bytes_unref(g_mapped_file_get_bytes(mapped));
		g_mapped_file_unref(mapped);
	}
	closure = g_cclosure_new(G_CALLBACK(tick), NULL, NULL);
	g_closure_ref(closure);
	g_closure_sink(closure);
	g_closure_unref(closure);
	g_ptr_array_unref(array);
	g_hash_table_unref(table);
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		values();
		files();
		tasks();
		messages();
		models();
		sockets();
		proxies();
		small();
	}
	return 0;
}
