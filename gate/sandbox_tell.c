/* sandbox_tell.c - what the sandbox API refuses, as an operator reads it. */
#include "gate/sandbox_client.h"

#include "gate/printed.h"

#include <string.h>

#define RAW_MAX 300 /* bytes of an answer that is no JSON */

void api_print(FILE *out, const char *before, const char *text)
{
	struct buf plain;

	buf_init(&plain, 65536);
	printed_plain(&plain, text, 0);
	fprintf(out, "%s%.*s", before, (int)buf_len(&plain), buf_span(&plain).at);
	buf_fini(&plain);
}

static void tell_text(const char *before, const char *text)
{
	if (!*text)
		return;
	api_print(stderr, before, text);
	fputc('\n', stderr);
}

/* A text, or an object with a reason and a message. */
static void tell_why(const struct jv *why)
{
	char one[600];

	if (why->kind == JV_STRING) {
		tell_text("      ", why->str.at);
		return;
	}
	snprintf(one, sizeof(one), "%.80s: %.500s", jv_str(why, "reason", jv_str(why, "code", "?")),
		 jv_str(why, "message", jv_str(why, "text", "")));
	tell_text("      ", one);
}

static void tell_backends(const struct jv *list)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *b = &list->items[i], *why = jv_get(b, "why");
		char one[200];

		snprintf(one, sizeof(one), "%.64s (isolation %.32s):", jv_str(b, "backend", "?"),
			 jv_str(b, "level", "unknown"));
		tell_text("  ", one);
		for (size_t k = 0; why && why->kind == JV_ARRAY && k < why->count; k++)
			tell_why(&why->items[k]);
	}
}

static void tell_violations(const struct jv *list)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *v = &list->items[i];

		tell_why(v);
		tell_text("        hint: ", jv_str(v, "hint", ""));
	}
}

void api_tell(struct span body, int status)
{
	struct arena *a = arena_create((size_t)4 << 20);
	const struct jv *e = NULL;
	enum jv_fault fault;
	struct err err = {0};
	struct jv tree;

	if (a && jv_parse(a, body, &tree, &fault, &err) == 0)
		e = jv_get(&tree, "error");
	if (!e || e->kind != JV_OBJECT) {
		fprintf(stderr, "sallyport: the API answers %d\n", status);
		arena_destroy(a);
		return;
	}
	tell_text("sallyport: ", jv_str(e, "message", "?"));
	tell_violations(jv_get(e, "violations"));
	tell_backends(jv_get(e, "backends"));
	tell_text("  code: ", jv_str(e, "code", "?"));
	tell_text("  hint: ", jv_str(e, "hint", ""));
	tell_text("  decision: ", jv_str(e, "decision", ""));
	arena_destroy(a);
}
