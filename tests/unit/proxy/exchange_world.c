#include "tests/unit/proxy/exchange_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- allocations that fail --- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);

long allocations;
static long fail_at; /* 0: none fails */

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

struct audit_client the_log;

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

bool count_asks;

/* Nobody has anything. */
static enum step fake_count(struct backend *be, struct backend_call *call)
{
	struct lookup *l = &call->lookups[1];

	(void)be;
	if (!count_asks || (call->lookup_count == 2 && l->answered))
		return STEP_READY;
	*l = (struct lookup){.target = "/count", .table = "info", .key = "count"};
	call->lookup_count = 2;
	return STEP_LOOKUP;
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

static struct conf_backend backends[] = {{.name = "engine", .kind = "fake"}};
static const char rules[] = "return profile \"main\" { operations = { \"read\", \"container.run\","
			    " \"image.load\" } }";
static const char asking_rules[] =
	"return profile \"asks\" { operations = { \"container.stop\", \"volume.create\" },"
	" quota = { volume_count = 9 }, rule(\"stop\", { operations = { \"container.stop\" } },"
	" function(req) ask(\"a person\") end) }";
static const char slow_rules[] =
	"return profile \"slow\" { operations = { \"read\", \"container.stop\", \"volume.create\" "
	"},"
	" quota = { volume_count = 9 },"
	" rule(\"list\", { operations = { \"container.list\" } }, function(req) while true do end "
	"end),"
	" rule(\"stop\", { operations = { \"container.stop\" } }, function(req) end) }";
static struct rule_source sources[] = {{"main.lua", {rules, sizeof(rules) - 1}},
				       {"asks.lua", {asking_rules, sizeof(asking_rules) - 1}},
				       {"slow.lua", {slow_rules, sizeof(slow_rules) - 1}}};
struct conf_listener listeners[1] = {{.name = "main", .socket = "", .fd = -1, .otherwise = "main"}};
struct proxy_conf the_conf = {.backends = backends,
			      .backend_count = 1,
			      .listeners = listeners,
			      .listener_count = 1,
			      .rules = sources,
			      .rule_count = 3,
			      .generation = ""};

void begin(struct world *o, enum log_mode mode)
{
	static const char *const none[] = {NULL};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct err err = {0};

	*o = (struct world){.caller = -1};
	the_log = (struct audit_client){.mode = mode};
	snprintf(o->path, sizeof(o->path), "/tmp/test-exchange-%d.sock", (int)getpid());
	unlink(o->path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", o->path);
	for (int i = 0; i < PEERS; i++)
		o->peers[i].fd = -1;
	o->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_INT("bind", 0, bind(o->listener, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK_INT("listen", 0, listen(o->listener, PEERS));
	backends[0].socket = o->path;
	the_conf.rule_limits = engine_default_limits;
	the_conf.limits = conf_default_limits;
	the_conf.protected_paths = none;
	the_backend.ops = &fake_ops;
	o->worker = worker_open(&the_conf, &err);
	CHECK_STR("worker", "", err.msg);
}

void hang_up(struct world *o)
{
	if (o->caller >= 0)
		close(o->caller);
	o->caller = -1;
}

void end(struct world *o)
{
	hang_up(o);
	worker_close(o->worker);
	for (int i = 0; i < PEERS; i++)
		if (o->peers[i].fd >= 0)
			close(o->peers[i].fd);
	close(o->listener);
	unlink(o->path);
}

void ask_gate(struct world *o, const char *request)
{
	struct err err = {0};
	int pair[2];

	CHECK_INT("pair", 0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	o->caller = pair[1];
	CHECK_INT("write", (long)strlen(request), write(pair[1], request, strlen(request)));
	if (connection_adopt(o->worker, &listeners[0], pair[0], NULL, NULL, &err) < 0)
		o->ended = true;
}

#define TAIL "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

static void serve_text(struct world *o, int i)
{
	static const char known[] = "HTTP/1.1 200 OK\r\n" TAIL,
			  unknown[] = "HTTP/1.1 404 Not Found\r\n" TAIL;
	const char *text = o->peers[i].text;
	const char *reply = !strncmp(text, "GET /lookup", 11) && o->knows_nothing ? unknown : known;
	const char *end_of_head = strstr(text, "\r\n\r\n"),
		   *length = strstr(text, "Content-Length: ");
	size_t body = length ? strtoul(length + 16, NULL, 10) : 0;

	if (o->mute || !end_of_head || o->peers[i].len < (size_t)(end_of_head + 4 - text) + body)
		return;
	if (!strncmp(text, "DELETE /undo", 12))
		o->undos++;
	else if (strncmp(text, "GET ", 4) != 0)
		o->changes++;
	o->lookups += !strncmp(text, "GET /lookup", 11);
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
		}
		if (o->peers[i].len)
			serve_text(o, i);
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

void turn(struct world *o, long *armed)
{
	fail_at = *armed;
	worker_turn(o->worker, 1);
	*armed = fail_at;
	fail_at = 0;
	serve(o);
	listen_to_gate(o);
}

bool is_answered(const struct world *o)
{
	return o->ended || (strstr(o->got, "\r\n\r\n") && !o->worker->exchanges);
}

void run(struct world *o, long armed)
{
	allocations = 0;
	for (int i = 0; i < 300 && !is_answered(o); i++)
		turn(o, &armed);
	for (int i = 0; i < 5; i++)
		turn(o, &armed);
}

int status_of(const struct world *o)
{
	return o->got_len > 12 ? (int)strtol(o->got + 9, NULL, 10) : 0;
}

void check_invariants(const char *label, const struct world *o)
{
	CHECK_INT(label, 0, o->unproven);
	CHECK_INT(label, the_log.granted, the_log.outcomes);
	CHECK_INT(label, 0, o->worker->exchanges != NULL);
	CHECK_INT(label, 0, o->worker->bodies_bytes);
	CHECK_INT(label, 0, o->worker->held_bytes);
}
