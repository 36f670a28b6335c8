/*
 * test_exchange.c - a whole worker between a caller and a service, with an
 * adapter and a log of our own: what is forwarded was granted and is on
 * record, each decision has one end, and both stay true whichever allocation
 * fails, whoever hangs up, and whatever the log says.
 */
#include "proxy/approvals.h"
#include "proxy/quotas.h"
#include "proxy/worker_priv.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/check.h"

/* --- allocations that fail --- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);

static long allocations; /* since armed */
static long fail_at;     /* 0: none fails */

static bool must_fail(void)
{
	return fail_at && ++allocations == fail_at;
}

void *__wrap_malloc(size_t n)
{
	return must_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	return must_fail() ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	return must_fail() ? NULL : __real_realloc(p, n);
}

/* --- a log that does as it is told --- */

enum log_mode { LOG_GRANTS = 0, LOG_LOSES, LOG_IS_SILENT, LOG_IS_FULL };

struct audit_client {
	enum log_mode mode;
	struct {
		audit_done_fn *done;
		void *arg;
		bool allow;
	} waiting[8];
	size_t waiting_count;
	int granted, outcomes, reads, denials, aborted_by_client;
	char status[16], reason[32], end_of[40];
};

static struct audit_client the_log;

struct audit_client *audit_client_create(void)
{
	return &the_log;
}

void audit_client_destroy(struct audit_client *c)
{
	(void)c;
}

void audit_client_attach(struct audit_client *c, int fd)
{
	(void)c;
	(void)fd;
}

int audit_client_fd(const struct audit_client *c)
{
	(void)c;
	return -1;
}

bool audit_client_waiting(const struct audit_client *c)
{
	(void)c;
	return false;
}

bool audit_client_low(const struct audit_client *c)
{
	(void)c;
	return false;
}

bool audit_client_up(const struct audit_client *c)
{
	(void)c;
	return true;
}

void audit_client_read(struct audit_client *c)
{
	(void)c;
}

/* Answers what waits, as an auditor would. */
void audit_client_flush(struct audit_client *c)
{
	struct audit_receipt receipt = {.log = "log", .seq = 1};
	size_t count = c->mode == LOG_IS_SILENT ? 0 : c->waiting_count;

	for (size_t i = 0; i < count; i++) {
		bool lost = c->mode == LOG_LOSES;

		if (c->waiting[i].allow && !lost && c->waiting[i].done)
			c->granted++;
		if (c->waiting[i].done)
			c->waiting[i].done(c->waiting[i].arg, lost ? NULL : &receipt);
	}
	c->waiting_count -= count;
}

void audit_client_tick(struct audit_client *c, uint64_t now_ms)
{
	(void)c;
	(void)now_ms;
}

uint64_t audit_client_deadline(const struct audit_client *c)
{
	(void)c;
	return UINT64_MAX;
}

void audit_client_hold_reads(struct audit_client *c, unsigned ms)
{
	(void)c;
	(void)ms;
}

int audit_require(struct audit_client *c, const struct record *r, audit_done_fn *done, void *arg)
{
	bool allow = !strcmp(r->verdict, "allow");

	if (c->mode == LOG_IS_FULL || c->waiting_count == 8)
		return -1;
	c->denials += !allow;
	snprintf(c->reason, sizeof(c->reason), "%s", r->reason ? r->reason : "");
	c->waiting[c->waiting_count].done = done;
	c->waiting[c->waiting_count].arg = arg;
	c->waiting[c->waiting_count++].allow = allow;
	return 0;
}

void audit_forget(struct audit_client *c, const void *arg)
{
	for (size_t i = 0; i < c->waiting_count; i++)
		if (c->waiting[i].arg == arg)
			c->waiting[i].done = NULL;
}

int audit_tell(struct audit_client *c, const struct record *r)
{
	c->outcomes += r->type == RECORD_OUTCOME;
	c->reads += r->type == RECORD_READ;
	snprintf(c->status, sizeof(c->status), "%s", r->status ? r->status : "");
	if (r->reason && *r->reason)
		snprintf(c->reason, sizeof(c->reason), "%s", r->reason);
	return 0;
}

