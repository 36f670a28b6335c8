/* Old segments are removed: which, when, and that what is left can be checked as before. */
#include "audit/auditor_priv.h"
#include "audit/history_priv.h"
#include "audit/note_priv.h"
#include "audit/prove.h"
#include "audit/sink_priv.h"
#include "audit/state.h"
#include "audit/witness.h"
#include "tests/unit/audit/running.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT 16384
#define DAY_S   86400
#define FOREVER 2000 /* turns */

/* The clock, set by so much; what is measured since boot goes its own way. */
static int64_t ahead_s;

int __real_clock_gettime(clockid_t which, struct timespec *ret);
int __wrap_clock_gettime(clockid_t which, struct timespec *ret);

int __wrap_clock_gettime(clockid_t which, struct timespec *ret)
{
	int result = __real_clock_gettime(which, ret);

	if (which == CLOCK_REALTIME)
		ret->tv_sec += ahead_s;
	return result;
}

static struct gate g;

static struct auditor_conf conf_with(struct retention keep)
{
	return (struct auditor_conf){.dir = g.dir,
				     .origin = "test/log",
				     .segment_bytes = SEGMENT,
				     .build = "test",
				     .flush_ms = 5,
				     .unsafe_fs = true,
				     .checkpoint_ms = 1000,
				     .checkpoint_records = 1000000,
				     .retention = keep};
}

static struct auditor *opened(const struct auditor_conf *conf)
{
	struct err err = {0};
	struct auditor *a = auditor_open(conf, &err);

	if (!a)
		fail_msg("open: %s", err.msg);
	a->now_ms = 1;
	return a;
}

static void write_some(struct auditor *a, unsigned count)
{
	struct record r = {.type = RECORD_LOG_READ, .text = "somebody looked"};

	for (unsigned i = 0; i < count; i++) {
		auditor_add_own(a, &r);
		if (i % 20 == 19) /* a segment has more */
			auditor_commit(a);
	}
	auditor_commit(a);
	CHECK_INT("not sealed", 0, auditor_sealed(a));
}

/* As long as it finds something to do. */
static void prune_all(struct auditor *a)
{
	for (int i = 0; i < FOREVER; i++) {
		a->pruning.look_at_ms = 0;
		auditor_prune(a);
		if (!a->pruning.size && i > 100)
			break;
	}
	auditor_commit(a);
}

static struct segments listed(void)
{
	int dir_fd = open(g.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct segments all;
	struct err err = {0};

	CHECK_INT("list", 0, segments_list(dir_fd, &all, &err));
	close(dir_fd);
	return all;
}

static uint64_t first_kept(void)
{
	struct segments all = listed();
	uint64_t first = all.first[0];

	segments_free(&all);
	return first;
}

static uint64_t segments_there(void)
{
	struct segments all = listed();
	uint64_t count = all.count;

	segments_free(&all);
	return count;
}

static char *proof_of(uint64_t seq)
{
	struct err err = {0};
	struct buf out;
	char *text;

	buf_init(&out, PROOF_MAX);
	if (log_prove(g.dir, seq, &out, &err) < 0)
		fail_msg("proof of %llu: %s", (unsigned long long)seq, err.msg);
	text = strndup(buf_span(&out).at, buf_len(&out));
	buf_fini(&out);
	return text;
}

/* A log that is larger than it may be, signed up to here. */
static struct auditor *a_long_log(const struct auditor_conf *conf)
{
	struct auditor *a = opened(conf);

