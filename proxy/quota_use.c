#include "proxy/quota_use.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READS_MAX 4 /* of a row that is being written */

bool quota_use_name(struct quota_use *to, const char *owner, const char *profile)
{
	if (strlen(owner) > QUOTA_USE_NAME || strlen(profile) > QUOTA_USE_NAME)
		return false;
	memcpy(to->owner, owner, strlen(owner) + 1);
	memcpy(to->profile, profile, strlen(profile) + 1);
	return true;
}

/* --- writing; the lock is held --- */

static bool is_same(const struct quota_use *a, const struct quota_use *b)
{
	return a->backend == b->backend && !strncmp(a->owner, b->owner, sizeof(a->owner)) &&
	       !strncmp(a->profile, b->profile, sizeof(a->profile));
}

static size_t place_for(const struct quota_uses *u, const struct quota_use *now)
{
	size_t oldest = 0;

	for (size_t i = 0; i < QUOTA_USES; i++) {
		if (!atomic_load(&u->rows[i].turn) || is_same(&u->rows[i].use, now))
			return i;
		if (u->rows[i].use.at < u->rows[oldest].use.at)
			oldest = i;
	}
	return oldest;
}

static void merge(struct quota_use *to, const struct quota_use *now)
{
	unsigned known = to->known;

	if (!is_same(to, now)) {
		*to = *now;
		return;
	}
	for (int q = 0; q < QUOTA_COUNT; q++)
		if (now->known & 1u << q)
			to->used[q] = now->used[q];
	memcpy(to->limits, now->limits, sizeof(to->limits));
	to->known = known | now->known;
	to->at = now->at;
}

/* False: there is none, or it is being written all the time, or its writer died. */
static bool read_row(const struct quota_uses *u, size_t i, struct quota_use *ret)
{
	for (int tries = 0; tries < READS_MAX; tries++) {
		uint64_t turn = atomic_load(&u->rows[i].turn);

		if (!turn)
			return false;
		*ret = u->rows[i].use;
		atomic_thread_fence(memory_order_seq_cst);
		if (!(turn & 1) && atomic_load(&u->rows[i].turn) == turn)
			break;
		if (tries + 1 == READS_MAX)
			return false;
	}
	ret->owner[QUOTA_USE_NAME] = ret->profile[QUOTA_USE_NAME] = '\0';
	ret->known &= (1u << QUOTA_COUNT) - 1;
	for (int q = 0; q < QUOTA_COUNT; q++)
		if (ret->limits[q] < 0 || ret->used[q] < 0)
			ret->known &= ~(1u << q);
	return true;
}

static bool says_the_same(const struct quota_use *there, const struct quota_use *now)
{
	if (there->at != now->at || (now->known & ~there->known))
		return false;
	for (int q = 0; q < QUOTA_COUNT; q++)
		if ((now->known & 1u << q) && there->used[q] != now->used[q])
			return false;
	return memcmp(there->limits, now->limits, sizeof(now->limits)) == 0;
}

/* Within a second nothing is new but other numbers: that is seen without the lock. */
static bool is_noted(const struct quota_uses *u, const struct quota_use *now)
{
	struct quota_use there;

	for (size_t i = 0; i < QUOTA_USES && atomic_load(&u->rows[i].turn); i++)
		if (is_same(&u->rows[i].use, now))
			return read_row(u, i, &there) && is_same(&there, now) &&
			       says_the_same(&there, now);
	return false;
}

void quota_uses_note(struct quota_uses *u, const struct quota_use *now)
{
	size_t i;
	uint64_t turn;

	if (is_noted(u, now))
		return;
	if (!shared_lock(&u->lock, 0))
		return; /* the next count says it */
	i = place_for(u, now);
	turn = atomic_load(&u->rows[i].turn) & ~UINT64_C(1);
	atomic_store(&u->rows[i].turn, turn + 1);
	atomic_thread_fence(memory_order_seq_cst);
	merge(&u->rows[i].use, now);
	atomic_store(&u->rows[i].turn, turn + 2);
	shared_unlock(&u->lock);
}

