/* The module: what is asked for, the lists of what runs, and whose turn it is. */
#include "proxy/rejudge_priv.h"

#include "gate/base/clock.h"
#include "gate/base/hash.h"
#include "gate/base/log.h"
#include "proxy/engines.h"
#include "proxy/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_HEAD_MAX 16384
#define ROW_ARENA     (4u << 20) /* bytes that a row of a list may take when it is read */
#define TODO_FIRST    64

struct rejudge {
	struct worker *worker;
	struct rejudging *backends; /* as many as the worker has services */
};

static struct log_kind lists_failed;

static void fill(struct rejudging *r);
static void list_next(struct rejudging *r);

/* --- what waits --- */

static bool make_room(struct rejudging *r)
{
	size_t size = r->todo_size ? 2 * r->todo_size : TODO_FIRST;
	struct rejudged_id *more;

	if (r->todo_count >= REJUDGE_MAX)
		return false;
	if (r->todo_count < r->todo_size)
		return true;
	more = reallocarray(r->todo, size, sizeof(*more));
	if (!more)
		return false;
	r->todo = more;
	r->todo_size = size;
	return true;
}

static void push(struct rejudging *r, const struct rejudged_id *one)
{
	if (make_room(r))
		r->todo[r->todo_count++] = *one;
	else
		r->tally.left_out++;
}

/* The last that is due; false: none is. */
static bool pop(struct rejudging *r, struct rejudged_id *ret)
{
	uint64_t now_ms = r->worker->loop.now_ms;

	for (size_t i = r->todo_count; i > 0; i--) {
		if (r->todo[i - 1].due_ms > now_ms)
			continue;
		*ret = r->todo[i - 1];
		r->todo[i - 1] = r->todo[--r->todo_count];
		return true;
	}
	return false;
}

/* --- the summary --- */

static bool is_busy(const struct rejudging *r)
{
	return r->wanted || r->list || r->todo_count || r->look_count || r->id_count;
}

static void summarise(struct rejudging *r)
{
	const struct rejudge_tally *t = &r->tally;
	char id[UUID_TEXT_LEN + 1], text[200];
	struct record rec = {.type = RECORD_REJUDGED, .id = id};
	unsigned long long fine = t->judged - t->reported - t->stopped - t->unknown;

	uuid_make(id);
	snprintf(text, sizeof(text),
		 "%llu judged again: %llu fine, %llu reported, %llu stopped, %llu unknown; %llu "
		 "left out",
		 (unsigned long long)t->judged, fine, (unsigned long long)t->reported,
		 (unsigned long long)t->stopped, (unsigned long long)t->unknown,
		 (unsigned long long)t->left_out);
	rec.surface = r->worker->services[r->backend].ops->kind;
	rec.backend = r->worker->conf->backends[r->backend].name;
	rec.cause = rejudge_cause_name(r->cause);
	rec.text = text;
	rec.count = t->judged;
	if (audit_tell(r->worker->audit, &rec) < 0)
		metrics_add(r->worker->conf->metrics, METRIC_unrecorded, 1);
	if (t->reported || t->stopped || t->unknown || t->left_out)
		log_line("backend %s: %s", rec.backend, text);
	engines_judged(r->worker->conf->engines, r->backend,
		       &(struct engine_round){.at = (int64_t)(clock_unix_ns() / 1000000000),
					      .cause = r->cause,
					      .judged = t->judged,
					      .reported = t->reported,
					      .stopped = t->stopped,
					      .unknown = t->unknown,
					      .left_out = t->left_out});
	r->tally = (struct rejudge_tally){0};
	r->began = false;
}

static void count(struct rejudging *r, enum finding f)
{
	struct metrics *m = r->worker->conf->metrics;

	if (f == FINDING_GONE)
		return;
	r->tally.judged++;
	metrics_add(m, METRIC_rejudged, 1);
	switch (f) {
	case FINDING_UNKNOWN:
		r->tally.unknown++;
		metrics_add(m, METRIC_rejudged_unknown, 1);
		break;
	case FINDING_FINE:
		break;
	case FINDING_REPORT:
		r->tally.reported++;
		metrics_add(m, METRIC_rejudged_reported, 1);
		break;
	case FINDING_STOP:
		r->tally.stopped++;
		metrics_add(m, METRIC_rejudged_stopped, 1);
		break;
	case FINDING_GONE:
	case FINDING_COUNT:
		break;
	}
}

