#include "backends/docker/docker_priv.h"
#include "gate/base/hash.h"

#include <string.h>

/* --- comparing what was made with what was sent --- */

struct comparing {
	struct backend_call *call;
	const struct docker_state *st;
	const struct jv *sent;          /* HostConfig */
	const struct jv *config, *host; /* of what was made */
	const char *others;             /* fields that the flavor compares */
};

static const char *text_of(struct backend_call *call, const struct jv *v)
{
	struct buf b;
	const char *ret;

	if (!v)
		return "null";
	buf_init(&b, 65536);
	jv_write(&b, v);
	ret = docker_cut(call, buf_span(&b));
	buf_fini(&b);
	return ret;
}

static void differs(struct backend_call *call, const char *field, const char *made,
		    const char *judged)
{
	struct violation *v = docker_refuse(call, REASON_not_as_judged, field, made);

	v->text = docker_text(call, "%s is %s in what the engine made; %s was judged", field, made,
			      judged);
}

static bool alike(const struct jv *a, const struct jv *b);

/* What an object leaves out is as good as null. */
static bool members_alike(const struct jv *a, const struct jv *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (!alike(&a->members[i].value, jv_get_span(b, a->members[i].key)))
			return false;
	return true;
}

static bool alike(const struct jv *a, const struct jv *b)
{
	bool objects = (!a || a->kind == JV_OBJECT) && (!b || b->kind == JV_OBJECT);

	if ((!a || jv_is_neutral(a)) && (!b || jv_is_neutral(b)))
		return true;
	if (a && b && objects)
		return members_alike(a, b) && members_alike(b, a);
	if (!a || !b || a->kind != b->kind || a->kind != JV_ARRAY || a->count != b->count)
		return a && b && jv_equal(a, b);
	for (size_t i = 0; i < a->count; i++)
		if (!alike(&a->items[i], &b->items[i]))
			return false;
	return true;
}

static bool in_words(const char *words, const char *word)
{
	struct span rest = span_of(words), one;
	bool more;

	do {
		more = span_cut(&rest, ' ', &one);
		if (span_is(one, word))
			return true;
	} while (more);
	return false;
}

/* Some services show a field in a way of their own: see docker_flavor. */
static bool is_of_flavor(const struct comparing *c, const char *key)
{
	return *c->others && in_words(c->others, key);
}

/* What the engine may write where nothing was asked for. */
static void compare_word(const struct comparing *c, const char *key, const char *defaults)
{
	const char *sent = jv_str(c->sent, key, ""), *made = jv_str(c->host, key, "");
	bool fine = *sent ? strcmp(sent, made) == 0 : in_words(defaults, made);

	if (!fine && !is_of_flavor(c, key))
		differs(c->call, docker_text(c->call, "HostConfig.%s", key), made,
			*sent ? sent : "the default");
}

static void compare_same(const struct comparing *c, const char *key)
{
	const struct jv *sent = jv_get(c->sent, key), *made = jv_get(c->host, key);

	if (!is_of_flavor(c, key) && !alike(sent, made))
		differs(c->call, docker_text(c->call, "HostConfig.%s", key), text_of(c->call, made),
			text_of(c->call, sent));
}

/* Below one there is no limit. */
static void compare_limit(const struct comparing *c, const char *key)
{
	int64_t sent = jv_num(c->sent, key, 0), made = jv_num(c->host, key, 0);

	if ((sent > 0 || made > 0) && sent != made && !is_of_flavor(c, key))
		differs(c->call, docker_text(c->call, "HostConfig.%s", key),
			docker_text(c->call, "%lld", (long long)made),
			docker_text(c->call, "%lld", (long long)sent));
}

/* Without a wish the engine sets twice the memory. */
static void compare_swap(const struct comparing *c)
{
	if (jv_num(c->sent, "MemorySwap", 0))
		compare_same(c, "MemorySwap");
}

static const char *spelled(const struct comparing *c, const char *key, const struct jv *one)
{
	struct span s = one->kind == JV_STRING ? one->str : (struct span){"", 0};

	if (strncmp(key, "Cap", 3) == 0)
		return docker_capability(c->call, s);
	return docker_whole(c->call, s);
}

static bool has_spelling(const struct comparing *c, const char *key, const struct jv *list,
			 const char *text)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (strcmp(spelled(c, key, &list->items[i]), text) == 0)
			return true;
	return false;
}

/* Where the host's processes are in reach the engine switches labels off by itself. */
static bool is_engines_own(const struct comparing *c, const char *key, const char *text)
{
	return strcmp(key, "SecurityOpt") == 0 && strcmp(text, "label=disable") == 0 &&
	       (jv_true(c->sent, "Privileged") ||
		strcmp(jv_str(c->sent, "PidMode", ""), "host") == 0 ||
		strcmp(jv_str(c->sent, "IpcMode", ""), "host") == 0);
}

