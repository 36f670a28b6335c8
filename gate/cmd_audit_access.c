/* `audit access-review`: what each identity may do, and what it did. */
#include "gate/command.h"

#include "audit/requests.h"
#include "audit/when.h"
#include "gate/access_review.h"
#include "gate/base/io.h"
#include "gate/serve.h"

#include <unistd.h>

#define FROM_DEFAULT "90d"
#define ARENA_MAX    ((size_t)64 << 20)

static int take_period(const struct args *args, struct access_review *r, struct err *err)
{
	uint64_t now = clock_unix_ns();

	r->to_ns = now;
	if (when_parse(args->since ? args->since : FROM_DEFAULT, now, &r->from_ns, err) < 0)
		return err_wrap(err, "--from");
	if (args->until && when_parse(args->until, now, &r->to_ns, err) < 0)
		return err_wrap(err, "--to");
	return args->json && args->csv ? err_set(err, ERR_INPUT, "either --json or --csv") : 0;
}

static int print(const struct args *args, const struct access_review *r, struct err *err)
{
	struct buf out;
	int rc;

	buf_init(&out, ACCESS_OUT_MAX);
	if (args->json)
		access_review_json(r, &out);
	else if (args->csv)
		access_review_csv(r, &out);
	else
		access_review_text(r, &out);
	rc = buf_spent(&out) ? err_set(err, ERR_LIMIT, "the review is too long")
			     : io_write_all(STDOUT_FILENO, buf_span(&out).at, buf_len(&out), err);
	buf_fini(&out);
	return rc;
}

static int review(const struct args *args, const struct loaded *loaded, struct access_review *r,
		  struct err *err)
{
	const struct proxy_conf *c = &loaded->config.proxy;
	const char *dir = args->rest_count ? args->rest[0] : loaded->config.auditor.dir;
	struct engine *eng = engine_open(c->rules, c->rule_count, &c->rule_limits, err);
	int rc;

	if (!eng)
		return -1;
	log_tell_read(dir, "audit access-review");
	rc = access_review_make(r, &loaded->config, eng, dir, err);
	if (rc == 0)
		rc = print(args, r, err);
	engine_close(eng);
	return rc;
}

int run_audit_access_review(const struct args *args)
{
	struct access_review r = {.arena = arena_create(ARENA_MAX)};
	struct loaded loaded = {.bundle = {.fd = -1}};
	struct err err = {0};
	int rc = -1;

	if (!r.arena)
		err_set(&err, ERR_LIMIT, "no memory for a review");
	else if (take_period(args, &r, &err) == 0 && load(args->config, &loaded, &err) == 0) {
		rc = review(args, &loaded, &r, &err);
		unload(&loaded);
	}
	arena_destroy(r.arena);
	return rc < 0 ? command_failed(&err) : EXIT_YES;
}
