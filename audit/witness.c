#include "audit/witness.h"

#include "audit/note_priv.h"
#include "audit/prove.h"
#include "audit/prove_priv.h"
#include "audit/segment_priv.h"
#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_MAX   2048
#define ANSWER_MAX 16384
#define FILE_TAIL  65536
#define LIMIT_MS   30000
#define TRIES      2 /* the second with the size that the witness names */

struct asking {
	const struct witness_conf *conf;
	const struct sink_dialer *dialer;
	struct note_key key;
	struct prover *prover;
	struct buf body, answer;
	uint64_t until_ms;
	int status;
	struct span said; /* the answer's body */
};

/* --- the file of what was cosigned --- */

typedef void cosigned_fn(void *arg, const struct checkpoint *c, uint64_t time_s);

/* Each of the newest that are there; a cut one at the end is passed over. */
static int for_each(const char *file, int fd, const struct note_key *key, cosigned_fn *fn,
		    void *arg, struct err *err)
{
	char *mem = malloc(FILE_TAIL);
	struct checkpoint c;
	uint64_t at, time_s = 0;
	struct stat st;
	struct span rest;
	long n;

	if (!mem || fstat(fd, &st) < 0) {
		free(mem);
		return err_sys(err, "read %s", file);
	}
	at = st.st_size > FILE_TAIL ? (uint64_t)st.st_size - FILE_TAIL : 0;
	n = segment_read(fd, mem, FILE_TAIL, at);
	rest = (struct span){mem, n > 0 ? (size_t)n : 0};
	while (note_next(&rest, &c))
		if (checkpoint_cosigned_by(&c, key, &time_s))
			fn(arg, &c, time_s);
	free(mem);
	return n < 0 ? err_sys(err, "read %s", file) : 0;
}

static void take_seen(void *arg, const struct checkpoint *c, uint64_t time_s)
{
	struct witness_seen *seen = arg;

	seen->size = c->size;
	seen->time_s = time_s;
}

/* size 0: there is none. */
static int last_seen(const struct asking *a, int fd, struct witness_seen *ret, struct err *err)
{
	*ret = (struct witness_seen){.size = 0};
	return for_each(a->conf->file, fd, &a->key, take_seen, ret, err);
}

struct keeping {
	const char *origin;
	struct witness_kept *kept;
};

static void take_kept(void *arg, const struct checkpoint *c, uint64_t time_s)
{
	const struct keeping *k = arg;

	(void)time_s;
	if (span_is(c->origin, k->origin) && c->size >= k->kept->size)
		*k->kept = (struct witness_kept){c->size, c->root};
}

