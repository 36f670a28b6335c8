/* An archive of evidence, from the log to its last byte. */
#include "audit/evidence/evidence_priv.h"

#include "audit/evidence/ustar_priv.h"
#include "audit/prove.h"
#include "gate/base/auto.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANCHOR_TAIL 262144 /* bytes at the end of an anchor's file that are looked at */
#define SUMS        "SHA256SUMS"

struct span evidence_verifier(void)
{
	return (struct span){verifier_files[0].text, verifier_files[0].len};
}

/* --- the anchor --- */

static int read_tail(const char *path, struct buf *out, struct err *err)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	uint64_t from;
	char *room;
	long n;

	if (fd < 0)
		return err_sys(err, "open %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INPUT, "%s is no file", path);
	from = st.st_size > ANCHOR_TAIL ? (uint64_t)st.st_size - ANCHOR_TAIL : 0;
	room = buf_reserve(out, ANCHOR_TAIL);
	n = room ? segment_read(fd, room, ANCHOR_TAIL, from) : -1;
	if (n < 0)
		return err_sys(err, "read %s", path);
	buf_commit(out, (size_t)n);
	return 0;
}

static void put_note(struct buf *out, const struct checkpoint *c)
{
	buf_put(out, c->text.at, c->text.len);
	buf_puts(out, "\n");
	buf_put(out, c->signatures.at, c->signatures.len);
}

/*
 * The newest checkpoint there that is not newer than ours: the log may go on while we read. If
 * there is a newer one, the log must have come so far by the time it is verified: else it was cut.
 */
static int find_anchor(struct evidence *e, struct err *err)
{
	struct checkpoint c, best = {.size = 0}, newest = {.size = 0};
	struct span rest;
	struct buf tail;
	int rc;

	buf_init(&tail, ANCHOR_TAIL + 1);
	rc = read_tail(e->ask->anchor, &tail, err);
	rest = buf_span(&tail);
	while (rc == 0 && note_next(&rest, &c)) {
		if (c.size <= e->head->size && c.size >= best.size)
			best = c;
		if (c.size >= newest.size)
			newest = c;
	}
	if (rc == 0 && !best.size)
		rc = err_set(err, ERR_INPUT,
			     "%s has no checkpoint that the newest one of the log has grown from",
			     e->ask->anchor);
	if (rc == 0) {
		put_note(&e->anchor, &best);
		put_note(&e->outside, &best);
		if (newest.size > best.size)
			put_note(&e->outside, &newest);
		buf_put(&e->outside, "", 1);
		if (buf_spent(&e->anchor) || buf_spent(&e->outside))
			rc = err_set(err, ERR_LIMIT, "no memory for it");
		e->scan->anchor_size = best.size;
	}
	buf_fini(&tail);
	return rc < 0 ? err_wrap(err, "the anchor") : 0;
}

/* --- what is in the period --- */

