/* The tables against the engine's own documents. */
#include "backends/docker/docker_priv.h"
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

/* "/images/{name}/json" -> "/images/a/b/json" */
static const char *example(struct arena *a, struct span path)
{
	struct buf b;
	const char *ret;

	buf_init(&b, 4096);
	for (size_t i = 0; i < path.len; i++) {
		struct span rest = span_skip(path, i);

		if (span_starts(rest, "{name}"))
			buf_puts(&b, span_starts(path, "/volumes") ? "v" : "a/b");
		else if (path.at[i] == '{' || path.at[i] == '*')
			buf_puts(&b, "x1");
		else
			buf_put(&b, &path.at[i], 1);
		if (path.at[i] == '{')
			i += strcspn(rest.at, "}");
	}
	ret = arena_strndup(a, buf_span(&b).at, buf_len(&b));
	buf_fini(&b);
	return ret;
}

/* METHOD, PATH and CLASS of every endpoint that engines have. */
static void knows_every_endpoint(void **state)
{
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct span rest = drive_read(a, "endpoints.tsv"), line, method, path;
	struct jv world = jv_object();
	struct backend *be = drive_open();
	int count = 0;

	(void)state;
	while (rest.len) {
		const char *text;
		struct drive d;

		span_cut(&rest, '\n', &line);
		span_cut(&line, '\t', &method);
		span_cut(&line, '\t', &path);
		drive_start(&d, be, &world);
		text = example(d.arena, path);
		text = arena_strndup(d.arena, text, strlen(text));
		d.req.method = arena_strndup(d.arena, method.at, method.len);
		d.req.path = text;
		d.req.content_type = d.req.upgrade_to = "";
		d.call.arena = d.arena;
		d.call.req = &d.req;
		d.call.owner = "alice";
		be->ops->route(be, &d.call);
		CHECK_INT(text, 1, d.call.op != OP_UNKNOWN);
		if (d.call.refused.count)
			CHECK_INT(text, 1, d.call.refused.list[0].reason != REASON_method);
		if (!span_is(line, "read"))
			CHECK_INT(text, 1, op_class_changes_state(operation_class(d.call.op)));
		if (span_is(line, "host-affecting"))
			CHECK_INT(text, 1,
				  d.call.refused.count || operation_class(d.call.op) == CLASS_HOST);
		drive_end(&d);
		count++;
	}
	CHECK_INT("endpoints", 116, count);
	be->ops->close(be);
	arena_destroy(a);
}

/* "/images/{name*}/json" -> "/images/{}/json" */
static const char *nameless(struct arena *a, const char *pattern)
{
	char *ret = arena_strndup(a, pattern, strlen(pattern)), *to = ret;

	for (const char *from = pattern; *from; from++) {
		*to++ = *from;
		if (*from != '{')
			continue;
		*to++ = '}';
		from = strchr(from, '}');
	}
	*to = '\0';
	return ret;
}

/* Engines route these, and no document of theirs says so. */
static bool is_undocumented(const char *method, const char *path)
{
	static const char *const known[] = {
		"POST /build/cancel",
		"POST /grpc",
		"POST /containers/{}/copy",
		"GET /containers/{}/checkpoints",
		"POST /containers/{}/checkpoints",
		"DELETE /containers/{}/checkpoints/{}",
		"GET /debug/{}",
	};
	char both[200];

	snprintf(both, sizeof(both), "%s %s", method, path);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i], both) == 0)
			return true;
	return false;
}

/* A row of api-paths.tsv. */
struct documented {
	const char *method, *path;
	struct span versions;
	bool has_route;
};

#define DOCUMENTED_MAX 200

static size_t read_documented(struct arena *a, struct documented *list)
{
	struct span rest = drive_read(a, "api-paths.tsv"), line, method, path;
	size_t count = 0;

	while (rest.len && count < DOCUMENTED_MAX) {
		span_cut(&rest, '\n', &line);
		span_cut(&line, '\t', &method);
		span_cut(&line, '\t', &path);
		list[count++] =
			(struct documented){.method = arena_strndup(a, method.at, method.len),
					    .path = arena_strndup(a, path.at, path.len),
					    .versions = line};
	}
	return count;
}

