#include "backends/docker/docker_priv.h"

#include "gate/base/hash.h"
#include "gate/base/seccomp_profile.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- small things that every file here uses --- */

const char *docker_text(struct backend_call *call, const char *fmt, ...)
{
	char small[256], *text;
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	text = len < 0 ? NULL : arena_take(call->arena, (size_t)len + 1);
	if (text && (size_t)len < sizeof(small))
		memcpy(text, small, (size_t)len + 1);
	else if (text)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text ? text : "";
}

const char *docker_cut(struct backend_call *call, struct span s)
{
	size_t len = s.len < VIOLATION_VALUE_MAX ? s.len : VIOLATION_VALUE_MAX;
	const char *copy;

	/* Not inside a character. */
	while (len < s.len && len && ((unsigned char)s.at[len] & 0xc0) == 0x80)
		len--;
	copy = arena_strndup(call->arena, s.at, len);
	return copy ? copy : "";
}

const char *docker_whole(struct backend_call *call, struct span s)
{
	const char *copy = arena_strndup(call->arena, s.at, s.len);

	return copy ? copy : "";
}

const char *docker_word(struct backend_call *call, struct span s)
{
	char hex[HASH_HEX_LEN + 1];
	struct hash h;

	if (s.len <= VIOLATION_VALUE_MAX)
		return docker_cut(call, s);
	h = hash_of(s);
	hash_hex(&h, hex);
	s.len = VIOLATION_VALUE_MAX - sizeof("...") + 1 - HASH_HEX_LEN;
	while (s.len && ((unsigned char)s.at[s.len] & 0xc0) == 0x80)
		s.len--;
	return docker_text(call, "%.*s...%s", SPAN_FMT(s), hex);
}

struct violation *docker_refuse(struct backend_call *call, enum reason r, const char *field,
				const char *value)
{
	struct violation *v = violations_add(&call->refused, r);

	v->field = field ? field : "";
	v->value = value ? docker_cut(call, span_of(value)) : "";
	return v;
}

void docker_warn(struct backend_call *call, const char *text)
{
	size_t max = sizeof(call->warnings) / sizeof(*call->warnings);

	if (call->warning_count < max)
		call->warnings[call->warning_count++].text = text;
}

const char *docker_target(struct backend_call *call, const char *before, struct span name,
			  const char *after)
{
	const char *also = strcmp(before, "/images/") == 0 ? "/:@" : "";
	const struct docker_flavor *f = docker_state(call)->flavor;
	const char *other = f->target ? f->target(call, before, name, after) : NULL;

	if (other)
		return other;

	return docker_text(call, "/v1.%d%s%s%s", docker_state(call)->minor, before,
			   docker_encoded(call, name, also), after);
}

/* --- asking --- */

static const struct lookup *answer_of(const struct docker_state *st, enum lookup_kind kind,
				      const char *target)
{
	for (const struct docker_answer *a = st->answers; a; a = a->next)
		if (a->lookup.kind == kind && strcmp(a->lookup.target, target) == 0)
			return &a->lookup;
	return NULL;
}

static bool is_asked(const struct backend_call *call, enum lookup_kind kind, const char *target)
{
	for (size_t i = 0; i < call->lookup_count; i++)
		if (call->lookups[i].kind == kind && strcmp(call->lookups[i].target, target) == 0)
			return true;
	return false;
}

static const struct lookup *ask(struct backend_call *call, const struct lookup *question)
{
	static const struct lookup nothing = {.table = "", .key = "", .answered = true};
	struct docker_state *st = docker_state(call);
	const struct lookup *found = answer_of(st, question->kind, question->target);

	if (found)
		return found;
	if (st->sealed)
		return &nothing;
	if (is_asked(call, question->kind, question->target))
		return NULL;
	if (call->lookup_count < LOOKUPS_MAX)
		call->lookups[call->lookup_count++] = *question;
	else
		docker_refuse(call, REASON_facts_too_large, NULL, NULL)->text =
			"the request names more objects than the gate looks up at once";
	return NULL;
}

