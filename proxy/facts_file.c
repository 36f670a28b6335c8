/*
 * A facts file (`sallyport check --facts`): answers lookups instead of the
 * service.  Tables of objects may be written as the engine's API gives them, a
 * list, or keyed by the name or id that requests use.
 */
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

#define PREFIX_MIN 4 /* digits that may stand for an id */

/* --- paths --- */

/* The file's word for a path: {"kind":"symlink","target":"/etc"}. */
static const char *link_target(const struct jv *entry)
{
	const char *kind = jv_str(entry, "kind", "");
	const char *target = jv_str(entry, "target", "");

	return *target && (!strcmp(kind, "symlink") || !strcmp(kind, "link")) ? target : NULL;
}

/* The first directory on the way to path (or path itself) that is a link; 0 if none is. */
static size_t find_link(const struct jv *files, const char *path, const char **ret_target)
{
	size_t len = strlen(path);

	for (size_t i = 1; i <= len; i++) {
		const struct jv *entry;

		if (path[i] != '/' && path[i] != '\0')
			continue;
		entry = jv_get_span(files, (struct span){path, i});
		*ret_target = entry ? link_target(entry) : NULL;
		if (*ret_target)
			return i;
	}
	return 0;
}

static char *joined(struct arena *a, const char *path, size_t link_len, const char *target)
{
	size_t dir = link_len;
	size_t size = strlen(path) + strlen(target) + 2;
	char *out = arena_take(a, size);

	while (dir && path[dir - 1] != '/')
		dir--;
	if (out)
		snprintf(out, size, "%.*s%s%s", *target == '/' ? 0 : (int)dir, path, target,
			 path + link_len);
	return out;
}

/* What the resolver would say if the file's entries were the file system. */
static struct jv resolve_in_file(struct arena *a, const struct jv *files, const char *path)
{
	struct jv out = jv_object(), chain = jv_array();
	const char *target;
	int links = 0;
	size_t at;

	while (path && links < 40 && (at = find_link(files, path, &target)) > 0) {
		jv_push(a, &chain, jv_span((struct span){arena_strndup(a, path, at), at}));
		path = joined(a, path, at, target);
		links++;
	}
	if (!path)
		return jv_null();
	jv_push(a, &chain, jv_string(path));
	jv_set(a, &out, "kind",
	       jv_string(links == 40 ? "unknown" : jv_str(jv_get(files, path), "kind", "unknown")));
	jv_set(a, &out, "real", jv_string(path));
	jv_set(a, &out, "links", jv_int(links));
	jv_set(a, &out, "chain", chain);
	return out;
}

/* --- objects --- */

static bool is_id(struct span id, struct span key)
{
	struct span bare = span_starts(id, "sha256:") ? span_skip(id, 7) : id;

	return span_eq(id, key) || (key.len >= PREFIX_MIN && bare.len >= key.len &&
				    memcmp(bare.at, key.at, key.len) == 0);
}

/* Names as they are, containers' with the slash of the API, images' without the tag "latest". */
static bool is_name(struct span name, struct span key)
{
	struct span rest = key;

	if (name.len && *name.at == '/')
		name = span_skip(name, 1);
	if (span_eq(name, key))
		return true;
	for (const char *const *p = (const char *const[]){"docker.io/", "library/", NULL}; *p; p++)
		if (span_starts(rest, *p))
			rest = span_skip(rest, strlen(*p));
	if (span_eq(name, rest))
		return true;
	return name.len == rest.len + 7 && memcmp(name.at, rest.at, rest.len) == 0 &&
	       memcmp(name.at + rest.len, ":latest", 7) == 0;
}

static bool is_meant(const struct jv *object, struct span key)
{
	static const char *const lists[] = {"RepoTags", "RepoDigests", "Names"};
	const struct jv *id = jv_get(object, "Id"), *name = jv_get(object, "Name");

	if (id && id->kind == JV_STRING && is_id(id->str, key))
		return true;
	if (name && name->kind == JV_STRING && is_name(name->str, key))
		return true;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		const struct jv *list = jv_get(object, lists[i]);

		for (size_t j = 0; list && list->kind == JV_ARRAY && j < list->count; j++)
			if (list->items[j].kind == JV_STRING && is_name(list->items[j].str, key))
				return true;
	}
	return false;
}

static const struct jv *find_object(const struct jv *table, struct span key)
{
	const struct jv *found = jv_get_span(table, key);
	const struct jv *volumes = jv_get(table, "Volumes"); /* as GET /volumes wraps them */

	if (found || !table)
		return found;
	if (volumes && volumes->kind == JV_ARRAY)
		table = volumes;
	for (size_t i = 0; i < table->count; i++) {
		const struct jv *one = table->kind == JV_ARRAY    ? &table->items[i]
				       : table->kind == JV_OBJECT ? &table->members[i].value
								  : NULL;

		if (one && is_meant(one, key))
			return one;
	}
	return NULL;
}

/* What the file does not say is unknown (status 0); null says that there is none. */
void check_lookup(struct worker *w, struct lookup *l, struct arena *a)
{
	const struct jv *table = jv_get(check_facts(w), l->table);
	const struct jv *entry = *l->key ? find_object(table, span_of(l->key)) : table;

	l->answered = true;
	l->status = 0;
	l->body = jv_null();
	if (l->kind == LOOKUP_PATH) {
		if (table) {
			l->body = resolve_in_file(a, table, l->key);
			l->status = 200;
		}
		return;
	}
	if (!entry && l->kind == LOOKUP_REMEMBERED)
		l->status = 404; /* nothing is remembered but what the file says */
	if (!entry)
		return;
	l->status = entry->kind == JV_NULL ? 404 : 200;
	l->body = *entry;
}
