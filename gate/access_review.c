#include "gate/access_review.h"

#include "audit/fields.h"
#include "audit/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 4096

/* Settings whose entries the facts of a launch can be held against. */
static const struct {
	const char *setting, *kind;
} listed[] = {{"images", "image"},     {"local_images", "local image"}, {"mounts", "mount"},
	      {"networks", "network"}, {"capabilities", "capability"},  {"ports", "port"}};
#define LISTED (sizeof(listed) / sizeof(*listed))

/* --- what the configuration says --- */

static struct access_subject *add_subject(struct access_review *r, enum access_kind kind)
{
	struct access_subject *s = &r->subjects[r->count++];

	*s = (struct access_subject){.kind = kind,
				     .name = "",
				     .owner = "",
				     .profile = "",
				     .known_by = "",
				     .listeners = "",
				     .listener = ""};
	return s;
}

static const char *keep(struct access_review *r, struct buf *text)
{
	const char *kept = arena_strndup(r->arena, buf_span(text).at, buf_len(text));

	buf_fini(text);
	return kept ? kept : "";
}

static const char *known_by(struct access_review *r, const struct conf_identity *i)
{
	struct buf out;

	buf_init(&out, TEXT_MAX);
	if (i->has_uid)
		buf_printf(&out, ", uid %u", i->uid);
	if (i->has_gid)
		buf_printf(&out, ", gid %u", i->gid);
	if (i->has_token)
		buf_puts(&out, ", token");
	if (i->has_cert)
		buf_puts(&out, ", certificate");
	if (i->container.kind != SIGN_NOTHING)
		buf_puts(&out, ", container");
	if (!buf_len(&out))
		buf_puts(&out, ", listener");
	buf_consume(&out, 2);
	return keep(r, &out);
}

static const char *listeners_of(struct access_review *r, const struct proxy_conf *c,
				size_t identity)
{
	struct buf out;

	buf_init(&out, TEXT_MAX);
	for (size_t i = 0; i < c->listener_count; i++)
		for (size_t k = 0; k < c->listeners[i].identity_count; k++)
			if (c->listeners[i].identities[k] == identity)
				buf_printf(&out, "%s%s", buf_len(&out) ? ", " : "",
					   c->listeners[i].name);
	return keep(r, &out);
}

static struct access_grant *add_grant(struct access_subject *s, const char *kind, const char *value)
{
	struct access_grant *g = &s->grants[s->grant_count++];

	*g = (struct access_grant){
		.kind = kind, .value = value, .rule = "", .ticket = "", .expires = ""};
	return g;
}

/* An entry of a list as people write it. */
static const char *entry_text(struct access_review *r, const struct jv *e)
{
	struct buf out;

	if (e->kind == JV_STRING)
		return e->str.at;
	buf_init(&out, TEXT_MAX);
	if (jv_get(e, "path"))
		buf_printf(&out, "%s %s", jv_str(e, "path", ""), jv_str(e, "mode", ""));
	else
		jv_write(&out, e);
	return keep(r, &out);
}

static void add_listed(struct access_review *r, struct access_subject *s)
{
	for (size_t i = 0; i < LISTED; i++) {
		const struct jv *list = jv_get(profile_settings(s->rules), listed[i].setting);

		for (size_t k = 0; list && list->kind == JV_ARRAY && k < list->count; k++) {
			struct access_grant *g =
				add_grant(s, listed[i].kind, entry_text(r, &list->items[k]));

			g->setting = listed[i].setting;
			g->entry = &list->items[k];
		}
	}
}

static void add_exceptions(struct access_subject *s, const struct engine *eng)
{
	struct exception_view x;

	for (size_t i = 0; engine_exception_at(eng, i, &x); i++) {
		struct access_grant *g;

		if (strcmp(x.profile, s->profile) != 0)
			continue;
		g = add_grant(s, "exception", x.reason ? x.reason : "");
		g->rule = x.rule;
		g->ticket = x.ticket ? x.ticket : "";
		g->expires = x.expires ? x.expires : "";
		g->ends = x.ends;
	}
}

static size_t grants_of(const struct profile *p, const struct engine *eng)
{
	struct exception_view x;
	size_t n = OP_COUNT;

	for (size_t i = 0; i < LISTED; i++) {
		const struct jv *list = jv_get(profile_settings(p), listed[i].setting);

		n += list && list->kind == JV_ARRAY ? list->count : 0;
	}
	for (size_t i = 0; engine_exception_at(eng, i, &x); i++)
		n += strcmp(x.profile, profile_name(p)) == 0;
	return n;
}