const struct lookup *docker_ask(struct backend_call *call, const char *target, const char *table,
				const char *key)
{
	const struct lookup question = {
		.kind = LOOKUP_GET, .target = target, .table = table, .key = key};
	const struct lookup *answer = ask(call, &question);

	if (!answer || answer->status || call->offline || docker_state(call)->sealed)
		return answer;
	if (!call->refused.count)
		docker_refuse(call,
			      answer->late ? REASON_engine_timeout : REASON_engine_unreachable,
			      NULL, NULL);
	return NULL;
}

const struct lookup *docker_ask_path(struct backend_call *call, const char *path)
{
	const struct lookup question = {
		.kind = LOOKUP_PATH, .target = path, .table = "files", .key = path};

	return ask(call, &question);
}

const struct lookup *docker_ask_remembered(struct backend_call *call, const char *name)
{
	const struct lookup question = {
		.kind = LOOKUP_REMEMBERED, .target = name, .table = "updates", .key = name};

	return ask(call, &question);
}

const struct lookup *docker_ask_anew(struct backend_call *call, const struct lookup *question,
				     bool *asked)
{
	if (*asked)
		return answer_of(docker_state(call), question->kind, question->target);
	assert(call->lookup_count < LOOKUPS_MAX);
	call->lookups[call->lookup_count++] = *question;
	*asked = true;
	return NULL;
}

void docker_translate(struct backend_call *call)
{
	const struct docker_flavor *f = docker_state(call)->flavor;

	for (size_t i = 0; f->translate && i < call->lookup_count; i++)
		if (call->lookups[i].answered && call->lookups[i].status)
			f->translate(call, &call->lookups[i]);
}

void docker_harvest(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);

	docker_translate(call);
	for (size_t i = 0; i < call->lookup_count; i++) {
		struct docker_answer *a;

		if (!call->lookups[i].answered)
			continue;
		a = arena_take(call->arena, sizeof(*a));
		if (!a)
			break;
		*a = (struct docker_answer){call->lookups[i], st->answers};
		st->answers = a;
	}
	call->lookup_count = 0;
}

/* --- version --- */

/* The minor of "1.41", or -1. */
static int api_minor(const char *text)
{
	int minor = 0;
	const char *p = text + 2;

	if (strncmp(text, "1.", 2) != 0 || !*p || strlen(p) > 3)
		return -1;
	for (; *p; p++) {
		if (*p < '0' || *p > '9')
			return -1;
		minor = minor * 10 + (*p - '0');
	}
	return minor;
}

static int common_minor(struct backend_call *call, const struct lookup *answer)
{
	const char *text = jv_str(&answer->body, "ApiVersion", "");
	const char *least = jv_str(&answer->body, "MinAPIVersion", "");
	int minor = api_minor(text);

	if (!answer->status)
		return DOCKER_MINOR_MAX; /* offline, and the file does not say */
	if (answer->status != 200 || minor < DOCKER_MINOR_MIN) {
		docker_refuse(call, REASON_engine_reply, "ApiVersion", text);
		return -1;
	}
	if (!docker_state(call)->flavor->is_it(call, &answer->body))
		return -1;
	if (api_minor(least) > DOCKER_MINOR_MAX) {
		docker_refuse(call, REASON_engine_reply, "MinAPIVersion", least)->text =
			"the engine speaks only API versions that are newer than the gate's";
		return -1;
	}
	return minor < DOCKER_MINOR_MAX ? minor : DOCKER_MINOR_MAX;
}

bool docker_speak(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct lookup *answer;

	if (st->minor)
		return true;
	if (d->has_version && !call->offline &&
	    call->now_ms - d->version_at_ms < DOCKER_VERSION_FRESH_MS) {
		st->minor = d->minor;
		return true;
	}
	answer = docker_ask(call, "/version", "version", "");
	if (!answer)
		return false;
	st->minor = common_minor(call, answer);
	if (st->minor < 0)
		return false;
	if (!call->offline) {
		d->has_version = true;
		d->version_at_ms = call->now_ms;
		d->minor = st->minor;
	}
	return true;
}

/* --- info --- */

static const char *kept(struct arena *a, const struct jv *obj, const char *key)
{
	const char *s = jv_str(obj, key, "");
	char *copy = arena_strndup(a, s, strlen(s));

	return copy ? copy : "";
}

