/*
 * Processes that are killed before each write, one by one, that they make to what all share:
 * nothing of a quota or of what is only counted is lost or counted twice, no yes lets pass more
 * than it said, and
 * whatever was being written is as it was before, or as it was to be.
 */
#include "proxy/approvals.h"
#include "proxy/quotas.h"
#include "proxy/suppressed.h"
#include "proxy/updates.h"
#include "proxy/watched.h"

#include "tests/unit/check.h"
#include "tests/unit/deaths.h"

#include <stdio.h>
#include <string.h>

/* How far the process came: in memory of its own, which both see. */
static volatile int *reached;

static int make_reached(void **state)
{
	(void)state;
	reached =
		mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return reached == MAP_FAILED ? -1 : 0;
}

static const char *at_write(const char *label, unsigned n)
{
	static char text[120];

	snprintf(text, sizeof(text), "%s, dead before write %u", label, n);
	return text;
}

/* --- quotas --- */

#define LIMIT 2
#define ASKED 3 /* a container and two volumes */

enum act { ACT_TAKE, ACT_RELEASE, ACT_SEND, ACT_SETTLE, ACT_UNSURE };

struct quota_play {
	struct quotas *t;
	enum act act;
	uint64_t since_ns;
	struct quota_thing asked[ASKED];
};

static struct quota_thing thing(const char *kind, const char *name, enum quota takes)
{
	struct quota_thing t = {.id = quota_id(kind, name), .runs = true, .since = 7};

	t.takes[takes] = 1;
	return t;
}

static struct quota_count count(uint64_t since_ns, const struct quota_thing *asked, size_t n)
{
	static int64_t limits[QUOTA_COUNT];

	for (int q = 0; q < QUOTA_COUNT; q++)
		limits[q] = -1;
	limits[QUOTA_CONTAINERS] = LIMIT;
	limits[QUOTA_VOLUME_COUNT] = LIMIT;
	return (struct quota_count){
		.key = 1, .since_ns = since_ns, .asked = asked, .asked_count = n, .limits = limits};
}

/* 1: it is held; 2: it may be marked as sent; 3: it is, so it may be sent; 4: it was answered. */
static void play_quota(void *arg)
{
	struct quota_play *p = arg;
	struct quota_count c = count(p->since_ns, p->asked, ASKED);
	struct quota_hold hold;

	if (quotas_take(p->t, &c, p->since_ns + 1, false, &hold) != QUOTA_FITS)
		_exit(1);
	*reached = 1;
	if (p->act == ACT_RELEASE)
		quotas_release(p->t, &hold);
	if (p->act < ACT_SEND)
		return;
	*reached = 2;
	quotas_sent(p->t, &hold);
	*reached = 3;
	if (p->act == ACT_SETTLE) {
		*reached = 4;
		quotas_settle(p->t, &hold, p->since_ns + 2);
		*reached = 5;
	} else if (p->act == ACT_UNSURE) {
		quotas_unsure(p->t, &hold, p->since_ns + 2);
	}
}

/* Of containers and of volumes; -1: it cannot be told. */
static void used(struct quotas *t, uint64_t since_ns, const struct quota_thing *shown, size_t n,
		 int64_t ret[2])
{
	struct quota_count c = count(since_ns, NULL, 0);
	struct quota_sums sums;

	c.shown = shown;
	c.shown_count = n;
	ret[0] = ret[1] = -1;
	if (quotas_look(t, &c, since_ns + 1, &sums) != QUOTA_FITS)
		return;
	ret[0] = sums.used[QUOTA_CONTAINERS];
	ret[1] = sums.used[QUOTA_VOLUME_COUNT];
}

