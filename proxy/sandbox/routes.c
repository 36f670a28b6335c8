#include "proxy/sandbox/sandbox_priv.h"

#include <stdio.h>
#include <string.h>

/* {id} and {exec} stand for one segment, a * at the end for what is left, which may be empty. */
static const struct route routes[] = {
	{"POST", "/v1/sandboxes", NULL, create_handle, false, false, "sandbox.create"},
	{"GET", "/v1/sandboxes", NULL, box_list, true, false, "sandbox.list"},
	{"GET", "/v1/sandboxes/{id}", NULL, box_show, true, true, "sandbox.show"},
	{"PATCH", "/v1/sandboxes/{id}", NULL, box_patch, true, true, "sandbox.extend"},
	{"DELETE", "/v1/sandboxes/{id}", NULL, box_delete, true, true, "sandbox.destroy"},
	{"GET", "/v1/sandboxes/{id}/denials", NULL, box_denials, true, true, "sandbox.denials"},
	{"POST", "/v1/sandboxes/{id}/exec", NULL, exec_handle, true, true, "sandbox.exec"},
	{"GET", "/v1/sandboxes/{id}/exec", NULL, exec_list, true, true, "sandbox.exec.list"},
	{"GET", "/v1/sandboxes/{id}/exec/{exec}", NULL, exec_show, true, true, "sandbox.exec.show"},
	{"GET", "/v1/sandboxes/{id}/exec/{exec}/output", NULL, exec_output, true, true,
	 "sandbox.exec.output"},
	{"POST", "/v1/sandboxes/{id}/exec/{exec}/stdin", exec_stdin_begin, exec_stdin, true, true,
	 "sandbox.exec.stdin"},
	{"POST", "/v1/sandboxes/{id}/exec/{exec}/resize", NULL, exec_resize, true, true,
	 "sandbox.exec.resize"},
	{"POST", "/v1/sandboxes/{id}/exec/{exec}/kill", NULL, exec_kill, true, true,
	 "sandbox.exec.kill"},
	{"GET", "/v1/sandboxes/{id}/files/*", NULL, files_get, true, true, "sandbox.file.get"},
	{"PUT", "/v1/sandboxes/{id}/files/*", files_put_begin, files_put, true, true,
	 "sandbox.file.put"},
	{"DELETE", "/v1/sandboxes/{id}/files/*", NULL, files_delete, true, true,
	 "sandbox.file.remove"},
	{"GET", "/v1/sandboxes/{id}/tar", NULL, tar_get, true, true, "sandbox.tar.get"},
	{"PUT", "/v1/sandboxes/{id}/tar", tar_put_begin, files_put, true, true, "sandbox.tar.put"},
	{"GET", "/v1/openapi.json", NULL, openapi_handle, false, false, "sandbox.openapi"},
};
#define ROUTES (sizeof(routes) / sizeof(*routes))

struct found {
	struct span id, exec;
	const char *rest;
};

static bool matches(const char *pattern, const char *path, struct found *ret)
{
	struct span want = span_of(pattern), have = span_of(path), w, h;
	bool more_w = true, more_h = true;

	while (more_w && more_h) {
		if (span_is(want, "*")) {
			ret->rest = have.at;
			return true;
		}
		more_w = span_cut(&want, '/', &w);
		more_h = span_cut(&have, '/', &h);
		if (span_is(w, "{id}"))
			ret->id = h;
		else if (span_is(w, "{exec}"))
			ret->exec = h;
		else if (!span_eq(w, h))
			return false;
	}
	return more_w == more_h;
}

static const char *word(struct call *c, struct span s)
{
	const char *copy = s.len ? arena_strndup(c->a, s.at, s.len) : "";

	return copy ? copy : "";
}

int routes_find(struct call *c, const char **ret_id)
{
	bool known = false;

	for (size_t i = 0; i < ROUTES; i++) {
		struct found f = {.rest = ""};

		if (!matches(routes[i].pattern, c->r->path, &f))
			continue;
		known = true;
		if (strcmp(routes[i].method, c->r->method) != 0)
			continue;
		c->route = &routes[i];
		c->rest = f.rest;
		c->exec_id = word(c, f.exec);
		*ret_id = word(c, f.id);
		return 0;
	}
	return trouble_set(&c->trouble, c->a, known ? CODE_method_not_allowed : CODE_not_found,
			   "%s", code_text(known ? CODE_method_not_allowed : CODE_not_found));
}
