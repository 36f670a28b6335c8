#include "gate/command.h"

#include "gate/admin_ask.h"
#include "gate/base/clock.h"
#include "gate/quota_status.h"
#include "gate/status_ask.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define ARENA_MAX ((size_t)8 << 20)

/* Nothing, if none was asked for. */
static void print_reload(const struct jv *reload)
{
	const char *state = reload ? jv_str(reload, "state", "none") : "none";
	const char *reason = reload ? jv_str(reload, "reason", "") : "";

	if (strcmp(state, "none") != 0)
		printf("last reload   %s%s%s\n", state, *reason ? ": " : "", reason);
	printf("\n");
}

static const struct jv *item(const struct jv *list, size_t i)
{
	return list && list->kind == JV_ARRAY && i < list->count ? &list->items[i] : NULL;
}

static void print_observed(const struct jv *o)
{
	if (o)
		printf("           observed: %lld seen, %lld judged, %lld by the engine, %lld "
		       "unexplained\n",
		       (long long)jv_num(o, "seen", 0), (long long)jv_num(o, "judged", 0),
		       (long long)jv_num(o, "by_engine", 0),
		       (long long)jv_num(o, "unexplained", 0));
}

/* How what runs came out when it was judged again, if it was. */
static void print_round(const struct jv *round, int64_t now)
{
	int64_t at = jv_num(round, "at", 0);

	if (!at)
		return;
	printf("           judged again: %lld, of these %lld reported, %lld stopped, %lld unknown; "
	       "%lld left out; %lld s ago (%s)\n",
	       (long long)jv_num(round, "judged", 0), (long long)jv_num(round, "reported", 0),
	       (long long)jv_num(round, "stopped", 0), (long long)jv_num(round, "unknown", 0),
	       (long long)jv_num(round, "left_out", 0), (long long)(now > at ? now - at : 0),
	       jv_str(round, "cause", "?"));
}

static void print_places(const struct jv *tree)
{
	const struct jv *sockets = jv_get(tree, "sockets"), *one;
	const struct jv *backends = jv_get(tree, "backends");
	int64_t now = (int64_t)time(NULL), since;

	for (size_t i = 0; (one = item(sockets, i)); i++)
		printf("listener   %-16s %s%s%s\n", jv_str(one, "name", "?"),
		       jv_str(one, "address", "?"), jv_true(one, "metrics") ? "" : " to ",
		       jv_str(one, "backend", ""));
	for (size_t i = 0; (one = item(backends, i)); i++) {
		since = jv_num(one, "since", 0);
		printf("backend    %-16s %s, %s", jv_str(one, "name", "?"),
		       jv_str(one, "address", "?"), jv_str(one, "state", "?"));
		if (since)
			printf(" for %lld s", (long long)(now > since ? now - since : 0));
		if (*jv_str(one, "api", ""))
			printf(", API %s", jv_str(one, "api", ""));
		if (jv_true(one, "socket_file_mounted"))
			printf(" (its socket's file is a mount, which goes stale)");
		printf("\n");
		print_observed(jv_get(one, "observed"));
		print_round(jv_get(one, "rejudged"), now);
	}
}

static void print_sinks(const struct jv *list)
{
	const struct jv *one;

	for (size_t i = 0; (one = item(list, i)); i++) {
		printf("sink       %-16s ", jv_str(one, "name", "?"));
		if (jv_get(one, "seq"))
			printf("has records up to %lld, %lld behind",
			       (long long)jv_num(one, "seq", 0),
			       (long long)jv_num(one, "behind", 0));
		else
			printf("has not got a record yet");
		printf("%s%s\n", *jv_str(one, "trouble", "") ? ": " : "",
		       jv_str(one, "trouble", ""));
	}
}

static void print_status(const struct jv *tree)
{
	const struct jv *list = jv_get(tree, "processes"), *listeners = jv_get(tree, "listeners");

	printf("sallyport %s, pid %lld, %s, up %lld s\n", jv_str(tree, "version", "?"),
	       (long long)jv_num(tree, "pid", 0),
	       jv_true(tree, "stopping") ? "stopping"
	       : jv_true(tree, "ready")  ? "ready"
					 : "not ready",
	       (long long)jv_num(tree, "uptime_s", 0));
	printf("configuration %s\ngeneration    %s\naudit log     %s\n",
	       jv_str(tree, "config", "?"), jv_str(tree, "generation", "?"),
	       jv_str(tree, "audit", "?"));
	print_reload(jv_get(tree, "reload"));
	print_places(tree);
	print_sinks(jv_get(tree, "sinks"));
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		printf("%-10s pid %-8lld %-10s up %lld s, %lld restarts\n",
		       jv_str(&list->items[i], "role", "?"),
		       (long long)jv_num(&list->items[i], "pid", 0),
		       jv_str(&list->items[i], "state", "?"),
		       (long long)jv_num(&list->items[i], "uptime_s", 0),
		       (long long)jv_num(&list->items[i], "restarts", 0));
	for (size_t i = 0; listeners && listeners->kind == JV_ARRAY && i < listeners->count; i++)
		printf("listener   %s, %s under %s until %.19sZ: %s\n",
		       jv_str(&listeners->items[i], "name", "?"),
		       jv_str(&listeners->items[i], "owner", "?"),
		       jv_str(&listeners->items[i], "profile", "?"),
		       jv_str(&listeners->items[i], "until", "?"),
		       jv_str(&listeners->items[i], "path", "?"));
}

