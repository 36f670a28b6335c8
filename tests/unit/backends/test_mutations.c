/*
 * Bodies that were damaged at random: nothing crashes, and whatever is sent is
 * JSON of known fields only.
 */
#include "backends/docker/docker_priv.h"
#include "tests/unit/backends/drive.h"
#include "tests/unit/backends/vocabulary.h"
#include "tests/unit/check.h"

#include <string.h>

static uint64_t seed = 88172645463325252u;

static unsigned next(unsigned below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed % below);
}

static const struct {
	const char *head, *body;
	enum docker_schema schema;
} valid[] = {
	{"POST /v1.41/containers/create?name=x",
	 "{\"Image\":\"busybox\",\"Cmd\":[\"a\",\"b\"],\"Env\":[\"A=b\"],\"Labels\":{\"a\":\"b\"},"
	 "\"ExposedPorts\":{\"80/tcp\":{}},\"Volumes\":{\"/"
	 "v\":{}},\"Healthcheck\":{\"Test\":[\"x\"]},"
	 "\"HostConfig\":{\"Binds\":[\"/srv/ws:/w:ro\",\"fresh:/v\"],\"Memory\":1000,"
	 "\"CapAdd\":[\"CHOWN\"],\"SecurityOpt\":[\"a=b\"],\"PidMode\":\"container:run\","
	 "\"PortBindings\":{\"80/tcp\":[{\"HostIp\":\"\",\"HostPort\":\"1\"}]},"
	 "\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/t\",\"TmpfsOptions\":{\"SizeBytes\":1,"
	 "\"Options\":[[\"a\",\"b\"]]}},{\"Type\":\"volume\",\"Source\":\"mine-data\",\"Target\":"
	 "\"/m\",\"VolumeOptions\":{\"Labels\":{\"x\":\"y\"}}}],\"Tmpfs\":{\"/x\":\"size=1m\"},"
	 "\"Ulimits\":[{\"Name\":\"n\",\"Soft\":1,\"Hard\":2}],\"NetworkMode\":\"agents\","
	 "\"DeviceRequests\":[{\"Capabilities\":[[\"gpu\"]],\"Options\":{\"a\":\"b\"}}]},"
	 "\"NetworkingConfig\":{\"EndpointsConfig\":{\"agents\":{\"IPAMConfig\":{\"IPv4Address\":"
	 "\"1.2.3.4\"},\"Aliases\":[\"x\"]}}}}",
	 SCHEMA_CONFIG},
	{"POST /v1.41/containers/run/exec",
	 "{\"Cmd\":[\"sh\"],\"Env\":[\"A=b\"],\"User\":\"1\",\"Tty\":true,\"ConsoleSize\":[1,2]}",
	 SCHEMA_EXEC},
	{"POST /v1.41/containers/run/update",
	 "{\"Memory\":1,\"PidsLimit\":2,\"RestartPolicy\":{\"Name\":\"no\"},\"Devices\":[]}",
	 SCHEMA_UPDATE},
	{"POST /v1.41/commit?container=run",
	 "{\"Cmd\":[\"a\"],\"Env\":[\"A=b\"],\"Labels\":{\"a\":\"b\"},\"User\":\"5\","
	 "\"Healthcheck\":{\"Test\":[\"CMD\",\"x\"]},\"ExposedPorts\":{\"80/tcp\":{}}}",
	 SCHEMA_CONFIG},
	{"POST /v1.41/volumes/create",
	 "{\"Name\":\"v\",\"Driver\":\"local\",\"DriverOpts\":{\"a\":\"b\"},\"Labels\":{\"c\":"
	 "\"d\"}}",
	 SCHEMA_VOLUME},
	{"POST /v1.41/networks/create",
	 "{\"Name\":\"n\",\"IPAM\":{\"Driver\":\"default\",\"Config\":[{\"Subnet\":\"x\"}]},"
	 "\"Options\":{\"a\":\"b\"},\"Internal\":true}",
	 SCHEMA_NETWORK},
	{"POST /v1.41/networks/agents/connect",
	 "{\"Container\":\"run\",\"EndpointConfig\":{\"Aliases\":[\"x\"],\"DriverOpts\":{\"a\":"
	 "\"b\"}}}",
	 SCHEMA_CONNECT},
};

/* One small piece of damage; the text stays within size. */
static void damage(char *text, size_t size)
{
	static const char *const pieces[] = {
		"\"",
		"{",
		"}",
		"[",
		"]",
		",",
		":",
		"null",
		"true",
		"1",
		"-1",
		"1e9",
		"\\u0000",
		"\\ud800",
		"\xff",
		"\xc5\xbf",
		"\"\"",
		"{}",
		"[]",
		"..",
		"/",
		"\"a\":1,",
		"\"Privileged\":true,",
		"ALL",
		"host",
		"0",
	};
	size_t len = strlen(text), at = next((unsigned)len + 1);
	const char *piece = pieces[next(sizeof(pieces) / sizeof(*pieces))];
	size_t cut = next(4) == 0 ? next(12) : 0, add = next(4) ? strlen(piece) : 0;

	if (at + cut > len)
		cut = len - at;
	if (len - cut + add + 1 > size)
		return;
	memmove(text + at + add, text + at + cut, len - at - cut + 1);
	memcpy(text + at, piece, add);
	if (len && next(3) == 0) {
		at = next((unsigned)len);
		if (text[at])
			text[at] = (char)(1 + next(255));
	}
}