/* Each document that has a path is of a version that the route is served in. */
static void check_versions(const struct docker_route *route, const struct documented *d)
{
	struct span rest = d->versions, one;

	while (rest.len) {
		int minor;

		span_cut(&rest, ' ', &one);
		minor = (one.at[2] - '0') * 10 + (one.at[3] - '0');
		CHECK_INT(route->pattern, 1,
			  minor >= route->since && (!route->until || minor <= route->until));
		CHECK_INT(route->pattern, 1, minor <= DOCKER_MINOR_MAX);
	}
}

/* What is in the documents of 1.41, 1.47 and 1.56 is in routes.def, and the other way round. */
static void agrees_with_the_documents(void **state)
{
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct documented list[DOCUMENTED_MAX];
	size_t count = read_documented(a, list), undocumented = 0;

	(void)state;
	for (size_t i = 0; i < docker_plain.route_count; i++) {
		const struct docker_route *route = &docker_routes[i];
		const char *path = nameless(a, route->pattern);
		struct documented *found = NULL;

		for (size_t k = 0; k < count && !found; k++)
			if (strcmp(list[k].method, route->method) == 0 &&
			    strcmp(list[k].path, path) == 0)
				found = &list[k];
		CHECK_INT(path, !found, is_undocumented(route->method, path));
		undocumented += !found;
		if (!found)
			continue;
		found->has_route = true;
		check_versions(route, found);
	}
	for (size_t k = 0; k < count; k++)
		CHECK_INT(list[k].path, 1, list[k].has_route);
	CHECK_INT("documented", 108, count);
	CHECK_INT("undocumented", 7, undocumented);
	arena_destroy(a);
}

static enum docker_schema schema_named(struct span name)
{
	static const char *const names[] = {
		"NONE",
#define SCHEMA(name) #name,
#include "backends/docker/fields.def"
#undef SCHEMA
	};

	for (size_t i = 1; i < sizeof(names) / sizeof(*names); i++)
		if (span_is(name, names[i]))
			return (enum docker_schema)i;
	return SCHEMA_NONE;
}

/* SCHEMA and FIELD of every body that the engine's API documents describe, 1.41 to 1.56. */
static void knows_every_field(void **state)
{
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct span rest = drive_read(a, "swagger-fields.tsv"), line, schema;
	int count = 0;

	(void)state;
	while (rest.len) {
		span_cut(&rest, '\n', &line);
		span_cut(&line, '\t', &schema);
		if (!docker_field(schema_named(schema), line))
			print_error("%.*s.%.*s\n", SPAN_FMT(schema), SPAN_FMT(line));
		CHECK_INT("known", 1, docker_field(schema_named(schema), line) != NULL);
		count++;
	}
	CHECK_INT("fields", 234, count);
	arena_destroy(a);
}

static void folds_as_go_does(void **state)
{
	static const struct {
		const char *key, *known;
		bool want;
	} rows[] = {
		{"hostconfig", "HostConfig", true},
		{"HOSTCONFIG", "HostConfig", true},
		{"Ho\xc5\xbftConfig", "HostConfig", true},
		{"Networ\xe2\x84\xaaMode", "NetworkMode", true},
		{"HostConfi", "HostConfig", false},
		{"HostConfigs", "HostConfig", false},
		{"H\xc3\xb6stConfig", "HostConfig", false},
		{"Host\xc5\xbfonfig", "HostConfig", false},
		{"", "HostConfig", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].key, rows[i].want,
			  docker_folds_to(span_of(rows[i].key), rows[i].known));
}