static int set_seed(struct evidence *e, struct err *err)
{
	hash_hex(&e->head->root, e->root);
	e->seed = e->ask->seed ? e->ask->seed : e->root;
	if (!*e->seed || strlen(e->seed) >= EVIDENCE_SEED_MAX)
		return err_set(err, ERR_INPUT, "a seed has 1 to %d bytes", EVIDENCE_SEED_MAX - 1);
	for (const unsigned char *c = (const unsigned char *)e->seed; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			return err_set(err, ERR_INPUT,
				       "a seed is of printable letters without spaces");
	snprintf(e->seed_text, sizeof(e->seed_text), "%s", e->seed);
	return 0;
}

static enum evidence_answer check_whole(struct evidence *e, struct err *err)
{
	const struct verify_options options = {
		.from = buf_len(&e->outside) ? buf_span(&e->outside).at : NULL};

	e->report = report_make_until(e->ask->dir, e->ask->from_ns, e->ask->to_ns, e->head->size,
				      &options, err);
	if (!e->report)
		return EVIDENCE_TROUBLE;
	if (e->report->verify.result != VERIFY_FINE) {
		err_set(err, ERR_INPUT,
			"the log is not whole, so there is no evidence of it: %.300s",
			e->report->verify.what);
		return EVIDENCE_NOT_WHOLE;
	}
	return EVIDENCE_MADE;
}

static enum evidence_answer gather(struct evidence *e, struct err *err)
{
	enum evidence_answer whole;
	struct hash h;

	e->prover = prover_open(e->ask->dir, err);
	if (!e->prover)
		return EVIDENCE_TROUBLE;
	e->head = prover_head(e->prover);
	if (set_seed(e, err) < 0 || (e->ask->anchor && find_anchor(e, err) < 0))
		return EVIDENCE_TROUBLE;
	whole = check_whole(e, err);
	if (whole != EVIDENCE_MADE)
		return whole;
	h = hash_of(evidence_verifier());
	hash_hex(&h, e->verifier);
	e->scan->ask = e->ask;
	e->scan->seed = e->seed;
	e->scan->until = e->head->size;
	if (scan_log(e->scan, err) < 0)
		return EVIDENCE_TROUBLE;
	if (e->scan->any)
		return EVIDENCE_MADE;
	err_set(err, ERR_INPUT,
		"there is no record from %.19sZ to %.19sZ; the log has records %" PRIu64
		" to %" PRIu64 ", %.19sZ to %.19sZ%s",
		e->scan->from, e->scan->to, e->scan->log_first, e->head->size - 1,
		e->scan->log_begin, e->scan->log_end,
		e->scan->uncovered ? ", and some that no checkpoint covers yet" : "");
	return EVIDENCE_EMPTY;
}

/* --- files --- */

typedef void page_fn(const struct evidence *e, struct buf *out);

static int add_text(struct ustar *t, const char *path, struct buf *text, struct err *err)
{
	int rc = buf_spent(text) ? err_set(err, ERR_LIMIT, "%s is too long", path)
				 : ustar_add(t, path, buf_span(text), err);

	buf_fini(text);
	return rc;
}

static int add_page(const struct evidence *e, struct ustar *t, const char *path, page_fn *page,
		    struct err *err)
{
	struct buf text;

	buf_init(&text, EVIDENCE_PAGE_MAX);
	page(e, &text);
	return add_text(t, path, &text, err);
}

static void page_report_text(const struct evidence *e, struct buf *out)
{
	report_text(e->report, out);
}

static void page_report_html(const struct evidence *e, struct buf *out)
{
	report_html(e->report, out);
}

static int add_pages(const struct evidence *e, struct ustar *t, struct err *err)
{
	static const struct {
		const char *path;
		page_fn *page;
	} pages[] = {
		{"README.txt", page_readme},
		{"index.html", page_html},
		{"completeness.txt", page_completeness},
		{"cannot-exclude.txt", page_unsure},
		{"rules.txt", page_rules},
		{"report.txt", page_report_text},
		{"report.html", page_report_html},
		{"summary.json", page_summary},
	};

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (add_page(e, t, pages[i].path, pages[i].page, err) < 0)
			return -1;
	for (size_t i = 0; i < e->scan->control_count; i++) {
		const struct control_found *c = &e->scan->controls[i];
		char path[USTAR_NAME_MAX];
		struct buf text;

		snprintf(path, sizeof(path), "controls/%.40s.txt", c->control->id);
		buf_init(&text, EVIDENCE_PAGE_MAX);
		page_control(e, c, &text);
		if (add_text(t, path, &text, err) < 0)
			return -1;
	}
	return 0;
}

static int add_growth(const struct evidence *e, struct ustar *t, const char *path, uint64_t size,
		      struct err *err)
{
	struct buf text;
	int rc;

	if (size == e->head->size)
		return 0; /* it is the checkpoint's own tree */
	buf_init(&text, PROOF_MAX);
	rc = prover_growth(e->prover, size, &text, err);
	if (rc == 0)
		return add_text(t, path, &text, err);
	buf_fini(&text);
	return err_wrap(err, "prove that the log has grown from %" PRIu64 " records", size);
}

/* Changes of the key behind the archived segments: what signs now follows from what signed then. */
static void put_rotations(const struct scan *s, struct buf *out)
{
	struct span rest = buf_span(&s->rotations), text;
	struct line line;

	while (span_cut(&rest, '\n', &text))
		if (line_split(text, &line) && line.seq >= s->archive_end) {
			buf_put(out, text.at, text.len);
			buf_puts(out, "\n");
		}
}

static int add_signed(const struct evidence *e, struct ustar *t, struct err *err)
{
	struct span anchor = buf_span(&e->anchor);
	struct buf text;

	buf_init(&text, NOTE_VKEY_MAX + 1);
	buf_printf(&text, "%s\n", e->scan->key);
	if (ustar_add(t, "checkpoint", prover_note(e->prover), err) < 0 ||
	    add_text(t, "keys/checkpoint.vkey", &text, err) < 0)
		return -1;
	buf_init(&text, EVIDENCE_PAGE_MAX);
	put_rotations(e->scan, &text);
	if (add_text(t, "keys/rotations", &text, err) < 0 ||
	    add_growth(e, t, "proofs/archive", e->scan->archive_end, err) < 0)
		return -1;
	if (!anchor.len)
		return 0;
	if (ustar_add(t, "anchor", anchor, err) < 0)
		return -1;
	return add_growth(e, t, "proofs/anchor", e->scan->anchor_size, err);
}

static int add_segments(const struct evidence *e, int dir_fd, struct ustar *t, struct err *err)
{
	const struct scan *s = e->scan;

	for (size_t i = s->first_segment; i <= s->last_segment; i++) {
		auto_fd int fd = segment_open(dir_fd, s->all.first[i], O_RDONLY, err);
		char name[SEGMENT_NAME_MAX], path[USTAR_NAME_MAX];
		struct stat st;

		if (fd < 0)
			return -1;
		segment_name(s->all.first[i], name);
		snprintf(path, sizeof(path), "log/%s", name);
		if (fstat(fd, &st) < 0)
			return err_sys(err, "look at %s", path);
		if (ustar_add_file(t, path, fd,
				   i == s->last_segment ? s->last_bytes : (uint64_t)st.st_size,
				   err) < 0)
			return -1;
	}
	return 0;
}

/* --- samples: each record once, whatever controls it is a sample of --- */

static int by_seq(const void *a, const void *b)
{
	const struct sample *const *x = a, *const *y = b;

	return (*x)->seq < (*y)->seq ? -1 : (*x)->seq > (*y)->seq;
}

static int add_record(const struct sample *s, int dir_fd, struct ustar *t, struct err *err)
{
	auto_fd int fd = segment_open(dir_fd, s->segment, O_RDONLY, err);
	char path[USTAR_NAME_MAX], text[RECORD_LINE_MAX + 1];

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "samples/%" PRIu64 ".record", s->seq);
	if (s->len >= sizeof(text) ||
	    segment_read(fd, text, s->len + 1, s->offset) != (long)s->len + 1)
		return err_set(err, ERR_INPUT, "record %" PRIu64 " is not there any more", s->seq);
	return ustar_add(t, path, (struct span){text, s->len + 1}, err);
}

