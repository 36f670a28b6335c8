#include "gate/evidence_rules.h"

#include "audit/signed.h"
#include "gate/base/hash.h"
#include "gate/base/io.h"
#include "gate/pack.h"
#include "gate/profile_folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_ROOM 100 /* bytes of a name in the archive */
#define CHAIN_MAX 32
#define NO_MEMORY "no memory for the rules"

static const char *keep(struct evidence_rules *r, const char *text)
{
	const char *kept = arena_strndup(r->arena, text, strlen(text));

	return kept ? kept : "";
}

int evidence_rules_add_file(struct evidence_rules *r, const char *path, struct span text,
			    struct err *err)
{
	if (r->count == EVIDENCE_FILES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d files", EVIDENCE_FILES_MAX);
	r->files[r->count++] = (struct evidence_file){keep(r, path), text};
	return arena_spent(r->arena) ? err_set(err, ERR_LIMIT, NO_MEMORY) : 0;
}

int evidence_rules_begin(struct evidence_rules *r, const struct config *c, struct err *err)
{
	struct rule_source check;
	char path[PATH_ROOM];
	struct jv *prelude, *keys;

	r->tree = jv_object();
	prelude = jv_set(r->arena, &r->tree, "prelude", jv_array());
	for (size_t i = 0; engine_prelude_at(i, &check); i++) {
		snprintf(path, sizeof(path), "rules/%.80s", check.name);
		if (evidence_rules_add_file(r, path, check.text, err) < 0)
			return -1;
		jv_push(r->arena, prelude, jv_string(r->files[r->count - 1].path));
	}
	keys = jv_set(r->arena, &r->tree, "keys", jv_array());
	for (size_t i = 0; c->rule_keys && c->rule_keys[i]; i++)
		jv_push(r->arena, keys, jv_string(c->rule_keys[i]));
	jv_set(r->arena, &r->tree, "bundles", jv_array());
	jv_set(r->arena, &r->tree, "profiles", jv_array());
	/* What is added to an object may move its members: look again. */
	for (size_t i = 0; i < r->tree.count; i++) {
		struct jv_member *m = &r->tree.members[i];

		if (span_is(m->key, "bundles"))
			r->bundles = &m->value;
		else if (span_is(m->key, "profiles"))
			r->profiles = &m->value;
	}
	return r->bundles && r->profiles ? 0 : err_set(err, ERR_LIMIT, NO_MEMORY);
}

/* --- one set of rules --- */

/* "rules/in-force/003-main.lua": a name of ours, whatever its author called it. */
static void path_of(const char *where, size_t number, const char *name, char out[PATH_ROOM])
{
	const char *slash = strrchr(name, '/');
	size_t start;

	snprintf(out, PATH_ROOM, "rules/%s/%03zu-", where, number);
	start = strlen(out);
	snprintf(out + start, PATH_ROOM - start, "%.60s", slash ? slash + 1 : name);
	for (char *c = out + start; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *c))
			*c = '_';
}

static size_t place_of(const char *name, const struct rule_source *sources, size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(sources[i].name, name) != 0)
		i++;
	return i;
}

