/*
 * test_exchange_waits.c - exchanges that wait: for a table that another process has, for a person,
 * and for their turn, since one of the same caller took long to judge.
 */
#include "proxy/approvals.h"
#include "proxy/quotas.h"
#include "tests/unit/proxy/exchange_world.h"

#include <stdatomic.h>
#include <unistd.h>

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
	the_conf.approvals = approvals_create(&err);
	the_conf.quotas = quotas_create(&err);
	CHECK_STR("tables", "", err.msg);
	begin(o, LOG_GRANTS);
	the_conf.limits.ask_ms = 60000;
	ask_gate(o, request);
}

static void end_with(struct world *o)
{
	end(o);
	listeners[0].otherwise = "main";
	the_conf.approvals = NULL;
	the_conf.quotas = NULL;
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
	set_lock(the_conf.approvals, ANOTHER);
	take_turns(&o, 1000, is_waiting);
	CHECK_INT("it waits", 1, is_waiting(&o));
	CHECK_INT("nobody was asked", 0, is_asked(&o) || is_answered(&o));
	set_lock(the_conf.approvals, 0);
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
	set_lock(the_conf.quotas, ANOTHER);
	take_turns(&o, 1000, is_waiting);
	CHECK_INT("it waits", 1, is_waiting(&o));
	CHECK_INT("nothing was sent", 0, o.changes);
	set_lock(the_conf.quotas, 0);
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
		set_lock(the_conf.approvals, ANOTHER);
		set_lock(the_conf.quotas, ANOTHER);
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
	set_lock(the_conf.quotas, ANOTHER);
	take_turns(&o, 1000, is_waiting);
	CHECK_INT("it waits", 1, is_waiting(&o));
	hang_up(&o);
	take_turns(&o, 1000, is_over);
	set_lock(the_conf.quotas, 0);
	take_turns(&o, 5, NULL);
	CHECK_INT("nothing was sent", 0, o.changes);
	CHECK_INT("granted", 0, the_log.granted);
	check_invariants("left", &o);
	end_with(&o);
}

/* The rules have been run: while the table cannot be had they are not run again. */
static void rules_are_not_run_while_a_table_is_awaited(void **state)
{
	struct world o;

	(void)state;
	begin_with(&o, "POST /change" NOTHING);
	set_lock(the_conf.approvals, ANOTHER);
	take_turns(&o, 1000, is_waiting);
	CHECK_INT("it waits", 1, is_waiting(&o));
	o.worker->exchanges->judged_at = -1; /* each judgement reads the clock */
	take_turns(&o, 20, NULL);
	CHECK_INT("it waits still", 1, is_waiting(&o));
	CHECK_INT("judged", -1, o.worker->exchanges->judged_at);
	set_lock(the_conf.approvals, 0);
	take_turns(&o, 1000, is_asked);
	CHECK_INT("a person is asked", 1, is_asked(&o));
	CHECK_INT("judged once", -1, o.worker->exchanges->judged_at);
	hang_up(&o);
	take_turns(&o, 1000, is_over);
	check_invariants("asked", &o);
	end_with(&o);
}

/* --- turns --- */

#define FOR_EVER (UINT64_MAX / 2)

static void set_pauses(struct world *o, uint64_t until_ms)
{
	for (size_t i = 0; i < PAUSES_MAX; i++)
		if (o->worker->pauses[i].key)
			o->worker->pauses[i].until_ms = until_ms;
	o->worker->pauses_until_ms = until_ms;
}

static size_t waiting(const struct world *o)
{
	size_t n = 0;

	for (const struct exchange *x = o->worker->exchanges; x; x = x->next)
		n += x->turn_since_ms && !x->turn_taken;
	return n;
}

static bool one_waits(const struct world *o)
{
	return waiting(o) == 1;
}

static bool two_wait(const struct world *o)
{
	return waiting(o) == 2;
}

static bool looks(const struct world *o)
{
	return o->worker->exchanges && o->worker->exchanges->runs_open;
}

/* A caller of whom one request burned its limit, for as long as the test wants. */
static void begin_slow(struct world *o)
{
	struct err err = {0};

	listeners[0].otherwise = "slow";
	the_conf.quotas = quotas_create(&err);
	CHECK_STR("table", "", err.msg);
	begin(o, LOG_GRANTS);
	ask_gate(o, "GET /list" NOTHING);
	run(o, 0);
	CHECK_INT("limit", 403, status_of(o));
	CHECK_STR("limit", "rule_limit", the_log.reason);
	hang_up(o);
	take_turns(o, 1000, is_over);
	CHECK_INT("a pause", 1, o->worker->pauses_until_ms > 0);
	set_pauses(o, FOR_EVER);
	o->got_len = 0;
	o->got[0] = '\0';
	o->ended = false;
	o->lookups = 0;
}

static void end_slow(struct world *o)
{
	end(o);
	listeners[0].otherwise = "main";
	the_conf.quotas = NULL;
	count_asks = false;
}

