#include "gate/command.h"

#include "audit/state.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/base/shared.h"
#include "gate/notify.h"
#include "gate/reach.h"
#include "gate/serve.h"
#include "gate/supervisor.h"
#include "gate/watched_log.h"
#include "proxy/approvals.h"
#include "proxy/emergency.h"
#include "proxy/engines.h"
#include "proxy/metrics.h"
#include "proxy/quotas.h"
#include "proxy/rates.h"
#include "proxy/suppressed.h"
#include "proxy/updates.h"
#include "proxy/watched.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOUNTS_MAX  ((size_t)4 << 20)
#define DESCRIPTORS 65536

static int run(void *arg, enum role role, int control)
{
	return serve_role(arg, role, control);
}

static bool stale(void *arg)
{
	return serve_engine_groups(arg);
}

static int next(void *arg, int fd, const char **ret_generation, struct err *err)
{
	return serve_next(arg, fd, ret_generation, err);
}

static int next_bundle(void *arg)
{
	const struct serve *s = arg;

	return s->successor.fd;
}

static void switch_to_next(void *arg)
{
	serve_switch(arg);
}

static void forget_next(void *arg)
{
	serve_forget(arg);
}

static void ended(void *arg, pid_t pid)
{
	const struct serve *s = arg;

	quotas_died(s->quotas, pid, clock_boot_ns());
	suppressed_died(s->suppressed, pid);
	approvals_died(s->approvals, pid);
	watched_died(s->watched, pid);
}

static void describe(void *arg, struct supervisor_view *ret)
{
	const struct serve *s = arg;

	*ret = (struct supervisor_view){
		.proxy = &s->loaded->config.proxy,
		.engines = s->engines,
		.audit = s->audit_state,
		.watched = s->watched,
	};
}

static void ready(void *arg)
{
	(void)arg;
	log_line("ready");
	notify_manager("READY=1");
}

static int confine(void *arg, struct err *err)
{
	const struct serve *s = arg;

	if (s->loaded->config.alarms_syslog)
		log_alarm_syslog(LOG_SYSLOG);
	if (privs_become(ROLE_SUPERVISOR, NULL, err) < 0)
		return -1;
	return privs_filter(ROLE_SUPERVISOR, err);
}

static size_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (size_t)CPU_COUNT(&set);
}

/* Each connection takes a few; what the system does not allow is no reason to stop. */
static void raise_descriptors(void)
{
	struct rlimit now, want;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_cur >= DESCRIPTORS)
		return;
	want = (struct rlimit){DESCRIPTORS,
			       now.rlim_max > DESCRIPTORS ? now.rlim_max : DESCRIPTORS};
	if (setrlimit(RLIMIT_NOFILE, &want) == 0)
		return;
	want = (struct rlimit){now.rlim_max, now.rlim_max};
	setrlimit(RLIMIT_NOFILE, &want);
}

/* An engine may come later, so this is no reason not to start; a mistyped address looks the same.
 */
static void say_absent_engines(const struct config *c)
{
	const struct proxy_conf *p = &c->proxy;

	for (size_t i = 0; i < p->backend_count; i++) {
		const struct conf_backend *b = &p->backends[i];
		struct stat st;

		if (b->tcp || (c->keeper.wanted && c->keeper.backend == i))
			continue;
		if (stat(b->socket, &st) < 0 || access(b->socket, W_OK) < 0)
			log_line("backend \"%s\": %s: %s; requests that need it are refused",
				 b->name, b->socket, strerror(errno));
		else if (!S_ISSOCK(st.st_mode))
			log_line("backend \"%s\": %s is no socket; correct its address", b->name,
				 b->socket);
	}
}

/* A new engine makes a new socket; what was mounted here stays the old one. */
static void say_mounted_sockets(const struct serve *s)
{
	const struct proxy_conf *p = &s->loaded->config.proxy;
	struct err err = {0};
	struct buf mounts;

	if (io_read_file("/proc/self/mountinfo", MOUNTS_MAX, &mounts, &err) < 0)
		return;
	for (size_t i = 0; i < p->backend_count; i++) {
		const struct conf_backend *b = &p->backends[i];

		if (b->tcp || !reach_is_mount_point(buf_span(&mounts), b->socket))
			continue;
		engines_set_mounted(s->engines, i);
		log_line("backend \"%s\": the file %s itself was mounted here: when the engine is "
			 "started anew it will not be found again; mount its folder instead",
			 b->name, b->socket);
	}
	buf_fini(&mounts);
}