/* --- looks --- */

static void forget_look(struct rejudging *r, const struct look *l)
{
	for (size_t i = 0; i < REJUDGE_LOOKS; i++)
		if (r->looks[i] == l) {
			r->looks[i] = NULL;
			r->look_count--;
		}
}

void rejudging_ended(struct rejudging *r, struct look *l, enum finding f, bool again)
{
	struct rejudged_id one = l->what;

	forget_look(r, l);
	if (again && ++one.tries < REJUDGE_TRIES) {
		one.due_ms = r->worker->loop.now_ms + REJUDGE_PAUSE_MS;
		push(r, &one);
	} else {
		count(r, f);
	}
	fill(r);
}

void rejudging_again(struct rejudging *r)
{
	if (!r->again_ms)
		r->again_ms = r->worker->loop.now_ms + REJUDGE_AGAIN_MS;
}

static void start_look(struct rejudging *r, const struct rejudged_id *one)
{
	struct look *l = look_begin(r, one);

	if (!l) {
		r->tally.left_out++;
		return;
	}
	for (size_t i = 0; i < REJUDGE_LOOKS; i++)
		if (!r->looks[i]) {
			r->looks[i] = l;
			break;
		}
	r->look_count++;
	look_go(l);
}

/* Never from within itself: a look can end before it is under way. */
static void fill(struct rejudging *r)
{
	struct rejudged_id one;

	if (r->filling)
		return;
	r->filling = true;
	while (r->up && !r->worker->stopping && r->look_count < REJUDGE_LOOKS && pop(r, &one))
		start_look(r, &one);
	r->filling = false;
}

/* --- lists --- */

static void end_list(struct rejudging *r)
{
	if (r->list)
		upcall_release(r->list);
	r->list = NULL;
	elements_fini(&r->elements);
}

static void list_failed(struct rejudging *r, const char *why)
{
	log_often(&lists_failed, "backend %s: what runs cannot be judged again: %s",
		  r->worker->conf->backends[r->backend].name, why);
	end_list(r);
	if (r->lists_kill)
		kill_round_failed(&r->kills, r->worker->loop.now_ms);
	rejudging_again(r);
}

static void on_row(void *arg, struct span row)
{
	struct rejudging *r = arg;
	struct service *s = &r->worker->services[r->backend];
	struct backend_call call = {.arena = r->row_arena,
				    .owner = "",
				    .adopted = s->conf->adopted,
				    .adopted_count = s->conf->adopted_count,
				    .self = r->worker->conf->self};
	struct rejudged_id one = {.cause = r->lists_kill  ? CAUSE_QUARANTINE
					   : r->lists_all ? r->cause
							  : CAUSE_ENGINE_START};
	enum jv_fault fault;
	struct err err = {0};
	const char *id = "";
	struct jv doc;

	if (jv_parse(r->row_arena, row, &doc, &fault, &err) < 0)
		r->tally.left_out++;
	else
		id = s->ops->running_row(s->backend, &call, &doc);
	if (!id) {
		r->tally.left_out++;
		id = "";
	}
	if (r->lists_kill && (!*id || !rejudge_kills(r->worker, call.object.owner)))
		id = "";
	if (hash_is_hex(span_of(id))) {
		memcpy(one.id, id, sizeof(one.id));
		push(r, &one);
	}
	arena_reset(r->row_arena, ROW_ARENA);
}

static void on_list_data(void *arg)
{
	struct rejudging *r = arg;
	struct span piece = upcall_body(r->list);
	struct err err = {0};
	bool complete;

	if (elements_take(&r->elements, piece, on_row, r, &err) < 0) {
		list_failed(r, err.msg);
		return;
	}
	upcall_take(r->list, piece.len);
	complete = upcall_complete(r->list);
	if (complete && !elements_over(&r->elements)) {
		list_failed(r, "the list ended in the middle");
		return;
	}
	if (complete)
		end_list(r);
	fill(r);
}