int witness_kept(const struct witness_conf *conf, const char *origin, struct witness_kept *ret,
		 struct err *err)
{
	auto_fd int fd = open(conf->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct keeping k = {origin, ret};
	struct note_key key;

	*ret = (struct witness_kept){.size = 0};
	if (fd < 0)
		return err_sys(err, "open %s", conf->file);
	if (note_init(err) < 0)
		return -1;
	if (!note_witness_parse(span_of(conf->key), &key))
		return err_set(err, ERR_CONFIG, "this is no key of a witness");
	return for_each(conf->file, fd, &key, take_kept, &k, err);
}

bool witness_key_ok(const char *key)
{
	struct err ignored;
	struct note_key parsed;

	return note_init(&ignored) == 0 && note_witness_parse(span_of(key), &parsed);
}

static int keep(const struct asking *a, int fd, struct span cosignature, struct err *err)
{
	struct span note = prover_note(a->prover);
	struct buf text;
	int rc;

	buf_init(&text, NOTE_CHECKPOINT_MAX + ANSWER_MAX);
	buf_put(&text, note.at, note.len);
	buf_put(&text, cosignature.at, cosignature.len);
	buf_puts(&text, "\n");
	rc = buf_spent(&text) ? err_set(err, ERR_LIMIT, "the cosigned checkpoint is too long")
			      : io_write_all(fd, buf_span(&text).at, buf_len(&text), err);
	if (rc == 0 && fdatasync(fd) < 0)
		rc = err_sys(err, "sync");
	buf_fini(&text);
	return rc < 0 ? err_wrap(err, "keep it in %s", a->conf->file) : 0;
}

/* --- asking --- */

static int write_request(struct asking *a, void *link, struct err *err)
{
	const struct sink_conf *at = &a->conf->at;
	bool v6 = strchr(at->host, ':');
	struct buf head;
	int rc;

	buf_init(&head, HEAD_MAX);
	buf_printf(&head,
		   "POST %s%sadd-checkpoint HTTP/1.1\r\nHost: %s%s%s:%u\r\n"
		   "User-Agent: sallyport\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		   at->path, at->path[strlen(at->path) - 1] == '/' ? "" : "/", v6 ? "[" : "",
		   at->host, v6 ? "]" : "", at->port, buf_len(&a->body));
	rc = buf_spent(&head) ? err_set(err, ERR_LIMIT, "the request's head is too long")
			      : a->dialer->write(link, buf_span(&head), err);
	buf_fini(&head);
	return rc < 0 ? -1 : a->dialer->write(link, buf_span(&a->body), err);
}

/* The number that a text begins with, or -1. */
static long long number_of(struct span text)
{
	char digits[20], *end;
	long long value;

	snprintf(digits, sizeof(digits), "%.*s", (int)(text.len < 18 ? text.len : 18), text.at);
	value = strtoll(digits, &end, 10);
	return end == digits || value < 0 ? -1 : value;
}

/* The head's Content-Length, or -1. */
static long long length_of(struct span head)
{
	static const char name[] = "Content-Length:";
	struct span line = {"", 0};

	while (span_cut(&head, '\n', &line))
		if (line.len >= sizeof(name) && strncasecmp(line.at, name, sizeof(name) - 1) == 0)
			return number_of(span_skip(line, sizeof(name) - 1));
	return -1;
}

static bool is_whole(struct asking *a)
{
	struct span all = buf_span(&a->answer), head = all;
	const char *gap = memmem(all.at, all.len, "\r\n\r\n", 4);
	long long length;

	if (!gap)
		return false;
	head.len = (size_t)(gap + 4 - all.at);
	length = length_of(head);
	a->said = span_skip(all, head.len);
	return length >= 0 && a->said.len == (unsigned long long)length;
}

static int take_answer(struct asking *a, void *link, struct err *err)
{
	char piece[4096];
	long n;

	buf_clear(&a->answer);
	do {
		n = a->dialer->read(link, piece, sizeof(piece), err);
		if (n < 0)
			return -1;
		if (clock_boot_ms() >= a->until_ms) /* a few bytes at a time take no read's time */
			return err_set(err, ERR_UPSTREAM, "%s takes too long to answer",
				       a->conf->at.host);
		buf_put(&a->answer, piece, (size_t)n);
	} while (n > 0 && !buf_spent(&a->answer) && !is_whole(a));
	if (buf_spent(&a->answer) || !is_whole(a) || !span_starts(buf_span(&a->answer), "HTTP/1."))
		return err_set(err, ERR_UPSTREAM, "%s gave no whole answer of a known length",
			       a->conf->at.host);
	a->status = (int)number_of(span_skip(buf_span(&a->answer), sizeof("HTTP/1.1")));
	return 0;
}

static int post(struct asking *a, uint64_t old, struct err *err)
{
	void *link;
	int rc;

	buf_clear(&a->body);
	if (prover_growth(a->prover, old, &a->body, err) < 0)
		return -1;
	link = a->dialer->open(&a->conf->at, err);
	if (!link)
		return -1;
	rc = write_request(a, link, err) < 0 ? -1 : take_answer(a, link, err);
	a->dialer->close(link);
	return rc;
}

/* It names the size that it saw last. */
static int other_size(const struct asking *a, uint64_t *ret, struct err *err)
{
	uint64_t size = prover_head(a->prover)->size;
	long long named = number_of(a->said);

	if (named < 0)
		return err_set(err, ERR_UPSTREAM, "the witness answers 409 without a size");
	*ret = (uint64_t)named;
	if (*ret > size)
		return err_set(err, ERR_INPUT,
			       "the witness has seen %" PRIu64
			       " records of this log, which signs %" PRIu64
			       " now: it was rolled back",
			       *ret, size);
	return 0;
}

static int refused(const struct asking *a, struct err *err)
{
	static const char rolled[] = "it does not take the proof: this is not the log that it saw";
	char said[120];

	snprintf(said, sizeof(said), "%.*s", (int)(a->said.len < 100 ? a->said.len : 100),
		 a->said.at);
	for (char *c = said; *c; c++)
		if (*c < 0x20 || *c >= 0x7f)
			*c = ' ';
	return err_set(err, a->status == 422 ? ERR_INPUT : ERR_UPSTREAM,
		       "the witness answers with status %d%s%s: %s", a->status,
		       a->status == 422 ? "; " : "", a->status == 422 ? rolled : "", said);
}

/* The line of this witness, if it is right. */
static int take_line(const struct asking *a, struct span *ret, uint64_t *ret_time_s,
		     struct err *err)
{
	struct span rest = a->said, line;
	struct checkpoint c = *prover_head(a->prover);

	while (span_cut(&rest, '\n', &line)) {
		c.signatures = (struct span){line.at, line.len + 1};
		if (checkpoint_cosigned_by(&c, &a->key, ret_time_s)) {
			*ret = line;
			return 0;
		}
	}
	return err_set(err, ERR_UPSTREAM,
		       "the witness has answered without a signature of the key that was given");
}

static int ask(struct asking *a, uint64_t old, struct span *ret, uint64_t *ret_time_s,
	       struct err *err)
{
	for (int i = 0; i < TRIES; i++) {
		if (post(a, old, err) < 0)
			return -1;
		if (a->status == 200)
			return take_line(a, ret, ret_time_s, err);
		if (a->status != 409)
			break;
		if (other_size(a, &old, err) < 0)
			return -1;
	}
	return refused(a, err);
}

static int ask_and_keep(struct asking *a, int fd, struct witness_seen *ret, struct err *err)
{
	uint64_t size = prover_head(a->prover)->size;
	struct span line = {"", 0};

	if (last_seen(a, fd, ret, err) < 0)
		return -1;
	if (ret->size > size)
		return err_set(err, ERR_INPUT,
			       "%s has a cosigned checkpoint of %" PRIu64
			       " records, and the log signs %" PRIu64 ": it was rolled back",
			       a->conf->file, ret->size, size);
	ret->again = ret->size == size;
	if (ret->again)
		return 0;
	if (ask(a, ret->size, &line, &ret->time_s, err) < 0)
		return -1;
	ret->size = size;
	return keep(a, fd, line, err);
}

int witness_ask(const char *dir, const struct witness_conf *conf, const struct sink_dialer *dialer,
		struct witness_seen *ret, struct err *err)
{
	struct asking a = {.conf = conf,
			   .dialer = dialer,
			   .until_ms =
				   clock_boot_ms() + (conf->limit_ms ? conf->limit_ms : LIMIT_MS)};
	auto_fd int fd = -1;
	int rc = -1;

	if (note_init(err) < 0)
		return -1;
	if (!note_witness_parse(span_of(conf->key), &a.key))
		return err_set(err, ERR_CONFIG,
			       "this is no key of a witness: NAME+ID+KEY, of "
			       "algorithm 4");
	fd = open(conf->file, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(err, "open %s", conf->file);
	a.prover = prover_open(dir, err);
	if (!a.prover)
		return -1;
	buf_init(&a.body, PROOF_MAX + NOTE_CHECKPOINT_MAX);
	buf_init(&a.answer, ANSWER_MAX);
	rc = ask_and_keep(&a, fd, ret, err);
	buf_fini(&a.body);
	buf_fini(&a.answer);
	prover_close(a.prover);
	return rc;
}