static void reads_references_as_engines_do(void **state)
{
	static const struct {
		const char *given, *name, *tag, *digest; /* name "": not valid */
	} rows[] = {
		{"alpine", "docker.io/library/alpine", "", ""},
		{"library/alpine", "docker.io/library/alpine", "", ""},
		{"docker.io/alpine:latest", "docker.io/library/alpine", "latest", ""},
		{"index.docker.io/library/alpine", "docker.io/library/alpine", "", ""},
		{"index.docker.io/alpine", "docker.io/library/alpine", "", ""},
		{"a/b", "docker.io/a/b", "", ""},
		{"reg.example/team/app:1", "reg.example/team/app", "1", ""},
		{"reg.example:5000/x", "reg.example:5000/x", "", ""},
		{"localhost/x", "localhost/x", "", ""},
		{"localhost:5000/x:y", "localhost:5000/x", "y", ""},
		{"reg.example/a__b/c-d--e.f:T_1.2-3", "reg.example/a__b/c-d--e.f", "T_1.2-3", ""},
		{"REG/x", "REG/x", "", ""},
		{"", "", "", ""},
		{":1", "", "", ""},
		{"Alpine", "", "", ""},
		{"a/B", "", "", ""},
		{"a//b", "", "", ""},
		{"/a", "", "", ""},
		{"a/", "", "", ""},
		{"a/../b", "", "", ""},
		{"a:", "", "", ""},
		{"a:.x", "", "", ""},
		{"a: b", "", "", ""},
		{"a@", "", "", ""},
		{"a@sha256:12", "", "", ""},
		{"a@md5:0123456789abcdef0123456789abcdef", "", "", ""},
		{"a_-b", "", "", ""},
		{"a___b", "", "", ""},
		{"-a", "", "", ""},
		{"reg.example:x/y", "", "", ""},
		{"http://reg.example/x", "", "", ""},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "", "", ""},
		{"a:1@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 "docker.io/library/a", "1",
		 "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct docker_reference ref = docker_reference(a, span_of(rows[i].given));

		CHECK_INT(rows[i].given, *rows[i].name != '\0', ref.valid);
		if (!ref.valid)
			continue;
		CHECK_STR(rows[i].given, rows[i].name, ref.name);
		CHECK_STR(rows[i].given, rows[i].tag, ref.tag);
		CHECK_STR(rows[i].given, rows[i].digest, ref.digest);
	}
	arena_destroy(a);
}

