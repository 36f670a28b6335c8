#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct box *box_create(void)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	table_id(b->id, "sbx-", SANDBOX_ID_LEN - 4);
	b->labels = strdup("{}");
	b->env = strdup("[]");
	if (b->labels && b->env)
		return b;
	box_free(b);
	return NULL;
}

void box_free(struct box *b)
{
	if (!b)
		return;
	free(b->labels);
	if (b->env)
		explicit_bzero(b->env, strlen(b->env));
	free(b->env);
	free(b);
}

void table_id(char *out, const char *prefix, size_t letters)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bytes[32];
	size_t n = strlen(prefix);

	if (letters > sizeof(bytes) || getrandom(bytes, letters, 0) != (ssize_t)letters)
		abort();
	memcpy(out, prefix, n);
	for (size_t i = 0; i < letters; i++)
		out[n + i] = alphabet[bytes[i] & 31];
	out[n + letters] = '\0';
}

/* --- finding --- */

/* On another listener an owner of the same name may be somebody else. */
static bool is_theirs(const struct box *b, const struct caller *who)
{
	return !b->hidden && strcmp(b->who.owner, who->owner) == 0 &&
	       strcmp(b->who.listener, who->listener) == 0;
}

struct box *table_find(struct sandboxes *s, const struct caller *who, const char *id)
{
	struct box *found = NULL;

	pthread_mutex_lock(&s->lock);
	for (struct box *b = s->boxes; b && !found; b = b->next)
		if (b->state == BOX_RUNNING && is_theirs(b, who) && strcmp(b->id, id) == 0)
			found = b;
	if (found)
		found->refs++;
	pthread_mutex_unlock(&s->lock);
	return found;
}

struct run *table_find_run(struct sandboxes *s, const struct box *b, const char *id)
{
	struct run *r;

	pthread_mutex_lock(&s->lock);
	for (r = b->runs; r && strcmp(r->id, id) != 0; r = r->next)
		;
	if (r)
		r->refs++;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* --- coming and going --- */

int table_reserve(struct sandboxes *s, const struct caller *who, struct arena *a, struct trouble *t)
{
	const struct conf_sandboxes *c = &s->conf.proxy->sandboxes;
	unsigned own = 0;
	bool full;

	pthread_mutex_lock(&s->lock);
	for (const struct box *b = s->boxes; b; b = b->next)
		own += strcmp(b->who.owner, who->owner) == 0;
	full = s->box_count >= c->max || own >= c->owner_max;
	if (!full)
		s->box_count++;
	pthread_mutex_unlock(&s->lock);
	if (!full)
		return 0;
	t->retry_after = "5";
	return trouble_set(t, a, CODE_sandbox_limit, "%s",
			   own >= c->owner_max ? "you have as many sandboxes as one may have"
					       : "there are as many sandboxes as there may be");
}

void table_unreserve(struct sandboxes *s)
{
	pthread_mutex_lock(&s->lock);
	s->box_count--;
	pthread_mutex_unlock(&s->lock);
}

struct box *table_add(struct sandboxes *s, struct box *b)
{
	struct box *before = NULL;

	pthread_mutex_lock(&s->lock);
	for (struct box *o = *b->key ? s->boxes : NULL; o && !before; o = o->next)
		if (o->state != BOX_ENDING && is_theirs(o, &b->who) && !strcmp(o->key, b->key))
			before = o;
	if (before) {
		before->refs++;
	} else {
		b->refs++;
		b->next = s->boxes;
		s->boxes = b;
	}
	pthread_mutex_unlock(&s->lock);
	return before;
}

void table_deny(struct sandboxes *s, struct box *b, const char *op, const struct trouble *t)
{
	struct denial *d;

	pthread_mutex_lock(&s->lock);
	d = &b->denials[b->denied++ % DENIALS_MAX];
	d->at = (int64_t)(clock_unix_ns() / 1000000000);
	snprintf(d->op, sizeof(d->op), "%s", op);
	snprintf(d->code, sizeof(d->code), "%s", t->code);
	snprintf(d->decision, sizeof(d->decision), "%s", t->decision ? t->decision : "");
	snprintf(d->message, sizeof(d->message), "%s", t->message ? t->message : "");
	pthread_mutex_unlock(&s->lock);
}

static void free_with_runs(struct box *b)
{
	while (b->runs) {
		struct run *r = b->runs;

		b->runs = r->next;
		run_unref_locked(r);
	}
	box_free(b);
}

void table_unref(struct sandboxes *s, struct box *b)
{
	pthread_mutex_lock(&s->lock);
	if (--b->refs == 0)
		free_with_runs(b);
	pthread_mutex_unlock(&s->lock);
}

void table_remove(struct sandboxes *s, struct box *b)
{
	pthread_mutex_lock(&s->lock);
	for (struct box **at = &s->boxes; *at; at = &(*at)->next)
		if (*at == b) {
			*at = b->next;
			s->box_count--;
			if (--b->refs == 0)
				free_with_runs(b);
			break;
		}
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* The lock is held. */
static void set_idle(struct box *b)
{
	b->idle_at_ms = b->idle_s && !b->running ? clock_boot_ms() + (uint64_t)b->idle_s * 1000 : 0;
}

void table_touch(struct sandboxes *s, struct box *b)
{
	pthread_mutex_lock(&s->lock);
	set_idle(b);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* --- commands --- */

/* The lock is held: the oldest that have ended go. */
static void forget_old(struct box *b)
{
	struct run **at = &b->runs;

	for (unsigned n = 0; *at; n++) {
		struct run *r = *at;

		if (n < RUNS_KEPT_MAX || r->state == RUN_RUNNING) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		b->run_count--;
		run_unref_locked(r);
	}
}

int table_add_run(struct sandboxes *s, struct box *b, struct run *r, struct arena *a,
		  struct trouble *t)
{
	bool full, over;

	pthread_mutex_lock(&s->lock);
	over = b->state != BOX_RUNNING || s->over;
	full = b->running >= s->conf.proxy->sandboxes.execs;
	if (!full && !over) {
		r->refs++;
		r->next = b->runs;
		b->runs = r;
		b->run_count++;
		b->running++;
		b->idle_at_ms = 0;
		forget_old(b);
	}
	pthread_mutex_unlock(&s->lock);
	if (over)
		return trouble_set(t, a, CODE_sandbox_not_found, "the sandbox is ending");
	if (full) {
		t->retry_after = "1";
		return trouble_set(t, a, CODE_exec_limit, "%u commands run in this sandbox",
				   s->conf.proxy->sandboxes.execs);
	}
	return 0;
}

void table_drop_run(struct sandboxes *s, struct box *b, struct run *r)
{
	pthread_mutex_lock(&s->lock);
	for (struct run **at = &b->runs; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			b->run_count--;
			b->running--;
			set_idle(b);
			run_unref_locked(r);
			break;
		}
	pthread_mutex_unlock(&s->lock);
}

void table_trim(struct sandboxes *s)
{
	while (s->kept_bytes > KEPT_BYTES_MAX) {
		struct run *oldest = NULL;

		for (struct box *b = s->boxes; b; b = b->next)
			for (struct run *r = b->runs; r; r = r->next)
				if (r->state != RUN_RUNNING && r->out.size &&
				    (!oldest || r->ended_ms < oldest->ended_ms))
					oldest = r;
		if (!oldest)
			return;
		run_forget_output(oldest);
	}
}
