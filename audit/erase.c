/*
 * erase.c - values that records commit to are erased, because somebody asked for it: on
 * record before and after.  It is done a segment's file a second, so who waits for a record
 * waits for one such file at most.  That it goes on is kept beside the files, so that one
 * that was not ended, by a stop or a crash, is on record as failed.
 */
#include "audit/auditor_priv.h"

#include "audit/requests_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell(struct auditor *a, const struct erasing *e, const char *cause, const char *text)
{
	/* Where names are erasable they do not stay in the record of their end. */
	const char *object = !*e->identity                                   ? "*"
			     : a->erasable.words & erasable_word("identity") ? "withheld"
									     : e->identity;
	char before[CLOCK_TEXT_MAX] = "", said[ERR_MSG_MAX + ERASE_TEXT + 16];
	struct record r = {.type = RECORD_LOG_ERASE,
			   .auth_method = "peercred",
			   .has_cred = true,
			   .uid = e->uid,
			   .gid = e->gid,
			   .object_kind = "identity",
			   .object_name = object,
			   .text = said,
			   .cause = cause,
			   .count = e->count,
			   .to = before};

	snprintf(said, sizeof(said), "ticket %s: %s", e->ticket, text);
	if (e->before_s)
		clock_format((uint64_t)e->before_s * 1000000000, before);
	auditor_add_own(a, &r);
}

static bool copy(struct span from, char out[ERASE_TEXT])
{
	if (from.len >= ERASE_TEXT)
		return false;
	memcpy(out, from.at, from.len);
	out[from.len] = '\0';
	return true;
}

/* NULL: it may be done. */
static const char *why_not(const struct auditor *a, const struct request *request,
			   const struct erasing *e)
{
	if (!request->trusted)
		return "only root and the auditor's user may";
	if (!*e->identity && e->before_s <= 0)
		return "neither an identity nor a time was given";
	if (a->erasing.going)
		return "another is going on";
	return a->erasable.dir_fd < 0 ? "nothing is kept aside" : NULL;
}

/* False: the request is none of these. */
static bool take(const struct request *request, struct erasing *ret)
{
	struct span rest = span_of(request->text), ticket, identity;

	*ret = (struct erasing){.going = true, .uid = request->uid, .gid = request->gid};
	if (!span_starts(rest, REQUEST_ERASE))
		return false;
	rest = span_skip(rest, strlen(REQUEST_ERASE));
	if (!span_cut(&rest, '\n', &ticket) || !span_cut(&rest, '\n', &identity) ||
	    !copy(ticket, ret->ticket) || !copy(identity, ret->identity))
		return false;
	ret->before_s = strtoll(rest.at, NULL, 10);
	return true;
}

bool auditor_erase_ask(struct auditor *a, const struct request *request)
{
	struct erasing e;
	const char *why;

	if (!span_starts(span_of(request->text), REQUEST_ERASE))
		return false;
	if (!take(request, &e))
		return true;
	e.until = a->log->writer.seq;
	why = why_not(a, request, &e);
	if (why) {
		tell(a, &e, "refused", why);
		return true;
	}
	erasable_note(&a->erasable, request->text);
	a->erasing = e;
	tell(a, &a->erasing, "asked", "values that records commit to are to be erased");
	auditor_commit(a);
	return true;
}

static void end(struct auditor *a, const struct err *err)
{
	a->erasing.going = false;
	if (err->kind == ERR_NONE)
		tell(a, &a->erasing, "done", "values that records commit to were erased");
	else
		tell(a, &a->erasing, "failed", err->msg);
	auditor_commit(a);
	if (!auditor_sealed(a)) /* else the next start says how it ended */
		erasable_note(&a->erasable, NULL);
}

void auditor_erase(struct auditor *a)
{
	struct erasing *e = &a->erasing;
	struct erasure what = {e->identity, e->before_s};
	struct segments all;
	struct err err = {0};
	size_t i = 0;

	if (!e->going || auditor_sealed(a))
		return;
	auditor_commit(a); /* what waits to be kept is erased as well */
	if (segments_list(a->log->dir_fd, &all, &err) < 0) {
		end(a, &err);
		return;
	}
	while (i < all.count && all.first[i] < e->next)
		i++;
	if (i == all.count || all.first[i] >= e->until ||
	    erasable_erase(&a->erasable, all.first[i], &what, &e->count, &err) < 0)
		end(a, &err);
	else
		e->next = all.first[i] + 1;
	segments_free(&all);
}

void auditor_erase_stop(struct auditor *a)
{
	struct err err = {0};

	if (!a->erasing.going || auditor_sealed(a))
		return;
	err_set(&err, ERR_LIMIT, "the gate stopped before all were erased: ask again");
	end(a, &err);
}

/* What a crash left without an end. */
void auditor_erase_begin(struct auditor *a)
{
	char text[REQUEST_MAX];
	struct request request = {.trusted = false};
	struct err err = {0};

	if (!erasable_noted(&a->erasable, text))
		return;
	snprintf(request.text, sizeof(request.text), "%s", text);
	if (!take(&request, &a->erasing))
		snprintf(a->erasing.ticket, sizeof(a->erasing.ticket), "?");
	err_set(&err, ERR_LIMIT, "the gate ended before all were erased: ask again");
	end(a, &err);
	a->erasing = (struct erasing){.going = false};
}