static void on_list_head(void *arg, const struct reply_head *head)
{
	if (head->status == 200)
		on_list_data(arg); /* what has come with it */
	else
		list_failed(arg, "the engine refuses to list it");
}

static void on_list_fail(void *arg, enum upcall_fault fault)
{
	(void)fault;
	list_failed(arg, "the engine did not answer");
}

static const struct upcall_handlers list_handlers = {
	.head = on_list_head,
	.data = on_list_data,
	.fail = on_list_fail,
};

static void start_list(struct rejudging *r, const char *const *ids, size_t count)
{
	struct service *s = &r->worker->services[r->backend];
	struct upcall_request req = {.repeatable = true};
	struct err err = {0};
	struct buf head;

	r->began = true;
	s->ops->forget(s->backend); /* what is judged by is no older than what is judged */
	r->list_deadline_ms = r->worker->loop.now_ms + r->worker->conf->limits.engine_ms;
	elements_init(&r->elements, ROW_MAX);
	buf_init(&head, LIST_HEAD_MAX);
	s->ops->running(s->backend, ids, count, &head);
	req.head = buf_span(&head);
	if (!buf_spent(&head))
		r->list = upcall_start(s->pool, &req, &list_handlers, r, &err);
	buf_fini(&head);
	if (!r->list)
		list_failed(r, err.msg);
}

/* All that runs, or what was started unasked. */
static void list_next(struct rejudging *r)
{
	const char *ids[REJUDGE_IDS];
	size_t count = r->id_count;

	if (r->list || !r->up || r->worker->stopping)
		return;
	r->lists_kill = kill_round_is_due(&r->kills, r->worker);
	if (r->lists_kill) {
		if (!r->began)
			r->cause = CAUSE_QUARANTINE;
		r->lists_all = false;
		start_list(r, NULL, 0);
		return;
	}
	if (!r->wanted && !count)
		return;
	r->lists_all = r->wanted;
	r->wanted = false;
	r->id_count = 0;
	if (r->lists_all) {
		r->todo_count = 0; /* all of it comes anew */
		start_list(r, NULL, 0);
		return;
	}
	if (!r->began)
		r->cause = CAUSE_ENGINE_START;
	for (size_t i = 0; i < count; i++)
		ids[i] = r->ids[i];
	start_list(r, ids, count);
}

static void want(struct rejudging *r, enum rejudge_cause cause)
{
	r->wanted = true;
	r->cause = cause;
	r->again_ms = 0;
	list_next(r);
}

/* --- the module --- */

static void rejudge_close(void *module)
{
	struct rejudge *m = module;

	for (size_t i = 0; m->backends && i < m->worker->conf->backend_count; i++) {
		struct rejudging *r = &m->backends[i];

		for (size_t k = 0; k < REJUDGE_LOOKS; k++)
			if (r->looks[k])
				look_drop(r->looks[k]);
		end_list(r);
		arena_destroy(r->row_arena);
		free(r->todo);
	}
	m->worker->rejudge = NULL;
	free(m->backends);
	free(m);
}

static void *rejudge_open(struct worker *w, struct err *err)
{
	struct rejudge *m = calloc(1, sizeof(*m));

	if (m) {
		m->worker = w;
		w->rejudge = m;
		m->backends = calloc(w->conf->backend_count + 1, sizeof(*m->backends));
	}
	for (size_t i = 0; m && m->backends && i < w->conf->backend_count; i++) {
		struct rejudging *r = &m->backends[i];

		r->worker = w;
		r->backend = i;
		elements_init(&r->elements, ROW_MAX);
		r->row_arena = arena_create(ROW_ARENA);
		if (!r->row_arena)
			goto no_memory;
	}
	if (m && m->backends)
		return m;
no_memory:
	if (m)
		rejudge_close(m);
	err_sys(err, "allocate what judges again");
	return NULL;
}