static void reads_users_as_engines_do(void **state)
{
	static const struct {
		const char *user;
		bool known, root;
	} rows[] = {
		{"", true, true},
		{"0", true, true},
		{"00", true, true},
		{"+0", true, true},
		{"-0", true, true},
		{"root", true, true},
		{"0:0", true, true},
		{"0000:5", true, true},
		{"1000:0", true, true},
		{"1000:root", true, true},
		{":5", true, true},
		{"00000000000000", true, true},
		{"1000", true, false},
		{"1000:", true, false},
		{"1000:1000", true, false},
		{"+1", true, false},
		{"node", false, false},
		{"1000:users", false, false},
		{"node:0", true, true},
		{"0x0", false, false},
		{" 0", false, false},
		{"Root", false, false},
		{"99999999999", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool known = false;
		bool root = docker_user_is_root(span_of(rows[i].user), &known);

		CHECK_INT(rows[i].user, rows[i].known, known);
		if (known)
			CHECK_INT(rows[i].user, rows[i].root, root);
	}
}

/* What an engine says of a runtime, and how far it is trusted. */
static void weighs_runtimes(void **state)
{
	static const struct {
		const char *doc;
		enum isolation base, level;
		size_t lowered;
	} rows[] = {
		{"{\"path\":\"runc\"}", ISOLATION_PROCESS, ISOLATION_PROCESS, 0},
		{"{\"path\":\"/usr/bin/crun\"}", ISOLATION_PROCESS, ISOLATION_PROCESS, 0},
		{"{\"path\":\"/opt/youki\"}", ISOLATION_PROCESS, ISOLATION_PROCESS, 0},
		{"{\"path\":\"/usr/bin/krun\"}", ISOLATION_VM, ISOLATION_KERNEL, 1},
		{"{\"path\":\"/opt/kata/bin/kata-runtime\"}", ISOLATION_VM, ISOLATION_VM, 0},
		{"{\"path\":\"/usr/bin/nvidia-container-runtime\"}", ISOLATION_NONE, ISOLATION_NONE,
		 0},
		{"{\"path\":\"/usr/bin/runsc-wrapper\"}", ISOLATION_NONE, ISOLATION_NONE, 0},
		{"{\"path\":\"/runsc/bash\"}", ISOLATION_NONE, ISOLATION_NONE, 0},
		{"{}", ISOLATION_NONE, ISOLATION_NONE, 0},
		{"{\"runtimeType\":\"io.containerd.runc.v2\"}", ISOLATION_PROCESS,
		 ISOLATION_PROCESS, 0},
		{"{\"runtimeType\":\"io.containerd.runc.v2\",\"options\":{\"BinaryName\":\"/x/"
		 "evil\"}}",
		 ISOLATION_NONE, ISOLATION_NONE, 0},
		{"{\"runtimeType\":\"io.containerd.runsc.v1\"}", ISOLATION_KERNEL, ISOLATION_KERNEL,
		 0},
		{"{\"runtimeType\":\"io.containerd.runsc.v1\",\"options\":{\"ConfigPath\":\"/x\"}}",
		 ISOLATION_KERNEL, ISOLATION_PROCESS, 1},
		{"{\"runtimeType\":\"io.containerd.kata.v2\"}", ISOLATION_VM, ISOLATION_VM, 0},
		{"{\"runtimeType\":\"io.containerd.kata-qemu.v2\"}", ISOLATION_VM, ISOLATION_VM, 0},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--network=none\",\"--platform=ptrace\"]}",
		 ISOLATION_KERNEL, ISOLATION_KERNEL, 0},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--network=host\"]}", ISOLATION_KERNEL,
		 ISOLATION_PROCESS, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"-network\",\"host\"]}", ISOLATION_KERNEL,
		 ISOLATION_PROCESS, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--host-uds=open\"]}", ISOLATION_KERNEL,
		 ISOLATION_PROCESS, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--host-uds=none\"]}", ISOLATION_KERNEL,
		 ISOLATION_KERNEL, 0},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--overlay2=none\"]}", ISOLATION_KERNEL,
		 ISOLATION_KERNEL, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--nvproxy\"]}", ISOLATION_KERNEL,
		 ISOLATION_KERNEL, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--profile\"]}", ISOLATION_KERNEL,
		 ISOLATION_PROCESS, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--TESTONLY-unsafe-nonroot\"]}",
		 ISOLATION_KERNEL, ISOLATION_PROCESS, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[\"--brand-new\"]}", ISOLATION_KERNEL,
		 ISOLATION_PROCESS, 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":[1]}", ISOLATION_KERNEL, ISOLATION_PROCESS,
		 1},
		{"{\"path\":\"runsc\",\"runtimeArgs\":\"--network=none\"}", ISOLATION_KERNEL,
		 ISOLATION_PROCESS, 1},
		{"{\"runtimeType\":\"io.containerd.runc.v2\",\"options\":{\"SystemdCgroup\":true,"
		 "\"NoPivotRoot\":true}}",
		 ISOLATION_PROCESS, ISOLATION_NONE, 1},
		{"{\"runtimeType\":\"io.containerd.runc.v2\",\"options\":{\"New\":{\"a\":1}}}",
		 ISOLATION_PROCESS, ISOLATION_NONE, 1},
	};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct jv doc = drive_parse(a, rows[i].doc);
		struct docker_runtime rt;

		docker_read_runtime(a, "x", &doc, &rt);
		CHECK_INT(rows[i].doc, rows[i].base, rt.is.base);
		CHECK_INT(rows[i].doc, rows[i].level, rt.is.level);
		CHECK_INT(rows[i].doc, rows[i].lowered, rt.is.line_count);
	}
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_every_endpoint),
		cmocka_unit_test(agrees_with_the_documents),
		cmocka_unit_test(knows_every_field),
		cmocka_unit_test(folds_as_go_does),
		cmocka_unit_test(reads_references_as_engines_do),
		cmocka_unit_test(reads_users_as_engines_do),
		cmocka_unit_test(weighs_runtimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
