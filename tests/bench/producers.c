/*
 * producers.c - the auditor alone: many producers whose records of about 1 KiB become durable.
 *
 *	producers FOLDER PRODUCERS IN_FLIGHT SECONDS [kill]
 *
 * prints how long the auditor took to open the log, how many records a second were durable, and
 * what each took of its processor time in microseconds, as one JSON object.  The log stays in the
 * folder; kill: as an auditor leaves it that is killed.  SEGMENT_MIB in the environment: how long
 * its files are (256).
 */
#include "audit/auditor.h"
#include "audit/client.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/uuid.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PRODUCERS_MAX 1024
#define RARE          200000 /* one of so many is of an identity of its own */
#define FACTS_BYTES   420    /* the rest of a record's KiB is who, what and the chain */

struct producer {
	struct audit_client *client;
	unsigned in_flight;
	uint64_t durable, lost;
};

static struct producer all[PRODUCERS_MAX];
static struct pollfd waits[PRODUCERS_MAX];
static char facts[FACTS_BYTES + 1];

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "producers: %s: %s\n", what, err->msg);
	exit(1);
}

/* Everything of the auditor is in a process of its own, as in the gate. */
static pid_t start_auditor(const char *folder, int *ret_control)
{
	const char *mib = getenv("SEGMENT_MIB");
	const struct auditor_conf conf = {.dir = folder,
					  .origin = "bench/log",
					  .segment_bytes = (mib ? strtoull(mib, NULL, 10) : 256)
							   << 20,
					  .flush_ms = 5,
					  .claim_ms = 1000,
					  .build = "bench",
					  .unsafe_fs = true,
					  .checkpoint_ms = 1000};
	struct err err = {0};
	int pair[2];
	pid_t pid;

	if (io_pair(pair, &err) < 0)
		die("control", &err);
	pid = fork();
	if (pid != 0) {
		close(pair[1]);
		*ret_control = pair[0];
		return pid;
	}
	close(pair[0]);
	struct auditor *a = auditor_open(&conf, &err);
	if (!a)
		die("auditor", &err);
	_exit(auditor_run(a, pair[1]));
}

static void connect_one(struct producer *p, int control)
{
	struct err err = {0};
	int pair[2];

	p->client = audit_client_create();
	if (!p->client || io_pair(pair, &err) < 0 || io_nonblock(pair[0], &err) < 0 ||
	    io_send_fds(control, 'w', &pair[1], 1, &err) < 0)
		die("connect", &err);
	close(pair[1]);
	audit_client_attach(p->client, pair[0]);
}

static void on_done(void *arg, const struct audit_receipt *receipt)
{
	struct producer *p = arg;

	p->in_flight--;
	if (receipt)
		p->durable++;
	else
		p->lost++;
}

static bool produce(struct producer *p)
{
	static const char *const ops[] = {"container.create", "container.start", "exec.create"};
	static const char *const rules[] = {"images", "mounts", "privileges", "network", "limits"};
	static uint64_t made;
	char id[UUID_TEXT_LEN + 1], identity[16];
	const struct record r = {.type = RECORD_DECISION,
				 .id = id,
				 .surface = "docker",
				 .backend = "engine",
				 .listener = "agents",
				 .identity = identity,
				 .op = ops[made % 3],
				 .op_class = "launch",
				 .method = "POST",
				 .path = "/v1.41/containers/create",
				 .profile = "agent",
				 .verdict = "deny",
				 .rule = rules[made / 3 % 5],
				 .reason = "image",
				 .facts = {facts, FACTS_BYTES}};

	uuid_make(id);
	snprintf(identity, sizeof(identity), made % RARE ? "agent-%d" : "rare", (int)(made % 97));
	made++;
	if (audit_require(p->client, &r, on_done, p) < 0)
		return false;
	p->in_flight++;
	return true;
}

/* One turn of all their loops. */
static void turn(size_t count, unsigned in_flight, bool more)
{
	for (size_t i = 0; i < count; i++) {
		struct producer *p = &all[i];

		while (more && audit_client_up(p->client) && p->in_flight < in_flight && produce(p))
			;
		audit_client_flush(p->client);
		waits[i] = (struct pollfd){.fd = audit_client_fd(p->client), .events = POLLIN};
		if (audit_client_waiting(p->client))
			waits[i].events |= POLLOUT;
	}
	poll(waits, count, 100);
	for (size_t i = 0; i < count; i++) {
		if (waits[i].revents)
			audit_client_read(all[i].client);
		audit_client_tick(all[i].client, clock_boot_ms());
	}
}

static uint64_t waiting(size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += all[i].in_flight;
	return sum;
}

static void report(size_t count, uint64_t opened_ms, double seconds)
{
	uint64_t durable = 0, lost = 0;
	struct rusage used;
	double cpu;

	for (size_t i = 0; i < count; i++) {
		durable += all[i].durable;
		lost += all[i].lost;
	}
	getrusage(RUSAGE_CHILDREN, &used);
	cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
	      (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	printf("{\"opened_ms\":%llu,\"durable\":%llu,\"lost\":%llu,\"rate\":%.0f,\"cpu_us\":%.2f,"
	       "\"peak_kib\":%ld}\n",
	       (unsigned long long)opened_ms, (unsigned long long)durable, (unsigned long long)lost,
	       seconds > 0 ? (double)durable / seconds : 0, durable ? cpu / (double)durable : 0,
	       used.ru_maxrss);
}

int main(int argc, char **argv)
{
	size_t count = argc == 5 || argc == 6 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t started = clock_boot_ms(), began, until;
	int control, status;
	pid_t pid;

	if (!count || count > PRODUCERS_MAX) {
		fprintf(stderr, "say: producers FOLDER PRODUCERS IN_FLIGHT SECONDS [kill]\n");
		return 2;
	}
	memset(facts, 'x', FACTS_BYTES);
	memcpy(facts, "{\"image\":\"", 10);
	memcpy(facts + FACTS_BYTES - 2, "\"}", 2);
	pid = start_auditor(argv[1], &control);
	for (size_t i = 0; i < count; i++)
		connect_one(&all[i], control);
	while (!audit_client_up(all[0].client))
		turn(1, 0, false);
	began = clock_boot_ms();
	until = began + 1000 * strtoul(argv[4], NULL, 10);
	while (clock_boot_ms() < until || waiting(count))
		turn(count, (unsigned)strtoul(argv[3], NULL, 10), clock_boot_ms() < until);
	until = clock_boot_ms();
	if (argc == 6)
		kill(pid, SIGKILL);
	close(control);
	if (waitpid(pid, &status, 0) != pid || (status != 0 && argc == 5)) {
		fprintf(stderr, "producers: the auditor ended with status %d\n", status);
		return 1;
	}
	report(count, began - started, (double)(until - began) / 1000);
	return 0;
}
