#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"
#include "gate/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_KEY_MS 120000 /* for the other request with the same key */
#define NOTED_MAX   16384

static const struct conf_sandboxes *conf(const struct call *c)
{
	return &c->s->conf.proxy->sandboxes;
}

/* --- what it is to be --- */

static int64_t smaller(int64_t a, int64_t b)
{
	return b && b < a ? b : a;
}

/* What was asked for, or else what is usual, within what the profile allows. */
static int bound(struct call *c, const char *name, int64_t asked, int64_t usual, int64_t most,
		 int64_t *ret)
{
	*ret = asked ? asked : smaller(usual, most);
	if (!most || *ret <= most)
		return 0;
	return trouble_set(&c->trouble, c->a, CODE_above_profile,
			   "%s: %lld is asked for, and the profile \"%s\" allows %lld", name,
			   (long long)asked, c->who.profile, (long long)most);
}

static int set_limits(struct call *c, const struct wanted *w, const struct terms *terms,
		      struct limits *ret)
{
	const struct limits *most = &terms->most;

	if (bound(c, "memory", w->limits.memory, (int64_t)conf(c)->memory, most->memory,
		  &ret->memory) < 0 ||
	    bound(c, "cpus", w->limits.nano_cpus, 1000000000, most->nano_cpus, &ret->nano_cpus) <
		    0 ||
	    bound(c, "pids", w->limits.pids, conf(c)->pids, most->pids, &ret->pids) < 0 ||
	    bound(c, "output", w->limits.output, (int64_t)conf(c)->output, most->output,
		  &ret->output) < 0)
		return -1;
	return bound(c, "disk", w->limits.disk, smaller((int64_t)conf(c)->disk, ret->memory),
		     most->disk, &ret->disk);
}

static int set_times(struct call *c, const struct wanted *w, const struct terms *terms,
		     struct box *b)
{
	int64_t most = smaller(conf(c)->lifetime_s, terms->lifetime_s), lifetime;
	int64_t usual = terms->lifetime_s ? terms->lifetime_s : conf(c)->default_s;

	if (bound(c, "lifetime", w->lifetime_s, usual, most, &lifetime) < 0)
		return -1;
	b->idle_s = w->idle_s ? w->idle_s : terms->idle_s;
	if (terms->idle_s && b->idle_s > terms->idle_s)
		return trouble_set(&c->trouble, c->a, CODE_above_profile,
				   "idle: the profile \"%s\" allows %lld s", c->who.profile,
				   (long long)terms->idle_s);
	b->created = (int64_t)(clock_unix_ns() / 1000000000);
	b->expires = b->created + lifetime;
	b->ends_ms = clock_boot_ms() + (uint64_t)lifetime * 1000;
	return 0;
}

static char *json_text(const struct jv *v)
{
	struct buf out;
	char *text;

	buf_init(&out, 2 * (ENV_BYTES_MAX + LABELS_MAX * LABEL_BYTES_MAX) * 6);
	jv_write(&out, v);
	buf_put(&out, "", 1);
	text = buf_spent(&out) ? NULL : strdup(buf_span(&out).at);
	buf_fini(&out);
	return text;
}

static int set_texts(struct call *c, const struct wanted *w, struct box *b)
{
	free(b->labels);
	free(b->env);
	b->labels = json_text(&w->labels);
	b->env = json_text(&w->env);
	if (b->labels && b->env)
		return 0;
	return trouble_set(&c->trouble, c->a, CODE_no_memory, "no memory");
}

static int set_key(struct call *c, struct box *b)
{
	const char *key = httpd_header(c->r, "idempotency-key");
	struct hash h;

	if (!key)
		return 0;
	if (!*key || strlen(key) > SANDBOX_NAME_MAX)
		return trouble_set(&c->trouble, c->a, CODE_invalid,
				   "Idempotency-Key must have 1 to %d characters",
				   SANDBOX_NAME_MAX);
	snprintf(b->key, sizeof(b->key), "%s", key);
	h = hash_of(buf_span(&c->r->body));
	hash_hex(&h, b->key_sha256);
	return 0;
}

/* --- which backend --- */

static const struct conf_backend *backend_at(const struct call *c, size_t i)
{
	const struct conf_listener *l = c->front->listener;

	return &c->s->conf.proxy->backends[l->sandboxes[i]];
}

/* There is but one image of a keeper's. */
static int choose_image(struct call *c, const struct wanted *w, const struct terms *terms,
			const struct conf_backend *be, struct box *b)
{
	const char *image = *w->image ? w->image : terms->image;

	if (strcmp(be->kind, "local") == 0 && !*w->image)
		image = "host";
	if (!*image)
		return trouble_set(&c->trouble, c->a, CODE_image_missing, "%s",
				   code_text(CODE_image_missing));
	snprintf(b->image, sizeof(b->image), "%s", image);
	return 0;
}

