/* `audit ship`: the log's records, brought to the sinks of the configuration. */
#include "gate/command.h"

#include "audit/requests.h"
#include "audit/sink.h"
#include "audit/witness.h"
#include "gate/base/clock.h"
#include "gate/base/log.h"
#include "gate/serve.h"
#include "gate/tls_dialer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS         200
#define WITNESS_AGAIN_S 60 /* one that did not sign is asked again */
#define WITNESS_NAME    "witness"
#define END_S           10 /* a sink that hangs is not waited for longer */

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
	alarm(END_S);
}

static void take_signals(void)
{
	const struct sigaction end = {.sa_handler = on_signal};

	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* --- the witness --- */

static void make_folder(const char *file)
{
	const char *slash = strrchr(file, '/');
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - file) : 0, file);
	(void)mkdir(folder, 0755); /* opening the file says what is wrong */
}

static enum ship_result ask_witness(const struct config *c)
{
	struct witness_seen seen;
	struct err err = {0};

	make_folder(c->witness.file);
	if (witness_ask(c->auditor.dir, &c->witness, &tls_dialer, &seen, &err) == 0) {
		if (!seen.again)
			log_line("the witness has signed %" PRIu64 " records", seen.size);
		return SHIP_FINE;
	}
	if (err.kind != ERR_INPUT) {
		log_line("the witness: %s", err.msg);
		return SHIP_BEHIND;
	}
	log_alarm("the witness: %s", err.msg);
	return SHIP_DAMAGED;
}

static int witness(const struct args *args, const struct config *c)
{
	enum ship_result result;

	if (c->alarms_syslog)
		log_alarm_syslog(LOG_SYSLOG);
	do {
		uint64_t until;

		result = ask_witness(c);
		if (result == SHIP_DAMAGED || args->once)
			break;
		until = c->witness_every_s;
		if (result != SHIP_FINE && until > WITNESS_AGAIN_S)
			until = WITNESS_AGAIN_S;
		until = clock_boot_ms() + until * 1000;
		while (!stop && clock_boot_ms() < until)
			poll(NULL, 0, LOOK_MS);
	} while (!stop);
	return (int)(result == SHIP_BEHIND && !args->once ? SHIP_FINE : result);
}

/* --- sinks --- */

/* sink NULL: the witness */
static int ship_one(const struct args *args, const struct config *c, const struct sink_conf *sink)
{
	const struct ship_options options = {
		.once = args->once,
		.accept_gap = args->accept_gap,
		.dialer = &tls_dialer,
		.stop = &stop,
		.tell = log_line,
	};

	return sink ? (int)ship(c->auditor.dir, sink, &options) : witness(args, c);
}

static pid_t begin(const struct args *args, const struct config *c, const struct sink_conf *sink)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(SHIP_FINE);
	_exit(ship_one(args, c, sink));
}

/* The status of one that ended; what killed it is none of the good ones. */
static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : SHIP_BEHIND;
}

/* One process each, so that no sink waits for another; the worst answer is everybody's. */
static int ship_all(const struct args *args, const struct config *c)
{
	pid_t pids[CONFIG_ENTRIES_MAX + 1];
	int worst = SHIP_FINE, status;
	size_t left = 0, count = c->sink_count + (c->witness.file != NULL);

	for (size_t i = 0; i < count; i++) {
		pids[i] = begin(args, c, i < c->sink_count ? &c->sinks[i] : NULL);
		if (pids[i] < 0)
			worst = SHIP_BEHIND;
		else
			left++;
	}
	while (left) {
		pid_t pid = waitpid(-1, &status, 0);

		if (pid < 0 && errno == EINTR && stop)
			for (size_t i = 0; i < count; i++)
				if (pids[i] > 0)
					kill(pids[i], SIGTERM);
		for (size_t i = 0; pid > 0 && i < count; i++)
			if (pids[i] == pid) {
				pids[i] = -1;
				left--;
				worst = status_of(status) > worst ? status_of(status) : worst;
			}
	}
	return worst;
}

static int ship_named(const struct args *args, const struct config *c)
{
	bool witnessed = c->witness.file != NULL;

	if (!c->sink_count && !witnessed) {
		fputs("sallyport: the configuration has neither a sink nor a witness\n", stderr);
		return SHIP_CANNOT;
	}
	if (!args->rest_count && c->sink_count + witnessed > 1)
		return ship_all(args, c);
	if (!args->rest_count)
		return ship_one(args, c, witnessed ? NULL : c->sinks);
	for (size_t i = 0; i < c->sink_count; i++)
		if (strcmp(c->sinks[i].name, args->rest[0]) == 0)
			return ship_one(args, c, &c->sinks[i]);
	if (witnessed && strcmp(args->rest[0], WITNESS_NAME) == 0)
		return ship_one(args, c, NULL);
	fprintf(stderr, "sallyport: the configuration has no sink called '%s'\n", args->rest[0]);
	return SHIP_CANNOT;
}

static int print_schema(void)
{
	struct span schema = sink_postgres_schema();

	return fwrite(schema.at, 1, schema.len, stdout) == schema.len && fflush(stdout) == 0
		       ? EXIT_YES
		       : EXIT_CANNOT;
}

int run_audit_ship(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	int result;

	if (args->schema)
		return print_schema();
	if (!args->config) {
		err_set(&err, ERR_INPUT, "give --config FILE");
		return command_failed(&err);
	}
	if (load(args->config, &loaded, &err) < 0)
		return command_failed(&err);
	log_role("ship");
	take_signals();
	log_tell_read(loaded.config.auditor.dir, "audit ship");
	result = ship_named(args, &loaded.config);
	unload(&loaded);
	return result;
}