	write_some(a, 1500);
	auditor_checkpoint(a, true);
	auditor_commit(a);
	return a;
}

static const struct retention small = {RETENTION_SIGNED, 0, (uint64_t)SEGMENT * 4};

static void the_oldest_go_while_there_are_too_many(void **state)
{
	struct auditor_conf conf = conf_with(small);
	struct auditor *a;
	struct verify_report report;
	uint64_t first, kept;
	char *before, *after;

	(void)state;
	gate_init(&g);
	a = a_long_log(&conf);
	first = segments_there();
	CHECK_INT("many", 1, first > 20);
	before = proof_of(1400);
	prune_all(a);
	kept = segments_there();
	CHECK_INT("few", 1, kept >= 2 && kept <= 4);
	CHECK_INT("said once", 1, gate_log_count(&g, "\"type\":\"log_prune\""));
	CHECK_INT("why", 1, gate_log_count(&g, "log.retention.bytes"));
	after = proof_of(1400);
	CHECK_STR("the same proof", before, after);
	report = gate_verified(&g);
	CHECK_INT("goes on from there", first_kept(), report.first_seq);
	CHECK_INT("removed", 1, report.first_seq > 1000);
	auditor_close(a);
	gate_verified(&g);
	free(before);
	free(after);
	fixture_remove(g.dir);
}

/* Open again, grow, prune again: the tree goes on, and all of it can be proven. */
static void a_pruned_log_goes_on(void **state)
{
	struct auditor_conf conf = conf_with(small);
	struct auditor *a;
	struct err err = {0};
	struct buf growth;

	(void)state;
	gate_init(&g);
	for (int round = 0; round < 3; round++) {
		a = a_long_log(&conf);
		CHECK_INT("tiles go on", 0, a->log->tiles_off);
		prune_all(a);
		write_some(a, 300);
		auditor_checkpoint(a, true);
		auditor_close(a);
		gate_verified(&g);
		/* Tiles of a higher level follow from those below. */
		unlink(fixture_path(g.dir, "tile/1/000"));
	}
	CHECK_INT("the first went", 1, first_kept() > 4000);
	CHECK_INT("no trouble", 0, gate_log_count(&g, "\"cause\":\"prune\""));
	free(proof_of(first_kept()));
	buf_init(&growth, PROOF_MAX);
	CHECK_INT("growth from what is gone", 0, log_prove_growth(g.dir, 700, &growth, &err));
	buf_fini(&growth);
	fixture_remove(g.dir);
}

static void what_nobody_signed_stays(void **state)
{
	struct auditor_conf conf = conf_with(small);
	struct auditor *a;

	(void)state;
	gate_init(&g);
	a = opened(&conf);
	write_some(a, 500);
	auditor_checkpoint(a, true);
	write_some(a, 1000);
	a->pruning.look_at_ms = 0;
	prune_all(a);
	CHECK_INT("some went", 1, first_kept() > 0);
	CHECK_INT("none behind the checkpoint", 1, first_kept() <= a->signing.last_size);
	CHECK_INT("though there are too many", 1, segments_there() > 4);
	auditor_close(a);
	gate_verified(&g);
	fixture_remove(g.dir);
}

static void without_a_limit_nothing_goes(void **state)
{
	struct auditor_conf conf = conf_with((struct retention){RETENTION_FOREVER, 1, SEGMENT});
	struct auditor *a;

	(void)state;
	gate_init(&g);
	a = a_long_log(&conf);
	prune_all(a);
	CHECK_INT("all are there", 0, first_kept());
	auditor_close(a);
	fixture_remove(g.dir);
}

static void evidence_goes_only_when_it_is_anchored(void **state)
{
	struct retention keep = {RETENTION_EVIDENCE, 0, small.bytes};
	struct auditor_conf conf = conf_with(keep);
	char anchors[FIXTURE_PATH], anchor[FIXTURE_PATH + 8];
	struct auditor *a;
	struct err err = {0};
	uint64_t anchored;

	(void)state;
	gate_init(&g);
	CHECK_INT("no anchor", 1, auditor_open(&conf, &err) == NULL);
	CHECK_INT("is said", 1, strstr(err.msg, "anchor file") != NULL);
	fixture_dir(anchors);
	snprintf(anchor, sizeof(anchor), "%s/file", anchors);
	conf.anchor_file = anchor;
	a = opened(&conf);
	write_some(a, 600);
	auditor_checkpoint(a, true);
	anchored = a->signing.anchored;
	CHECK_INT("anchored", 1, anchored > 500);
	/* From here on nothing can be told to the outside. */
	close(a->signing.anchor_fd);
	a->signing.anchor_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	write_some(a, 900);
	auditor_checkpoint(a, true);
	auditor_commit(a);
	CHECK_INT("signed", 1, a->signing.last_size > 1400);
	prune_all(a);
	CHECK_INT("some went", 1, first_kept() > 400);
	CHECK_INT("none that is not anchored", 1, first_kept() <= anchored);
	CHECK_INT("by whom", 1, gate_log_count(&g, ",\"anchor\":\"/"));
	auditor_close(a);
	gate_verified(&g);
	fixture_remove(g.dir);
	fixture_remove(anchors);
}

/* A witness: its key, and what it signs of the newest checkpoint. */
struct signer {
	unsigned char secret[crypto_sign_SECRETKEYBYTES], public_key[crypto_sign_PUBLICKEYBYTES];
	unsigned char id[4];
	char key[160];
};

#define WITNESS_NAME "witness.test"

static void signer_make(struct signer *s)
{
	unsigned char with[1 + crypto_sign_PUBLICKEYBYTES] = {4}, named[64] = WITNESS_NAME "\n";
	char base64[80];
	struct hash id;

	CHECK_INT("sodium", 1, sodium_init() >= 0);
	crypto_sign_keypair(s->public_key, s->secret);
	memcpy(with + 1, s->public_key, sizeof(s->public_key));
	memcpy(named + sizeof(WITNESS_NAME), with, sizeof(with));
	id = hash_of((struct span){(const char *)named, sizeof(WITNESS_NAME) + sizeof(with)});
	memcpy(s->id, id.bytes, sizeof(s->id));
	sodium_bin2base64(base64, sizeof(base64), with, sizeof(with),
			  sodium_base64_VARIANT_ORIGINAL);
	snprintf(s->key, sizeof(s->key), WITNESS_NAME "+%02x%02x%02x%02x+%s", s->id[0], s->id[1],
		 s->id[2], s->id[3], base64);
}

/* Appends the log's checkpoint with the signature, as `audit witness` does. */
static void signer_sign(const struct signer *s, const char *file)
{
	unsigned char with[4 + 8 + crypto_sign_BYTES] = {0};
	char said[4096], base64[160], *note;
	struct checkpoint c;
	size_t len;
	FILE *out = fopen(file, "ae");

	note = fixture_read(fixture_path(g.dir, "checkpoint"), &len);
	CHECK_INT("a checkpoint", 1, out && checkpoint_parse((struct span){note, len}, &c));
	memcpy(with, s->id, sizeof(s->id));
	with[11] = 9; /* seconds */
	snprintf(said, sizeof(said), "cosignature/v1\ntime 9\n%.*s", SPAN_FMT(c.text));
	crypto_sign_detached(with + 12, NULL, (const unsigned char *)said, strlen(said), s->secret);
	sodium_bin2base64(base64, sizeof(base64), with, sizeof(with),
			  sodium_base64_VARIANT_ORIGINAL);
	fprintf(out, "%.*s\u2014 " WITNESS_NAME " %s\n", (int)len, note, base64);
	fclose(out);
	free(note);
}

static void what_a_witness_has_signed_may_go(void **state)
{
	struct auditor_conf conf =
		conf_with((struct retention){RETENTION_EVIDENCE, 0, small.bytes});
	char place[FIXTURE_PATH], file[FIXTURE_PATH + 8];
	struct signer right, wrong;
	struct auditor *a;
	uint64_t signed_size;

	(void)state;
	gate_init(&g);
	fixture_dir(place);
	snprintf(file, sizeof(file), "%s/file", place);
	signer_make(&right);
	signer_make(&wrong);
	conf.witness_file = file;
	conf.witness_key = right.key;
	conf.anchor_syslog = true; /* which is less, and does not count beside it */
	a = opened(&conf);
	write_some(a, 600);
	auditor_checkpoint(a, true);
	signed_size = a->signing.last_size;
	signer_sign(&wrong, file);
	write_some(a, 900);
	auditor_checkpoint(a, true);
	auditor_commit(a);
	prune_all(a);
	CHECK_INT("by another key, nothing", 0, first_kept());
	a->pruning.look_at_ms = 0;
	signer_sign(&right, file);
	CHECK_INT("it grew", 1, a->signing.last_size > signed_size);
	prune_all(a);
	CHECK_INT("by the right one", 1, first_kept() > 400);
	CHECK_INT("by whom", 1, gate_log_count(&g, ",\"anchor\":\"/"));
	auditor_close(a);
	gate_verified(&g);
	fixture_remove(g.dir);
	fixture_remove(place);
}

static void what_syslog_was_sent_may_go(void **state)
{
	struct auditor_conf conf =
		conf_with((struct retention){RETENTION_EVIDENCE, 0, small.bytes});
	struct auditor *a;
	int pair[2];

	(void)state;
	gate_init(&g);
	conf.anchor_syslog = true;
	a = opened(&conf);
	CHECK_INT("pair", 0, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair));
	close(a->signing.syslog_fd);
	a->signing.syslog_fd = -1; /* nobody is there */
	write_some(a, 1500);
	auditor_checkpoint(a, true);
	auditor_commit(a);
	prune_all(a);
	CHECK_INT("nothing was sent", 0, first_kept());
	a->signing.syslog_fd = pair[0];
	write_some(a, 10);
	auditor_checkpoint(a, true);
	auditor_commit(a);
	a->pruning.look_at_ms = 0;
	prune_all(a);
	CHECK_INT("it was", 1, first_kept() > 400);
	CHECK_INT("by whom", 1, gate_log_count(&g, ",\"anchor\":\"syslog\""));
	auditor_close(a);
	close(pair[1]);
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* --- a witness that drips --- */

static unsigned drips;

static void *drip_open(const struct sink_conf *conf, struct err *err)
{
	(void)conf;
	(void)err;
	return &drips;
}

static int drip_write(void *link, struct span bytes, struct err *err)
{
	(void)link;
	(void)bytes;
	(void)err;
	return 0;
}

static long drip_read(void *link, char *out, size_t size, struct err *err)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\n";
	const struct timespec pause = {0, 2000000};