uint64_t audit_client_lost(const struct audit_client *c)
{
	(void)c;
	return 0;
}

/* --- an adapter that knows eleven requests, two of which break its contract --- */

struct route {
	const char *path;
	enum operation op;
	enum body_kind body;
	enum reply_kind reply;
};

static const struct route routes[] = {
	{"/read", OP_SYSTEM_INFO, BODY_NONE, REPLY_STREAM},
	{"/list", OP_CONTAINER_LIST, BODY_NONE, REPLY_HELD},
	{"/change", OP_CONTAINER_STOP, BODY_NONE, REPLY_STREAM},
	{"/json", OP_CONTAINER_STOP, BODY_JSON, REPLY_STREAM},
	{"/make", OP_CONTAINER_STOP, BODY_JSON, REPLY_LAUNCH},
	{"/make-other", OP_CONTAINER_STOP, BODY_JSON, REPLY_LAUNCH},
	{"/upload", OP_IMAGE_LOAD, BODY_STREAM, REPLY_STREAM},
	{"/denied", OP_VOLUME_PRUNE, BODY_NONE, REPLY_STREAM},
	{"/asks-for-ever", OP_CONTAINER_STOP, BODY_NONE, REPLY_STREAM},
	{"/gives-no-reason", OP_CONTAINER_STOP, BODY_NONE, REPLY_STREAM},
	{"/volume", OP_VOLUME_CREATE, BODY_NONE, REPLY_STREAM},
};

static struct backend the_backend;

static struct backend *fake_open(const struct backend_conf *conf, struct err *err)
{
	(void)conf;
	(void)err;
	return &the_backend;
}

static void fake_close(struct backend *be)
{
	(void)be;
}

static int fake_route(struct backend *be, struct backend_call *call)
{
	(void)be;
	for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
		if (strcmp(routes[i].path, call->req->path) != 0)
			continue;
		call->op = routes[i].op;
		call->body = routes[i].body;
		call->reply = routes[i].reply;
		call->content_types = "";
		return 0;
	}
	violations_add(&call->refused, REASON_unknown_endpoint);
	return -1;
}

static enum step ask(struct backend_call *call)
{
	struct lookup *l = &call->lookups[0];

	if (!call->lookup_count || (l->answered && l->key[0] == 'b')) {
		*l = (struct lookup){.target = "/lookup", .table = "info"};
		l->key = call->lookup_count ? "after" : "before";
		call->lookup_count = 1;
		return STEP_LOOKUP;
	}
	return STEP_READY;
}

static void know_volume(struct backend_call *call)
{
	struct jv volume = jv_object();

	if (call->op != OP_VOLUME_CREATE)
		return;
	jv_set(call->arena, &volume, "driver", jv_string("local"));
	call->workload.facts = jv_object();
	jv_set(call->arena, &call->workload.facts, "volume", volume);
}

static enum step fake_step(struct backend *be, struct backend_call *call)
{
	(void)be;
	if (strcmp(call->req->path, "/gives-no-reason") == 0)
		return STEP_REFUSED;
	if (strcmp(call->req->path, "/asks-for-ever") == 0)
		call->lookup_count = 0;
	if (!call->lookup_count)
		return ask(call);
	if (call->lookups[0].status == 200) {
		know_volume(call);
		return STEP_READY;
	}
	violations_add(&call->refused, REASON_fact_unknown);
	return STEP_REFUSED;
}

static enum step fake_check(struct backend *be, struct backend_call *call, struct span reply)
{
	(void)be;
	(void)reply;
	if (call->lookups[0].key[0] == 'b')
		return ask(call);
	if (call->lookups[0].status == 200 && strcmp(call->req->path, "/make-other") != 0)
		return STEP_READY;
	violations_add(&call->refused, REASON_not_as_judged);
	return STEP_REFUSED;
}

/* Nobody has anything. */
static enum step fake_count(struct backend *be, struct backend_call *call)
{
	(void)be;
	(void)call;
	return STEP_READY;
}

