#include "backends/docker/build_priv.h"

#include <stdlib.h>
#include <string.h>

/* What the query calls by one name, and a container's settings by another. */
static const struct {
	const char *key, *setting;
	char kind; /* i: integer, s: string, l: a list, from a key that repeats */
} settings[] = {
	{"memory", "Memory", 'i'},           {"memswap", "MemorySwap", 'i'},
	{"cpushares", "CpuShares", 'i'},     {"cpuperiod", "CpuPeriod", 'i'},
	{"cpuquota", "CpuQuota", 'i'},       {"cpusetcpus", "CpusetCpus", 's'},
	{"cpusetmems", "CpusetMems", 's'},   {"shmsize", "ShmSize", 'i'},
	{"networkmode", "NetworkMode", 's'}, {"cgroupparent", "CgroupParent", 's'},
	{"extrahosts", "ExtraHosts", 'l'},   {"securityopt", "SecurityOpt", 'l'},
};

/* What has a meaning that the gate refuses by itself, with a reason of its own. */
static const struct {
	const char *key, *neutral;
	enum reason reason;
	const char *why, *hint;
} refused[] = {
	{"remote", "", REASON_build, "the engine would fetch what nobody has judged",
	 "Send the build context itself."},
	{"pull", "0", REASON_build,
	 "the engine would fetch an image whose triggers nobody has judged",
	 "Leave --pull out, and pull the image before."},
	{"squash", "0", REASON_build, "squashing is refused", "Leave it out."},
	{"platform", "", REASON_build, "the engine would fetch another image than was judged",
	 "Leave --platform out."},
	{"outputs", "", REASON_buildkit, "outputs are BuildKit's", ""},
	{"session", "", REASON_buildkit, "sessions are BuildKit's", ""},
	{"isolation", "default", REASON_build, "this is for Windows", "Leave it out."},
};

static bool refuse(struct backend_call *call, const char *key, enum reason reason, const char *why)
{
	call->withheld |= WITHHELD_VALUE;
	docker_refuse(call, reason, docker_text(call, "query.%s", key), NULL)->text = why;
	return false;
}

static bool is_neutral(struct span value, const char *neutral)
{
	return !value.len || span_is(value, neutral) || span_is(value, "null") ||
	       span_is(value, "[]") ||
	       (span_is(span_of(neutral), "0") &&
		(span_is(value, "false") || span_is(value, "False")));
}

static void check_refused(struct backend_call *call)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct span value = docker_query_value(call->req, refused[i].key);
		struct violation *v;

		if (is_neutral(value, refused[i].neutral))
			continue;
		if (!strcmp(refused[i].key, "remote"))
			call->withheld |= WITHHELD_VALUE;
		v = docker_refuse(
			call, refused[i].reason, docker_text(call, "query.%s", refused[i].key),
			!strcmp(refused[i].key, "remote") ? NULL : docker_cut(call, value));
		v->text = refused[i].why;
		if (*refused[i].hint)
			v->hint = refused[i].hint;
	}
}

/* --- JSON in the query --- */

static bool read_json(struct backend_call *call, const char *key, enum jv_kind kind, struct jv *ret)
{
	struct span text = docker_query_value(call->req, key);
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};

	*ret = (struct jv){.kind = kind};
	if (!text.len || span_is(text, "null"))
		return true;
	if (jv_parse(call->arena, text, ret, &fault, &err) == 0 && ret->kind == kind)
		return true;
	/* An empty map, as some clients write an empty list, and the other way round. */
	if (fault == JV_FAULT_NONE && jv_is_neutral(ret)) {
		*ret = (struct jv){.kind = kind};
		return true;
	}
	return refuse(call, key, REASON_query, "this is not JSON of the form that is expected");
}

static bool all_are(const struct jv *tree, bool or_null)
{
	for (size_t i = 0; i < tree->count; i++) {
		enum jv_kind kind =
			tree->kind == JV_ARRAY ? tree->items[i].kind : tree->members[i].value.kind;

		if (kind != JV_STRING && !(or_null && kind == JV_NULL))
			return false;
	}
	return true;
}

static bool read_args(struct backend_call *call, struct docker_build *b)
{
	if (!read_json(call, "buildargs", JV_OBJECT, &b->args))
		return false;
	return all_are(&b->args, true) ||
	       refuse(call, "buildargs", REASON_query, "values are strings or null");
}

static bool read_labels(struct backend_call *call, struct jv *ret)
{
	if (!read_json(call, "labels", JV_OBJECT, ret))
		return false;
	return all_are(ret, false) || refuse(call, "labels", REASON_query, "values are strings");
}

static bool read_ulimits(struct backend_call *call, struct jv *ret)
{
	if (!read_json(call, "ulimits", JV_ARRAY, ret))
		return false;
	for (size_t i = 0; i < ret->count; i++) {
		const struct jv *one = &ret->items[i];
		const struct jv *soft = jv_get(one, "Soft"), *hard = jv_get(one, "Hard");

		if (one->kind != JV_OBJECT || one->count != 3 || !*jv_str(one, "Name", "") ||
		    !soft || soft->kind != JV_INT || !hard || hard->kind != JV_INT)
			return refuse(call, "ulimits", REASON_query,
				      "Name, Soft and Hard are expected");
	}
	return true;
}

/* --- reading --- */

