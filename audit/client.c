#include "audit/client.h"

#include "audit/record_priv.h"
#include "audit/wire_priv.h"
#include "gate/base/clock.h"
#include "gate/base/uuid.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OUT_BYTES_MAX  (8u << 20)  /* frames that wait to be sent */
#define WAITING_MAX    8192u       /* records without an answer; a power of two */
#define KEPT_MAX       32768u      /* outcomes without an acknowledgement; a power of two */
#define KEPT_BYTES_MAX (64u << 20) /* in sum */
#define OPEN_MAX       (KEPT_MAX - WAITING_MAX) /* so each open decision finds room for its outcome */
#define HELD_BYTES_MAX 32768u                   /* reads are sent when so many wait */

/* A record that waits for a receipt.  done is NULL when nobody is left to be told. */
struct waiting {
	bool used, allow;
	struct decision_id id;
	audit_done_fn *done;
	void *arg;
	uint64_t since_ms;
};

/* An outcome that is not acknowledged yet. */
struct kept {
	char *body;
	size_t len;
	struct decision_id of;
};

struct audit_client {
	struct frame_conn conn;
	bool up;      /* has answered, and is not sealed */
	bool blocked; /* the socket took less than we had */
	char origin[LINE_ORIGIN_MAX + 1];
	struct buf scratch;

	struct waiting *waiting; /* by ticket; those in [first, next) */
	uint64_t waiting_first, waiting_next;

	struct kept
		*kept; /* by ticket; those in [first, next), of which [sent, next) are to be sent */
	uint64_t kept_first, kept_sent, kept_next;
	size_t kept_bytes;

	struct open_set open; /* receipts given out, outcome not acknowledged */

	unsigned hold_ms;
	uint64_t held_since_ms; /* 0: no reads are held back */
	uint64_t lost, lost_told;
	bool low;              /* the answer at hand is so because of too little room */
	uint64_t refused;      /* records that were required while there was no log */
	uint64_t down_unix_ns; /* since when there is none; 0: there is, or never was */
};

static struct waiting *waiting_at(struct audit_client *c, uint64_t ticket)
{
	return &c->waiting[ticket & (WAITING_MAX - 1)];
}

static struct kept *kept_at(struct audit_client *c, uint64_t ticket)
{
	return &c->kept[ticket & (KEPT_MAX - 1)];
}

struct audit_client *audit_client_create(void)
{
	struct audit_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	frame_init(&c->conn, -1, OUT_BYTES_MAX);
	buf_init(&c->scratch, RECORD_BODY_MAX);
	open_set_init(&c->open, OPEN_MAX);
	c->waiting = calloc(WAITING_MAX, sizeof(*c->waiting));
	c->kept = calloc(KEPT_MAX, sizeof(*c->kept));
	if (!c->waiting || !c->kept) {
		audit_client_destroy(c);
		return NULL;
	}
	return c;
}

void audit_client_destroy(struct audit_client *c)
{
	if (!c)
		return;
	for (; c->kept_first < c->kept_next; c->kept_first++)
		free(kept_at(c, c->kept_first)->body);
	frame_close(&c->conn);
	buf_fini(&c->scratch);
	open_set_fini(&c->open);
	free(c->waiting);
	free(c->kept);
	free(c);
}

int audit_client_fd(const struct audit_client *c)
{
	return c->conn.fd;
}

bool audit_client_waiting(const struct audit_client *c)
{
	return c->blocked && frame_waiting(&c->conn);
}

bool audit_client_up(const struct audit_client *c)
{
	return c->up;
}

uint64_t audit_client_lost(const struct audit_client *c)
{
	return c->lost;
}

bool audit_client_low(const struct audit_client *c)
{
	return c->low;
}

void audit_client_hold_reads(struct audit_client *c, unsigned ms)
{
	c->hold_ms = ms;
}

/* --- records that wait --- */

static void skip_answered(struct audit_client *c)
{
	while (c->waiting_first < c->waiting_next && !waiting_at(c, c->waiting_first)->used)
		c->waiting_first++;
}