static int fake_render(struct backend *be, struct backend_call *call, struct outgoing *ret,
		       struct err *err)
{
	(void)be;
	(void)err;
	ret->streams_body = call->body == BODY_STREAM;
	buf_put(&ret->body, call->req->body.at, call->body == BODY_JSON ? call->req->body.len : 0);
	buf_printf(&ret->head, "%s %s HTTP/1.1\r\nContent-Length: %lld\r\n\r\n", call->req->method,
		   call->req->path,
		   ret->streams_body ? (long long)call->req->body_bytes
				     : (long long)buf_len(&ret->body));
	return 0;
}

static int fake_undo(struct backend *be, struct backend_call *call, struct outgoing *ret,
		     struct err *err)
{
	(void)be;
	(void)call;
	(void)err;
	buf_puts(&ret->head, "DELETE /undo HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
	return buf_spent(&ret->head) ? -1 : 0;
}

static void fake_reply_header(struct backend *be, struct backend_call *call,
			      const struct pair *header, bool *ret_keep, const char **ret_value)
{
	(void)be;
	(void)call;
	(void)ret_value;
	*ret_keep = span_is(header->key, "content-type");
}

static int fake_filter(struct backend *be, struct backend_call *call, int status, struct span body,
		       struct buf *ret, struct err *err)
{
	(void)be;
	(void)call;
	(void)status;
	(void)err;
	buf_put(ret, body.at, body.len);
	return 0;
}

static const char *fake_created(const struct backend_call *call)
{
	(void)call;
	return "made";
}

static void fake_refusal(const char *message, struct buf *ret_body, const char **ret_content_type)
{
	buf_puts(ret_body, message);
	*ret_content_type = "text/plain";
}

static const struct fact_name fact_names[] = {{NULL, NULL}};

static const struct backend_ops fake_ops = {
	.kind = "fake",
	.fact_names = fact_names,
	.open = fake_open,
	.close = fake_close,
	.forget = fake_close,
	.route = fake_route,
	.step = fake_step,
	.count = fake_count,
	.render = fake_render,
	.undo = fake_undo,
	.reply_header = fake_reply_header,
	.filter = fake_filter,
	.check = fake_check,
	.created = fake_created,
	.refusal = fake_refusal,
};

const struct backend_ops *const *backend_all(void)
{
	static const struct backend_ops *const all[] = {&fake_ops, NULL};

	return all;
}

const struct backend_ops *backend_find(const char *kind)
{
	(void)kind;
	return &fake_ops;
}

/* --- the service and the worker --- */

#define PEERS 8

struct world {
	char path[64];
	int listener;
	struct {
		int fd;
		char text[4096];
		size_t len;
	} peers[PEERS];
	int changes, undos, unproven; /* unproven: came without a grant */
	struct worker *worker;
	int caller;
	char got[4096];
	size_t got_len;
	bool ended; /* the caller saw the end of the connection */
};

static struct conf_backend backends[] = {{.name = "engine", .kind = "fake"}};
static const char rules[] = "return profile \"main\" { operations = { \"read\", \"container.run\","
			    " \"image.load\" } }";
static const char asking_rules[] =
	"return profile \"asks\" { operations = { \"container.stop\", \"volume.create\" },"
	" quota = { volume_count = 1 }, rule(\"stop\", { operations = { \"container.stop\" } },"
	" function(req) ask(\"a person\") end) }";
static struct rule_source sources[] = {{"main.lua", {rules, sizeof(rules) - 1}},
				       {"asks.lua", {asking_rules, sizeof(asking_rules) - 1}}};
static struct conf_listener listeners[] = {
	{.name = "main", .socket = "", .fd = -1, .otherwise = "main"}};
static struct proxy_conf conf = {.backends = backends,
				 .backend_count = 1,
				 .listeners = listeners,
				 .listener_count = 1,
				 .rules = sources,
				 .rule_count = 2,
				 .generation = ""};

static void begin(struct world *o, enum log_mode mode)
{
	static const char *const none[] = {NULL};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct err err = {0};

	*o = (struct world){.caller = -1};
	the_log = (struct audit_client){.mode = mode};
	snprintf(o->path, sizeof(o->path), "/tmp/test-exchange-%d.sock", (int)getpid());
	unlink(o->path);
	strcpy(addr.sun_path, o->path);
	for (int i = 0; i < PEERS; i++)
		o->peers[i].fd = -1;
	o->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_INT("bind", 0, bind(o->listener, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK_INT("listen", 0, listen(o->listener, PEERS));
	backends[0].socket = o->path;
	conf.rule_limits = engine_default_limits;
	conf.limits = conf_default_limits;
	conf.protected_paths = none;
	the_backend.ops = &fake_ops;
	o->worker = worker_open(&conf, &err);
	CHECK_STR("worker", "", err.msg);
}

static void hang_up(struct world *o)
{
	if (o->caller >= 0)
		close(o->caller);
	o->caller = -1;
}

static void end(struct world *o)
{
	hang_up(o);
	worker_close(o->worker);
	for (int i = 0; i < PEERS; i++)
		if (o->peers[i].fd >= 0)
			close(o->peers[i].fd);
	close(o->listener);
	unlink(o->path);
}

static void ask_gate(struct world *o, const char *request)
{
	struct err err = {0};
	int pair[2];

	CHECK_INT("pair", 0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	o->caller = pair[1];
	CHECK_INT("write", (long)strlen(request), write(pair[1], request, strlen(request)));
	if (connection_adopt(o->worker, &listeners[0], pair[0], NULL, NULL, &err) < 0)
		o->ended = true;
}

static void serve_text(struct world *o, int i)
{
	const char *text = o->peers[i].text;
	const char *reply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			    "Content-Length: 2\r\n\r\n{}";
	const char *end_of_head = strstr(text, "\r\n\r\n"),
		   *length = strstr(text, "Content-Length: ");
	size_t body = length ? strtoul(length + 16, NULL, 10) : 0;

	if (!end_of_head || o->peers[i].len < (size_t)(end_of_head + 4 - text) + body)
		return;
	if (!strncmp(text, "DELETE /undo", 12))
		o->undos++;
	else if (strncmp(text, "GET ", 4) != 0)
		o->changes++;
	o->unproven += o->changes > the_log.granted;
	o->peers[i].len = 0;
	o->peers[i].text[0] = '\0';
	send(o->peers[i].fd, reply, strlen(reply), MSG_NOSIGNAL); /* who asked may be gone */
}

static void serve(struct world *o)
{
	for (int i = 0; i < PEERS; i++) {
		size_t room = sizeof(o->peers[i].text) - 1 - o->peers[i].len;
		ssize_t n;

		if (o->peers[i].fd < 0)
			o->peers[i].fd = accept4(o->listener, NULL, NULL, SOCK_NONBLOCK);
		if (o->peers[i].fd < 0)
			continue;
		n = read(o->peers[i].fd, o->peers[i].text + o->peers[i].len, room);
		if (n == 0) {
			close(o->peers[i].fd);
			o->peers[i].fd = -1;
			o->peers[i].len = 0;
		} else if (n > 0) {
			o->peers[i].len += (size_t)n;
			o->peers[i].text[o->peers[i].len] = '\0';
			serve_text(o, i);
		}
	}
}

static void listen_to_gate(struct world *o)
{
	ssize_t n = -1;

	if (o->caller >= 0)
		n = read(o->caller, o->got + o->got_len, sizeof(o->got) - 1 - o->got_len);
	o->ended |= n == 0;
	o->got_len += n > 0 ? (size_t)n : 0;
	o->got[o->got_len] = '\0';
}

/* One turn of everybody; only the worker's allocations may fail. */
static void turn(struct world *o, long *armed)
{
	fail_at = *armed;
	worker_turn(o->worker, 1);
	*armed = fail_at;
	fail_at = 0;
	serve(o);
	listen_to_gate(o);
}

static bool is_answered(const struct world *o)
{
	return o->ended || (strstr(o->got, "\r\n\r\n") && !o->worker->exchanges);
}

static void run(struct world *o, long armed)
{
	allocations = 0;
	for (int i = 0; i < 300 && !is_answered(o); i++)
		turn(o, &armed);
	for (int i = 0; i < 5; i++)
		turn(o, &armed);
}

static int status_of(const struct world *o)
{
	return o->got_len > 12 ? atoi(o->got + 9) : 0;
}

#define HEAD    " HTTP/1.1\r\nHost: d\r\n"
#define JSON    HEAD "Content-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"a\":12}"
#define NOTHING HEAD "\r\n"
#define UPLOAD  HEAD "Content-Type: application/x-tar\r\nContent-Length: 10\r\n\r\n0123456789"

struct row {
	const char *label, *request;
	enum log_mode mode;
	int http, granted, changes, undos, outcomes, reads, denials;
	const char *status;
};

static const struct row rows[] = {
	{"read", "GET /read" NOTHING, LOG_GRANTS, 200, 0, 0, 0, 0, 1, 0, "ok"},
	{"list", "GET /list" NOTHING, LOG_GRANTS, 200, 0, 0, 0, 0, 1, 0, "ok"},
	{"change", "POST /change" NOTHING, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"body", "POST /json" JSON, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"upload", "PUT /upload" UPLOAD, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"made", "POST /make" JSON, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"made otherwise", "POST /make-other" JSON, LOG_GRANTS, 403, 1, 1, 1, 1, 0, 0, "denied"},
	{"denied", "POST /denied" NOTHING, LOG_GRANTS, 403, 0, 0, 0, 0, 0, 1, ""},
	{"unknown", "GET /unknown" NOTHING, LOG_GRANTS, 403, 0, 0, 0, 0, 0, 0, NULL},
	{"lost", "POST /change" NOTHING, LOG_LOSES, 503, 0, 0, 0, 0, 0, 0, ""},
	{"lost upload", "PUT /upload" UPLOAD, LOG_LOSES, 503, 0, 0, 0, 0, 0, 0, ""},
	{"full", "POST /change" NOTHING, LOG_IS_FULL, 503, 0, 0, 0, 0, -1, 0, NULL},
};
/* An adapter that breaks its contract: no, as for everything that should not be. */
static void a_broken_adapter_denies(void **state)
{
	static const char *const paths[] = {"/asks-for-ever", "/gives-no-reason"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char request[64];
		struct world o;

		snprintf(request, sizeof(request), "POST %s" NOTHING, paths[i]);
		begin(&o, LOG_GRANTS);
		ask_gate(&o, request);
		run(&o, 0);
		CHECK_INT(paths[i], 500, status_of(&o));
		CHECK_STR(paths[i], reason_name(REASON_internal), the_log.reason);
		CHECK_INT(paths[i], 0, o.changes);
		CHECK_INT(paths[i], 1, the_log.denials);
		end(&o);
	}
}

#define ROWS (sizeof(rows) / sizeof(*rows))

static void requests_come_to_their_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		struct world o;

		begin(&o, r->mode);
		ask_gate(&o, r->request);
		run(&o, 0);
		CHECK_INT(r->label, r->http, status_of(&o));
		CHECK_INT(r->label, r->granted, the_log.granted);
		CHECK_INT(r->label, r->changes, o.changes);
		CHECK_INT(r->label, r->undos, o.undos);
		CHECK_INT(r->label, r->outcomes, the_log.outcomes);
		if (r->status) {
			CHECK_INT(r->label, r->reads, the_log.reads);
			CHECK_INT(r->label, r->denials, the_log.denials);
			CHECK_STR(r->label, r->status, the_log.status);
		}
		end(&o);
	}
}

/* What must hold whatever goes wrong. */
static void check_invariants(const char *label, const struct world *o)
{
	CHECK_INT(label, 0, o->unproven);
	CHECK_INT(label, the_log.granted, the_log.outcomes);
	CHECK_INT(label, 0, o->worker->exchanges != NULL);
	CHECK_INT(label, 0, o->worker->bodies_bytes);
	CHECK_INT(label, 0, o->worker->held_bytes);
}

/* One that is made otherwise is removed, unless the engine could not be told any more. */
static void every_allocation_fails_in_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		bool reached = true;
		long n = 0;

		while (reached) {
			char label[80];
			struct world o;

			snprintf(label, sizeof(label), "%s, allocation %ld", rows[i].label, ++n);
			begin(&o, rows[i].mode);
			ask_gate(&o, rows[i].request);
			run(&o, n);
			reached = allocations >= n;
			CHECK_INT(label, 1, is_answered(&o));
			hang_up(&o);
			for (int j = 0; j < 10 && o.worker->exchanges; j++)
				turn(&o, &(long){0});
			check_invariants(label, &o);
			if (!strcmp(rows[i].label, "made otherwise"))
				CHECK_INT(label, 0, status_of(&o) == 200);
			end(&o);
		}
		CHECK_INT(rows[i].label, 1, n > 3); /* it did reach some */
	}
}