/* Why this one falls short, as one element of `backends`. */
static void add_why(struct call *c, struct jv *list, const struct conf_backend *be)
{
	struct trouble *t = &c->trouble;
	struct jv *one = jv_push(c->a, list, jv_object()), *why;

	jv_set(c->a, one, "backend", jv_string(be->name));
	if (t->level && *t->level)
		jv_set(c->a, one, "level", jv_string(t->level));
	if (t->decision && *t->decision)
		jv_set(c->a, one, "decision", jv_string(t->decision));
	if (t->violations.kind == JV_ARRAY && t->violations.count) {
		jv_set(c->a, one, "why", t->violations);
		return;
	}
	why = jv_set(c->a, one, "why", jv_array());
	one = jv_push(c->a, why, jv_object());
	jv_set(c->a, one, "reason", jv_string(t->code ? t->code : ""));
	jv_set(c->a, one, "text", jv_string(t->message ? t->message : ""));
}

/* Another backend would say the same, or is not to be asked. */
static bool ends_search(const struct trouble *t)
{
	return t->status == 429 || t->status == 400 || t->status == 413 ||
	       (t->code &&
		(!strcmp(t->code, "profile_not_stricter") || !strcmp(t->code, "image_missing") ||
		 !strcmp(t->code, "quarantined") || !strcmp(t->code, "audit_unavailable")));
}

static void read_isolation(struct box *b, const char *told)
{
	struct span rest = span_of(told), level;

	span_cut(&rest, ' ', &level);
	snprintf(b->level, sizeof(b->level), "%.*s", SPAN_FMT(level));
	snprintf(b->runtime, sizeof(b->runtime), "%.*s", SPAN_FMT(rest));
}

static int keep(struct call *c, const struct box *b)
{
	struct err err = {0};

	if (kept_write(c->s, b, &err) == 0)
		return 0;
	log_line("sandbox %s: %s", b->id, err.msg);
	return trouble_set(&c->trouble, c->a, CODE_unavailable,
			   "what is made could not be kept in the state folder");
}

/* On one backend: created and started.  What dies meanwhile leaves a file, by which it is found. */
static int try_backend(struct call *c, const struct conf_backend *be, struct box *b)
{
	struct reply r;

	snprintf(b->backend, sizeof(b->backend), "%s", be->name);
	if (keep(c, b) < 0)
		return -1;
	if (driver_create(c->s, b, c->a, &r, &c->trouble) < 0)
		return -1;
	read_isolation(b, r.isolation);
	reply_fini(&r);
	return keep(c, b) < 0 ? -1 : driver_start(c->s, b, c->a, &c->trouble);
}

static bool may_be_there(const struct trouble *t)
{
	return !t->decision || !*t->decision; /* what a worker refused was not made */
}

/* It may have been made though nobody could tell; then it must not stay. */
static void undo(struct call *c, const struct box *b)
{
	struct trouble t = {0};

	if (!driver_delete(c->s, b, false, &t) && !driver_delete(c->s, b, true, &t))
		log_line("sandbox %s: what was begun of it may still be there", b->id);
}

static int make(struct call *c, const struct wanted *w, const struct terms *terms, struct box *b)
{
	const struct conf_listener *l = c->front->listener;
	struct jv why = jv_array();
	size_t tried = 0;

	for (size_t i = 0; i < l->sandbox_count; i++) {
		const struct conf_backend *be = backend_at(c, i);
		bool created;

		if (*w->backend && strcmp(w->backend, be->name) != 0)
			continue;
		tried++;
		c->trouble = (struct trouble){.violations = jv_null()};
		*b->level = '\0';
		if (choose_image(c, w, terms, be, b) == 0 && try_backend(c, be, b) == 0)
			return 0;
		created = *b->level != '\0';
		if (created || may_be_there(&c->trouble))
			undo(c, b);
		if (created || ends_search(&c->trouble))
			return -1;
		add_why(c, &why, be);
	}
	if (!tried)
		return trouble_set(&c->trouble, c->a, CODE_invalid,
				   "backend: this listener makes no sandboxes on '%.60s'",
				   w->backend);
	if (tried > 1)
		trouble_set(&c->trouble, c->a, CODE_no_backend, "none of %zu backends may make it",
			    tried);
	c->trouble.backends = why;
	return -1;
}

/* --- the whole --- */

