/*
 * Queries through the Docker adapter: the first byte chooses the route, the
 * rest stands behind its "?".  What is sent has known keys, each once, and read
 * again as a request it is sent as it stands.
 */
#include "tests/fuzz/fuzz.h"

#include "backends/docker/docker_priv.h"
#include "proxy/canonical.h"
#include "tests/unit/backends/drive.h"

#include <stdio.h>
#include <string.h>

static const struct target {
	const char *method, *path;
} targets[] = {
	{"GET", "/containers/json"},
	{"GET", "/events"},
	{"GET", "/containers/run/logs"},
	{"GET", "/containers/run/archive"},
	{"GET", "/containers/run/top"},
	{"GET", "/containers/run/stats"},
	{"POST", "/containers/run/stop"},
	{"POST", "/containers/run/kill"},
	{"POST", "/containers/run/wait"},
	{"POST", "/containers/run/rename"},
	{"DELETE", "/containers/run"},
	{"POST", "/containers/run/attach"},
	{"GET", "/images/json"},
	{"POST", "/images/create"},
	{"GET", "/images/get"},
	{"POST", "/images/busybox/tag"},
	{"POST", "/containers/prune"},
	{"POST", "/volumes/prune"},
	{"GET", "/volumes"},
	{"GET", "/networks"},
	{"GET", "/system/df"},
	{"GET", "/version"},
	{"POST", "/containers/create"},
	{"POST", "/containers/run/resize"},
	{"GET", "/images/busybox/json"},
	{"POST", "/images/prune"},
};

/* The head that is sent, or NULL if the request is refused; text: a target. */
static const char *sent(struct backend *be, const struct jv *world, const char *method,
			struct span text, struct arena *a)
{
	struct pair host = {span_of("host"), span_of("d")};
	struct raw_head raw = {
		.method = span_of(method), .target = text, .headers = &host, .header_count = 1};
	struct violation why = {0};
	const char *head = NULL;
	struct drive d;
	enum step step;

	drive_start(&d, be, world);
	if (canonical_read(d.arena, &raw, &d.req, &why) < 0) {
		HOLDS(why.reason != REASON_NONE);
		drive_end(&d);
		return NULL;
	}
	d.call.arena = d.arena;
	d.call.req = &d.req;
	d.call.owner = "alice";
	d.call.id = "0191-decision";
	if (be->ops->route(be, &d.call) == 0) {
		while ((step = be->ops->step(be, &d.call)) == STEP_LOOKUP) {
			HOLDS(d.rounds < STEPS_MAX && d.call.lookup_count <= LOOKUPS_MAX);
			drive_answer(&d);
		}
		HOLDS((step == STEP_REFUSED) == (d.call.refused.count > 0));
		if (step == STEP_READY) {
			const char *rendered = drive_rendered(&d, NULL);

			head = arena_strndup(a, rendered, strlen(rendered));
		}
	} else {
		HOLDS(d.call.refused.count > 0);
	}
	drive_end(&d);
	return head;
}

static struct span target_of(const char *head)
{
	struct span rest = span_of(head), line, word;

	span_cut(&rest, '\r', &line);
	span_cut(&line, ' ', &word);
	span_cut(&line, ' ', &word);
	return word;
}

static void check_clean(struct span target)
{
	HOLDS(target.len && target.at[0] == '/');
	for (size_t i = 0; i < target.len; i++)
		HOLDS((unsigned char)target.at[i] > ' ' && (unsigned char)target.at[i] < 0x7f &&
		      target.at[i] != '#' && target.at[i] != '\\');
}

static void run(struct backend *be, const struct jv *world, const struct target *target,
		struct span query, struct arena *a)
{
	struct buf b;
	const char *once, *twice;

	buf_init(&b, 1u << 16);
	buf_printf(&b, "/v1.41%s?", target->path);
	buf_put(&b, query.at, query.len);
	once = sent(be, world, target->method, buf_span(&b), a);
	if (once) {
		check_clean(target_of(once));
		twice = sent(be, world, target->method, target_of(once), a);
		HOLDS(twice && strcmp(once, twice) == 0);
	}
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	const struct jv *world;
	struct backend *be = drive_once(&world);
	struct span text = fuzz_text(a, data, size);

	if (size)
		run(be, world, &targets[*data % (sizeof(targets) / sizeof(*targets))],
		    span_skip(text, 1), a);
	arena_destroy(a);
	return 0;
}