static bool within(const struct comparing *c, const char *key, const struct jv *inner,
		   const struct jv *outer)
{
	for (size_t i = 0; inner && inner->kind == JV_ARRAY && i < inner->count; i++) {
		const char *text = spelled(c, key, &inner->items[i]);

		if (!has_spelling(c, key, outer, text) && !is_engines_own(c, key, text))
			return false;
	}
	return true;
}

/* Lists whose order says nothing. */
static void compare_set(const struct comparing *c, const char *key)
{
	const struct jv *sent = jv_get(c->sent, key), *made = jv_get(c->host, key);

	if (is_of_flavor(c, key))
		return;
	if (!within(c, key, sent, made) || !within(c, key, made, sent))
		differs(c->call, docker_text(c->call, "HostConfig.%s", key), text_of(c->call, made),
			text_of(c->call, sent));
}

static void compare_network(const struct comparing *c)
{
	const char *sent = jv_str(c->sent, "NetworkMode", "");
	const char *made = jv_str(c->host, "NetworkMode", "");
	const char *name = docker_state(c->call)->network_name; /* some engines write that for it */
	bool plain = in_words("default bridge", *sent ? sent : "default");

	if (strcmp(sent, made) != 0 && !(name && strcmp(name, made) == 0) &&
	    !(plain && in_words("default bridge", made)))
		differs(c->call, "HostConfig.NetworkMode", made, *sent ? sent : "the default");
}

static void compare_proc_paths(const struct comparing *c)
{
	const char *judged = jv_str(&c->call->workload.facts, "proc_paths", "");

	if (strcmp(judged, "default") == 0 && !docker_keeps_proc_paths(c->host))
		differs(c->call, "HostConfig.MaskedPaths",
			text_of(c->call, jv_get(c->host, "MaskedPaths")), "the default");
}

static void compare_host(const struct comparing *c)
{
	static const struct {
		const char *key, *defaults;
	} words[] = {
		{"PidMode", " private"},           {"UTSMode", " private"},
		{"UsernsMode", " private"},        {"IpcMode", " private shareable"},
		{"CgroupnsMode", " private host"},
	};
	static const char *const equal[] = {
		"Privileged",        "PublishAllPorts", "ReadonlyRootfs", "CgroupParent",
		"DeviceCgroupRules", "DeviceRequests",  "Devices",        "Sysctls",
		"OomKillDisable",    "VolumesFrom",
	};
	static const char *const sets[] = {"CapAdd", "CapDrop", "SecurityOpt", "GroupAdd", "Binds"};
	static const char *const limits[] = {"Memory", "NanoCpus", "CpuQuota", "CpuPeriod",
					     "PidsLimit"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		compare_word(c, words[i].key, words[i].defaults);
	for (size_t i = 0; i < sizeof(equal) / sizeof(*equal); i++)
		compare_same(c, equal[i]);
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		compare_set(c, sets[i]);
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		compare_limit(c, limits[i]);
	compare_word(c, "Runtime", c->st->info->default_runtime);
	compare_swap(c);
	compare_network(c);
	compare_proc_paths(c);
	if (c->st->minor >= 43)
		compare_same(c, "Annotations");
}

/* --- mounts: what the engine took them for --- */

static const struct jv *judged_mount(const struct comparing *c, const char *target)
{
	const struct jv *list = jv_get(&c->call->workload.facts, "mounts");

	for (size_t i = 0; list && i < list->count; i++) {
		const char *own = jv_str(&list->items[i], "target", "");

		if (*own && strcmp(docker_clean_path(c->call, span_of(own)), target) == 0)
			return &list->items[i];
	}
	return NULL;
}

static bool is_anonymous(const char *name)
{
	return hash_is_hex(span_of(name));
}

/* The image's own volumes were not asked for; they are new and empty. */
static bool fits(const struct jv *made, const struct jv *judged)
{
	const char *type = jv_str(made, "Type", ""), *source = jv_str(judged, "source", "");

	if (!judged)
		return strcmp(type, "volume") == 0 && is_anonymous(jv_str(made, "Name", ""));
	if (strcmp(type, jv_str(judged, "kind", "")) != 0 ||
	    (jv_true(judged, "read_only") && jv_true(made, "RW")))
		return false;
	if (strcmp(type, "bind") == 0)
		return strcmp(source, jv_str(made, "Source", "")) == 0;
	if (strcmp(type, "volume") == 0 && *source)
		return strcmp(source, jv_str(made, "Name", "")) == 0;
	return true;
}

static void compare_mounts(const struct comparing *c, const struct jv *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *target = jv_str(&list->items[i], "Destination", "");
		const struct jv *judged = judged_mount(c, target);

		if (!fits(&list->items[i], judged))
			differs(c->call, docker_text(c->call, "Mounts[%zu]", i),
				text_of(c->call, &list->items[i]),
				judged ? text_of(c->call, judged) : "no such mount");
	}
}

