/* `audit witness`: somebody else's signature that he saw the log. */
#include "gate/command.h"

#include "audit/witness.h"
#include "gate/base/clock.h"
#include "gate/config_priv.h"
#include "gate/log_folder.h"
#include "gate/tls_dialer.h"

#include <inttypes.h>
#include <signal.h>

#define ARENA_MAX      4096
#define EXIT_OTHER_LOG 4

static int ask(const struct args *args, const char *dir, struct err *err)
{
	struct witness_conf conf = {
		.at = {.name = "witness", .ca = args->ca, .cert = "", .key = "", .socket = ""},
		.key = args->witness,
		.file = args->out};
	struct arena *a = arena_create(ARENA_MAX);
	struct witness_seen seen = {.size = 0};
	char when[CLOCK_TEXT_MAX];
	int rc = -1;

	if (!a)
		return err_set(err, ERR_LIMIT, "no memory");
	if (config_sink_url(args->to, a, &conf.at, err) == 0)
		rc = witness_ask(dir, &conf, &tls_dialer, &seen, err);
	arena_destroy(a);
	if (rc < 0)
		return -1;
	clock_format(seen.time_s * 1000000000, when);
	printf("%" PRIu64 " records are witnessed, %s %.19sZ\n", seen.size,
	       seen.again ? "since" : "at", when);
	return 0;
}

int run_audit_witness(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	const char *dir;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	if (log_folder(args, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	rc = ask(args, dir, &err);
	unload(&loaded);
	if (rc == 0)
		return EXIT_YES;
	command_failed(&err);
	return err.kind == ERR_INPUT      ? EXIT_OTHER_LOG
	       : err.kind == ERR_UPSTREAM ? EXIT_NO
					  : EXIT_CANNOT;
}