static void check_used(const char *label, const struct quota_play *p, uint64_t since_ns)
{
	struct quota_thing shown[ASKED];
	int64_t is[2];

	used(p->t, since_ns, NULL, 0, is);
	if (*reached < 2 || *reached == 5) {
		CHECK_INT(label, 0, is[0]);
		CHECK_INT(label, 0, is[1]);
	} else if (*reached == 3) {
		CHECK_INT(label, 1, is[0]);
		CHECK_INT(label, 2, is[1]);
	} else {
		CHECK_INT(label, 1, is[0] == 0 || is[0] == 1);
		CHECK_INT(label, 1, is[1] >= 0 && is[1] <= 2);
	}
	/* The service shows that it was done: then it counts once, whatever the table has. */
	for (size_t i = 0; i < ASKED; i++) {
		shown[i] = p->asked[i];
		shown[i].since = 8;
	}
	used(p->t, since_ns + 10, shown, ASKED, is);
	CHECK_INT(label, 1, is[0]);
	CHECK_INT(label, 2, is[1]);
	/* And when it is gone, all of it is free. */
	for (size_t i = 0; i < ASKED; i++)
		shown[i].gone = true;
	used(p->t, since_ns + 20, shown, ASKED, is);
	CHECK_INT(label, 0, is[0]);
	CHECK_INT(label, 0, is[1]);
	used(p->t, since_ns + 30, NULL, 0, is);
	CHECK_INT(label, 0, is[0]);
	CHECK_INT(label, 0, is[1]);
}

static void no_quota_is_lost_or_doubled(void **state)
{
	static const char *const labels[] = {"take", "release", "send", "settle", "unsure"};
	uint64_t now_ns = 1000;

	(void)state;
	for (enum act act = ACT_TAKE; act <= ACT_UNSURE; act++) {
		struct err err = {0};
		struct quota_play p = {.t = quotas_create(&err), .act = act};
		bool died = true;
		unsigned n = 0;

		assert_non_null(p.t);
		for (; died; n++, now_ns += 1000) {
			pid_t pid;

			p.since_ns = now_ns;
			p.asked[0] = thing("container", "one", QUOTA_CONTAINERS);
			p.asked[1] = thing("volume", "a", QUOTA_VOLUME_COUNT);
			p.asked[2] = thing("volume", "b", QUOTA_VOLUME_COUNT);
			*reached = 0;
			died = dies_at_write(p.t, n, play_quota, &p, &pid);
			quotas_died(p.t, pid, now_ns + 5);
			check_used(at_write(labels[act], n), &p, now_ns + 100);
		}
		CHECK_INT(labels[act], 1, n > 30); /* it did write */
	}
}

static struct quota_play in_doubt(uint64_t now_ns, enum act act)
{
	struct err err = {0};
	struct quota_play p = {.t = quotas_create(&err),
			       .act = act,
			       .since_ns = now_ns + 10,
			       .asked = {thing("container", "one", QUOTA_CONTAINERS),
					 thing("volume", "a", QUOTA_VOLUME_COUNT),
					 thing("volume", "b", QUOTA_VOLUME_COUNT)}};
	struct quota_count c = count(now_ns, p.asked, 1);
	struct quota_hold hold;

	assert_non_null(p.t);
	CHECK_INT("the first", QUOTA_FITS, quotas_take(p.t, &c, now_ns + 1, false, &hold));
	quotas_sent(p.t, &hold);
	quotas_unsure(p.t, &hold, now_ns + 2);
	return p;
}

/*
 * One start is in doubt, and shows to be over.  Who dies with the same once more, and has not sent
 * it, leaves that as it is; if it was sent, it may still come, and counts.
 */
static void a_doubt_is_not_doubled(void **state)
{
	struct quota_thing shown = thing("container", "one", QUOTA_CONTAINERS);
	uint64_t now_ns = 1000;

	(void)state;
	shown.since = 8;
	shown.runs = false;
	for (enum act act = ACT_TAKE; act <= ACT_SEND; act++) {
		bool died = true;

		for (unsigned n = 0; died; n++, now_ns += 1000) {
			struct quota_play p = in_doubt(now_ns, act);
			int64_t is[2];
			pid_t pid;

			*reached = 0;
			died = dies_at_write(p.t, n, play_quota, &p, &pid);
			quotas_died(p.t, pid, now_ns + 20);
			used(p.t, now_ns + 100, NULL, 0, is);
			CHECK_INT(at_write("once", n), 1, is[0]);
			used(p.t, now_ns + 200, &shown, 1, is);
			if (*reached != 2)
				CHECK_INT(at_write("the doubt ends", n), *reached == 3, is[0]);
			used(p.t, now_ns + 300 + QUOTA_UNSURE_NS, NULL, 0, is);
			CHECK_INT(at_write("never for ever", n), 0, is[0]);
		}
	}
}

