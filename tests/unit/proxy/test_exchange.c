/*
 * test_exchange.c - what is forwarded was granted and is on record, each decision has one end,
 * and both stay true whichever allocation fails, whoever hangs up, and whatever the log says.
 */
#include "tests/unit/proxy/exchange_world.h"

#include <stdio.h>

struct row {
	const char *label, *request;
	enum log_mode mode;
	int http, granted, changes, undos, outcomes, reads, denials;
	const char *status;
};

static const struct row rows[] = {
	{"read", "GET /read" NOTHING, LOG_GRANTS, 200, 0, 0, 0, 0, 1, 0, "ok"},
	{"list", "GET /list" NOTHING, LOG_GRANTS, 200, 0, 0, 0, 0, 1, 0, "ok"},
	{"change", "POST /change" NOTHING, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"body", "POST /json" JSON, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"upload", "PUT /upload" UPLOAD, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"made", "POST /make" JSON, LOG_GRANTS, 200, 1, 1, 0, 1, 0, 0, "ok"},
	{"made otherwise", "POST /make-other" JSON, LOG_GRANTS, 403, 1, 1, 1, 1, 0, 0, "denied"},
	{"denied", "POST /denied" NOTHING, LOG_GRANTS, 403, 0, 0, 0, 0, 0, 1, ""},
	{"unknown", "GET /unknown" NOTHING, LOG_GRANTS, 403, 0, 0, 0, 0, 0, 0, NULL},
	{"lost", "POST /change" NOTHING, LOG_LOSES, 503, 0, 0, 0, 0, 0, 0, ""},
	{"lost upload", "PUT /upload" UPLOAD, LOG_LOSES, 503, 0, 0, 0, 0, 0, 0, ""},
	{"full", "POST /change" NOTHING, LOG_IS_FULL, 503, 0, 0, 0, 0, -1, 0, NULL},
};
/* An adapter that breaks its contract: no, as for everything that should not be. */
static void a_broken_adapter_denies(void **state)
{
	static const char *const paths[] = {"/asks-for-ever", "/gives-no-reason"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char request[64];
		struct world o;

		snprintf(request, sizeof(request), "POST %s" NOTHING, paths[i]);
		begin(&o, LOG_GRANTS);
		ask_gate(&o, request);
		run(&o, 0);
		CHECK_INT(paths[i], 500, status_of(&o));
		CHECK_STR(paths[i], reason_name(REASON_internal), the_log.reason);
		CHECK_INT(paths[i], 0, o.changes);
		CHECK_INT(paths[i], 1, the_log.denials);
		end(&o);
	}
}

#define ROWS (sizeof(rows) / sizeof(*rows))

static void check_row(const struct row *r, const struct world *o)
{
	CHECK_INT(r->label, r->http, status_of(o));
	CHECK_INT(r->label, r->granted, the_log.granted);
	CHECK_INT(r->label, r->changes, o->changes);
	CHECK_INT(r->label, r->undos, o->undos);
	CHECK_INT(r->label, r->outcomes, the_log.outcomes);
	if (r->status) {
		CHECK_INT(r->label, r->reads, the_log.reads);
		CHECK_INT(r->label, r->denials, the_log.denials);
		CHECK_STR(r->label, r->status, the_log.status);
	}
}

static void requests_come_to_their_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		struct world o;

		begin(&o, r->mode);
		ask_gate(&o, r->request);
		run(&o, 0);
		check_row(r, &o);
		end(&o);
	}
}

/* One that is made otherwise is removed, unless the engine could not be told any more. */
static bool fails_at(const struct row *r, long n)
{
	char label[80];
	struct world o;
	bool reached;

	snprintf(label, sizeof(label), "%s, allocation %ld", r->label, n);
	begin(&o, r->mode);
	ask_gate(&o, r->request);
	run(&o, n);
	reached = allocations >= n;
	CHECK_INT(label, 1, is_answered(&o));
	hang_up(&o);
	for (int j = 0; j < 10 && o.worker->exchanges; j++)
		turn(&o, &(long){0});
	check_invariants(label, &o);
	if (!strcmp(r->label, "made otherwise"))
		CHECK_INT(label, 0, status_of(&o) == 200);
	end(&o);
	return reached;
}

static void every_allocation_fails_in_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		long n = 1;

		while (fails_at(&rows[i], n))
			n++;
		CHECK_INT(rows[i].label, 1, n > 3); /* it did reach some */
	}
}

static void callers_hang_up_at_every_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (int after = 0; after < 12; after++) {
			char label[80];
			struct world o;
			long armed = 0;

			snprintf(label, sizeof(label), "%s, gone after %d", rows[i].label, after);
			begin(&o, rows[i].mode);
			ask_gate(&o, rows[i].request);
			for (int j = 0; j < after; j++)
				turn(&o, &armed);
			hang_up(&o);
			for (int j = 0; j < 100 && o.worker->conns; j++)
				turn(&o, &armed);
			CHECK_INT(label, 0, o.worker->conns != NULL);
			check_invariants(label, &o);
			CHECK_INT(label, o.changes > 0 ? rows[i].undos : 0, o.undos);
			end(&o);
		}
}

/* The worker's own end in every phase: no decision is left without its outcome. */
static void a_worker_ends_at_every_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (int after = 0; after < 12; after++) {
			char label[80];
			struct world o;
			long armed = 0;

			snprintf(label, sizeof(label), "%s, ended after %d", rows[i].label, after);
			begin(&o, rows[i].mode);
			ask_gate(&o, rows[i].request);
			for (int j = 0; j < after; j++)
				turn(&o, &armed);
			front_close(o.worker);
			check_invariants(label, &o);
			end(&o);
		}
}

static void what_is_held_is_capped_in_sum(void **state)
{
	static const char *const requests[] = {"GET /list" NOTHING, "POST /json" JSON};

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		struct world o;

		begin(&o, LOG_GRANTS);
		the_conf.limits.bodies_bytes = 100;
		ask_gate(&o, requests[i]);
		run(&o, 0);
		CHECK_INT(requests[i], 503, status_of(&o));
		CHECK_STR(requests[i], "busy", the_log.reason);
		check_invariants(requests[i], &o);
		end(&o);
	}
}

/* A log that says nothing: nothing is forwarded, and our end of it is forgotten. */
static void a_silent_log_lets_nothing_pass(void **state)
{
	struct world o;

	(void)state;
	begin(&o, LOG_IS_SILENT);
	ask_gate(&o, "POST /change" NOTHING);
	for (int i = 0; i < 20; i++)
		turn(&o, &(long){0});
	CHECK_INT("changes", 0, o.changes);
	front_close(o.worker);
	the_log.mode = LOG_GRANTS;
	audit_client_flush(&the_log); /* too late: nobody may be called */
	CHECK_INT("granted", 0, the_log.granted);
	CHECK_INT("outcomes", 0, the_log.outcomes);
	end(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_come_to_their_end),
		cmocka_unit_test(a_broken_adapter_denies),
		cmocka_unit_test(callers_hang_up_at_every_turn),
		cmocka_unit_test(a_worker_ends_at_every_turn),
		cmocka_unit_test(what_is_held_is_capped_in_sum),
		cmocka_unit_test(a_silent_log_lets_nothing_pass),
		cmocka_unit_test(every_allocation_fails_in_turn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