static int add_grants(struct access_review *r, struct access_subject *s, const struct engine *eng,
		      struct err *err)
{
	s->rules = engine_profile(eng, s->profile);
	if (!s->rules)
		return 0;
	s->grants = arena_take(r->arena, grants_of(s->rules, eng) * sizeof(*s->grants));
	if (!s->grants)
		return err_set(err, ERR_LIMIT, "no memory for a review");
	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++)
		if (profile_grant(s->rules, op) != GRANT_NONE)
			add_grant(s, "operation", operation_name(op))->op = op;
	add_listed(r, s);
	add_exceptions(s, eng);
	return 0;
}

static int add_identities(struct access_review *r, const struct proxy_conf *c,
			  const struct engine *eng, struct err *err)
{
	for (size_t i = 0; i < c->identity_count; i++) {
		const struct conf_identity *it = &c->identities[i];
		struct access_subject *s = add_subject(r, ACCESS_IDENTITY);

		s->name = it->name;
		s->owner = it->owner;
		s->profile = it->profile;
		s->known_by = known_by(r, it);
		s->listeners = listeners_of(r, c, i);
		if (add_grants(r, s, eng, err) < 0)
			return -1;
	}
	return 0;
}

static int add_others(struct access_review *r, const struct proxy_conf *c, const struct engine *eng,
		      struct err *err)
{
	for (size_t i = 0; i < c->listener_count; i++) {
		const struct conf_listener *l = &c->listeners[i];
		struct access_subject *s;
		struct buf name;

		if (!l->otherwise || !*l->otherwise || l->as_one)
			continue;
		s = add_subject(r, ACCESS_OTHERS);
		buf_init(&name, TEXT_MAX);
		buf_printf(&name, "(others at %s)", l->name);
		s->name = keep(r, &name);
		s->profile = l->otherwise;
		s->known_by = "listener";
		s->listener = s->listeners = l->name;
		if (add_grants(r, s, eng, err) < 0)
			return -1;
	}
	return 0;
}

static void add_role(struct access_review *r, const char *name, const struct config_members *m,
		     bool root)
{
	struct access_subject *s = add_subject(r, ACCESS_ROLE);
	struct buf out;

	s->name = name;
	buf_init(&out, TEXT_MAX);
	if (root)
		buf_puts(&out, ", root and who starts the gate");
	for (size_t i = 0; i < m->uid_count; i++)
		buf_printf(&out, ", uid %u", m->uids[i]);
	for (size_t i = 0; i < m->gid_count; i++)
		buf_printf(&out, ", gid %u", m->gids[i]);
	if (!buf_len(&out))
		buf_puts(&out, ", nobody");
	buf_consume(&out, 2);
	s->known_by = keep(r, &out);
	s->listeners = "admin socket";
}

static int set_up(struct access_review *r, const struct config *c, const struct engine *eng,
		  struct err *err)
{
	r->room = c->proxy.identity_count + c->proxy.listener_count + 3 + ACCESS_STRANGERS + 1;
	r->subjects = arena_take(r->arena, r->room * sizeof(*r->subjects));
	r->generation = c->proxy.generation ? c->proxy.generation : "";
	r->log = c->auditor.origin ? c->auditor.origin : "";
	if (!r->subjects)
		return err_set(err, ERR_LIMIT, "no memory for a review");
	if (add_identities(r, &c->proxy, eng, err) < 0 || add_others(r, &c->proxy, eng, err) < 0)
		return -1;
	add_role(r, "(admin: operate)", &c->admin.operate, true);
	add_role(r, "(admin: approve)", &c->admin.approve, false);
	add_role(r, "(admin: audit)", &c->admin.audit, true);
	return 0;
}

/* --- what the log says --- */

/* A name that the configuration has not: an own place, or the last one for all that follow. */
static struct access_subject *stranger(struct access_review *r, const struct fields *f)
{
	bool full = r->strangers == ACCESS_STRANGERS;
	struct access_subject *s;

	if (full && strcmp(r->subjects[r->count - 1].name, "(more)") == 0)
		return &r->subjects[r->count - 1];
	s = add_subject(r, ACCESS_STRANGER);
	r->strangers++;
	s->name = full ? "(more)" : arena_strndup(r->arena, f->identity, strlen(f->identity));
	if (!full) {
		s->owner = arena_strndup(r->arena, f->owner, strlen(f->owner));
		s->profile = arena_strndup(r->arena, f->profile, strlen(f->profile));
	}
	s->name = s->name ? s->name : "";
	s->owner = s->owner ? s->owner : "";
	s->profile = s->profile ? s->profile : "";
	if (full)
		r->strangers--;
	return s;
}