/* Fails if a key of an object of a schema is none of its fields. */
static void only_known(enum docker_schema schema, const struct jv *v)
{
	if (v->kind == JV_ARRAY) {
		for (size_t i = 0; i < v->count; i++)
			only_known(schema, &v->items[i]);
		return;
	}
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++) {
		const struct jv_member *m = &v->members[i];
		const struct docker_field *f = docker_field(schema, m->key);

		CHECK_INT(m->key.at, 1, f && f->use == USE_PASS);
		if (f->type == TYPE_OBJECT || f->type == TYPE_LIST)
			only_known(f->of, &m->value);
		for (size_t k = 0;
		     (f->type == TYPE_MAP || f->type == TYPE_LIST_MAP) && k < m->value.count; k++)
			only_known(f->of, &m->value.members[k].value);
	}
}

static void survives_damage(void **state)
{
	struct backend *be = backend_find("docker")->open(&(struct backend_conf){.name = "t"},
							  &(struct err){.kind = ERR_NONE});
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	int ready = 0, refused = 0;

	(void)state;
	for (int n = 0; n < 6000; n++) {
		size_t which = next(sizeof(valid) / sizeof(*valid));
		char body[4096], request[5000], bad[300];
		struct drive d;
		const char *text;
		struct jv sent;

		snprintf(body, sizeof(body), "%s", valid[which].body);
		for (unsigned times = next(4); times > 0; times--)
			damage(body, sizeof(body));
		snprintf(request, sizeof(request), "%s\n\n%s", valid[which].head, body);
		drive_start(&d, be, &world);
		if (drive_request(&d, request) != STEP_READY) {
			CHECK_INT(body, 1, d.call.refused.count > 0);
			refused++;
			drive_end(&d);
			continue;
		}
		ready++;
		vocabulary_check(&d.call.workload.facts, bad, sizeof(bad));
		CHECK_STR(body, "", bad);
		drive_rendered(&d, &text);
		sent = drive_parse(d.arena, text);
		only_known(valid[which].schema, &sent);
		drive_end(&d);
	}
	CHECK_INT("some pass", 1, ready > 500);
	CHECK_INT("some do not", 1, refused > 500);
	arena_destroy(a);
	be->ops->close(be);
}

#define LONG_ID "787a0701953e5ff869860b6a5875befc1875e159858768fb0d2c9423b642fac0"

/* Puts a value of another kind behind some colon; strings are not looked for. */
static void replace_value(char *text)
{
	static const char *const values[] = {"null",   "true",        "1",    "\"\"",
					     "[]",     "{}",          "[1]",  "{\"a\":1}",
					     "[null]", "[[\"x\",1]]", "\"/\""};
	const char *value = values[next(sizeof(values) / sizeof(*values))];
	size_t len = strlen(text), at = next((unsigned)len), old;
	char *colon = strstr(text + at, "\": ");

	if (!colon)
		return;
	colon += 3;
	old = strcspn(colon, ",\n");
	if (strchr("[{", *colon) || old < strlen(value))
		return;
	memset(colon, ' ', old);
	memcpy(colon, value, strlen(value));
}

/* What an engine says may be of any kind: nothing crashes, and no id is taken for granted. */
static void survives_odd_engines(void **state)
{
	static const char *const requests[] = {
		"POST /v1.41/containers/create\n{\"Image\":\"busybox\",\"HostConfig\":{\"Binds\":"
		"[\"/srv/ws:/w\",\"mine-data:/d\"],\"PidMode\":\"container:run\","
		"\"NetworkMode\":\"agents\"}}",
		"POST /v1.41/containers/full/start",
		"POST /v1.41/containers/full/update\n{\"Memory\":1}",
		"POST /v1.41/containers/run/exec\n{\"Cmd\":[\"id\"]}",
		("POST "
		 "/v1.41/exec/bea8e0a4fc3c799bf9fb35cd4bc208b50b4f5f8180264e4547546635c949e469/"
		 "start\n{}"),
		"POST /v1.41/networks/agents/connect\n{\"Container\":\"run\"}",
		"DELETE /v1.41/volumes/mine-data",
		"POST /v1.41/commit?container=run&repo=x\nnull",
		"POST /v1.41/images/busybox/tag?repo=x",
		"GET /v1.41/images/get?names=busybox&names=reg.example/team/app:1",
		"GET /v1.41/containers/run/json",
	};
	struct backend *be = backend_find("docker")->open(&(struct backend_conf){.name = "t"},
							  &(struct err){.kind = ERR_NONE});
	struct arena *kept = arena_create(DRIVE_ARENA_BYTES);
	struct span text = drive_read(kept, "world.json");
	int ready = 0, parsed = 0;

	(void)state;
	for (int n = 0; n < 400; n++) {
		struct arena *a = arena_create(DRIVE_ARENA_BYTES);
		char *copy = arena_take(a, text.len + 4096);
		const char *request = requests[(size_t)n % (sizeof(requests) / sizeof(*requests))];
		enum jv_fault fault;
		struct err err = {0};
		struct jv world;
		struct drive d;

		memcpy(copy, text.at, text.len);
		for (unsigned times = 1 + next(30); times > 0; times--)
			replace_value(copy);
		if (jv_parse(a, span_of(copy), &world, &fault, &err) == 0) {
			parsed++;
			drive_start(&d, be, &world);
			d.call.now_ms = (uint64_t)n * 100000;
			if (drive_request(&d, request) == STEP_READY) {
				ready++;
				drive_rendered(&d, NULL);
				be->ops->check(be, &d.call, span_of("{\"Id\":\"" LONG_ID "\"}"));
				drive_answer(&d);
				be->ops->check(be, &d.call, span_of(""));
			}
			drive_end(&d);
		}
		arena_destroy(a);
	}
	CHECK_INT("documents", 1, parsed > 200);
	CHECK_INT("some pass", 1, ready > 50);
	arena_destroy(kept);
	be->ops->close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(survives_odd_engines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