static struct span facts_of(const struct box *b, struct buf *out)
{
	buf_init(out, NOTED_MAX);
	buf_puts(out, "{\"backend\":");
	jv_write_str(out, span_of(b->backend));
	buf_puts(out, ",\"image\":");
	jv_write_str(out, span_of(b->image));
	buf_printf(out,
		   ",\"level\":\"%s\",\"expires\":%lld,\"idle\":%lld,\"memory\":%lld,"
		   "\"nano_cpus\":%lld,\"pids\":%lld,\"disk\":%lld}",
		   b->level, (long long)b->expires, (long long)b->idle_s,
		   (long long)b->limits.memory, (long long)b->limits.nano_cpus,
		   (long long)b->limits.pids, (long long)b->limits.disk);
	return buf_spent(out) ? (struct span){"", 0} : buf_span(out);
}

static int note_made(struct call *c, const struct box *b)
{
	struct buf facts;
	const struct told what = {
		.op = "sandbox.create", .who = &c->who, .id = b->id, .facts = facts_of(b, &facts)};
	bool durable = trail_note(c->s, &what);

	buf_fini(&facts);
	return durable ? 0
		       : trouble_set(&c->trouble, c->a, CODE_no_log, "%s", code_text(CODE_no_log));
}

static void set_state(struct sandboxes *s, struct box *b, enum box_state state)
{
	pthread_mutex_lock(&s->lock);
	b->state = state;
	pthread_mutex_unlock(&s->lock);
	table_touch(s, b);
}

static int fill(struct call *c, const struct wanted *w)
{
	for (size_t i = 0; i < w->file_count; i++)
		if (files_write(c, &w->files[i]) < 0)
			return -1;
	return 0;
}

/* The same request again: what it made, once it is made. */
static int repeat(struct call *c, struct box *before, const struct box *b)
{
	uint64_t until = clock_boot_ms() + WAIT_KEY_MS;
	enum box_state state;

	c->box = before;
	if (strcmp(before->key_sha256, b->key_sha256) != 0)
		return trouble_set(&c->trouble, c->a, CODE_key_reused, "%s",
				   code_text(CODE_key_reused));
	pthread_mutex_lock(&c->s->lock);
	while ((state = before->state) == BOX_CREATING && clock_boot_ms() < until && !c->s->over) {
		struct timespec ts;

		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_sec++;
		pthread_cond_timedwait(&c->s->changed, &c->s->lock, &ts);
	}
	pthread_mutex_unlock(&c->s->lock);
	if (state == BOX_RUNNING)
		return 1;
	return trouble_set(&c->trouble, c->a, CODE_conflict,
			   "the other request with this Idempotency-Key came to nothing");
}

static void unmake(struct call *c, struct box *b, bool container)
{
	if (container)
		undo(c, b);
	kept_remove(c->s, b);
	set_state(c->s, b, BOX_ENDING);
	table_remove(c->s, b);
}

static int prepare(struct call *c, const struct wanted *w, const struct terms *terms, struct box *b)
{
	b->who = c->who;
	b->per_call = w->per_call >= 0 ? w->per_call || terms->per_call : terms->per_call;
	if (set_limits(c, w, terms, &b->limits) < 0 || set_times(c, w, terms, b) < 0 ||
	    set_texts(c, w, b) < 0)
		return -1;
	return set_key(c, b);
}

/* 0: c->box is a new one; 1: one of before; -1. */
static int make_box(struct call *c, const struct wanted *w)
{
	struct box *b = box_create(), *before;
	struct terms terms;

	api_terms(c, &terms);
	if (!b)
		return trouble_set(&c->trouble, c->a, CODE_no_memory, "no memory");
	if (prepare(c, w, &terms, b) < 0 || table_reserve(c->s, &c->who, c->a, &c->trouble) < 0) {
		box_free(b);
		return -1;
	}
	b->refs = 1;
	before = table_add(c->s, b);
	if (before) {
		int rc = repeat(c, before, b);

		table_unreserve(c->s);
		box_free(b);
		return rc;
	}
	c->box = b;
	if (make(c, w, &terms, b) < 0) {
		unmake(c, b, false);
		return -1;
	}
	set_state(c->s, b, BOX_RUNNING);
	if (fill(c, w) == 0 && note_made(c, b) == 0)
		return 0;
	unmake(c, b, true);
	return -1;
}