/* In a log stands what callers wrote: who reads it can do no more than who wrote it. */
static int look_back(const struct serve *s)
{
	const struct config *c = &s->loaded->config;
	const void *table = s->watched;
	struct err err = {0};

	if (privs_become(ROLE_AUDITOR, s->root ? &s->ids[ROLE_AUDITOR] : NULL, &err) < 0) {
		log_line("the log is not read: %s", err.msg);
		return 1;
	}
	shared_keep(&table, 1);
	watched_restore(s->watched, &c->proxy, c->auditor.dir);
	return 0;
}

/* What it finds is in memory that we share. */
static void start_looking_back(const struct serve *s)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(look_back(s));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		log_line("what the log says of the time before this start is not known");
}

static int serve(struct serve *s, struct err *err)
{
	const struct config *c = &s->loaded->config;
	struct supervisor_conf conf = {
		.run = run,
		.stale = stale,
		.ready = ready,
		.confine = confine,
		.ended = ended,
		.next = next,
		.next_bundle = next_bundle,
		.kept = serve_kept,
		.switch_to_next = switch_to_next,
		.forget_next = forget_next,
		.admin = serve_admin,
		.expired = serve_expired,
		.due = serve_due,
		.runtime = serve_runtime,
		.status_more = serve_status_more,
		.describe = describe,
		.arg = s,
		.workers = c->workers ? c->workers : processors(),
		.listener_count = c->proxy.listener_count,
		.generation = c->proxy.generation,
	};
	char path[PATH_MAX]; /* the configuration's own does not outlive a reload */
	int rc;

	snprintf(path, sizeof(path), "%s", c->path);
	self_container(s->self);
	serve_own_container(s, &s->loaded->config);
	if (*c->proxy.self)
		log_line("the gate's own container is %s; callers cannot touch it", c->proxy.self);
	if (serve_users(s, err) < 0 || serve_log_folder(s, err) < 0)
		return -1;
	serve_engine_groups(s);
	if (serve_look_up(s, err) < 0)
		return -1;
	say_absent_engines(c);
	raise_descriptors();
	s->rates = rates_create(err);
	s->suppressed = suppressed_create(err);
	s->quotas = quotas_create(err);
	s->metrics = metrics_create(err);
	s->audit_state = audit_state_create(err);
	s->engines = engines_create(c->proxy.backend_count, err);
	s->watched = watched_create(err);
	s->approvals = approvals_create(err);
	s->updates = updates_create(s->loaded->config.updates, err);
	s->emergency = emergency_create(err);
	if (!s->rates || !s->suppressed || !s->quotas || !s->metrics || !s->engines ||
	    !s->audit_state || !s->watched || !s->updates || !s->emergency || !s->approvals)
		return -1;
	start_looking_back(s);
	say_mounted_sockets(s);
	rc = serve_open_sockets(s, err);
	if (rc == 0)
		rc = serve_open_admin(s, err);
	if (rc == 0)
		rc = serve_open_sandboxes(s, err);
	if (rc == 0)
		rc = serve_open_keeper(s, err);
	if (rc == 0) {
		conf.sandbox_listeners = s->sandbox_listeners;
		conf.sandbox_listener_count = s->sandbox_listener_count;
		conf.sandbox_state = s->sandbox_state;
		conf.keeper = s->keeper_fds;
		conf.keeper_count = s->keeper_fd_count;
		conf.listeners = s->listeners;
		conf.status = s->status;
		conf.state = s->state;
		conf.config = path;
		conf.audit = s->audit_state;
		conf.hung_ms = c->auditor.hung_ms;
		rc = supervisor_run(&conf, err);
	}
	serve_close_keeper(s);
	serve_close_sandboxes(s);
	serve_close_admin(s);
	serve_close_sockets(s);
	return rc;
}

int run_serve(const struct args *args)
{
	struct err err = {0};
	struct loaded loaded;
	struct serve s = {.loaded = &loaded,
			  .next = {.bundle = {.fd = -1}},
			  .successor = {.fd = -1},
			  .supervisor = getpid(),
			  .status = -1,
			  .state = -1,
			  .sandbox_state = -1,
			  .accept_damage = args->accept_damage};
	int rc;

	log_role("supervisor");
	if (load_to_serve(args->config, &loaded, &err) < 0)
		return command_failed(&err);
	if (chdir("/") < 0)
		err_sys(&err, "go to /");
	rc = err.kind == ERR_NONE ? serve(&s, &err) : -1;
	unload(&loaded);
	if (rc < 0)
		command_failed(&err);
	/* What libraries do at the end is not on the list of a confined process. */
	_exit(rc == 0 ? EXIT_YES : err.kind == ERR_INPUT ? STATUS_DAMAGED : EXIT_CANNOT);
}