static void callers_hang_up_at_every_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (int after = 0; after < 12; after++) {
			char label[80];
			struct world o;
			long armed = 0;

			snprintf(label, sizeof(label), "%s, gone after %d", rows[i].label, after);
			begin(&o, rows[i].mode);
			ask_gate(&o, rows[i].request);
			for (int j = 0; j < after; j++)
				turn(&o, &armed);
			hang_up(&o);
			for (int j = 0; j < 100 && o.worker->conns; j++)
				turn(&o, &armed);
			CHECK_INT(label, 0, o.worker->conns != NULL);
			check_invariants(label, &o);
			CHECK_INT(label, o.changes > 0 ? rows[i].undos : 0, o.undos);
			end(&o);
		}
}

/* The worker's own end in every phase: no decision is left without its outcome. */
static void a_worker_ends_at_every_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (int after = 0; after < 12; after++) {
			char label[80];
			struct world o;
			long armed = 0;

			snprintf(label, sizeof(label), "%s, ended after %d", rows[i].label, after);
			begin(&o, rows[i].mode);
			ask_gate(&o, rows[i].request);
			for (int j = 0; j < after; j++)
				turn(&o, &armed);
			front_close(o.worker);
			check_invariants(label, &o);
			end(&o);
		}
}

static void what_is_held_is_capped_in_sum(void **state)
{
	static const char *const requests[] = {"GET /list" NOTHING, "POST /json" JSON};

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		struct world o;

		begin(&o, LOG_GRANTS);
		conf.limits.bodies_bytes = 100;
		ask_gate(&o, requests[i]);
		run(&o, 0);
		CHECK_INT(requests[i], 503, status_of(&o));
		CHECK_STR(requests[i], "busy", the_log.reason);
		check_invariants(requests[i], &o);
		end(&o);
	}
}

