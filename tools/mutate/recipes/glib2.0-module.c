// SPDX-License-Identifier: GPL-2.0-only
/* A module that gio loads: a proxy resolver that holds the address it was asked for last. */
#include <gio/gio.h>

#define HELD_TYPE (held_resolver_get_type())
G_DECLARE_FINAL_TYPE(HeldResolver, held_resolver, HELD, RESOLVER, GObject)

struct _HeldResolver {
	GObject parent;
	GSocketConnectable *last;
	GBytes *answer;
	GHashTable *seen;
};

static void held_resolver_interface(GProxyResolverInterface *interface);

G_DEFINE_DYNAMIC_TYPE_EXTENDED(HeldResolver, held_resolver, G_TYPE_OBJECT, 0,
			       G_IMPLEMENT_INTERFACE_DYNAMIC(G_TYPE_PROXY_RESOLVER, held_resolver_interface))

static gchar **held_resolver_lookup(GProxyResolver *resolver, const gchar *uri, GCancellable *cancellable,
				    GError **error)
{
	HeldResolver *self = HELD_RESOLVER(resolver);
	GSocketConnectable *asked = g_network_address_parse_uri(uri, 80, error);
	gchar *answer[2] = { NULL, NULL };
	GSocketConnectable *held;

	(void)cancellable;
	if (!asked)
		return NULL;
	held = g_hash_table_lookup(self->seen, uri);
	if (!held) {
		g_hash_table_insert(self->seen, g_strdup(uri), g_object_ref(asked));
		held = asked;
	}
	g_set_object(&self->last, held);
	if (self->answer)
		g_bytes_unref(self->answer);
	self->answer = g_bytes_new(uri, strlen(uri) + 1);
	answer[0] = (gchar *)(strstr(uri, "far") ? "socks://127.0.0.1:1080" : "direct://");
	g_object_unref(asked);
	return g_strdupv(answer);
}

static gboolean held_resolver_is_supported(GProxyResolver *resolver)
{
	(void)resolver;
	return TRUE;
}

static void held_resolver_finalize(GObject *object)
{
	HeldResolver *self = HELD_RESOLVER(object);

	g_clear_object(&self->last);
	g_clear_pointer(&self->answer, g_bytes_unref);
	g_hash_table_unref(self->seen);
	G_OBJECT_CLASS(held_resolver_parent_class)->finalize(object);
}

static void held_resolver_init(HeldResolver *self)
{
	self->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
}

static void held_resolver_class_init(HeldResolverClass *class)
{
	G_OBJECT_CLASS(class)->finalize = held_resolver_finalize;
}

static void held_resolver_class_finalize(HeldResolverClass *class)
{
	(void)class;
}

static void held_resolver_interface(GProxyResolverInterface *interface)
{
	interface->is_supported = held_resolver_is_supported;
	interface->lookup = held_resolver_lookup;
}

void g_io_module_load(GIOModule *module)
{
	g_type_module_use(G_TYPE_MODULE(module));
	held_resolver_register_type(G_TYPE_MODULE(module));
	g_io_extension_point_implement(G_PROXY_RESOLVER_EXTENSION_POINT_NAME, HELD_TYPE, "held", 10);
}

void g_io_module_unload(GIOModule *module)
{
	(void)module;
}