/* --- approvals --- */

#define NOW    UINT64_C(1000000)
#define MINUTE UINT64_C(60000)
#define TIMES  2

struct approval_play {
	struct approvals *t;
	struct approval_question q;
	struct approval_answer a;
	bool gives_back;
};

static struct approval_play approval_play(uint32_t need)
{
	struct err err = {0};
	struct approval_play p = {
		.t = approvals_create(&err),
		.q = {.key = hash_of(span_of("key")),
		      .caller = hash_of(span_of("caller")),
		      .facts = span_of("{\"a\":1}"),
		      .need = need},
		.a = {.id = "id", .uid = 1, .allow = true, .for_ms = MINUTE, .times = TIMES}};

	assert_non_null(p.t);
	snprintf(p.q.what.id, sizeof(p.q.what.id), "id");
	return p;
}

static void play_ask(void *arg)
{
	struct approval_play *p = arg;
	struct approval_ref ref;
	struct approval_row row;

	if (approvals_ask(p->t, &p->q, NOW, &ref, &row) == ASKED_OPEN)
		*reached = 1;
	approvals_leave(p->t, &ref, true);
}

static void play_say(void *arg)
{
	struct approval_play *p = arg;

	*reached = (int)approvals_say(p->t, &p->a, false, NOW);
}

/* 1: it is taken; 2: it is given back. */
static void play_take(void *arg)
{
	struct approval_play *p = arg;
	struct approval_ref ref;
	struct approval_row row;

	if (!approvals_take(p->t, &p->q.key, NOW, &ref, &row))
		return;
	*reached = 1;
	if (!p->gives_back)
		return;
	*reached = 2;
	approvals_give_back(p->t, &ref);
	*reached = 3;
}

static int take_all(struct approval_play *p)
{
	struct approval_ref ref;
	struct approval_row row;
	int n = 0;

	while (n < 100 && approvals_take(p->t, &p->q.key, NOW, &ref, &row))
		n++;
	return n;
}

static void ask_it(struct approval_play *p)
{
	struct approval_ref ref;
	struct approval_row row;

	CHECK_INT("it is a question", ASKED_OPEN, approvals_ask(p->t, &p->q, NOW, &ref, &row));
}

static void no_question_is_half_asked(void **state)
{
	bool died = true;
	unsigned n = 0;

	(void)state;
	for (; died; n++) {
		struct approval_play p = approval_play(1);
		struct approval_row rows[APPROVALS_MAX];
		uint64_t serial;
		size_t open;
		pid_t pid;

		*reached = 0;
		died = dies_at_write(p.t, n, play_ask, &p, &pid);
		approvals_died(p.t, pid);
		open = approvals_list(p.t, NOW, rows, &serial);
		CHECK_INT(at_write("one, or none", n), 1, open <= 1);
		if (open)
			CHECK_STR(at_write("whole", n), "id", rows[0].what.id);
		CHECK_INT(at_write("nobody has said yes", n), 0, take_all(&p));
		ask_it(&p);
		CHECK_INT(at_write("still one", n), 1,
			  (int)approvals_list(p.t, NOW, rows, &serial));
	}
	CHECK_INT("it did write", 1, n > 20);
}

/* Of a yes whose speaker died nothing counts, or all of it. */
static void no_yes_is_half_said(void **state)
{
	(void)state;
	for (uint32_t need = 1; need <= APPROVALS_BY_MAX; need++) {
		bool died = true;
		unsigned n = 0;

		for (; died; n++) {
			struct approval_play p = approval_play(need);
			enum approval_said again;
			int passes;
			pid_t pid;

			ask_it(&p);
			if (need == 2) {
				struct approval_answer first = p.a;

				first.uid = 2;
				CHECK_INT("the first", SAID_MORE,
					  approvals_say(p.t, &first, false, NOW));
			}
			*reached = -1;
			died = dies_at_write(p.t, n, play_say, &p, &pid);
			approvals_died(p.t, pid);
			again = approvals_say(p.t, &p.a, false, NOW);
			/* The same person can say it, unless it is said. */
			CHECK_INT(at_write("said again", n), 1,
				  again == SAID_DONE || again == SAID_MISSING);
			if (*reached == SAID_DONE)
				CHECK_INT(at_write("it was said", n), SAID_MISSING, again);
			passes = take_all(&p);
			CHECK_INT(at_write("lets pass", n), TIMES, passes);
		}
		CHECK_INT("it did write", 1, n > 4);
	}
}