/* A log that says nothing: nothing is forwarded, and our end of it is forgotten. */
static void a_silent_log_lets_nothing_pass(void **state)
{
	struct world o;

	(void)state;
	begin(&o, LOG_IS_SILENT);
	ask_gate(&o, "POST /change" NOTHING);
	for (int i = 0; i < 20; i++)
		turn(&o, &(long){0});
	CHECK_INT("changes", 0, o.changes);
	front_close(o.worker);
	the_log.mode = LOG_GRANTS;
	audit_client_flush(&the_log); /* too late: nobody may be called */
	CHECK_INT("granted", 0, the_log.granted);
	CHECK_INT("outcomes", 0, the_log.outcomes);
	end(&o);
}

/* --- tables that another process has: their lock is their first word --- */

#define ANOTHER 1 /* which is never a worker's number */

static void take_turns(struct world *o, int n, bool (*until)(const struct world *o))
{
	for (int i = 0; i < n && !(until && until(o)); i++)
		turn(o, &(long){0});
}

static bool is_asked(const struct world *o)
{
	return o->worker->exchanges && o->worker->exchanges->state == X_ASK;
}

static bool is_over(const struct world *o)
{
	return !o->worker->conns;
}

static bool is_waiting(const struct world *o)
{
	return o->worker->exchanges && o->worker->exchanges->table_free;
}

