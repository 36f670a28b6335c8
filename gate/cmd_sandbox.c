/* cmd_sandbox.c - sandboxes by the running gate: made, shown, extended, ended. */
#include "gate/sandbox_client.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)64 << 20)

/* One question with a body of JSON, or none; print may be NULL. */
struct verb {
	const char *method, *target;
	const struct jv *body;
	void (*print)(const struct jv *answer);
	bool json;
};

static void print_json(const struct jv *tree)
{
	struct buf out;

	buf_init(&out, API_BODY_MAX);
	jv_write(&out, tree);
	printf("%.*s\n", (int)buf_len(&out), buf_span(&out).at);
	buf_fini(&out);
}

static int ask(const struct api *api, const struct verb *v, struct arena *a)
{
	struct api_question q = {.method = v->method, .target = v->target};
	struct err err = {0};
	struct jv answer = jv_null();
	struct buf body;
	int status, rc;

	buf_init(&body, (size_t)4 << 20);
	if (v->body) {
		jv_write(&body, v->body);
		q.type = "application/json";
		q.body = buf_span(&body);
	}
	rc = buf_spent(&body) ? err_set(&err, ERR_INPUT, "the request is too long")
			      : api_ask(api, &q, a, &status, &answer, &err);
	buf_fini(&body);
	if (rc < 0)
		return command_failed(&err);
	if (status >= 300)
		return EXIT_NO;
	if (v->json && answer.kind != JV_NULL)
		print_json(&answer);
	else if (v->print)
		v->print(&answer);
	return EXIT_YES;
}

/* Who is asked, and an arena for it.  The exit status of the verb. */
static int with_api(const struct args *args,
		    int (*run)(const struct args *args, const struct api *api, struct arena *a))
{
	struct err err = {0};
	struct arena *a;
	struct api api;
	int status;

	if (api_find(args, &api, &err) < 0)
		return command_failed(&err);
	a = arena_create(ARENA_MAX);
	if (!a)
		return EXIT_CANNOT;
	status = run(args, &api, a);
	arena_destroy(a);
	return status;
}

static int bad(const char *what)
{
	struct err err = {0};

	err_set(&err, ERR_INPUT, "%s", what);
	return command_failed(&err);
}

static void set_text(struct arena *a, struct jv *to, const char *key, const char *value)
{
	if (value)
		jv_set(a, to, key, jv_string(value));
}

/* A number where it is one; what it may be is the API's to say. */
static void set_number(struct arena *a, struct jv *to, const char *key, const char *value)
{
	char *end;
	double n;

	if (!value)
		return;
	n = strtod(value, &end);
	if (end == value || *end)
		jv_set(a, to, key, jv_string(value));
	else if (n == (double)(int64_t)n)
		jv_set(a, to, key, jv_int((int64_t)n));
	else
		jv_set(a, to, key, (struct jv){.kind = JV_REAL, .real = n});
}

/* "K=V" as members of an object.  0, or -1. */
static int set_pairs(struct arena *a, struct jv *to, const char *key, const struct args_list *list)
{
	struct jv pairs = jv_object();

	for (size_t i = 0; i < list->count; i++) {
		struct span value = span_of(list->items[i]), name;

		if (!strchr(list->items[i], '=') || !span_cut(&value, '=', &name) || !name.len)
			return -1;
		jv_set_span(a, &pairs, name, jv_span(value));
	}
	if (list->count)
		jv_set(a, to, key, pairs);
	return 0;
}

static void print_id(const struct jv *answer)
{
	api_print(stdout, "", jv_str(answer, "id", "?"));
	putchar('\n');
}

static int create(const struct args *args, const struct api *api, struct arena *a)
{
	struct jv body = jv_object(), limits = jv_object();
	struct verb v = {"POST", "/v1/sandboxes", &body, print_id, args->json};

	set_text(a, &body, "profile", args->profile);
	set_text(a, &body, "image", args->image);
	set_text(a, &body, "backend", args->backend);
	set_text(a, &body, "lifetime", args->lifetime);
	set_text(a, &body, "idle", args->idle);
	set_text(a, &limits, "memory", args->memory);
	set_number(a, &limits, "cpus", args->cpus);
	set_number(a, &limits, "pids", args->pids);
	set_text(a, &limits, "disk", args->disk);
	set_text(a, &limits, "output", args->output);
	if (limits.count)
		jv_set(a, &body, "limits", limits);
	if (set_pairs(a, &body, "env", &args->env) < 0 ||
	    set_pairs(a, &body, "labels", &args->labels) < 0)
		return bad("--env and --label take NAME=VALUE");
	return ask(api, &v, a);
}