static int add_proof(const struct evidence *e, const struct sample *s, struct ustar *t,
		     struct err *err)
{
	char path[USTAR_NAME_MAX];
	struct buf text;

	snprintf(path, sizeof(path), "samples/%" PRIu64 ".proof", s->seq);
	buf_init(&text, PROOF_MAX);
	if (prover_inclusion(e->prover, s->seq, &text, err) == 0)
		return add_text(t, path, &text, err);
	buf_fini(&text);
	return err_wrap(err, "prove record %" PRIu64, s->seq);
}

static int add_samples(const struct evidence *e, int dir_fd, struct ustar *t, uint64_t *ret,
		       struct err *err)
{
	const struct sample *all[EVIDENCE_CONTROLS * EVIDENCE_SAMPLES];
	size_t count = 0;

	for (size_t i = 0; i < e->scan->control_count; i++)
		for (size_t k = 0; k < e->scan->controls[i].sample_count; k++)
			all[count++] = &e->scan->controls[i].samples[k];
	if (count)
		qsort(all, count, sizeof(const struct sample *), by_seq);
	for (size_t i = 0; i < count; i++) {
		if (i && all[i]->seq == all[i - 1]->seq)
			continue;
		if (add_record(all[i], dir_fd, t, err) < 0 || add_proof(e, all[i], t, err) < 0)
			return -1;
		++*ret;
	}
	return 0;
}

/* --- the archive --- */

static int add_all(const struct evidence *e, struct ustar *t, struct evidence_made *ret,
		   struct err *err)
{
	auto_fd int dir_fd = open(e->ask->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct hash sums;

	if (dir_fd < 0)
		return err_sys(err, "open %s", e->ask->dir);
	if (add_pages(e, t, err) < 0)
		return -1;
	for (size_t i = 0; i < e->ask->file_count; i++)
		if (ustar_add(t, e->ask->files[i].path, e->ask->files[i].text, err) < 0)
			return -1;
	if (add_signed(e, t, err) < 0 || add_segments(e, dir_fd, t, err) < 0 ||
	    add_samples(e, dir_fd, t, &ret->samples, err) < 0 ||
	    ustar_add(t, "verify.py", evidence_verifier(), err) < 0 ||
	    ustar_end(t, SUMS, &sums, err) < 0)
		return -1;
	hash_hex(&sums, ret->sums);
	ret->records = e->scan->records;
	ret->segments = e->scan->last_segment - e->scan->first_segment + 1;
	ret->bytes = t->bytes;
	memcpy(ret->seed, e->seed_text, sizeof(ret->seed));
	return 0;
}

static enum evidence_answer write_all(const struct evidence *e, struct evidence_made *ret,
				      struct err *err)
{
	char folder[128];
	struct ustar t;
	int rc;

	snprintf(folder, sizeof(folder), "evidence-%.20s-%.10s-%.10s", e->ask->framework,
		 e->scan->from, e->scan->to);
	ustar_open(&t, e->ask->out_fd, folder);
	rc = add_all(e, &t, ret, err);
	ustar_free(&t);
	return rc < 0 ? EVIDENCE_TROUBLE : EVIDENCE_MADE;
}

enum evidence_answer evidence_make(const struct evidence_ask *ask, struct evidence_made *ret,
				   struct err *err)
{
	struct evidence e = {.ask = ask, .scan = calloc(1, sizeof(*e.scan))};
	enum evidence_answer answer = EVIDENCE_TROUBLE;

	*ret = (struct evidence_made){.records = 0};
	buf_init(&e.anchor, NOTE_CHECKPOINT_MAX);
	buf_init(&e.outside, (size_t)3 * NOTE_CHECKPOINT_MAX);
	if (!e.scan)
		err_set(err, ERR_LIMIT, "no memory for an archive");
	else if (evidence_framework(ask->framework, err) == 0)
		answer = gather(&e, err);
	if (answer == EVIDENCE_MADE)
		answer = write_all(&e, ret, err);
	if (e.scan)
		scan_free(e.scan);
	free(e.scan);
	report_destroy(e.report);
	prover_close(e.prover);
	buf_fini(&e.anchor);
	buf_fini(&e.outside);
	return answer;
}