static struct access_subject *subject_of(struct access_review *r, const struct fields *f)
{
	for (size_t i = 0; i < r->count; i++) {
		struct access_subject *s = &r->subjects[i];

		if (s->kind == ACCESS_ROLE)
			continue;
		if (s->kind == ACCESS_OTHERS
			    ? !*f->identity && strcmp(s->listener, f->listener) == 0
			    : *f->identity && strcmp(s->name, f->identity) == 0)
			return s;
	}
	return *f->identity ? stranger(r, f) : NULL;
}

static void use(struct access_grant *g, const char *time)
{
	g->used++;
	snprintf(g->last, sizeof(g->last), "%s", time);
}

static void use_entry(struct access_subject *s, const char *setting, const struct jv *what,
		      const char *time)
{
	for (size_t i = 0; i < s->grant_count; i++) {
		struct access_grant *g = &s->grants[i];

		if (g->setting && strcmp(g->setting, setting) == 0 &&
		    profile_entry_within(setting, g->entry, what))
			use(g, time);
	}
}

static void use_image(struct access_subject *s, const struct jv *image, const char *time)
{
	const char *name = jv_str(image, "name", ""), *tag = jv_str(image, "tag", ""),
		   *digest = jv_str(image, "digest", "");
	const struct jv *names = jv_get(image, "names");
	char text[TEXT_MAX];
	struct jv what;

	snprintf(text, sizeof(text), "%s%s%s%s%s", name, *tag ? ":" : "", tag, *digest ? "@" : "",
		 digest);
	what = jv_string(text);
	for (size_t i = 0; i < 2; i++) {
		if (*name)
			use_entry(s, listed[i].setting, &what, time);
		for (size_t k = 0; !*name && names && names->kind == JV_ARRAY && k < names->count;
		     k++)
			use_entry(s, listed[i].setting, &names->items[k], time);
	}
}

/* The words that a granted path may hold are this subject's own. */
static bool fills(const char *pattern, const struct access_subject *s, char out[TEXT_MAX])
{
	const struct {
		const char *word, *value;
	} words[] = {{"{identity.name}", s->name}, {"{identity.owner}", s->owner}};
	size_t used = 0;

	while (*pattern && used + 1 < TEXT_MAX) {
		const char *value = NULL;

		for (size_t i = 0; i < 2 && !value; i++)
			if (strncmp(pattern, words[i].word, strlen(words[i].word)) == 0) {
				value = words[i].value;
				pattern += strlen(words[i].word);
			}
		if (value)
			used += (size_t)snprintf(out + used, TEXT_MAX - used, "%s", value);
		else
			out[used++] = *pattern++;
	}
	if (used >= TEXT_MAX)
		return false;
	out[used] = '\0';
	return true;
}

static void use_mount(struct access_subject *s, const struct jv *mount, const char *time)
{
	const char *source = jv_str(mount, "source", "");

	if (strcmp(jv_str(mount, "kind", ""), "bind") != 0)
		return;
	for (size_t i = 0; i < s->grant_count; i++) {
		struct access_grant *g = &s->grants[i];
		char root[TEXT_MAX];
		size_t len;

		if (!g->setting || strcmp(g->setting, "mounts") != 0 ||
		    !fills(jv_str(g->entry, "path", ""), s, root))
			continue;
		len = strlen(root);
		if (strncmp(source, root, len) == 0 && (!source[len] || source[len] == '/') &&
		    (jv_true(mount, "read_only") ||
		     strcmp(jv_str(g->entry, "mode", ""), "rw") == 0))
			use(g, time);
	}
}

/* Each entry of a list of facts, by the member that a setting has in its list. */
static void use_each(struct access_subject *s, const struct jv *list, const char *member,
		     const char *setting, const char *time)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *what = list->items[i].kind == JV_STRING
						? &list->items[i]
						: jv_get(&list->items[i], member);

		if (what && what->kind == JV_STRING)
			use_entry(s, setting, what, time);
	}
}

/* The mode is the name of one; it may be among the others again. */
static void use_networks(struct access_subject *s, const struct jv *network, const char *time)
{
	const struct jv *mode = jv_get(network, "mode"), *list = jv_get(network, "endpoints");

	if (mode && mode->kind == JV_STRING)
		use_entry(s, "networks", mode, time);
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *name = jv_get(&list->items[i], "name");

		if (name && name->kind == JV_STRING && (!mode || !jv_equal(name, mode)))
			use_entry(s, "networks", name, time);
	}
}

static void use_facts(struct access_subject *s, const struct fields *f)
{
	const struct jv *w = jv_path(&f->tree, "facts.workload"), *mounts = jv_get(w, "mounts");
	const struct jv *image = jv_get(w, "image");

	if (!w || w->kind != JV_OBJECT)
		return;
	if (image)
		use_image(s, image, f->time);
	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++)
		use_mount(s, &mounts->items[i], f->time);
	use_networks(s, jv_get(w, "network"), f->time);
	use_each(s, jv_path(w, "capabilities.add"), "name", "capabilities", f->time);
	use_each(s, jv_path(w, "network.ports"), "address", "ports", f->time);
}

