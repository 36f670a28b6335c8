/*
 * Dockerfiles: what is read is known instructions in one line each, and
 * written down as such it is read to the same; then what they would do.
 */
#include "tests/fuzz/fuzz.h"

#include "backends/docker/build_priv.h"
#include "backends/list_priv.h"
#include "tests/unit/backends/drive.h"

#include <string.h>

#define ARENA_BYTES (32u << 20)

/* A line that ends in the escape would go on. */
static bool stands_alone(struct span args)
{
	return args.len && args.at[args.len - 1] != '\\';
}

static void read_again(struct arena *a, const struct dockerfile *f)
{
	struct dockerfile again;
	struct buf text;

	buf_init(&text, 4u << 20);
	for (size_t i = 0; i < f->count; i++) {
		HOLDS(!memchr(f->list[i].args.at, '\n', f->list[i].args.len));
		HOLDS(f->list[i].line > 0);
		buf_printf(&text, "%s ", f->list[i].name);
		buf_put(&text, f->list[i].args.at, f->list[i].args.len);
		buf_puts(&text, "\n");
		if (!stands_alone(f->list[i].args)) {
			buf_fini(&text);
			return;
		}
	}
	dockerfile_read(a, buf_span(&text), &again);
	HOLDS(!again.why && again.count == f->count);
	for (size_t i = 0; i < f->count; i++) {
		HOLDS(strcmp(again.list[i].name, f->list[i].name) == 0);
		HOLDS(span_eq(again.list[i].args, f->list[i].args));
	}
	buf_fini(&text);
}

/* Without an engine: nothing is known of images, and so nothing of their triggers. */
static void do_it(struct arena *a, const struct dockerfile *f)
{
	static const struct canonical req = {.method = "POST",
					     .path = "/v1.41/build",
					     .content_type = "application/x-tar",
					     .content_coding = "",
					     .upgrade_to = ""};
	struct backend_call call = {
		.arena = a, .req = &req, .owner = "o", .id = "i", .offline = true};
	struct docker_reading r = {.call = &call, .facts = jv_object()};
	struct dockerfile_does does;
	struct jv args = jv_object();
	struct err err = {0};
	struct backend *be = backend_docker.open(&(struct backend_conf){.name = "e"}, &err);

	HOLDS(be && be->ops->route(be, &call) == 0);
	docker_state(&call)->minor = 41;
	HOLDS(dockerfile_does(&r, f, "Dockerfile", &args, &does) == !call.refused.count);
	HOLDS(!f->why || call.refused.count);
	be->ops->close(be);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a;
	struct dockerfile f;

	if (size > 65536)
		return 0;
	a = arena_create(ARENA_BYTES);
	dockerfile_read(a, (struct span){(const char *)data, size}, &f);
	if (!f.why && f.escape == '\\')
		read_again(a, &f);
	do_it(a, &f);
	arena_destroy(a);
	return 0;
}
