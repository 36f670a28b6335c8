/* roles.c - what each process does, and in which order it gives up what it does not need. */
#include "gate/serve.h"

#include "audit/auditor.h"
#include "gate/admin_sockets.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/base/shared.h"
#include "gate/resolver.h"
#include "gate/successor.h"
#include "gate/supervisor.h"
#include "proxy/sandbox/sandbox.h"
#include "proxy/watcher.h"
#include "proxy/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STATUS_CANNOT 2

/* A worker or resolver without its supervisor is nobody's; the auditor still has a record to write.
 */
static int die_with_parent(const struct serve *s, struct err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(err, "end with the parent");
	return getppid() == s->supervisor ? 0 : err_set(err, ERR_SYSTEM, "the supervisor is gone");
}

static int begin(const struct serve *s, enum role role, struct err *err)
{
	if (role != ROLE_ADMIN)
		emergency_only_read(s->emergency);
	/* Changing ids clears the signal of the parent's death, so it is set behind that. */
	if (privs_become(role, s->root ? &s->ids[role] : NULL, err) < 0)
		return -1;
	return role == ROLE_AUDITOR ? 0 : die_with_parent(s, err);
}

/* Of what processes have in common it needs this one, or none; workers and the watcher need most.
 */
static void keep_table(const void *own)
{
	shared_keep(&own, 1);
}

static void allow_for(const struct proxy_conf *conf)
{
	for (size_t i = 0; i < conf->backend_count; i++)
		if (conf->backends[i].tcp)
			privs_reach_tcp();
}

/* Nobody may answer: then what rules ask for is denied at once. */
static bool can_be_asked(const struct config_admin *c)
{
	return c->approve.uid_count || c->approve.gid_count;
}

static int run_worker(const struct serve *s, int control, struct err *err)
{
	struct proxy_conf conf = s->loaded->config.proxy;
	struct worker *w;
	int status = -1;

	if (begin(s, ROLE_WORKER, err) < 0)
		return -1;
	conf.replaces = supervisor_predecessor();
	conf.read_next = successor_read;
	conf.drop_next = successor_drop;
	conf.rates = s->rates;
	conf.suppressed = s->suppressed;
	conf.quotas = s->quotas;
	conf.updates = s->updates;
	conf.approvals = can_be_asked(&s->loaded->config.admin) ? s->approvals : NULL;
	conf.metrics = s->metrics;
	conf.engines = s->engines;
	conf.audit_state = s->audit_state;
	conf.watched = s->watched;
	conf.emergency = s->emergency;
	allow_for(&conf);
	conf.runtime = admin_sockets_all(s->sockets);
	conf.runtime_count = admin_sockets_count(s->sockets);
	w = worker_open(&conf, err);
	if (!w)
		return -1;
	bundle_unmap(&s->loaded->bundle); /* rules and keys are where they are used */
	if (privs_filter(ROLE_WORKER, err) == 0)
		status = worker_run(w, control);
	worker_close(w);
	return status;
}

static int run_watcher(const struct serve *s, int control, struct err *err)
{
	struct proxy_conf conf = s->loaded->config.proxy;
	struct worker *w;
	int status = -1;

	if (begin(s, ROLE_WATCHER, err) < 0)
		return -1;
	conf.replaces = supervisor_predecessor();
	conf.metrics = s->metrics;
	conf.engines = s->engines;
	conf.audit_state = s->audit_state;
	conf.watched = s->watched;
	conf.emergency = s->emergency;
	allow_for(&conf);
	w = watcher_open(&conf, err);
	if (!w)
		return -1;
	bundle_unmap(&s->loaded->bundle);
	if (privs_filter(ROLE_WATCHER, err) == 0)
		status = worker_run(w, control);
	worker_close(w);
	return status;
}

static void tell_alarm(const char *text)
{
	log_alarm("%s", text);
}

static int run_auditor(const struct serve *s, int control, struct err *err)
{
	struct auditor_conf conf = s->loaded->config.auditor;
	struct auditor *a;
	int status = -1;

	if (begin(s, ROLE_AUDITOR, err) < 0)
		return -1;
	keep_table(s->audit_state);
	bundle_unmap(&s->loaded->bundle);
	conf.accept_damage = s->accept_damage;
	conf.state = s->audit_state;
	conf.tell = tell_alarm;
	if (s->loaded->config.alarms_syslog)
		log_alarm_syslog(LOG_SYSLOG);
	a = auditor_open(&conf, err);
	if (!a && err->kind == ERR_INPUT) {
		log_line("%s", err->msg);
		return STATUS_DAMAGED;
	}
	if (!a && err->sys == ENOSPC) { /* tried again and again, until there is room */
		log_line("%s", err->msg);
		return AUDITOR_SEALED;
	}
	if (!a)
		return -1;
	if (privs_filter(ROLE_AUDITOR, err) == 0 && io_send_fds(control, 'y', NULL, 0, err) == 0)
		status = auditor_run(a, control);
	if (status == AUDITOR_SEALED)
		log_alarm("the log is sealed, so nothing that changes anything is forwarded: %s",
			  auditor_why(a));
	else if (status > AUDITOR_STOPPED)
		log_line("the log: %s", auditor_why(a));
	auditor_close(a);
	return status;
}