void create_handle(struct call *c)
{
	struct wanted w;
	struct jv tree;

	if (request_create(c->r, &w, &c->trouble) < 0) {
		struct trouble t = c->trouble;

		if (api_identify(c, "") == 0) /* so that it is known whose mistake it is */
			c->trouble = t;
		api_fail(c);
		return;
	}
	if (api_identify(c, w.profile) < 0 || make_box(c, &w) < 0) {
		api_fail(c);
		return;
	}
	tree = api_box(c, c->box);
	api_answer(c, 201, &tree);
}

/* --- for one command --- */

static struct box *like(const struct box *b)
{
	struct box *one = box_create();
	char *env = strdup(b->env);

	if (!one || !env) {
		free(env);
		box_free(one);
		return NULL;
	}
	free(one->env);
	one->env = env;
	one->who = b->who;
	one->limits = b->limits;
	one->hidden = true;
	memcpy(one->image, b->image, sizeof(one->image));
	one->created = (int64_t)(clock_unix_ns() / 1000000000);
	one->expires = b->expires;
	one->ends_ms = b->ends_ms;
	one->refs = 1;
	return one;
}

static const struct conf_backend *backend_named(const struct call *c, const char *name)
{
	const struct conf_listener *l = c->front->listener;

	for (size_t i = 0; i < l->sandbox_count; i++)
		if (strcmp(backend_at(c, i)->name, name) == 0)
			return backend_at(c, i);
	return NULL;
}

int create_for_call(struct call *c)
{
	const struct conf_backend *be = backend_named(c, c->box->backend);
	struct box *b = be ? like(c->box) : NULL;

	if (!b)
		return trouble_set(&c->trouble, c->a, CODE_unavailable, "its backend is no more");
	if (table_reserve(c->s, &c->who, c->a, &c->trouble) < 0) {
		box_free(b);
		return -1;
	}
	table_add(c->s, b);
	if (try_backend(c, be, b) < 0) {
		unmake(c, b, *b->level || may_be_there(&c->trouble));
		table_unref(c->s, b);
		return -1;
	}
	set_state(c->s, b, BOX_RUNNING);
	if (files_copy(c, c->box, b, "work") < 0 || note_made(c, b) < 0) {
		unmake(c, b, true);
		table_unref(c->s, b);
		return -1;
	}
	c->parent = c->box;
	c->box = b;
	return 0;
}

/* --- ending --- */

/* The first one to end it does; it is out of reach at once. */
static bool begin_end(struct sandboxes *s, struct box *b)
{
	bool first;

	pthread_mutex_lock(&s->lock);
	first = b->state == BOX_RUNNING || b->retry_ms;
	b->state = BOX_ENDING;
	b->retry_ms = 0;
	for (struct run *r = b->runs; r; r = r->next)
		run_cut(r);
	pthread_mutex_unlock(&s->lock);
	return first;
}

int end_box(struct sandboxes *s, struct box *b, const char *op, struct trouble *t)
{
	struct caller gate = b->who;
	bool own = strcmp(op, "sandbox.destroy") != 0;

	if (!begin_end(s, b))
		return 0;
	gate.own = own;
	if (!driver_delete(s, b, own, t) && (own || !driver_delete(s, b, true, t))) {
		pthread_mutex_lock(&s->lock);
		b->retry_ms = clock_boot_ms() + 5000;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		return -1;
	}
	trail_note(s, &(struct told){.op = op, .who = &gate, .id = b->id});
	kept_remove(s, b);
	table_remove(s, b);
	return 0;
}

void box_delete(struct call *c)
{
	struct trouble t = {0};

	if (end_box(c->s, c->box, "sandbox.destroy", &t) < 0) {
		trouble_set(&c->trouble, c->a, CODE_unavailable,
			    "the engine does not end it now; the gate will try again");
		api_fail(c);
		return;
	}
	httpd_reply(c->r, 204, NULL, (struct span){"", 0});
}

/* --- looking and extending --- */

void box_show(struct call *c)
{
	struct jv tree = api_box(c, c->box);

	api_answer(c, 200, &tree);
}

/* ?label=name=value or ?label=name; one. */
static bool has_label(struct call *c, const struct box *b, const char *wanted)
{
	struct arena *a = arena_create(1u << 20);
	struct span value = span_of(wanted), name;
	bool exact = span_cut(&value, '=', &name), found = false;
	enum jv_fault fault;
	struct err err = {0};
	const struct jv *v;
	struct jv labels;

	(void)c;
	if (a && jv_parse(a, span_of(b->labels), &labels, &fault, &err) == 0) {
		v = jv_get_span(&labels, name);
		found = v && v->kind == JV_STRING && (!exact || span_eq(v->str, value));
	}
	arena_destroy(a);
	return found;
}