/* --- together --- */

/* An image may carry labels of the gate; what runs from it has those alone that the gate wrote. */
static void compare_labels(const struct comparing *c)
{
	const struct jv *made = jv_get(c->config, "Labels"), *sent = jv_get(&c->st->sent, "Labels");

	for (size_t i = 0; made && made->kind == JV_OBJECT && i < made->count; i++) {
		const struct jv_member *m = &made->members[i];
		const struct jv *ours = jv_get_span(sent, m->key);

		/* Who built the image says nothing of the container. */
		if (span_is(m->key, GATE_LABEL_IMAGE_OWNER) || span_is(m->key, GATE_LABEL_IMAGE_ID))
			continue;
		if (!span_starts(m->key, GATE_LABEL_PREFIX) || (ours && jv_equal(ours, &m->value)))
			continue;
		differs(c->call,
			docker_text(c->call, "Config.Labels.%s", docker_cut(c->call, m->key)),
			text_of(c->call, &m->value), ours ? text_of(c->call, ours) : "none");
	}
}

static void compare_config(const struct comparing *c, const struct jv *doc)
{
	const struct jv *user = jv_path(&c->call->workload.facts, "user");
	const char *judged = jv_str(user, "effective", "");
	const char *made = jv_str(c->config, "User", ""), *image = jv_str(doc, "Image", "");
	const char *owner = jv_str(jv_get(c->config, "Labels"), GATE_LABEL_OWNER, "");

	if (strcmp(*made ? made : "root", judged) != 0)
		differs(c->call, "Config.User", made, judged);
	if (strcmp(image, c->st->image_id) != 0)
		differs(c->call, "Image", image, c->st->image_id);
	if (strcmp(owner, docker_maker(c->call)) != 0)
		differs(c->call, "Config.Labels." GATE_LABEL_OWNER, owner, docker_maker(c->call));
	else
		compare_labels(c);
}

static void compare(struct backend_call *call, const struct jv *doc)
{
	static const struct jv nothing = {.kind = JV_OBJECT};
	const struct docker_state *st = docker_state(call);
	const struct jv *sent = jv_get(&st->sent, "HostConfig"), *mounts = jv_get(doc, "Mounts");
	struct comparing c = {.call = call,
			      .st = st,
			      .sent = sent ? sent : &nothing,
			      .config = jv_get(doc, "Config"),
			      .host = jv_get(doc, "HostConfig"),
			      .others = st->flavor->compares ? st->flavor->compares : ""};

	if (!c.config || c.config->kind != JV_OBJECT || !c.host || c.host->kind != JV_OBJECT ||
	    !mounts || mounts->kind != JV_ARRAY ||
	    strcmp(jv_str(doc, "Id", ""), st->created) != 0) {
		docker_refuse(call, REASON_not_as_judged, "Id", jv_str(doc, "Id", ""))->text =
			"what was made cannot be inspected";
		return;
	}
	compare_config(&c, doc);
	compare_host(&c);
	compare_mounts(&c, mounts);
	if (st->flavor->compare)
		st->flavor->compare(call, c.sent, c.host, doc);
}

/* --- check --- */

static const char *id_in(struct backend_call *call, struct span reply)
{
	enum jv_fault fault;
	struct err err = {0};
	struct jv doc;

	if (jv_parse(call->arena, reply, &doc, &fault, &err) < 0)
		return "";
	return jv_str(&doc, "Id", "");
}

enum step docker_check(struct backend *be, struct backend_call *call, struct span reply)
{
	struct docker_state *st = docker_state(call);
	const struct lookup *answer;

	(void)be;
	docker_harvest(call);
	call->refused = (struct violations){.count = 0};
	st->sealed = false;
	if (docker_starts(call->op))
		return docker_attest(call);
	if (call->op != OP_CONTAINER_CREATE || !st->info) {
		docker_refuse(call, REASON_internal, NULL, NULL);
		return STEP_REFUSED;
	}
	if (!st->created)
		st->created = id_in(call, reply);
	if (!hash_is_hex(span_of(st->created))) {
		st->created = "";
		docker_refuse(call, REASON_engine_reply, "Id", NULL);
		return STEP_REFUSED;
	}
	answer =
		docker_ask(call, docker_target(call, "/containers/", span_of(st->created), "/json"),
			   "containers", st->created);
	if (answer && answer->status == 200)
		compare(call, &answer->body);
	else if (answer)
		docker_refuse(call, REASON_not_as_judged, "Id", st->created)->text =
			"what was made cannot be inspected";
	if (arena_spent(call->arena))
		docker_refuse(call, REASON_no_memory, NULL, NULL);
	if (call->refused.count)
		return STEP_REFUSED;
	return answer ? STEP_READY : STEP_LOOKUP;
}
