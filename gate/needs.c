#include "gate/needs.h"

#include "gate/grants.h"

#include <stdio.h>
#include <string.h>

static const char *kept(struct needs *n, const char *s)
{
	const char *copy = arena_strndup(n->arena, s, strlen(s));

	return copy ? copy : "";
}

static void need(struct needs *n, const struct recorded *r, const char *setting, const char *entry)
{
	struct need *it = n->list;

	for (; it < n->list + n->count; it++)
		if (strcmp(it->setting, setting) == 0 && strcmp(it->entry, entry) == 0) {
			it->count++;
			return;
		}
	if (n->count == NEEDS_MAX) {
		n->full = true;
		return;
	}
	n->count++;
	*it = (struct need){setting, kept(n, entry), kept(n, r->id), 1};
}

/* "text", as Lua reads it; what cannot stand in quotes as it is becomes a question. */
static void need_text(struct needs *n, const struct recorded *r, const char *setting,
		      const char *text)
{
	char entry[1024];

	if (!*text || strlen(text) > 900 || strpbrk(text, "\"\\*?{}"))
		need(n, r, "", "a name that would be a pattern, or is too long, was asked for");
	else {
		snprintf(entry, sizeof(entry), "\"%s\"", text);
		need(n, r, setting, entry);
	}
}

/* --- what a request names --- */

/* What was made, loaded or only named on that machine: it came from no registry. */
static bool is_local(const struct jv *image)
{
	const struct jv *digests = jv_get(image, "digests");

	return digests && digests->kind == JV_ARRAY && !digests->count &&
	       jv_true(image, "present") && !*jv_str(image, "digest", "");
}

static void need_image(struct needs *n, const struct recorded *r, const struct jv *image)
{
	const char *name = jv_str(image, "name", ""), *tag = jv_str(image, "tag", "");
	const char *digest = jv_str(image, "digest", "");
	const struct jv *names = jv_get(image, "names");
	const char *setting = is_local(image) ? "local_images" : "images";
	char full[1024];

	if (jv_true(image, "mine")) {
		need(n, r, "own_images", "true");
		return;
	}
	if (jv_true(image, "by_id")) {
		if (names && names->kind == JV_ARRAY && names->count)
			need_text(n, r, setting, names->items[0].str.at);
		else
			need(n, r, "", "an image that has no name was used by its id");
		return;
	}
	if (!*name)
		return;
	if (strncmp(tag, "sha256:", 7) == 0) {
		digest = tag;
		tag = "";
	}
	snprintf(full, sizeof(full), "%s%s%s%s%s", name, *tag ? ":" : "", tag, *digest ? "@" : "",
		 digest);
	need_text(n, r, setting, full);
}

static void need_mount(struct needs *n, const struct recorded *r, const struct jv *mount)
{
	const struct jv *host = jv_get(mount, "host");
	const char *source = jv_str(mount, "source", "");
	char entry[1024];

	if (strcmp(jv_str(mount, "kind", ""), "bind") != 0 || jv_get(host, "control"))
		return;
	if (!*source || source[1] == '\0' || strlen(source) > 900 || strpbrk(source, "\"\\*?{}")) {
		need(n, r, "", "a bind of the host's root, or of an odd path, was asked for");
		return;
	}
	if (strcmp(jv_str(host, "real", source), source) != 0)
		need(n, r, "", "a bind leads through a link; the real path must be granted, too");
	if (jv_true(host, "movable"))
		need(n, r, "movable_mounts", "true");
	snprintf(entry, sizeof(entry), "{ \"%s\", \"%s\" }", source,
		 jv_true(mount, "read_only") ? "ro" : "rw");
	need(n, r, "mounts", entry);
}

static void need_network(struct needs *n, const struct recorded *r, const char *name)
{
	if (!*name || strcmp(name, "none") == 0 || strcmp(name, "container") == 0)
		return;
	if (strcmp(name, "host") == 0)
		need(n, r, "", "the host's network was asked for; no setting grants it");
	else
		need_text(n, r, "networks", name);
}

static void need_port(struct needs *n, const struct recorded *r, const struct jv *port)
{
	const char *address = jv_str(port, "address", "");

	if (*address)
		need_text(n, r, "ports", address);
	else
		need(n, r, "",
		     "a port was published on all addresses; ports = { \"*\" } would grant that");
}

static void each(struct needs *n, const struct recorded *r, const struct jv *list,
		 void (*fn)(struct needs *n, const struct recorded *r, const struct jv *entry))
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		fn(n, r, &list->items[i]);
}

static void need_endpoint(struct needs *n, const struct recorded *r, const struct jv *point)
{
	need_network(n, r, jv_str(point, "name", ""));
}