	(void)link;
	(void)size;
	(void)err;
	nanosleep(&pause, NULL);
	*out = drips < sizeof(answer) - 1 ? answer[drips] : 'x';
	drips++;
	return 1;
}

static void drip_close(void *link)
{
	(void)link;
}

static void a_witness_that_drips_is_given_up(void **state)
{
	static const struct sink_dialer dialer = {
		.open = drip_open, .write = drip_write, .read = drip_read, .close = drip_close};
	struct auditor_conf conf = conf_with(small);
	struct witness_seen seen;
	struct err err = {0};
	char file[FIXTURE_PATH + 16];
	struct signer s;

	(void)state;
	gate_init(&g);
	auditor_close(a_long_log(&conf));
	signer_make(&s);
	snprintf(file, sizeof(file), "%s-cosigned", g.dir);
	const struct witness_conf witness = {.at = {.host = "w.test", .port = 1, .path = "/"},
					     .key = s.key,
					     .file = file,
					     .limit_ms = 50};

	CHECK_INT("given up", -1, witness_ask(g.dir, &witness, &dialer, &seen, &err));
	CHECK_STR("says so", "w.test takes too long to answer", err.msg);
	CHECK_INT("soon", 1, drips > 0 && drips < 1000);
	unlink(file);
	fixture_remove(g.dir);
}