static void rejudge_look(void *module, size_t backend, enum watcher_why why)
{
	struct rejudging *r = &((struct rejudge *)module)->backends[backend];

	r->up = true;
	switch (why) {
	case WATCHER_START:
		want(r, CAUSE_START);
		break;
	case WATCHER_RECONNECT:
		want(r, CAUSE_RECONNECT);
		break;
	case WATCHER_RELOAD:
		want(r, CAUSE_RELOAD);
		break;
	}
}

/* A stop that is on record is finished, whatever comes of it. */
static void rejudge_lost(void *module, size_t backend)
{
	struct rejudging *r = &((struct rejudge *)module)->backends[backend];

	r->up = false;
	end_list(r);
	r->todo_count = r->id_count = 0;
	for (size_t i = 0; i < REJUDGE_LOOKS; i++) {
		struct look *l = r->looks[i];

		if (!l || look_must_end(l))
			continue;
		forget_look(r, l);
		r->tally.left_out++;
		look_drop(l);
	}
}

void rejudge_started(struct worker *w, size_t backend, struct span id)
{
	struct rejudging *r = w->rejudge ? &w->rejudge->backends[backend] : NULL;

	if (!r || r->wanted || id.len != REJUDGE_ID_MAX)
		return;
	for (size_t i = 0; i < r->id_count; i++)
		if (span_is(id, r->ids[i]))
			return;
	if (r->id_count == REJUDGE_IDS) {
		want(r, CAUSE_ENGINE_START);
		return;
	}
	memcpy(r->ids[r->id_count], id.at, id.len);
	r->ids[r->id_count++][id.len] = '\0';
}

/* An engine that reads its configuration again may give the name of a runtime to another program.
 */
static void rejudge_event(void *module, size_t backend, struct span line)
{
	struct rejudging *r = &((struct rejudge *)module)->backends[backend];
	static const char daemon[] = "\"daemon\"";
	struct service *s = &r->worker->services[backend];
	enum jv_fault fault;
	struct err err = {0};
	struct jv doc;

	if (!line.len || !memmem(line.at, line.len, daemon, sizeof(daemon) - 1))
		return;
	if (jv_parse(r->row_arena, line, &doc, &fault, &err) == 0 &&
	    strcmp(jv_str(&doc, "Type", ""), "daemon") == 0 &&
	    strcmp(jv_str(&doc, "Action", ""), "reload") == 0) {
		s->ops->forget(s->backend);
		want(r, CAUSE_ENGINE_RELOAD);
	}
	arena_reset(r->row_arena, ROW_ARENA);
}

static void tick(struct rejudging *r)
{
	uint64_t now_ms = r->worker->loop.now_ms;

	for (size_t i = 0; i < REJUDGE_LOOKS; i++)
		if (r->looks[i])
			look_tick(r->looks[i]);
	if (r->list && now_ms >= r->list_deadline_ms)
		list_failed(r, "the engine did not answer in time");
	if (r->again_ms && now_ms >= r->again_ms && r->up && audit_client_up(r->worker->audit))
		want(r, CAUSE_AGAIN);
	list_next(r);
	fill(r);
	if (r->began && !is_busy(r))
		summarise(r);
}

static void rejudge_tick(void *module)
{
	struct rejudge *m = module;

	for (size_t i = 0; i < m->worker->conf->backend_count; i++)
		tick(&m->backends[i]);
}

static bool rejudge_idle(const void *module)
{
	const struct rejudge *m = module;

	for (size_t i = 0; i < m->worker->conf->backend_count; i++)
		for (size_t k = 0; k < REJUDGE_LOOKS; k++)
			if (m->backends[i].looks[k] && look_must_end(m->backends[i].looks[k]))
				return false;
	return true;
}

const struct watcher_module rejudge_module = {
	.name = "rejudge",
	.open = rejudge_open,
	.close = rejudge_close,
	.look = rejudge_look,
	.lost = rejudge_lost,
	.event = rejudge_event,
	.tick = rejudge_tick,
	.idle = rejudge_idle,
};