/* The places of the files that a profile's hash is over; 0: that is not known. */
static size_t chain_of(const struct profile *p, const struct rule_source *sources, size_t count,
		       size_t ret[CHAIN_MAX])
{
	struct hash prelude = engine_prelude_hash(), files[CHAIN_MAX], h;
	char hex[HASH_HEX_LEN + 1];
	size_t n = 0;

	for (const struct profile *q = p; q; q = profile_parent(q)) {
		size_t place = place_of(profile_file(q), sources, count);

		if (n == CHAIN_MAX || place == count)
			return 0;
		memmove(ret + 1, ret, n * sizeof(*ret));
		ret[0] = place;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		files[i] = hash_of(sources[ret[i]].text);
	h = profile_hash_over(&prelude, files, n, profile_name(p));
	hash_hex(&h, hex);
	return strcmp(hex, profile_hash(p)) == 0 ? n : 0;
}

static void add_profile(struct evidence_rules *r, const struct profile *p,
			const struct rule_source *sources, size_t count, size_t first)
{
	size_t chain[CHAIN_MAX + 1], n = chain_of(p, sources, count, chain);
	struct jv *one, *files;

	if (!n)
		return;
	one = jv_push(r->arena, r->profiles, jv_object());
	jv_set(r->arena, one, "name", jv_string(keep(r, profile_name(p))));
	jv_set(r->arena, one, "sha256", jv_string(keep(r, profile_hash(p))));
	files = jv_set(r->arena, one, "files", jv_array());
	for (size_t i = 0; i < n; i++)
		jv_push(r->arena, files, jv_string(r->files[first + chain[i]].path));
}

int evidence_rules_add(struct evidence_rules *r, const char *where, const struct engine *eng,
		       const struct rule_source *sources, size_t count, struct err *err)
{
	const struct profile *p;
	size_t first = r->count;

	for (size_t i = 0; i < count; i++) {
		char path[PATH_ROOM];

		path_of(where, i, sources[i].name, path);
		if (evidence_rules_add_file(r, path, sources[i].text, err) < 0)
			return -1;
	}
	for (size_t i = 0; (p = engine_profile_at(eng, i)); i++)
		add_profile(r, p, sources, count, first);
	return arena_spent(r->arena) ? err_set(err, ERR_LIMIT, NO_MEMORY) : 0;
}

/* --- paths --- */

/* A bundle's text in the arena; empty if the path is none. */
static int read_bundle(struct evidence_rules *r, const char *path, struct span *ret,
		       struct err *err)
{
	struct stat st;
	struct buf text;
	char *copy;

	*ret = (struct span){"", 0};
	if (stat(path, &st) < 0)
		return err_sys(err, "%s", path);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (io_read_file(path, PACK_MAX, &text, err) < 0)
		return -1;
	if (pack_is(buf_span(&text))) {
		copy = arena_strndup(r->arena, buf_span(&text).at, buf_len(&text));
		*ret = (struct span){copy ? copy : "", copy ? buf_len(&text) : 0};
	}
	buf_fini(&text);
	return arena_spent(r->arena) ? err_set(err, ERR_LIMIT, NO_MEMORY) : 0;
}

static int add_bundle(struct evidence_rules *r, const char *path, struct span text, struct err *err)
{
	char name[PATH_ROOM];

	path_of("bundles", r->bundles->count, path, name);
	if (evidence_rules_add_file(r, name, text, err) < 0)
		return -1;
	jv_push(r->arena, r->bundles, jv_string(r->files[r->count - 1].path));
	return 0;
}

int evidence_rules_add_bundle(struct evidence_rules *r, const char *path, struct err *err)
{
	struct span text;

	if (read_bundle(r, path, &text, err) < 0)
		return -1;
	return text.len ? add_bundle(r, path, text, err) : 0;
}

static int add_given(struct evidence_rules *r, const struct rule_source *sources, size_t count,
		     struct err *err)
{
	struct engine *eng = engine_open(sources, count, &engine_default_limits, err);
	int rc = eng ? evidence_rules_add(r, "given", eng, sources, count, err) : -1;

	engine_close(eng);
	return rc;
}

int evidence_rules_add_path(struct evidence_rules *r, const char *path, const char *const *keys,
			    struct err *err)
{
	static const char *const none[] = {NULL};
	struct profile_folder *folder = arena_take(r->arena, sizeof(*folder));
	struct pack *pack = arena_take(r->arena, sizeof(*pack));
	struct span text;

	if (!folder || !pack)
		return err_set(err, ERR_LIMIT, NO_MEMORY);
	if (read_bundle(r, path, &text, err) < 0)
		return -1;
	if (text.len) {
		if (signed_init(err) < 0 ||
		    pack_read(text, keys ? keys : none, r->arena, pack, err) < 0)
			return err_wrap(err, "%s", path);
		return add_bundle(r, path, text, err) < 0
			       ? -1
			       : add_given(r, pack->files, pack->file_count, err);
	}
	if (profile_folder_read(path, r->arena, folder, err) < 0)
		return -1;
	return add_given(r, folder->sources, folder->source_count, err);
}