/* --- what sinks have --- */

/* What is there has the sink up to here, as its shipper would say. */
static void shipped(const struct sink_conf *sink, uint64_t seq, bool right)
{
	struct cursor_mark mark = {.log = "test/log", .seq = seq};
	struct cursor_line line = {.seq = 0};
	struct cursor c;
	struct err err = {0};
	enum cursor_got got;

	CHECK_INT("open", 0, cursor_open(&c, g.dir, &err));
	got = cursor_seek(&c, NULL, &err);
	while (got == CURSOR_LINE && (!line.text.at || line.seq < seq))
		got = cursor_next(&c, &line, &err);
	CHECK_INT("it is there", seq, line.seq);
	mark.hash = line.hash;
	if (!right)
		mark.hash.bytes[0] ^= 1;
	CHECK_INT("kept", 0, sink_state_keep(sink, &mark, &err));
	cursor_close(&c);
}

static struct audit_sink seen_of(const struct audit_state *state, size_t i)
{
	struct audit_sink sink;

	CHECK_INT("it is told of", 1, audit_state_sink(state, i, &sink));
	return sink;
}

struct evidence {
	char place[FIXTURE_PATH], anchor[FIXTURE_PATH + 8], states[FIXTURE_PATH + 8];
	struct sink_conf sinks[2];
	struct auditor_conf conf;
	struct auditor *a;
};