/* Nothing waits any more when the first done function is called. */
static void fail_all(struct audit_client *c)
{
	uint64_t end = c->waiting_next;

	for (; c->waiting_first < end; c->waiting_first++) {
		struct waiting w = *waiting_at(c, c->waiting_first);

		waiting_at(c, c->waiting_first)->used = false;
		if (!w.used || !w.done)
			continue;
		c->refused++;
		w.done(w.arg, NULL);
	}
}

static void note_down(struct audit_client *c)
{
	if (c->up)
		c->down_unix_ns = clock_unix_ns();
	c->up = false;
}

static void lose_auditor(struct audit_client *c)
{
	frame_close(&c->conn);
	note_down(c);
	c->blocked = false;
	c->held_since_ms = 0;
	fail_all(c);
}

void audit_forget(struct audit_client *c, const void *arg)
{
	for (uint64_t t = c->waiting_first; t < c->waiting_next; t++)
		if (waiting_at(c, t)->arg == arg)
			waiting_at(c, t)->done = NULL;
}

void audit_client_tick(struct audit_client *c, uint64_t now_ms)
{
	uint64_t end = c->waiting_next;

	for (uint64_t t = c->waiting_first; t < end; t++) {
		struct waiting *w = waiting_at(c, t);
		audit_done_fn *done = w->done;

		if (w->used && now_ms < w->since_ms + AUDIT_WAIT_MS)
			break;
		/* Its place stays taken: the answer may still come. */
		w->done = NULL;
		if (w->used && done)
			done(w->arg, NULL);
	}
	if (c->held_since_ms && now_ms >= c->held_since_ms + c->hold_ms)
		audit_client_flush(c);
}

uint64_t audit_client_deadline(const struct audit_client *c)
{
	uint64_t due = c->held_since_ms ? c->held_since_ms + c->hold_ms : UINT64_MAX;

	for (uint64_t t = c->waiting_first; t < c->waiting_next; t++) {
		const struct waiting *w = &c->waiting[t & (WAITING_MAX - 1)];

		if (!w->used || !w->done)
			continue;
		if (w->since_ms + AUDIT_WAIT_MS < due)
			due = w->since_ms + AUDIT_WAIT_MS;
		break;
	}
	return due;
}

static bool write_body(struct audit_client *c, const struct record *r, struct span *ret)
{
	buf_clear(&c->scratch);
	record_write(&c->scratch, r);
	*ret = buf_span(&c->scratch);
	return !buf_spent(&c->scratch);
}

static bool is_allow(const struct record *r)
{
	return r->type == RECORD_DECISION && r->verdict && strcmp(r->verdict, "allow") == 0;
}

int audit_require(struct audit_client *c, const struct record *r, audit_done_fn *done, void *arg)
{
	struct waiting w = {.used = true,
			    .allow = is_allow(r),
			    .done = done,
			    .arg = arg,
			    .since_ms = clock_boot_ms()};
	struct wire_head head = {WIRE_RECORD, WIRE_RECEIPT_WANTED, c->waiting_next};
	struct span body;

	skip_answered(c);
	c->refused += !c->up;
	if (!c->up || c->waiting_next - c->waiting_first >= WAITING_MAX ||
	    c->open.count + (c->waiting_next - c->waiting_first) >= OPEN_MAX)
		return -1;
	if (w.allow && decision_id_parse(span_of(r->id), &w.id) < 0)
		return -1;
	if (!write_body(c, r, &body) || !wire_put(&c->conn, head, body))
		return -1;
	c->held_since_ms = 0;
	*waiting_at(c, c->waiting_next++) = w;
	return 0;
}

/* --- records that nobody waits for --- */

/* Sends what the connection has room for; the rest stays. */
static void send_kept(struct audit_client *c)
{
	while (c->conn.fd >= 0 && c->kept_sent < c->kept_next) {
		struct kept *k = kept_at(c, c->kept_sent);
		struct wire_head head = {WIRE_RECORD, WIRE_OUTCOME, c->kept_sent};

		if (!wire_put(&c->conn, head, (struct span){k->body, k->len}))
			return;
		c->held_since_ms = 0;
		c->kept_sent++;
	}
}