/* --- reading --- */

static unsigned percent_of(int64_t used, int64_t limit)
{
	if (used == QUOTA_ENDLESS)
		return 999;
	if (limit == 0)
		return used ? 999 : 100;
	return used / limit >= 10 ? 999 : (unsigned)((double)used * 100 / (double)limit);
}

unsigned quota_use_percent(const struct quota_use *use)
{
	unsigned most = 0;

	for (int q = 0; q < QUOTA_COUNT; q++) {
		unsigned is = use->known & 1u << q ? percent_of(use->used[q], use->limits[q]) : 0;

		if (is > most)
			most = is;
	}
	return most;
}

/* Into those that are shown, which stand in order; false: it is less full than all of them. */
static bool place(struct quota_use *list, size_t *count, const struct quota_use *one)
{
	size_t at = *count;

	while (at > 0 && quota_use_percent(&list[at - 1]) < quota_use_percent(one))
		at--;
	if (at == QUOTA_USE_SHOWN)
		return false;
	if (*count < QUOTA_USE_SHOWN)
		++*count;
	memmove(&list[at + 1], &list[at], (*count - at - 1) * sizeof(*list));
	list[at] = *one;
	return true;
}

size_t quota_uses_read(const struct quota_uses *u, struct quota_use ret[QUOTA_USE_SHOWN],
		       size_t *ret_more)
{
	size_t count = 0, all = 0;
	struct quota_use one;

	for (size_t i = 0; i < QUOTA_USES; i++) {
		if (!read_row(u, i, &one))
			continue;
		all++;
		place(ret, &count, &one);
	}
	*ret_more = all - count;
	return count;
}

/* --- Prometheus --- */

static void put_label(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_puts(out, "\\");
		buf_put(out, *value == '\n' ? " " : value, 1);
	}
	buf_puts(out, "\"");
}

static void put_row(struct buf *out, const char *what, const char *backend,
		    const struct quota_use *use, int q)
{
	int64_t n = strcmp(what, "limit") == 0 ? use->limits[q] : use->used[q];

	buf_printf(out, "sallyport_quota_%s{", what);
	put_label(out, "backend", backend);
	put_label(out, ",owner", use->owner);
	put_label(out, ",profile", use->profile);
	put_label(out, ",quota", quota_setting((enum quota)q));
	if (n == QUOTA_ENDLESS)
		buf_puts(out, "} +Inf\n");
	else if (quota_unit((enum quota)q) == QUOTA_UNIT_CPUS)
		buf_printf(out, "} %.3f\n", (double)n / 1e9);
	else
		buf_printf(out, "} %" PRId64 "\n", n);
}

static void put_family(struct buf *out, const struct proxy_conf *conf, const char *what,
		       const struct quota_use *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int q = 0; q < QUOTA_COUNT; q++)
			if ((list[i].known & 1u << q) && list[i].backend < conf->backend_count)
				put_row(out, what, conf->backends[list[i].backend].name, &list[i],
					q);
}

void quota_uses_write(const struct quota_uses *u, const struct proxy_conf *conf, struct buf *out)
{
	static struct quota_use list[QUOTA_USE_SHOWN]; /* too large for a stack */
	size_t more, count = quota_uses_read(u, list, &more);

	buf_puts(out, "# HELP sallyport_quota_used What owners have of their quotas, as it was "
		      "counted last: bytes, processors, numbers.\n"
		      "# TYPE sallyport_quota_used gauge\n");
	put_family(out, conf, "used", list, count);
	buf_puts(out, "# HELP sallyport_quota_limit What they may have.\n"
		      "# TYPE sallyport_quota_limit gauge\n");
	put_family(out, conf, "limit", list, count);
	buf_printf(out,
		   "# HELP sallyport_quota_not_shown Owners who have a quota and are not among the "
		   "%d fullest.\n"
		   "# TYPE sallyport_quota_not_shown gauge\n"
		   "sallyport_quota_not_shown %zu\n",
		   QUOTA_USE_SHOWN, more);
}