static void evidence_begin(struct evidence *e)
{
	struct err err = {0};

	gate_init(&g);
	fixture_dir(e->place);
	snprintf(e->anchor, sizeof(e->anchor), "%s/file", e->place);
	snprintf(e->states, sizeof(e->states), "%s/ship", e->place);
	e->sinks[0] = (struct sink_conf){.name = "db", .state = e->states};
	e->sinks[1] = (struct sink_conf){.name = "siem", .state = e->states};
	e->conf = conf_with((struct retention){RETENTION_EVIDENCE, 0, small.bytes});
	e->conf.anchor_file = e->anchor;
	e->conf.sinks = e->sinks;
	e->conf.sink_count = 2;
	e->conf.state = audit_state_create(&err);
	e->a = a_long_log(&e->conf);
	CHECK_INT("anchored", 1, e->a->signing.anchored > 1400);
}

static void evidence_end(struct evidence *e)
{
	auditor_close(e->a);
	gate_verified(&g);
	fixture_remove(g.dir);
	fixture_remove(e->states);
	fixture_remove(e->place);
}

static void evidence_goes_only_when_every_sink_has_it(void **state)
{
	struct evidence e;
	char *before, *after;

	(void)state;
	evidence_begin(&e);
	before = proof_of(1400);
	shipped(&e.sinks[0], 1200, true);
	prune_all(e.a);
	CHECK_INT("all is kept", 0, first_kept());
	CHECK_INT("which is told, once", 1, gate_log_count(&g, "\"cause\":\"retention\""));
	CHECK_INT("and why", 1, gate_log_count(&g, "not every sink has them: db 1200, siem none"));
	shipped(&e.sinks[1], 700, true);
	prune_all(e.a);
	CHECK_INT("what both have goes", 1, first_kept() > 600 && first_kept() <= 701);
	CHECK_INT("on record", 1, gate_log_count(&g, "\"exported\":\"db 1200, siem 700\""));
	CHECK_INT("the rest is held", 1, segments_there() > 4);
	CHECK_INT("still told once", 1, gate_log_count(&g, "\"cause\":\"retention\""));
	shipped(&e.sinks[0], 1500, true);
	shipped(&e.sinks[1], 1500, true);
	prune_all(e.a);
	CHECK_INT("down to the limit", 1, segments_there() <= 4);
	CHECK_INT("the end is told", 1, gate_log_count(&g, "nothing is kept as evidence"));
	after = proof_of(1400);
	CHECK_STR("the same proof", before, after);
	free(before);
	free(after);
	evidence_end(&e);
}

/* What gets some records alone neither proves that the others are elsewhere, nor holds them. */
static void a_narrowed_sink_is_no_evidence(void **state)
{
	struct evidence e;

	(void)state;
	evidence_begin(&e);
	e.sinks[1].only = sink_only_find("approvals");
	CHECK_INT("a word", 1, e.sinks[1].only != 0);
	shipped(&e.sinks[1], 1500, true);
	prune_all(e.a);
	CHECK_INT("all is kept", 0, first_kept());
	shipped(&e.sinks[0], 1500, true);
	shipped(&e.sinks[1], 5, true);
	prune_all(e.a);
	CHECK_INT("down to the limit", 1, segments_there() <= 4);
	evidence_end(&e);
}

/* A state that is not of this log's records makes nothing removable. */
static void a_state_that_is_not_of_this_log_is_not_believed(void **state)
{
	struct evidence e;
	struct cursor_mark mark = {.log = "other/log", .seq = 1400};
	struct err err = {0};

	(void)state;
	evidence_begin(&e);
	shipped(&e.sinks[0], 1400, true);
	shipped(&e.sinks[1], 1400, false);
	prune_all(e.a);
	CHECK_INT("another hash", 0, first_kept());
	CHECK_STR("which is told", "its state names another record than the log has there",
		  seen_of(e.conf.state, 1).trouble);
	CHECK_INT("another log", 0, sink_state_keep(&e.sinks[1], &mark, &err));
	prune_all(e.a);
	CHECK_INT("another log", 0, first_kept());
	CHECK_STR("which is told", "its state is of another log", seen_of(e.conf.state, 1).trouble);
	snprintf(mark.log, sizeof(mark.log), "test/log");
	mark.seq = 100000;
	CHECK_INT("ahead", 0, sink_state_keep(&e.sinks[1], &mark, &err));
	prune_all(e.a);
	CHECK_INT("ahead of the log", 0, first_kept());
	evidence_end(&e);
}