/* What was taken is used up, whether it was used or not; what was given back comes back once. */
static void no_yes_is_used_twice(void **state)
{
	(void)state;
	for (int gives_back = 0; gives_back <= 1; gives_back++) {
		bool died = true;
		unsigned n = 0;

		for (; died; n++) {
			struct approval_play p = approval_play(1);
			int passes;
			pid_t pid;

			p.gives_back = gives_back;
			ask_it(&p);
			CHECK_INT("yes", SAID_DONE, approvals_say(p.t, &p.a, false, NOW));
			*reached = 0;
			died = dies_at_write(p.t, n, play_take, &p, &pid);
			approvals_died(p.t, pid);
			passes = take_all(&p);
			switch (*reached) {
			case 0: /* it may not have been told any more */
			case 2:
				CHECK_INT(at_write("no more than were left", n), 1,
					  passes == TIMES || passes == TIMES - 1);
				break;
			case 1:
				CHECK_INT(at_write("one is used", n), TIMES - 1, passes);
				break;
			default:
				CHECK_INT(at_write("it came back", n), TIMES, passes);
				break;
			}
		}
		CHECK_INT("it did write", 1, n > 2);
	}
}

/* --- the others --- */

struct update_play {
	struct updates *t;
	struct updates_key key;
	int64_t now;
};

static void play_update(void *arg)
{
	struct update_play *p = arg;

	if (updates_put(p->t, &p->key, span_of("new text"), p->now, 1000))
		*reached = 1;
}

static void no_update_is_half_remembered(void **state)
{
	static const struct identity who = {.name = "alice", .owner = "alice"};
	int64_t now = 1000;
	bool died = true;
	unsigned n = 0;

	(void)state;
	for (; died; n++, now += 10) {
		struct err err = {0};
		struct update_play p = {updates_create("", &err), {&who, "engine", "web"}, now};
		struct buf text;
		pid_t pid;

		assert_non_null(p.t);
		CHECK_INT("old", 1, updates_put(p.t, &p.key, span_of("old text"), now, 1000));
		*reached = 0;
		died = dies_at_write(p.t, n, play_update, &p, &pid);
		buf_init(&text, 4096);
		if (updates_get(p.t, &p.key, now, &text))
			CHECK_INT(at_write("one of the two", n), 1,
				  span_is(buf_span(&text), "new text") ||
					  (!*reached && span_is(buf_span(&text), "old text")));
		else
			CHECK_INT(at_write("it was remembered", n), 0, *reached);
		buf_clear(&text);
		now += UPDATES_SILENCE_S + 1;
		CHECK_INT(at_write("another takes its place", n), 1,
			  updates_put(p.t, &p.key, span_of("newer"), now, 1000));
		CHECK_INT(at_write("newer", n), 1, updates_get(p.t, &p.key, now, &text));
		CHECK_INT(at_write("newer", n), 1, span_is(buf_span(&text), "newer"));
		buf_fini(&text);
	}
	CHECK_INT("it did write", 1, n > 4);
}

struct watched_play {
	struct watched *t;
};

static const struct deed_text deed = {.effect = EFFECT_START, .key = "one", .decision = "decision"};

static void play_deed(void *arg)
{
	struct watched_play *p = arg;

	if (watched_add(p->t, &deed))
		*reached = 1;
}