static int keep(struct audit_client *c, const struct record *r, struct span body)
{
	struct kept k = {.len = body.len};

	if (c->kept_next - c->kept_first >= KEPT_MAX || c->kept_bytes + body.len > KEPT_BYTES_MAX ||
	    !r->of || decision_id_parse(span_of(r->of), &k.of) < 0)
		return -1;
	k.body = malloc(body.len);
	if (!k.body)
		return -1;
	memcpy(k.body, body.at, body.len);
	*kept_at(c, c->kept_next++) = k;
	c->kept_bytes += k.len;
	send_kept(c);
	return 0;
}

static int send_read(struct audit_client *c, struct span body)
{
	bool alone = !frame_waiting(&c->conn);

	if (!c->up || !wire_put(&c->conn, (struct wire_head){WIRE_RECORD, WIRE_READ, 0}, body))
		return -1;
	if (c->hold_ms && alone)
		c->held_since_ms = clock_boot_ms();
	return 0;
}

int audit_tell(struct audit_client *c, const struct record *r)
{
	struct span body;
	int result = -1;

	if (write_body(c, r, &body))
		result = r->type == RECORD_OUTCOME ? keep(c, r, body) : send_read(c, body);
	if (result < 0)
		c->lost++;
	return result;
}

/* --- the connection --- */

static void send_claims(struct audit_client *c)
{
	struct decision_id ids[WIRE_CLAIMS_MAX];
	struct open_decision *d;
	size_t slot = 0, count = 0;

	while ((d = open_set_next(&c->open, &slot))) {
		ids[count++] = d->id;
		if (count == WIRE_CLAIMS_MAX) {
			wire_put(&c->conn, (struct wire_head){.kind = WIRE_CLAIM},
				 (struct span){(const char *)ids, sizeof(ids)});
			count = 0;
		}
	}
	if (count)
		wire_put(&c->conn, (struct wire_head){.kind = WIRE_CLAIM},
			 (struct span){(const char *)ids, count * sizeof(*ids)});
}

void audit_client_attach(struct audit_client *c, int fd)
{
	lose_auditor(c);
	frame_init(&c->conn, fd, OUT_BYTES_MAX);
	if (fd < 0)
		return;
	wire_put(&c->conn, (struct wire_head){.kind = WIRE_HELLO, .ticket = WIRE_VERSION},
		 (struct span){"", 0});
	send_claims(c);
	c->kept_sent = c->kept_first;
	send_kept(c);
}

static bool held_back(const struct audit_client *c)
{
	return c->held_since_ms && buf_len(&c->conn.out) < HELD_BYTES_MAX &&
	       clock_boot_ms() < c->held_since_ms + c->hold_ms;
}

void audit_client_flush(struct audit_client *c)
{
	if (c->conn.fd < 0 || held_back(c))
		return;
	c->held_since_ms = 0;
	c->blocked = false;
	do {
		send_kept(c);
		if (!wire_flush(&c->conn))
			return; /* its end is found by reading */
		c->blocked = frame_waiting(&c->conn);
	} while (!c->blocked && c->kept_sent < c->kept_next);
}

/* --- answers --- */

/* Nothing was forwarded, since nobody was told that it may be. */
static void tell_aborted(struct audit_client *c, const struct decision_id *of)
{
	char id[UUID_TEXT_LEN + 1], of_text[UUID_TEXT_LEN + 1];
	struct record r = {.type = RECORD_OUTCOME,
			   .id = id,
			   .of = of_text,
			   .status = "aborted",
			   .err = "not forwarded: the receipt came too late"};

	uuid_make(id);
	decision_id_format(of, of_text);
	audit_tell(c, &r);
}

