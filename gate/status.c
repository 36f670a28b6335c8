#include "gate/supervisor_priv.h"

#include "audit/state.h"
#include "gate/base/clock.h"
#include "gate/base/jv.h"
#include "proxy/engines.h"
#include "proxy/watched.h"

#include <string.h>
#include <unistd.h>

#define TREE_MAX  ((size_t)4 << 20)
#define SHOWN_MAX 64 /* listeners, backends */

static void add_process(struct arena *a, struct jv *list, const struct process *p)
{
	struct jv *to = jv_push(a, list, jv_object());
	uint64_t now = clock_boot_ms();

	jv_set(a, to, "role", jv_string(role_name(p->role)));
	jv_set(a, to, "pid", jv_int(p->pid));
	jv_set(a, to, "state",
	       jv_string(!p->pid      ? "down"
			 : p->leaving ? "finishing"
			 : p->ready   ? "ready"
				      : "starting"));
	jv_set(a, to, "restarts", jv_int(p->restarts));
	jv_set(a, to, "uptime_s", jv_int(p->pid ? (int64_t)(now - p->started_ms) / 1000 : 0));
}

/* The last reload, and whether one is going on. */
static void add_reload(struct arena *a, struct jv *to, const struct reload *r)
{
	static const char *const phases[] = {"", "reading", "starting"};
	const char *state = r->phase || r->again ? phases[r->phase ? r->phase : RELOAD_READING]
			    : !r->count          ? "none"
			    : r->failed          ? "failed"
						 : "done";

	jv_set(a, to, "state", jv_string(state));
	jv_set(a, to, "count", jv_int(r->count));
	jv_set(a, to, "reason", jv_string(r->reason));
	jv_set(a, to, "ended_at", jv_int(r->ended_at));
}

/* Where callers come in. */
static void add_listeners(struct arena *a, struct jv *list, const struct proxy_conf *p)
{
	for (size_t i = 0; i < p->listener_count && i < SHOWN_MAX; i++) {
		const struct conf_listener *l = &p->listeners[i];
		struct jv *to = jv_push(a, list, jv_object());

		jv_set(a, to, "name", jv_string(l->name));
		jv_set(a, to, "address", jv_string(conf_is_tcp(l) ? l->tcp : l->socket));
		jv_set(a, to, "backend", jv_string(l->metrics ? "" : p->backends[l->backend].name));
		jv_set(a, to, "metrics", jv_bool(l->metrics));
	}
}

/* When what runs there was judged again, and how that came out; nothing before the first time. */
static void add_round(struct arena *a, struct jv *to, const struct engine_round *r)
{
	const struct {
		const char *name;
		uint64_t n;
	} all[] = {
		{"judged", r->judged},   {"reported", r->reported}, {"stopped", r->stopped},
		{"unknown", r->unknown}, {"left_out", r->left_out},
	};
	struct jv *round;

	if (!r->at)
		return;
	round = jv_set(a, to, "rejudged", jv_object());
	jv_set(a, round, "at", jv_int(r->at));
	jv_set(a, round, "cause", jv_string(rejudge_cause_name(r->cause)));
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		jv_set(a, round, all[i].name, jv_int((int64_t)all[i].n));
}

/* What happened there since the gate was started, and what explains it. */
static void add_observed(struct arena *a, struct jv *to, const struct watched_backend *b)
{
	struct jv *observed;

	if (!b)
		return;
	observed = jv_set(a, to, "observed", jv_object());
	jv_set(a, observed, "seen", jv_int((int64_t)b->sums.seen));
	jv_set(a, observed, "judged", jv_int((int64_t)b->sums.judged));
	jv_set(a, observed, "by_engine", jv_int((int64_t)b->sums.by_engine));
	jv_set(a, observed, "unexplained", jv_int((int64_t)b->sums.unexplained));
}

/* What the watcher knows of the engines; `reachable` is no when it is not known, too. */
static void add_backends(struct arena *a, struct jv *list, const struct supervisor_view *view)
{
	const struct proxy_conf *p = view->proxy;

	for (size_t i = 0; i < p->backend_count && i < SHOWN_MAX; i++) {
		struct jv *to = jv_push(a, list, jv_object());
		struct engine_look look;
		struct engine_round round;
		const char *api;

		engines_look(view->engines, i, &look);
		api = arena_strndup(a, look.api, strlen(look.api));
		jv_set(a, to, "name", jv_string(p->backends[i].name));
		jv_set(a, to, "address", jv_string(p->backends[i].address));
		jv_set(a, to, "tls", jv_bool(p->backends[i].tls != NULL));
		jv_set(a, to, "state", jv_string(engine_state_name(look.state)));
		jv_set(a, to, "reachable", jv_bool(look.state == ENGINE_UP));
		jv_set(a, to, "api", jv_string(api ? api : ""));
		jv_set(a, to, "since", jv_int(look.since));
		jv_set(a, to, "socket_file_mounted", jv_bool(look.mounted));
		engines_round(view->engines, i, &round);
		add_round(a, to, &round);
		add_observed(a, to, watched_of(view->watched, i));
	}
}