static void no_deed_is_half_noted(void **state)
{
	bool died = true;
	unsigned n = 0;

	(void)state;
	for (; died; n++) {
		struct err err = {0};
		struct watched_play p = {watched_create(&err)};
		pid_t pid;

		assert_non_null(p.t);
		*reached = 0;
		died = dies_at_write(p.t, n, play_deed, &p, &pid);
		if (*reached)
			CHECK_INT(at_write("noted", n), 1, watched_starts(p.t, 0, "one"));
		CHECK_INT(at_write("nothing else", n), 0, watched_starts(p.t, 0, ""));
		CHECK_INT(at_write("another is", n), 1, watched_add(p.t, &deed) != 0);
		CHECK_INT(at_write("another is", n), 1, watched_starts(p.t, 0, "one"));
	}
	CHECK_INT("it did write", 1, n > 8);
}

/* --- what is only counted --- */

#define SECOND_NS UINT64_C(1000000000)

struct refusals_play {
	struct suppressed *t;
	uint64_t at_ns;
};

static const struct identity asker = {.name = "a", .owner = "o", .profile = "p", .listener = "l"};

static bool refuse(struct suppressed *t, uint64_t at_ns)
{
	const struct suppressed_time now = {at_ns, at_ns};
	char id[SUPPRESSED_ID];

	return suppressed_count(t, &asker, "launch", &now, id);
}

static uint64_t sums_of(struct suppressed *t, uint64_t at_ns)
{
	struct suppressed_sum sum;
	uint64_t all = 0;

	for (size_t at = 0; suppressed_next(t, at_ns, true, &at, &sum);) {
		if (suppressed_told(t, &sum.ref))
			all += sum.count;
	}
	return all;
}

/* The first is whole, two are counted, the window ends, the sum is told, and the next begins. */
static void play_refusals(void *arg)
{
	struct refusals_play *p = arg;
	struct suppressed_sum sum;
	size_t at = 0;

	(void)refuse(p->t, p->at_ns);
	for (int i = 0; i < 2; i++)
		*reached += refuse(p->t, p->at_ns);
	if (!suppressed_next(p->t, p->at_ns + SECOND_NS, false, &at, &sum))
		return;
	*reached = -(int)sum.count; /* it is in the log: who dies now has it told twice at most */
	(void)suppressed_told(p->t, &sum.ref);
	(void)refuse(p->t, p->at_ns + SECOND_NS);
}

static void no_refusal_is_lost_or_counted_twice(void **state)
{
	bool died = true;
	unsigned n = 0;

	(void)state;
	for (; died; n++) {
		struct err err = {0};
		struct refusals_play p = {suppressed_create(&err), 100 * SECOND_NS};
		uint64_t left;
		pid_t pid;

		assert_non_null(p.t);
		*reached = 0;
		died = dies_at_write(p.t, n, play_refusals, &p, &pid);
		suppressed_died(p.t, pid);
		left = sums_of(p.t, p.at_ns);
		if (*reached >= 0) /* the one that it died over has had no answer */
			CHECK_INT(at_write("counted", n), 1,
				  left == (uint64_t)*reached || left == (uint64_t)*reached + 1);
		else
			CHECK_INT(at_write("told, or to be told again", n), 1,
				  left == 0 || left == (uint64_t) - *reached);
		CHECK_INT(at_write("nothing is left", n), 0, sums_of(p.t, p.at_ns));
		(void)refuse(p.t, p.at_ns + 9 * SECOND_NS);
		CHECK_INT(at_write("others are counted", n), 1,
			  refuse(p.t, p.at_ns + 9 * SECOND_NS));
		CHECK_INT(at_write("exactly", n), 1, sums_of(p.t, p.at_ns + 9 * SECOND_NS));
	}
	CHECK_INT("it did write", 1, n > 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_quota_is_lost_or_doubled),
		cmocka_unit_test(a_doubt_is_not_doubled),
		cmocka_unit_test(no_question_is_half_asked),
		cmocka_unit_test(no_yes_is_half_said),
		cmocka_unit_test(no_yes_is_used_twice),
		cmocka_unit_test(no_update_is_half_remembered),
		cmocka_unit_test(no_deed_is_half_noted),
		cmocka_unit_test(no_refusal_is_lost_or_counted_twice),
	};

	if (!CAN_DIE_AT_WRITES)
		return 77;
	return cmocka_run_group_tests(tests, make_reached, NULL);
}