static void need_capability(struct needs *n, const struct recorded *r, const struct jv *added)
{
	if (strcmp(jv_str(added, "name", ""), "ALL") == 0)
		need(n, r, "", "all capabilities were asked for; name those that are needed");
	else
		need_text(n, r, "capabilities", jv_str(added, "name", ""));
}

static void need_label(struct needs *n, const struct recorded *r, const struct jv *label)
{
	const char *name = jv_str(label, "name", "");

	if (strncmp(name, "com.docker.compose.", 19) != 0)
		need_text(n, r, "labels", name);
}

/* --- how it runs --- */

static void see_limit(struct limit_seen *seen, const struct jv *limits, const char *name)
{
	int64_t value = jv_num(limits, name, 0);

	seen->with += value > 0;
	seen->without += value <= 0;
	if (value > seen->most)
		seen->most = value;
}

static void see_level(struct needs *n, const struct recorded *r, const struct jv *isolation)
{
	const struct jv *word = jv_get(isolation, "level");
	enum isolation level;

	if (!word || word->kind != JV_STRING || isolation_find(word->str, &level) < 0 ||
	    level == ISOLATION_NONE) {
		need(n, r, "", "something ran that nothing isolates; no setting grants that");
		return;
	}
	if (!n->any_level || level < n->weakest)
		n->weakest = level;
	n->any_level = true;
}

static void add_launch(struct needs *n, const struct recorded *r, const struct jv *w)
{
	const struct jv *user = jv_get(w, "user"), *limits = jv_get(w, "limits");
	const char *restart = jv_str(w, "restart", "no"), *driver;

	n->launches++;
	n->hardened += jv_get(&r->record, "mut") != NULL;
	see_limit(&n->memory, limits, "memory");
	see_limit(&n->nano_cpus, limits, "nano_cpus");
	see_limit(&n->pids, limits, "pids");
	see_level(n, r, jv_get(w, "isolation"));
	if (jv_true(user, "root"))
		need(n, r, "users", "\"any\"");
	if (*restart && strcmp(restart, "no") != 0)
		need_text(n, r, "restart", restart);
	driver = jv_str(jv_get(w, "log"), "driver", "");
	if (*driver)
		need_text(n, r, "log_drivers", driver);
	if (jv_true(jv_get(w, "command"), "healthcheck"))
		need(n, r, "healthchecks", "true");
	each(n, r, jv_get(w, "labels"), need_label);
	each(n, r, jv_path(w, "network.ports"), need_port);
}

static void add_facts(struct needs *n, const struct recorded *r)
{
	const struct jv *w = jv_get(r->facts, "workload");
	const struct jv *network = jv_get(w, "network");

	if (*jv_str(w, "opaque", ""))
		need_text(n, r, "opaque", jv_str(w, "opaque", ""));
	need_image(n, r, jv_get(w, "image"));
	need_image(n, r, jv_get(w, "pull"));
	each(n, r, jv_get(w, "images"), need_image);
	each(n, r, jv_get(w, "mounts"), need_mount);
	each(n, r, jv_path(w, "capabilities.add"), need_capability);
	need_network(n, r, jv_str(network, "mode", ""));
	each(n, r, jv_get(network, "endpoints"), need_endpoint);
	if (jv_true(jv_get(w, "exec"), "root"))
		need(n, r, "users", "\"any\"");
	if (operation_class(r->op) == CLASS_LAUNCH)
		add_launch(n, r, w);
	else if (jv_get(w, "isolation"))
		see_level(n, r, jv_get(w, "isolation"));
}

/* What no line of a profile grants is for a person to decide. */
static void add_questions(struct needs *n, const struct recorded *r)
{
	for (size_t i = 0; r->violations && i < r->violations->count; i++) {
		const struct jv *v = &r->violations->items[i];
		char text[400];
		struct buf line;

		buf_init(&line, 8192);
		if (grants_line(r->facts, r->op_name, v, &line) != GRANTS_LINE) {
			snprintf(text, sizeof(text),
				 "%.64s (%.64s) objects%s%.100s: nothing here grants it",
				 jv_str(v, "rule", ""), jv_str(v, "reason", ""),
				 *jv_str(v, "field", "") ? " to " : "", jv_str(v, "field", ""));
			need(n, r, "", text);
		}
		buf_fini(&line);
	}
}

void needs_add(struct needs *n, const struct recorded *r)
{
	char text[160];

	if (!*r->judged || r->op == OP_UNKNOWN)
		return;
	if (strcmp(r->judged, "allow") != 0) {
		snprintf(text, sizeof(text), "%.64s was refused (%.40s); is it needed?", r->op_name,
			 r->reason);
		need(n, r, "", text);
		return;
	}
	n->decisions++;
	if (!n->from)
		n->from = kept(n, r->time);
	n->to = kept(n, r->time);
	need_text(n, r, "operations", r->op_name);
	if (r->facts)
		add_facts(n, r);
	add_questions(n, r);
}