static int run_resolver(const struct serve *s, int control, struct err *err)
{
	bundle_unmap(&s->loaded->bundle);
	keep_table(NULL);
	if (begin(s, ROLE_RESOLVER, err) < 0 || privs_filter(ROLE_RESOLVER, err) < 0 ||
	    io_send_fds(control, 'y', NULL, 0, err) < 0)
		return -1;
	return resolver_run(control);
}

static int run_admin(const struct serve *s, int control, struct err *err)
{
	const void *const own[] = {s->metrics, s->approvals};
	struct admin_conf conf = {.config = &s->loaded->config,
				  .socket = s->status,
				  .state = s->state,
				  .starter = geteuid(),
				  .group = getegid(),
				  .metrics = s->metrics,
				  .emergency = s->emergency,
				  .approvals = s->approvals};

	bundle_unmap(&s->loaded->bundle);
	shared_keep(own, sizeof(own) / sizeof(*own));
	if (begin(s, ROLE_ADMIN, err) < 0 || privs_filter(ROLE_ADMIN, err) < 0)
		return -1;
	return admin_run(&conf, control);
}

/* Its listeners, its folder and its connections to workers are all that it has. */
static int run_sandbox(const struct serve *s, int control, struct err *err)
{
	const struct sandbox_conf conf = {
		.proxy = &s->loaded->config.proxy, .state = s->sandbox_state, .control = control};
	struct sandboxes *api;
	int status = -1;

	bundle_unmap(&s->loaded->bundle);
	keep_table(NULL);
	if (begin(s, ROLE_SANDBOX, err) < 0)
		return -1;
	api = sandboxes_open(&conf, err);
	if (!api)
		return -1;
	if (privs_filter(ROLE_SANDBOX, err) == 0)
		status = sandboxes_run(api);
	sandboxes_close(api);
	return status;
}

static int run_keeper(const struct serve *s, int control, struct err *err)
{
	bundle_unmap(&s->loaded->bundle);
	keep_table(NULL);
	if (begin(s, ROLE_KEEPER, err) < 0)
		return -1;
	return keeper_run(&s->keeper, control, err);
}

/* A reload: reads what the supervisor read at its start, in the same way. */
static int run_reader(const struct serve *s, int control, struct err *err)
{
	struct bundle bundle;
	struct err unheard = {0};

	keep_table(NULL);
	emergency_only_read(s->emergency);
	if (die_with_parent(s, err) < 0 || privs_read(err) < 0)
		return -1;
	if (bundle_read_to_serve(s->loaded->config.path, &bundle, err) == 0)
		return io_send_fds(control, 'b', &bundle.fd, 1, err);
	if (io_send_fds(control, 'e', NULL, 0, &unheard) == 0)
		io_write_all(control, err->msg, strlen(err->msg), &unheard);
	err->kind = ERR_NONE; /* the supervisor says it */
	return 0;
}

int serve_role(struct serve *s, enum role role, int control)
{
	struct err err = {0};
	int status = -1;

	switch (role) {
	case ROLE_WORKER:
		status = run_worker(s, control, &err);
		break;
	case ROLE_WATCHER:
		status = run_watcher(s, control, &err);
		break;
	case ROLE_AUDITOR:
		status = run_auditor(s, control, &err);
		break;
	case ROLE_RESOLVER:
		status = run_resolver(s, control, &err);
		break;
	case ROLE_READER:
		status = run_reader(s, control, &err);
		break;
	case ROLE_ADMIN:
		status = run_admin(s, control, &err);
		break;
	case ROLE_SANDBOX:
		status = run_sandbox(s, control, &err);
		break;
	case ROLE_KEEPER:
		status = run_keeper(s, control, &err);
		break;
	case ROLE_SUPERVISOR:
	case ROLE_COUNT:
		break;
	}
	if (status < 0 && err.kind != ERR_NONE)
		log_line("%s", err.msg);
	return status < 0 ? STATUS_CANNOT : status;
}