/* With `asks` in the place of `main`. */
static void begin_with(struct world *o, const char *request)
{
	struct err err = {0};

	listeners[0].otherwise = "asks";
	conf.approvals = approvals_create(&err);
	conf.quotas = quotas_create(&err);
	CHECK_STR("tables", "", err.msg);
	begin(o, LOG_GRANTS);
	conf.limits.ask_ms = 60000;
	ask_gate(o, request);
}

static void end_with(struct world *o)
{
	end(o);
	listeners[0].otherwise = "main";
	conf.approvals = NULL;
	conf.quotas = NULL;
}

static void set_lock(void *table, int32_t pid)
{
	atomic_store((_Atomic int32_t *)table, pid);
}

static void a_yes_is_awaited_while_another_has_the_table(void **state)
{
	struct world o;

	(void)state;
	begin_with(&o, "POST /change" NOTHING);
	set_lock(conf.approvals, ANOTHER);
	take_turns(&o, 1000, is_waiting);
	CHECK_INT("it waits", 1, is_waiting(&o));
	CHECK_INT("nobody was asked", 0, is_asked(&o) || is_answered(&o));
	set_lock(conf.approvals, 0);
	take_turns(&o, 1000, is_asked);
	CHECK_INT("a person is asked", 1, is_asked(&o));
	hang_up(&o);
	take_turns(&o, 1000, is_over);
	check_invariants("asked", &o);
	end_with(&o);
}

