#include "backends/docker/docker_priv.h"

#include <string.h>

const char *docker_clean_path(struct backend_call *call, struct span path)
{
	char *out = arena_take(call->arena, path.len + 2);
	struct span step;
	size_t len = 0;
	bool more = true;

	if (!out)
		return "";
	while (more) {
		more = span_cut(&path, '/', &step);
		if (step.len == 0 || span_is(step, "."))
			continue;
		if (span_is(step, "..")) {
			while (len && out[--len] != '/')
				;
			continue;
		}
		out[len++] = '/';
		memcpy(out + len, step.at, step.len);
		len += step.len;
	}
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

/* Whether inner is outer or lies below it; both are clean. */
bool docker_path_within(const char *outer, const char *inner)
{
	size_t len = strlen(outer);

	if (strcmp(outer, "/") == 0)
		return true;
	return strncmp(outer, inner, len) == 0 && (inner[len] == '\0' || inner[len] == '/');
}

bool docker_path_is_root(const char *path)
{
	static const struct {
		const char *path;
		bool below;
	} roots[] = {
#define EXACT(path) {path, false},
#define BELOW(path) {path, true},
#include "backends/docker/roots.def"
#undef BELOW
#undef EXACT
	};

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
		if (roots[i].below ? docker_path_within(roots[i].path, path)
				   : strcmp(roots[i].path, path) == 0)
			return true;
	return false;
}

static const char *reaches(const struct backend_call *call, const char *path, bool holds_too)
{
	for (const char *const *p = call->protected_paths; p && *p; p++)
		if (docker_path_within(*p, path) || (holds_too && docker_path_within(path, *p)))
			return *p;
	return NULL;
}

/*
 * The protected path that source is, holds or lies in; "" if none.  The way
 * there counts too, but only for what it is and lies in: everything on it
 * holds much that is not mounted.
 */
const char *docker_path_protected(const struct backend_call *call, const char *source,
				  const struct jv *resolved)
{
	const struct jv *chain = jv_get(resolved, "chain");
	const char *hit = reaches(call, source, true);

	if (!hit)
		hit = reaches(call, jv_str(resolved, "real", source), true);
	for (size_t i = 0; !hit && chain && chain->kind == JV_ARRAY && i < chain->count; i++)
		if (chain->items[i].kind == JV_STRING)
			hit = reaches(call, chain->items[i].str.at, false);
	return hit ? hit : "";
}