static bool has_option(const struct jv *doc, const char *name)
{
	const struct jv *list = jv_get(doc, "SecurityOptions");
	size_t len = strlen(name);

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct span s = list->items[i].kind == JV_STRING ? list->items[i].str
								 : (struct span){"", 0};

		if (span_starts(s, "name="))
			s = span_skip(s, 5);
		if (span_starts(s, name) && (s.len == len || s.at[len] == ','))
			return true;
	}
	return false;
}

void docker_read_info(struct arena *a, const struct jv *doc, struct docker_info *ret)
{
	const struct jv *runtimes = jv_get(doc, "Runtimes");

	*ret = (struct docker_info){.known = doc->kind == JV_OBJECT};
	ret->default_runtime = kept(a, doc, "DefaultRuntime");
	ret->runtime_alias = kept(a, doc, "RuntimeAlias");
	ret->logging_driver = kept(a, doc, "LoggingDriver");
	ret->cpus = jv_num(doc, "NCPU", 0);
	ret->cgroup_v1 = strcmp(jv_str(doc, "CgroupVersion", ""), "1") == 0;
	ret->no_new_privileges = has_option(doc, "no-new-privileges");
	ret->seccomp = has_option(doc, "seccomp");
	ret->unfiltered = has_option(doc, "seccomp,profile=unconfined");
	ret->apparmor = has_option(doc, "apparmor");
	ret->machine = seccomp_machine(span_of(jv_str(doc, "Architecture", "")));
	ret->rootless = has_option(doc, "rootless");
	ret->maps_users = has_option(doc, "userns");
	for (size_t i = 0; runtimes && runtimes->kind == JV_OBJECT && i < runtimes->count &&
			   ret->runtime_count < DOCKER_RUNTIMES_MAX;
	     i++) {
		const struct jv_member *m = &runtimes->members[i];
		const char *name = arena_strndup(a, m->key.at, m->key.len);

		docker_read_runtime(a, name ? name : "", &m->value,
				    &ret->runtimes[ret->runtime_count++]);
	}
}

/* A copy whose strings live as long as the call: the cache may be renewed meanwhile. */
static void copy_info(struct arena *a, const struct docker_info *from, struct docker_info *to)
{
	*to = *from;
#define KEEP(s) (s) = arena_strndup(a, (s), strlen(s))
	KEEP(to->default_runtime);
	KEEP(to->runtime_alias);
	KEEP(to->logging_driver);
	for (size_t i = 0; i < to->runtime_count; i++) {
		struct docker_runtime *rt = &to->runtimes[i];

		KEEP(rt->name);
		KEEP(rt->path);
		for (size_t k = 0; k < rt->is.line_count; k++) {
			KEEP(rt->is.lines[k].field);
			KEEP(rt->is.lines[k].value);
		}
	}
#undef KEEP
	to->known = to->known && !arena_spent(a);
}

#define INFO_ARENA_BYTES 262144

static void cache_info(struct docker *d, const struct backend_call *call, const struct jv *doc)
{
	arena_destroy(d->info_arena);
	d->info_arena = arena_create(INFO_ARENA_BYTES);
	if (!d->info_arena)
		return;
	docker_read_info(d->info_arena, doc, &d->info);
	d->info_at_ms = call->now_ms;
	if (!arena_spent(d->info_arena))
		return;
	arena_destroy(d->info_arena);
	d->info_arena = NULL;
}

static const char *info_target(struct backend_call *call)
{
	const struct docker_state *st = docker_state(call);

	return st->flavor->info_target ? st->flavor->info_target(call)
				       : docker_text(call, "/v1.%d/info", st->minor);
}

const struct docker_info *docker_know(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct lookup *answer;
	bool fresh = d->info_arena && !call->offline &&
		     call->now_ms - d->info_at_ms < DOCKER_INFO_FRESH_MS;

	if (st->info)
		return st->info;
	answer = fresh ? NULL : docker_ask(call, info_target(call), "info", "");
	if (!fresh && !answer)
		return NULL;
	if (answer && answer->status && answer->status != 200) {
		docker_refuse(call, REASON_engine_reply, "/info", NULL);
		return NULL;
	}
	st->info = arena_take(call->arena, sizeof(*st->info));
	if (!st->info)
		return NULL;
	if (fresh)
		copy_info(call->arena, &d->info, st->info);
	else
		docker_read_info(call->arena, &answer->body, st->info);
	if (!fresh && answer->status && !call->offline)
		cache_info(d, call, &answer->body);
	return st->info;
}