static struct jv list_of(struct backend_call *call, const char *key)
{
	struct jv list = jv_array();

	for (size_t i = 0; i < call->req->query_count; i++)
		if (span_is(call->req->query[i].key, key) && call->req->query[i].value.len)
			jv_push(call->arena, &list, jv_span(call->req->query[i].value));
	return list;
}

static void read_settings(struct backend_call *call, struct jv *host)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const char *text = docker_query_text(call, settings[i].key);
		struct jv value = settings[i].kind == 'i'   ? jv_int(strtoll(text, NULL, 10))
				  : settings[i].kind == 's' ? jv_string(text)
							    : list_of(call, settings[i].key);

		if (!jv_is_neutral(&value) &&
		    !(value.kind == JV_STRING && !strcmp(text, "default")))
			jv_set(call->arena, host, settings[i].setting, value);
	}
}

bool docker_build_query(struct backend_call *call, struct docker_build *b)
{
	struct docker_state *st = docker_state(call);
	struct jv host = jv_object(), labels, ulimits;
	struct span mode = docker_query_value(call->req, "networkmode");

	if (!docker_build_is_opaque(call))
		check_refused(call);
	if (span_starts(mode, "container:"))
		docker_refuse(call, REASON_namespace_join, "query.networkmode",
			      docker_cut(call, mode));
	if (!read_args(call, b) || !read_labels(call, &labels) || !read_ulimits(call, &ulimits) ||
	    call->refused.count)
		return false;
	b->labels = labels;
	if (st->parsed) /* and perhaps hardened since */
		return true;
	read_settings(call, &host);
	if (ulimits.count)
		jv_set(call->arena, &host, "Ulimits", ulimits);
	st->body = jv_object();
	jv_set(call->arena, &st->body, "Labels", labels);
	jv_set(call->arena, &st->body, "HostConfig", host);
	st->parsed = true;
	return true;
}

/* --- writing --- */

static void ask_json(struct backend_call *call, const char *key, const struct jv *value)
{
	struct buf text;

	if (!value || !value->count)
		return;
	buf_init(&text, 65536);
	jv_write(&text, value);
	if (buf_spent(&text))
		docker_refuse(call, REASON_too_large, docker_text(call, "query.%s", key), NULL);
	docker_send(call, key, docker_whole(call, buf_span(&text)));
	buf_fini(&text);
}

static void ask_flag(struct backend_call *call, const char *key)
{
	if (docker_query_true(call->req, key))
		docker_send(call, key, "1");
}

/*
 * Labels of the engine's are taken over by what is made from the image: whose
 * container that is, is never said by an image.
 */
static struct jv labels_to_send(struct backend_call *call, const struct docker_build *b)
{
	struct jv to = jv_object();

	for (size_t i = 0; i < b->labels.count; i++)
		jv_set_span(call->arena, &to, b->labels.members[i].key, b->labels.members[i].value);
	jv_set(call->arena, &to, GATE_LABEL_OWNER, jv_string(""));
	jv_set(call->arena, &to, GATE_LABEL_ID, jv_string(""));
	jv_set(call->arena, &to, GATE_LABEL_IMAGE_OWNER, jv_string(call->owner));
	jv_set(call->arena, &to, GATE_LABEL_IMAGE_ID, jv_string(call->id));
	return to;
}

static void ask_settings(struct backend_call *call, const struct jv *host)
{
	int64_t nano = jv_num(host, "NanoCpus", 0);

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const struct jv *value = jv_get(host, settings[i].setting);

		if (!value || jv_is_neutral(value))
			continue;
		if (value->kind == JV_INT)
			docker_send(call, settings[i].key,
				    docker_text(call, "%lld", (long long)value->i));
		for (size_t k = 0; value->kind == JV_ARRAY && k < value->count; k++)
			jv_add(call->arena, &docker_state(call)->asked, span_of(settings[i].key),
			       value->items[k]);
		if (value->kind == JV_STRING)
			docker_send(call, settings[i].key, value->str.at);
	}
	if (nano > 0) {
		docker_send(call, "cpuperiod", "100000");
		docker_send(call, "cpuquota", docker_text(call, "%lld", (long long)(nano / 10000)));
	}
	ask_json(call, "ulimits", jv_get(host, "Ulimits"));
}

void docker_build_ask(struct backend_call *call, const struct docker_build *b, bool runs)
{
	static const char *const opaque[] = {"remote",  "session",  "buildid",
					     "outputs", "platform", "version"};
	const struct jv *host = jv_get(&docker_state(call)->body, "HostConfig");
	struct jv labels = labels_to_send(call, b);

	docker_send(call, "dockerfile", b->name);
	ask_flag(call, "q");
	ask_flag(call, "nocache");
	docker_send_given(call, "target");
	ask_settings(call, host);
	ask_json(call, "buildargs", &b->args);
	ask_json(call, "labels", &labels);
	if (docker_build_is_opaque(call)) {
		for (size_t i = 0; i < sizeof(opaque) / sizeof(*opaque); i++)
			docker_send_given(call, opaque[i]);
		ask_flag(call, "pull");
		return;
	}
	if (!runs && !jv_get(host, "NetworkMode"))
		docker_send(call, "networkmode", "none");
	/* What is left of a step would be nobody's. */
	docker_send(call, "rm", "1");
	docker_send(call, "forcerm", "1");
	docker_send(call, "version", "1");
}