/* Those of the caller, each with a reference. */
static size_t gather(struct call *c, struct box **list, size_t room)
{
	size_t n = 0;

	pthread_mutex_lock(&c->s->lock);
	for (struct box *b = c->s->boxes; b && n < room; b = b->next) {
		if (b->state != BOX_RUNNING || b->hidden ||
		    strcmp(b->who.owner, c->who.owner) != 0 ||
		    strcmp(b->who.listener, c->who.listener) != 0)
			continue;
		b->refs++;
		list[n++] = b;
	}
	pthread_mutex_unlock(&c->s->lock);
	return n;
}

void box_list(struct call *c)
{
	static const char *const known[] = {"label", NULL};
	const char *label = httpd_query(c->r, "label");
	size_t room = conf(c)->owner_max, n;
	struct box **list = arena_take(c->a, room * sizeof(struct box *));
	struct jv tree = jv_object(), *out = jv_set(c->a, &tree, "sandboxes", jv_array());

	if (!list || request_query(c->r, known, &c->trouble) < 0) {
		api_fail(c);
		return;
	}
	n = gather(c, list, room);
	for (size_t i = 0; i < n; i++) {
		if (!label || has_label(c, list[i], label))
			jv_push(c->a, out, api_box(c, list[i]));
		table_unref(c->s, list[i]);
	}
	api_answer(c, 200, &tree);
}

/* Counted from now on, and never beyond what it might have lived had it been made so. */
static int extend(struct call *c, int64_t lifetime_s)
{
	struct box *b = c->box;
	struct terms terms;
	struct err err = {0};
	int64_t most, now = (int64_t)(clock_unix_ns() / 1000000000), before;

	api_terms(c, &terms);
	most = smaller(conf(c)->lifetime_s, terms.lifetime_s);
	if (now + lifetime_s > b->created + most)
		return trouble_set(&c->trouble, c->a, CODE_above_profile,
				   "lifetime: it may live %lld s in all, of which %lld are over",
				   (long long)most, (long long)(now - b->created));
	if (!trail_note(c->s, &(struct told){.op = "sandbox.extend", .who = &c->who, .id = b->id}))
		return trouble_set(&c->trouble, c->a, CODE_no_log, "%s", code_text(CODE_no_log));
	pthread_mutex_lock(&c->s->lock);
	before = b->expires;
	b->expires = now + lifetime_s;
	b->ends_ms = clock_boot_ms() + (uint64_t)lifetime_s * 1000;
	pthread_mutex_unlock(&c->s->lock);
	table_touch(c->s, b);
	if (kept_write(c->s, b, &err) == 0)
		return 0;
	log_line("sandbox %s: %s", b->id, err.msg);
	pthread_mutex_lock(&c->s->lock);
	b->ends_ms -= (uint64_t)(b->expires - before) * 1000;
	b->expires = before;
	pthread_mutex_unlock(&c->s->lock);
	return trouble_set(&c->trouble, c->a, CODE_unavailable, "it could not be kept");
}

/* The terms are those of what the sandbox was made under. */
void box_patch(struct call *c)
{
	int64_t lifetime_s;

	if (request_lifetime(c->r, &lifetime_s, &c->trouble) < 0 ||
	    api_identify(c, c->box->who.profile) < 0 || extend(c, lifetime_s) < 0) {
		api_fail(c);
		return;
	}
	box_show(c);
}

void box_denials(struct call *c)
{
	struct jv tree = jv_object(), *out = jv_set(c->a, &tree, "denials", jv_array());
	struct denial list[DENIALS_MAX];
	unsigned denied, n;

	pthread_mutex_lock(&c->s->lock);
	denied = c->box->denied;
	memcpy(list, c->box->denials, sizeof(list));
	pthread_mutex_unlock(&c->s->lock);
	n = denied < DENIALS_MAX ? denied : DENIALS_MAX;
	for (unsigned i = denied - n; i < denied; i++) {
		const struct denial *d = &list[i % DENIALS_MAX];
		struct jv *one = jv_push(c->a, out, jv_object());

		jv_set(c->a, one, "time", api_time(c->a, d->at));
		jv_set(c->a, one, "operation",
		       jv_string(arena_strndup(c->a, d->op, strlen(d->op))));
		jv_set(c->a, one, "code", jv_string(arena_strndup(c->a, d->code, strlen(d->code))));
		jv_set(c->a, one, "message",
		       jv_string(arena_strndup(c->a, d->message, strlen(d->message))));
		if (*d->decision)
			jv_set(c->a, one, "decision",
			       jv_string(arena_strndup(c->a, d->decision, strlen(d->decision))));
	}
	api_answer(c, 200, &tree);
}