static void how_far_sinks_are_is_told(void **state)
{
	struct evidence e;
	struct audit_sink one;
	uint64_t size;

	(void)state;
	evidence_begin(&e);
	shipped(&e.sinks[0], 900, true);
	sink_trouble_keep(&e.sinks[1], "connect to siem:6514: \x1b[2J refused");
	e.a->sinks.look_at_ms = 0;
	auditor_watch_sinks(e.a);
	size = e.a->log->tiles->tree.size;
	one = seen_of(e.conf.state, 0);
	CHECK_STR("name", "db", one.name);
	CHECK_INT("known", 1, one.known);
	CHECK_INT("so far", 900, one.seq);
	CHECK_INT("behind", size - 901, one.behind);
	CHECK_STR("fine", "", one.trouble);
	one = seen_of(e.conf.state, 1);
	CHECK_INT("nothing yet", 0, one.known);
	CHECK_INT("all is missing", size, one.behind);
	CHECK_STR("why, without control bytes", "connect to siem:6514: ?[2J refused", one.trouble);
	CHECK_INT("no third", 0, audit_state_sink(e.conf.state, 2, &one));
	evidence_end(&e);
}

/* It gets nothing for a while, then something: two alarms, whatever else is written. */
static void a_sink_that_gets_nothing_is_an_alarm(void **state)
{
	struct evidence e;

	(void)state;
	evidence_begin(&e);
	e.a->sinks.late_ms = 60000;
	shipped(&e.sinks[0], 900, true);
	shipped(&e.sinks[1], 900, true);
	sink_trouble_keep(&e.sinks[1], "it is away");
	for (int minute = 0; minute < 5; minute++) {
		e.a->now_ms += 60000;
		shipped(&e.sinks[0], 901 + (uint64_t)minute, true);
		auditor_watch_sinks(e.a);
		write_some(e.a, 1);
	}
	CHECK_INT("told once", 1, gate_log_count(&g, "\"cause\":\"sink\""));
	CHECK_INT("of whom and why", 1, gate_log_count(&g, "'siem' gets no records: it is away"));
	shipped(&e.sinks[1], 1000, true);
	e.a->now_ms += 60000;
	auditor_watch_sinks(e.a);
	auditor_commit(e.a);
	CHECK_INT("its end is told", 1, gate_log_count(&g, "'siem' gets records again"));
	evidence_end(&e);
}

/* --- by age --- */

static const struct retention month = {RETENTION_SIGNED, 30, 0};

static void the_old_go(void **state)
{
	struct auditor_conf conf = conf_with(month);
	struct auditor *a;
	uint64_t old;

	(void)state;
	gate_init(&g);
	ahead_s = -40 * DAY_S;
	auditor_close(a_long_log(&conf));
	old = segments_there();
	/* Forty days without a record: perhaps nobody asked, perhaps the clock is wrong. */
	ahead_s = 0;
	a = a_long_log(&conf);
	prune_all(a);
	CHECK_INT("not yet", 0, first_kept());
	ahead_s = DAY_S + 1;
	prune_all(a);
	CHECK_INT("all of the old", 1, first_kept() > 1400);
	CHECK_INT("none of the others", 1, segments_there() > old / 2);
	CHECK_INT("why", 1, gate_log_count(&g, "log.retention.days"));
	auditor_close(a);
	gate_verified(&g);
	ahead_s = 0;
	fixture_remove(g.dir);
}