static bool got_receipt(struct audit_client *c, uint64_t ticket,
			const struct audit_receipt *receipt)
{
	struct waiting *slot = waiting_at(c, ticket), w = *slot;
	bool durable = receipt != NULL;

	if (ticket < c->waiting_first || ticket >= c->waiting_next || !w.used)
		return false;
	slot->used = false;
	skip_answered(c);
	if (receipt && w.allow && !open_set_add(&c->open, &w.id))
		receipt = NULL; /* no memory: what could not be claimed is not given out */
	if (w.done)
		w.done(w.arg, receipt);
	if (w.allow && durable && (!w.done || !receipt))
		tell_aborted(c, &w.id);
	return true;
}

static bool got_ack(struct audit_client *c, uint64_t ticket)
{
	if (ticket >= c->kept_sent)
		return false;
	for (; c->kept_first <= ticket; c->kept_first++) {
		struct kept *k = kept_at(c, c->kept_first);

		open_set_drop(&c->open, &k->of);
		c->kept_bytes -= k->len;
		free(k->body);
		k->body = NULL;
	}
	return true;
}

static bool got_refusal(struct audit_client *c, const struct wire_head *head)
{
	bool known;

	c->low = head->flags & WIRE_LOW;
	known = got_receipt(c, head->ticket, NULL);
	c->low = false;
	return known;
}

/* How many requests found no log, from when to when. */
static void tell_down(struct audit_client *c)
{
	char id[UUID_TEXT_LEN + 1], began[CLOCK_TEXT_MAX] = "", ended[CLOCK_TEXT_MAX];
	struct record r = {.type = RECORD_LOG_ALARM,
			   .id = id,
			   .cause = "log",
			   .text = "requests that were refused because there was no log",
			   .began = began,
			   .ended = ended,
			   .refused = c->refused};

	if (!c->refused)
		return;
	if (c->down_unix_ns)
		clock_format(c->down_unix_ns, began);
	clock_format(clock_unix_ns(), ended);
	uuid_make(id);
	if (audit_tell(c, &r) == 0)
		c->refused = 0;
}

static bool got_up(struct audit_client *c, struct span origin)
{
	if (origin.len > LINE_ORIGIN_MAX)
		return false;
	memcpy(c->origin, origin.at, origin.len);
	c->origin[origin.len] = '\0';
	c->up = true;
	tell_down(c);
	c->down_unix_ns = 0;
	if (c->lost > c->lost_told) {
		char id[UUID_TEXT_LEN + 1];
		struct record r = {.type = RECORD_LOG_ALARM,
				   .id = id,
				   .text = "records that a worker could not queue",
				   .count = c->lost - c->lost_told};

		uuid_make(id);
		c->lost_told = c->lost;
		audit_tell(c, &r);
	}
	return true;
}

static bool got_frame(struct audit_client *c, struct span frame)
{
	struct audit_receipt receipt = {.log = c->origin};
	struct wire_receipt wire;
	struct span body = frame;
	struct wire_head head;

	if (!wire_head(&body, &head))
		return false;
	switch ((enum wire_kind)head.kind) {
	case WIRE_UP:
		return got_up(c, body);
	case WIRE_RECEIPT:
		if (frame.len != sizeof(wire))
			return false;
		memcpy(&wire, frame.at, sizeof(wire));
		receipt.seq = wire.seq;
		receipt.hash = wire.hash;
		return c->up && got_receipt(c, head.ticket, &receipt);
	case WIRE_REFUSED:
		return got_refusal(c, &head);
	case WIRE_ACK:
		return got_ack(c, head.ticket);
	case WIRE_SEALED:
		note_down(c);
		fail_all(c);
		return true;
	case WIRE_NONE:
	case WIRE_HELLO:
	case WIRE_CLAIM:
	case WIRE_RECORD:
		break;
	}
	return false;
}

void audit_client_read(struct audit_client *c)
{
	struct span frame;
	bool alive;

	if (c->conn.fd < 0)
		return;
	alive = frame_fill(&c->conn);
	while (frame_next(&c->conn, &frame))
		if (!got_frame(c, frame)) {
			lose_auditor(c);
			return;
		}
	if (!alive || !frame_alive(&c->conn))
		lose_auditor(c);
}