/* How far the log's sinks are. */
static void add_sinks(struct arena *a, struct jv *list, const struct audit_state *state)
{
	struct audit_sink sink;

	for (size_t i = 0; audit_state_sink(state, i, &sink); i++) {
		struct jv *to = jv_push(a, list, jv_object());
		const char *name = arena_strndup(a, sink.name, strlen(sink.name));
		const char *trouble = arena_strndup(a, sink.trouble, strlen(sink.trouble));

		jv_set(a, to, "name", jv_string(name ? name : ""));
		if (sink.known)
			jv_set(a, to, "seq", jv_int((int64_t)sink.seq));
		jv_set(a, to, "behind", jv_int((int64_t)sink.behind));
		jv_set(a, to, "trouble", jv_string(trouble ? trouble : ""));
	}
}

static const char *audit_text(const struct supervisor *s, const struct supervisor_view *view)
{
	enum audit_stage stage = audit_state_get(view->audit);

	if (!s->auditor.ready)
		return audit_stage_name(s->sealed || stage == AUDIT_SEALED ? AUDIT_SEALED
									   : AUDIT_DOWN);
	return audit_stage_name(stage == AUDIT_DOWN ? AUDIT_UP : stage);
}

static struct jv status_tree(const struct supervisor *s, struct arena *a)
{
	struct jv tree = jv_object(), *list;
	struct supervisor_view view = {.proxy = NULL};

	if (s->conf->describe)
		s->conf->describe(s->conf->arg, &view);

	jv_set(a, &tree, "version", jv_string(SALLYPORT_VERSION));
	jv_set(a, &tree, "pid", jv_int(getpid()));
	jv_set(a, &tree, "config", jv_string(s->conf->config));
	jv_set(a, &tree, "generation", jv_string(s->generation));
	add_reload(a, jv_set(a, &tree, "reload", jv_object()), &s->reload);
	jv_set(a, &tree, "uptime_s", jv_int((int64_t)(clock_boot_ms() - s->started_ms) / 1000));
	jv_set(a, &tree, "ready", jv_bool(supervisor_ready(s) && !s->stopping));
	jv_set(a, &tree, "stopping", jv_bool(s->stopping != STOPPING_NOT));
	jv_set(a, &tree, "audit", jv_string(audit_text(s, &view)));
	jv_set(a, &tree, "alarms", jv_int((int64_t)audit_state_alarms(view.audit)));
	add_sinks(a, jv_set(a, &tree, "sinks", jv_array()), view.audit);
	if (view.proxy) {
		add_listeners(a, jv_set(a, &tree, "sockets", jv_array()), view.proxy);
		add_backends(a, jv_set(a, &tree, "backends", jv_array()), &view);
	}
	list = jv_set(a, &tree, "processes", jv_array());
	add_process(a, list, &s->auditor);
	add_process(a, list, &s->resolver);
	add_process(a, list, &s->watcher);
	if (s->conf->status >= 0)
		add_process(a, list, &s->admin);
	if (s->conf->sandbox_listener_count)
		add_process(a, list, &s->sandbox);
	if (s->conf->keeper_count)
		add_process(a, list, &s->keeper);
	for (size_t i = 0; i < s->conf->workers; i++)
		add_process(a, list, &s->workers[i]);
	for (size_t i = 0; i < s->conf->workers; i++)
		if (s->coming[i].pid)
			add_process(a, list, &s->coming[i]);
	for (size_t i = 0; i < GENERATIONS_MAX * s->conf->workers; i++)
		if (s->leaving[i].pid)
			add_process(a, list, &s->leaving[i]);
	if (s->conf->status_more)
		s->conf->status_more(s->conf->arg, a, &tree);
	return tree;
}

void status_write(const struct supervisor *s, struct buf *out)
{
	struct arena *a = arena_create(TREE_MAX);
	struct jv tree;

	if (!a)
		return;
	tree = status_tree(s, a);
	if (!arena_spent(a))
		jv_write(out, &tree);
	buf_puts(out, "\n");
	arena_destroy(a);
}