static void use_exceptions(struct access_subject *s, const struct fields *f)
{
	const struct jv *list = jv_get(&f->tree, "exceptions");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		for (size_t k = 0; k < s->grant_count; k++) {
			struct access_grant *g = &s->grants[k];

			if (*g->rule && strcmp(g->rule, jv_str(&list->items[i], "rule", "")) == 0 &&
			    strcmp(g->ticket, jv_str(&list->items[i], "ticket", "")) == 0 &&
			    strcmp(g->expires, jv_str(&list->items[i], "expires", "")) == 0)
				use(g, f->time);
		}
}

static void seen(struct access_subject *s, const struct fields *f)
{
	if (!*s->first)
		snprintf(s->first, sizeof(s->first), "%s", f->time);
	snprintf(s->last, sizeof(s->last), "%s", f->time);
}

static void add_decision(struct access_review *r, const struct fields *f)
{
	struct access_subject *s = subject_of(r, f);

	if (!s)
		return;
	seen(s, f);
	if (strcmp(f->verdict, "allow") != 0) {
		s->refused++;
		return;
	}
	s->allowed++;
	s->launches += strcmp(f->op_class, "launch") == 0;
	s->commands += strcmp(f->op_class, "exec") == 0;
	for (size_t i = 0; i < s->grant_count; i++)
		if (s->grants[i].op != OP_UNKNOWN && strcmp(s->grants[i].value, f->op) == 0)
			use(&s->grants[i], f->time);
	use_facts(s, f);
	use_exceptions(s, f);
}

/* Uses of the admin socket say by which roles. */
static void add_admin(struct access_review *r, const struct fields *f)
{
	bool allowed = strcmp(f->verdict, "allow") == 0;

	if (!*f->verdict)
		return;
	for (size_t i = 0; i < r->count; i++) {
		struct access_subject *s = &r->subjects[i];
		char role[16] = "";

		if (s->kind != ACCESS_ROLE || sscanf(s->name, "(admin: %15[a-z])", role) != 1 ||
		    !strstr(f->rule, role))
			continue;
		seen(s, f);
		*(allowed ? &s->allowed : &s->refused) += 1;
	}
}

struct gathering {
	struct access_review *review;
	struct arena *arena;
	struct err *err;
};

static int on_line(void *arg, struct span line)
{
	struct gathering *g = arg;
	struct fields f;

	arena_reset(g->arena, FIELDS_ARENA_MAX);
	if (fields_take(g->arena, line, &f, g->err) < 0)
		return -1;
	if (f.t_ns < g->review->from_ns || f.t_ns >= g->review->to_ns)
		return 0;
	if (f.type == RECORD_DECISION || f.type == RECORD_READ)
		add_decision(g->review, &f);
	else if (f.type == RECORD_ADMIN)
		add_admin(g->review, &f);
	return arena_spent(g->review->arena) ? err_set(g->err, ERR_LIMIT, "no memory for a review")
					     : 0;
}

int access_review_make(struct access_review *r, const struct config *c, const struct engine *eng,
		       const char *dir, struct err *err)
{
	struct gathering g = {r, arena_create(FIELDS_ARENA_MAX), err};
	int rc;

	if (r->from_ns >= r->to_ns)
		rc = err_set(err, ERR_INPUT, "the period ends before it begins");
	else if (!g.arena)
		rc = err_set(err, ERR_LIMIT, "no memory for a review");
	else
		rc = set_up(r, c, eng, err) < 0 ? -1 : log_read(dir, on_line, &g, err);
	arena_destroy(g.arena);
	return rc;
}

/* --- what is noteworthy --- */

void access_grant_flag(const struct access_review *r, const struct access_grant *g, char out[80])
{
	int64_t left = g->ends - (int64_t)(r->to_ns / 1000000000);

	out[0] = '\0';
	if (*g->rule && left <= 0)
		snprintf(out, 80, "has ended");
	else if (*g->rule && left <= ACCESS_SOON_S)
		snprintf(out, 80, "ends in %" PRId64 " days%s", (left + 86399) / 86400,
			 g->used ? "" : "; never used");
	else if (!g->used)
		snprintf(out, 80, "never used");
}

const char *access_subject_flag(const struct access_subject *s)
{
	if (s->kind == ACCESS_STRANGER)
		return "not in the configuration";
	if (!s->rules && s->kind != ACCESS_ROLE)
		return "its profile is not loaded";
	if (!*s->listeners)
		return "no listener takes it";
	return s->allowed + s->refused ? "" : "not used";
}
