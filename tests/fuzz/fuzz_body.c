/*
 * Bodies through the Docker adapter: the first byte chooses the route, the
 * rest is the body.  What is sent holds known fields only, is JSON, and is the
 * same each time it is asked for.
 */
#include "tests/fuzz/fuzz.h"

#include "backends/docker/docker_priv.h"
#include "tests/unit/backends/drive.h"

#include <string.h>

static const struct target {
	const char *path;
	enum docker_schema schema;
} targets[] = {
	{"/v1.41/containers/create", SCHEMA_CONFIG},
	{"/v1.41/containers/create", SCHEMA_CONFIG}, /* most of the fields are here */
	{"/v1.24/containers/create", SCHEMA_CONFIG},
	{"/v1.41/containers/run/exec", SCHEMA_EXEC},
	{"/v1.41/containers/run/update", SCHEMA_UPDATE},
	{"/v1.41/volumes/create", SCHEMA_VOLUME},
	{"/v1.41/networks/create", SCHEMA_NETWORK},
	{"/v1.41/networks/mynet/connect", SCHEMA_CONNECT},
	{"/v1.41/networks/mynet/disconnect", SCHEMA_DISCONNECT},
};

static void check_known(enum docker_schema schema, const struct jv *v);

static void check_field(const struct docker_field *field, const struct jv *v)
{
	bool lists = field->type == TYPE_LIST_MAP;

	if (field->type == TYPE_OBJECT)
		check_known(field->of, v);
	for (size_t i = 0; field->type == TYPE_LIST && i < v->count; i++)
		check_known(field->of, &v->items[i]);
	if (field->type != TYPE_MAP && !lists)
		return;
	for (size_t i = 0; i < v->count; i++) {
		const struct jv *one = &v->members[i].value;

		if (!lists)
			check_known(field->of, one);
		for (size_t k = 0; lists && k < one->count; k++)
			check_known(field->of, &one->items[k]);
	}
}

static void check_known(enum docker_schema schema, const struct jv *v)
{
	HOLDS(v->kind == JV_OBJECT);
	for (size_t i = 0; i < v->count; i++) {
		const struct docker_field *field = docker_field(schema, v->members[i].key);

		HOLDS(field && field->use != USE_DROP);
		HOLDS(field->use != USE_DENY || jv_is_neutral(&v->members[i].value));
		check_field(field, &v->members[i].value);
	}
}

/* Host paths are clean in what is sent. */
static void check_sources(const struct jv *body)
{
	const struct jv *binds = jv_path(body, "HostConfig.Binds");
	const struct jv *mounts = jv_path(body, "HostConfig.Mounts");

	for (size_t i = 0; binds && i < binds->count; i++) {
		struct docker_bind b = docker_bind(binds->items[i].str);

		HOLDS(b.valid && (!b.is_path || !fuzz_has_dots(b.source)));
	}
	for (size_t i = 0; mounts && i < mounts->count; i++) {
		const char *source = jv_str(&mounts->items[i], "Source", "");

		if (strcmp(jv_str(&mounts->items[i], "Type", ""), "bind") == 0)
			HOLDS(*source == '/' && !fuzz_has_dots(span_of(source)));
	}
}

static void check_sent(struct drive *d, const struct target *target)
{
	enum jv_fault fault = JV_FAULT_NONE;
	const char *body, *again, *head;
	struct err err = {0};
	struct jv doc;

	head = drive_rendered(d, &body);
	HOLDS(strncmp(head, "POST /v1.41/", 12) == 0);
	HOLDS(jv_parse(d->arena, span_of(body), &doc, &fault, &err) == 0);
	check_known(target->schema, &doc);
	check_sources(&doc);
	HOLDS(strcmp(head, drive_rendered(d, &again)) == 0 && strcmp(body, again) == 0);
}

static void run(struct backend *be, const struct jv *world, const struct target *target,
		struct span body)
{
	struct drive d;
	enum step step;

	drive_start(&d, be, world);
	d.req = (struct canonical){.method = "POST",
				   .path = target->path,
				   .content_type = "application/json",
				   .upgrade_to = "",
				   .has_body = body.len > 0,
				   .body_bytes = (int64_t)body.len,
				   .body = body};
	d.call.arena = d.arena;
	d.call.req = &d.req;
	d.call.owner = "alice";
	d.call.id = "0191-decision";
	d.call.protected_paths = (const char *const[]){"/run/gate", NULL};
	HOLDS(be->ops->route(be, &d.call) == 0);
	while ((step = be->ops->step(be, &d.call)) == STEP_LOOKUP) {
		HOLDS(d.rounds < STEPS_MAX && d.call.lookup_count <= LOOKUPS_MAX);
		drive_answer(&d);
	}
	HOLDS((step == STEP_REFUSED) == (d.call.refused.count > 0));
	if (step == STEP_READY)
		check_sent(&d, target);
	drive_end(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	const struct jv *world;
	struct backend *be = drive_once(&world);
	struct span text = fuzz_text(a, data, size);

	if (size)
		run(be, world, &targets[*data % (sizeof(targets) / sizeof(*targets))],
		    span_skip(text, 1));
	arena_destroy(a);
	return 0;
}