static void print_quotas(const struct jv *tree)
{
	const struct jv *list = jv_get(tree, "quotas"), *one;
	int64_t more = jv_num(tree, "quotas_more", 0);

	for (size_t i = 0; (one = item(list, i)); i++) {
		struct buf text;

		buf_init(&text, 4096);
		quota_status_say(one, (int64_t)time(NULL), &text);
		printf("quota      %.*s\n", SPAN_FMT(buf_span(&text)));
		buf_fini(&text);
	}
	if (more)
		printf("quota      and %lld more, which are less full\n", (long long)more);
}

/* What can be returned to, and when it was replaced: how a person tells them apart. */
static void print_kept(const struct jv *tree)
{
	const struct jv *kept = jv_get(tree, "kept"), *until = jv_get(tree, "kept_until"), *one;
	char text[CLOCK_TEXT_MAX];

	for (size_t i = 0; (one = item(kept, i)); i++) {
		const struct jv *at = item(until, i);

		if (one->kind != JV_STRING)
			continue;
		printf("kept       generation %.12s", one->str.at);
		if (at && at->kind == JV_INT && at->i > 0) {
			clock_format((uint64_t)at->i * 1000000000, text);
			printf(", in force until %.19sZ", text);
		}
		puts(" (sallyport rollback)");
	}
}

static void print_emergency(const struct jv *tree)
{
	const struct jv *list = jv_get(tree, "quarantines"), *one;
	const struct jv *modes = jv_get(tree, "modes");
	char until[CLOCK_TEXT_MAX];

	print_kept(tree);
	if (list && !jv_true(tree, "quarantines_known"))
		printf("QUARANTINE it is not known who is under one, so all is refused\n");
	for (size_t i = 0; (one = item(list, i)); i++)
		printf("QUARANTINE %s, ticket %s%s\n", jv_str(one, "owner", "?"),
		       jv_str(one, "ticket", "?"),
		       jv_true(one, "kill") ? ", what it runs is stopped" : "");
	for (size_t i = 0; (one = item(modes, i)); i++) {
		clock_format((uint64_t)jv_num(one, "until", 0) * 1000000000, until);
		printf("WARN ONLY  profile %s until %.19sZ, ticket %s: what its rules refuse "
		       "passes\n",
		       jv_str(one, "profile", "?"), until, jv_str(one, "ticket", "?"));
	}
}

static int show(const char *socket, const struct args *args, struct arena *a)
{
	struct err err = {0};
	struct buf text;
	struct jv tree;

	if (status_ask(socket, a, &tree, &err) < 0) {
		if (err.kind == ERR_INPUT)
			printf("not known: %s\n", err.msg);
		else if (err.sys == EACCES)
			printf("not known: %s; it takes root, who started the gate, or a group "
			       "of admin { group }\n",
			       err.msg);
		else
			printf("not running: %s\n", err.msg);
		return EXIT_NO;
	}
	if (args->json) {
		buf_init(&text, STATUS_MAX);
		jv_write(&text, &tree);
		printf("%.*s\n", SPAN_FMT(buf_span(&text)));
		buf_fini(&text);
	} else {
		print_status(&tree);
		print_quotas(&tree);
		print_emergency(&tree);
	}
	return jv_true(&tree, "ready") ? EXIT_YES : EXIT_NO;
}

int run_status(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct err err = {0};
	const char *socket = a ? admin_socket_of(args, a, &err) : NULL;
	int answer;

	if (!a)
		return EXIT_CANNOT;
	if (socket) {
		answer = show(socket, args, a);
	} else {
		fputs("the gate was not asked, since its configuration does not load; it may well "
		      "run: ask with --socket\n",
		      stderr);
		answer = command_failed(&err);
	}
	arena_destroy(a);
	return answer;
}