/* What was known when it began to wait is not what it is judged by. */
static void facts_are_looked_up_anew_after_a_wait(void **state)
{
	static const struct {
		const char *label;
		bool knows_nothing;
		int http, changes;
	} rows[] = {{"as before", false, 200, 1}, {"gone meanwhile", true, 403, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world o;

		begin_slow(&o);
		ask_gate(&o, "POST /change" NOTHING);
		take_turns(&o, 1000, one_waits);
		CHECK_INT(rows[i].label, 1, waiting(&o));
		CHECK_INT(rows[i].label, 1, o.lookups);
		take_turns(&o, 5, NULL);
		CHECK_INT(rows[i].label, 1, o.lookups);
		o.knows_nothing = rows[i].knows_nothing;
		set_pauses(&o, 0);
		run(&o, 0);
		CHECK_INT(rows[i].label, 2, o.lookups);
		CHECK_INT(rows[i].label, rows[i].http, status_of(&o));
		CHECK_INT(rows[i].label, rows[i].changes, o.changes);
		check_invariants(rows[i].label, &o);
		end_slow(&o);
	}
}

/* While it looks, nothing makes it begin once more. */
static void its_turn_is_taken_once(void **state)
{
	struct world o;

	(void)state;
	begin_slow(&o);
	ask_gate(&o, "POST /change" NOTHING);
	take_turns(&o, 1000, one_waits);
	o.mute = true;
	set_pauses(&o, 0);
	take_turns(&o, 1000, looks);
	CHECK_INT("it looks", 1, looks(&o));
	take_turns(&o, 20, NULL);
	CHECK_INT("it looks still", 1, looks(&o));
	CHECK_INT("once", 1, o.worker->exchanges->steps);
	o.mute = false;
	run(&o, 0);
	CHECK_INT("lookups", 2, o.lookups);
	CHECK_INT("it passes", 200, status_of(&o));
	check_invariants("passed", &o);
	end_slow(&o);
}

/* All that wait would ask the service at once, with each turn. */
static void of_one_caller_one_has_its_turn(void **state)
{
	struct world o;
	int first;

	(void)state;
	begin_slow(&o);
	ask_gate(&o, "POST /change" NOTHING);
	first = o.caller;
	ask_gate(&o, "POST /change" NOTHING);
	take_turns(&o, 1000, two_wait);
	CHECK_INT("both wait", 2, waiting(&o));
	o.mute = true;
	set_pauses(&o, 0);
	take_turns(&o, 1000, looks);
	CHECK_INT("one looks", 1, waiting(&o));
	o.mute = false;
	for (int i = 0; i < 3000 && o.changes < 2; i++)
		turn(&o, &(long){0});
	CHECK_INT("both pass", 2, o.changes);
	CHECK_INT("lookups", 4, o.lookups);
	close(first);
	hang_up(&o);
	take_turns(&o, 1000, is_over);
	check_invariants("passed", &o);
	end_slow(&o);
}

/* Others of its caller were judged while its quota was counted. */
static void what_was_counted_waits_for_its_turn(void **state)
{
	struct world o;

	(void)state;
	begin_slow(&o);
	set_pauses(&o, 0);
	count_asks = true;
	o.mute = true;
	ask_gate(&o, "POST /volume" NOTHING);
	take_turns(&o, 1000, looks);
	o.mute = false;
	for (int i = 0; i < 1000 && !o.lookups; i++)
		turn(&o, &(long){0});
	set_pauses(&o, FOR_EVER); /* its answer is there, and that of counting is not */
	take_turns(&o, 1000, one_waits);
	CHECK_INT("it waits", 1, waiting(&o));
	CHECK_INT("nothing was sent", 0, o.changes);
	set_pauses(&o, 0);
	run(&o, 0);
	CHECK_INT("it passes", 200, status_of(&o));
	check_invariants("passed", &o);
	end_slow(&o);
}

/* Of what a limit ended, the time it took says little. */
static void a_limit_makes_wait_however_short(void **state)
{
	struct world o;

	(void)state;
	begin_with(&o, "POST /change" NOTHING);
	take_turns(&o, 1000, is_asked);
	CHECK_INT("it waits", 1, is_asked(&o));
	o.worker->pauses_until_ms = 0;
	turns_took(o.worker->exchanges, 1000000, false);
	CHECK_INT("short", 0, o.worker->pauses_until_ms > 0);
	turns_took(o.worker->exchanges, 1000000, true);
	CHECK_INT("limited", 1, o.worker->pauses_until_ms > 0);
	hang_up(&o);
	take_turns(&o, 1000, is_over);
	end_with(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_yes_is_awaited_while_another_has_the_table),
		cmocka_unit_test(a_quota_is_awaited_while_another_has_the_table),
		cmocka_unit_test(what_is_never_to_be_had_is_a_denial),
		cmocka_unit_test(who_waits_for_a_table_may_leave),
		cmocka_unit_test(rules_are_not_run_while_a_table_is_awaited),
		cmocka_unit_test(facts_are_looked_up_anew_after_a_wait),
		cmocka_unit_test(its_turn_is_taken_once),
		cmocka_unit_test(of_one_caller_one_has_its_turn),
		cmocka_unit_test(what_was_counted_waits_for_its_turn),
		cmocka_unit_test(a_limit_makes_wait_however_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
