#include "tests/unit/rules/kit.h"

#include "gate/base/io.h"

#include <stdio.h>
#include <stdlib.h>

const char kit_create[] =
	"{\"operation\":{\"name\":\"container.create\",\"class\":\"launch\",\"group\":"
	"\"container.run\"},\"identity\":{\"name\":\"ann\",\"owner\":\"ann\",\"profile\":\"ref\","
	"\"listener\":\"agents\",\"uid\":1000,\"gid\":1000},\"backend\":\"engine\",\"workload\":{"
	"\"image\":{\"given\":\"reg.example/team/app:1\",\"name\":\"reg.example/team/app\",\"tag\":"
	"\"1\",\"present\":true,\"by_id\":false,\"id\":\"sha256:aa\",\"digests\":[\"reg.example/"
	"team/app@sha256:bb\"]},\"command\":{\"entrypoint_"
	"given\":false,\"healthcheck\":false},\"env\":[\"PATH\",\"HOME\"],\"isolation\":{\"level\":"
	"\"kernel\",\"base\":\"kernel\",\"runtime\":\"runsc\",\"runtime_given\":true,\"runtime_"
	"path\":\"/usr/bin/"
	"runsc\",\"runtimes\":[{\"name\":\"runc\",\"level\":\"process\"},{\"name\":"
	"\"runsc\",\"level\":\"kernel\"}],\"lowered\":[]},\"privileged\":false,\"capabilities\":{"
	"\"add\":[],\"drop\":[\"ALL\"],\"drop_all\":true},\"security\":[],\"no_new_privileges\":"
	"true,"
	"\"proc_paths\":\"default\",\"user\":{\"given\":\"1000\",\"effective\":\"1000\",\"root\":"
	"false,\"groups\":[]},\"read_only\":false,\"init\":false,\"namespaces\":[],\"mounts\":[{"
	"\"kind\":\"bind\",\"source\":\"/srv/ws/a\",\"given\":\"/srv/ws/a\",\"target\":\"/"
	"w\",\"read_"
	"only\":false,\"options\":[],\"host\":{\"kind\":\"directory\",\"real\":\"/srv/ws/"
	"a\",\"links\":"
	"0},\"field\":\"HostConfig.Binds[0]\"}],\"volumes_from\":[],\"network\":{\"mode\":"
	"\"agents\","
	"\"given\":true,\"endpoints\":[{\"name\":\"agents\",\"settings\":[],\"field\":\"Networking"
	"Config.EndpointsConfig.agents\"}],\"ports\":[],\"publish_all\":false,\"hosts\":[],"
	"\"links\":"
	"[]},\"devices\":[],\"sysctls\":[],\"limits\":{\"memory\":1073741824,\"pids\":256,"
	"\"lifted\":["
	"]},\"restart\":\"no\",\"auto_remove\":true,\"log\":{\"driver\":\"local\",\"options\":["
	"]},"
	"\"annotations\":[],\"storage_options\":[],\"labels\":[]}}";

struct engine *kit_open_limits(const char *text, const struct engine_limits *limits)
{
	struct rule_source source = {"test.lua", span_of(text)};
	struct err err = {0};
	struct engine *eng = engine_open(&source, 1, limits, &err);

	CHECK_STR("engine_open", "", err.msg);
	assert_non_null(eng);
	return eng;
}

struct engine *kit_open(const char *text)
{
	return kit_open_limits(text, &engine_default_limits);
}

const char *kit_load_error(const char *text)
{
	static struct err err;
	struct rule_source source = {"test.lua", span_of(text)};
	struct engine *eng;

	err = (struct err){0};
	eng = engine_open(&source, 1, &engine_default_limits, &err);
	engine_close(eng);
	CHECK_INT(text, 1, eng == NULL);
	CHECK_INT(text, ERR_CONFIG, err.kind);
	return err.msg;
}

char *kit_read(const char *path)
{
	char full[4096];
	struct buf text;
	struct err err = {0};
	char *copy;

	snprintf(full, sizeof(full), "%s/%s", getenv("SALLYPORT_SOURCE"), path);
	CHECK_INT(full, 0, io_read_file(full, 1 << 20, &text, &err));
	copy = strndup(buf_span(&text).at, buf_len(&text));
	buf_fini(&text);
	return copy;
}

struct engine *kit_open_ref(void)
{
	char *text = kit_read("tests/profiles/ref.lua");
	struct engine *eng = kit_open(text);

	free(text);
	return eng;
}

struct jv kit_json(struct arena *a, const char *text)
{
	struct jv v = jv_null();
	enum jv_fault fault;
	struct err err = {0};

	jv_parse(a, span_of(text), &v, &fault, &err);
	CHECK_STR(text, "", err.msg);
	return v;
}

static void merge(struct arena *a, struct jv *into, const struct jv *change)
{
	for (size_t i = 0; i < change->count; i++) {
		const struct jv_member *m = &change->members[i];
		struct jv *old = (struct jv *)jv_get_span(into, m->key);

		if (old && old->kind == JV_OBJECT && m->value.kind == JV_OBJECT)
			merge(a, old, &m->value);
		else
			jv_set_span(a, into, m->key, m->value);
	}
}

struct jv kit_merged(struct arena *a, const char *base, const char *change)
{
	struct jv facts = kit_json(a, base), other;

	if (change && *change) {
		other = kit_json(a, change);
		merge(a, &facts, &other);
	}
	return facts;
}

void kit_judge(struct engine *eng, const char *profile, const char *base, const char *change,
	       struct kit_answer *ret)
{
	const struct profile *p = engine_profile(eng, profile);
	struct jv facts;

	assert_non_null(p);
	*ret = (struct kit_answer){.arena = arena_create(1 << 22)};
	facts = kit_merged(ret->arena, base, change);
	ret->result = engine_judge(eng, p, &facts, ret->arena, &ret->decision, &ret->err);
}

void kit_judge_under(struct engine *eng, const char *base, const char *change,
		     const struct override *override, struct kit_answer *ret)
{
	struct matter m = {.profile = engine_profile(eng, "p"), .override = override};
	struct jv facts;

	assert_non_null(m.profile);
	*ret = (struct kit_answer){.arena = arena_create(1 << 22)};
	facts = kit_merged(ret->arena, base, change);
	m.facts = &facts;
	ret->result = engine_judge_under(eng, &m, ret->arena, &ret->decision, &ret->err);
}

void kit_drop(struct kit_answer *ans)
{
	arena_destroy(ans->arena);
	ans->arena = NULL;
}

const char *kit_reasons(const struct kit_answer *ans)
{
	static char text[1024];
	const struct violations *v = &ans->decision.violations;
	size_t used = 0;

	if (ans->decision.verdict == VERDICT_ALLOW && !v->count)
		return "allow";
	text[0] = '\0';
	for (size_t i = 0; i < v->count; i++) {
		bool seen = false;

		for (size_t k = 0; k < i; k++)
			seen = seen || v->list[k].reason == v->list[i].reason;
		if (!seen)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? " " : "", reason_name(v->list[i].reason));
	}
	return text;
}