static void print_row(const struct jv *b)
{
	const struct jv *isolation = jv_get(b, "isolation");
	char row[400];

	snprintf(row, sizeof(row), "%-31s %-9s %-8s %-12s %-20s %-20s %.120s", jv_str(b, "id", "?"),
		 jv_str(b, "state", "?"), jv_str(isolation, "level", "?"),
		 jv_str(b, "backend", "?"), jv_str(b, "profile", "?"), jv_str(b, "expires", "-"),
		 jv_str(b, "image", ""));
	api_print(stdout, "", row);
	putchar('\n');
}

static void print_list(const struct jv *answer)
{
	const struct jv *list = jv_get(answer, "sandboxes");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		print_row(&list->items[i]);
}

/* In a query everything but letters and digits is encoded. */
static const char *list_target(struct arena *a, const char *label)
{
	struct buf out;
	const char *target;

	buf_init(&out, 8192);
	buf_puts(&out, "/v1/sandboxes?label=");
	for (; *label; label++)
		buf_printf(&out, "%%%02X", (unsigned char)*label);
	target = buf_spent(&out) ? NULL : arena_strndup(a, buf_span(&out).at, buf_len(&out));
	buf_fini(&out);
	return target;
}

static int list(const struct args *args, const struct api *api, struct arena *a)
{
	struct verb v = {"GET", "/v1/sandboxes", NULL, print_list, args->json};

	if (args->labels.count > 1)
		return bad("one --label is looked for");
	if (args->labels.count)
		v.target = list_target(a, args->labels.items[0]);
	return v.target ? ask(api, &v, a) : bad("--label is too long");
}

/* The verb with one sandbox. */
static int ask_of(const struct api *api, const char *id, const char *behind, struct verb *v,
		  struct arena *a)
{
	struct err err = {0};

	if (api_target(a, id, behind, NULL, &v->target, &err) < 0)
		return command_failed(&err);
	return ask(api, v, a);
}

static int end(const struct args *args, const struct api *api, struct arena *a)
{
	struct verb v = {.method = "DELETE", .json = args->json};
	int worst = args->rest_count ? EXIT_YES : bad("name the sandboxes that are to end");

	for (size_t i = 0; i < args->rest_count; i++) {
		int status = ask_of(api, args->rest[i], "", &v, a);

		worst = status > worst ? status : worst;
	}
	return worst;
}

static void print_until(const struct jv *answer)
{
	api_print(stdout, "it ends at ", jv_str(answer, "expires", "?"));
	putchar('\n');
}

static int extend(const struct args *args, const struct api *api, struct arena *a)
{
	struct jv body = jv_object();
	struct verb v = {"PATCH", NULL, &body, print_until, args->json};

	if (args->rest_count != 1)
		return bad("name one sandbox");
	set_text(a, &body, "lifetime", args->lifetime);
	return ask_of(api, args->rest[0], "", &v, a);
}

static void print_denials(const struct jv *answer)
{
	const struct jv *all = jv_get(answer, "denials");

	for (size_t i = 0; all && all->kind == JV_ARRAY && i < all->count; i++) {
		const struct jv *d = &all->items[i];
		char row[600];

		snprintf(row, sizeof(row), "%-20.20s %-24.32s %-24.48s %.300s",
			 jv_str(d, "time", "?"), jv_str(d, "operation", jv_str(d, "op", "?")),
			 jv_str(d, "code", "?"), jv_str(d, "message", ""));
		api_print(stdout, "", row);
		putchar('\n');
	}
}

static int denials(const struct args *args, const struct api *api, struct arena *a)
{
	struct verb v = {"GET", NULL, NULL, print_denials, args->json};

	return args->rest_count == 1 ? ask_of(api, args->rest[0], "/denials", &v, a)
				     : bad("name one sandbox");
}

int run_sandbox_create(const struct args *args)
{
	return with_api(args, create);
}

int run_sandbox_ls(const struct args *args)
{
	return with_api(args, list);
}

int run_sandbox_rm(const struct args *args)
{
	return with_api(args, end);
}

int run_sandbox_extend(const struct args *args)
{
	return with_api(args, extend);
}

int run_sandbox_denials(const struct args *args)
{
	return with_api(args, denials);
}