static void a_quota_is_awaited_while_another_has_the_table(void **state)
{
	struct world o;

	(void)state;
	begin_with(&o, "POST /volume" NOTHING);
	set_lock(conf.quotas, ANOTHER);
	take_turns(&o, 1000, is_waiting);
	CHECK_INT("it waits", 1, is_waiting(&o));
	CHECK_INT("nothing was sent", 0, o.changes);
	set_lock(conf.quotas, 0);
	run(&o, 0);
	CHECK_INT("it passes", 200, status_of(&o));
	CHECK_INT("once", 1, o.changes);
	check_invariants("passed", &o);
	end_with(&o);
}

static void what_is_never_to_be_had_is_a_denial(void **state)
{
	static const struct {
		const char *request, *reason;
	} never[] = {{"POST /change" NOTHING, "approvals_full"}, {"POST /volume" NOTHING, "busy"}};

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		struct world o;

		begin_with(&o, never[i].request);
		set_lock(conf.approvals, ANOTHER);
		set_lock(conf.quotas, ANOTHER);
		take_turns(&o, 20000, is_answered);
		CHECK_INT(never[i].request, 503, status_of(&o));
		CHECK_STR(never[i].request, never[i].reason, the_log.reason);
		CHECK_INT(never[i].request, 0, o.changes);
		check_invariants(never[i].request, &o);
		end_with(&o);
	}
}

/* It hangs up at any time, and waits for nothing any more. */
static void who_waits_for_a_table_may_leave(void **state)
{
	struct world o;

	(void)state;
	begin_with(&o, "POST /volume" NOTHING);
	set_lock(conf.quotas, ANOTHER);
	take_turns(&o, 1000, is_waiting);
	CHECK_INT("it waits", 1, is_waiting(&o));
	hang_up(&o);
	take_turns(&o, 1000, is_over);
	set_lock(conf.quotas, 0);
	take_turns(&o, 5, NULL);
	CHECK_INT("nothing was sent", 0, o.changes);
	CHECK_INT("granted", 0, the_log.granted);
	check_invariants("left", &o);
	end_with(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_come_to_their_end),
		cmocka_unit_test(a_broken_adapter_denies),
		cmocka_unit_test(callers_hang_up_at_every_turn),
		cmocka_unit_test(a_worker_ends_at_every_turn),
		cmocka_unit_test(what_is_held_is_capped_in_sum),
		cmocka_unit_test(a_silent_log_lets_nothing_pass),
		cmocka_unit_test(a_yes_is_awaited_while_another_has_the_table),
		cmocka_unit_test(a_quota_is_awaited_while_another_has_the_table),
		cmocka_unit_test(what_is_never_to_be_had_is_a_denial),
		cmocka_unit_test(who_waits_for_a_table_may_leave),
		cmocka_unit_test(every_allocation_fails_in_turn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