static void a_clock_that_leaps_makes_nothing_old(void **state)
{
	struct auditor_conf conf = conf_with(month);
	struct auditor *a;

	(void)state;
	gate_init(&g);
	a = a_long_log(&conf);
	ahead_s = 3650LL * DAY_S;
	auditor_watch_clock(a);
	prune_all(a);
	CHECK_INT("while it runs", 0, first_kept());
	auditor_close(a);
	/* The next start finds the leap among the records. */
	a = opened(&conf);
	prune_all(a);
	CHECK_INT("after a start", 0, first_kept());
	ahead_s = 0;
	auditor_watch_clock(a);
	prune_all(a);
	CHECK_INT("set right again", 0, first_kept());
	CHECK_INT("a leap that was undone is none", 1, a->pruning.leap > (int64_t)time(NULL));
	auditor_close(a);
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* --- trouble --- */

static void a_missing_tile_is_made_again(void **state)
{
	struct auditor_conf conf = conf_with(small);
	struct auditor *a;

	(void)state;
	gate_init(&g);
	a = a_long_log(&conf);
	CHECK_INT("gone", 0, unlink(fixture_path(g.dir, "tile/0/001")));
	prune_all(a);
	CHECK_INT("removed", 1, first_kept() > 1000);
	CHECK_INT("it is back", 0, access(fixture_path(g.dir, "tile/0/001"), R_OK));
	auditor_close(a);
	free(proof_of(1400));
	fixture_remove(g.dir);
}

static void wrong_tiles_keep_the_records(void **state)
{
	static const char zeros[TILE_BYTES];
	struct auditor_conf conf = conf_with(small);
	struct auditor *a;

	(void)state;
	gate_init(&g);
	a = a_long_log(&conf);
	fixture_write(fixture_path(g.dir, "tile/0/001"), zeros, sizeof(zeros));
	prune_all(a);
	CHECK_INT("all are there", 0, first_kept());
	CHECK_INT("said once", 1, gate_log_count(&g, "\"cause\":\"prune\""));
	CHECK_INT("nothing is pruned", 0, gate_log_count(&g, "\"type\":\"log_prune\""));
	auditor_close(a);
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* The record is on disk, and some files are removed: as a crash between leaves it. */
static void a_crash_while_files_go_leaves_a_good_log(void **state)
{
	struct auditor_conf conf = conf_with(small);
	char name[SEGMENT_NAME_MAX];
	struct segments all;
	struct auditor *a;
	char *bytes[64];
	size_t lens[64];

	(void)state;
	gate_init(&g);
	a = a_long_log(&conf);
	all = listed();
	for (size_t i = 0; i < all.count && i < 64; i++) {
		segment_name(all.first[i], name);
		bytes[i] = fixture_read(fixture_path(g.dir, name), &lens[i]);
	}
	prune_all(a);
	auditor_close(a);
	for (size_t i = all.count; i-- > 0;) {
		if (all.first[i] < first_kept()) {
			segment_name(all.first[i], name);
			fixture_write(fixture_path(g.dir, name), bytes[i], lens[i]);
			if (i % 8 == 0)
				gate_verified(&g);
		}
		free(bytes[i]);
	}
	CHECK_INT("as if none was removed", 0, first_kept());
	a = opened(&conf);
	prune_all(a);
	CHECK_INT("they go again", 1, first_kept() > 1000);
	auditor_close(a);
	gate_verified(&g);
	segments_free(&all);
	fixture_remove(g.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_go_while_there_are_too_many),
		cmocka_unit_test(a_pruned_log_goes_on),
		cmocka_unit_test(what_nobody_signed_stays),
		cmocka_unit_test(without_a_limit_nothing_goes),
		cmocka_unit_test(evidence_goes_only_when_it_is_anchored),
		cmocka_unit_test(what_a_witness_has_signed_may_go),
		cmocka_unit_test(what_syslog_was_sent_may_go),
		cmocka_unit_test(a_witness_that_drips_is_given_up),
		cmocka_unit_test(evidence_goes_only_when_every_sink_has_it),
		cmocka_unit_test(a_narrowed_sink_is_no_evidence),
		cmocka_unit_test(a_state_that_is_not_of_this_log_is_not_believed),
		cmocka_unit_test(how_far_sinks_are_is_told),
		cmocka_unit_test(a_sink_that_gets_nothing_is_an_alarm),
		cmocka_unit_test(the_old_go),
		cmocka_unit_test(a_clock_that_leaps_makes_nothing_old),
		cmocka_unit_test(a_missing_tile_is_made_again),
		cmocka_unit_test(wrong_tiles_keep_the_records),
		cmocka_unit_test(a_crash_while_files_go_leaves_a_good_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
