/* `audit report`: what it counts, that it is bounded, and that its page holds nothing alive. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/report.h"
#include "gate/base/clock.h"
#include "gate/base/jv.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HOSTILE "<script>alert(1)</script>\"'`&\x1b[2J\n\xe2\x80\xae|=cmd"

static char dir[FIXTURE_PATH];

static void add(struct audit_log *l, struct record r)
{
	fixture_append(l, &r);
}

static void write_decisions(struct audit_log *l)
{
	for (unsigned n = 0; n < 20; n++) {
		struct record r = fixture_decision(n, n % 4 ? "allow" : "deny");
		struct record o = fixture_outcome(n);

		r.identity = n % 2 ? HOSTILE : "alice";
		r.owner = "team";
		r.profile = "main";
		r.reason = n % 4 ? NULL : "privileged";
		r.rule = n % 4 ? "settings" : "privileges";
		if (n == 1) {
			r.exceptions = span_of("[{\"rule\":\"image\",\"owner\":\"ann\",\"ticket\":"
					       "\"T-1\"}]");
			r.changes =
				span_of("[{\"field\":\"HostConfig.Runtime\",\"to\":\"runsc\"}]");
			o.attestation =
				span_of("{\"state\":\"seen\",\"differs\":[\"privileged\"]}");
		}
		if (n == 5 || n == 8) { /* would be refused; is refused all the same */
			r.would = "deny";
			r.override_mode = "warn";
			r.override_ticket = "INC-1";
		}
		if (n == 6) { /* nothing was set aside for it */
			r.override_mode = "warn";
			r.override_ticket = "INC-1";
		}
		if (n == 7)
			r.would = "deny"; /* the profile's own mode */
		if (n == 2)
			o.attestation = span_of("{\"state\":\"seen\"}");
		add(l, r);
		if (n == 3)
			o = (struct record){.type = RECORD_OUTCOME_UNKNOWN,
					    .id = fixture_id(999),
					    .of = fixture_id(n),
					    .status = "unknown",
					    .text = "its worker has ended"};
		if (n % 4)
			add(l, o);
	}
}

static void write_log(void)
{
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;

	open_set_init(&set, 1000);
	l = fixture_open(dir, 1 << 20, &set, &found);
	add(l, (struct record){.type = RECORD_GATE_START, .id = fixture_id(900), .text = "it"});
	add(l, (struct record){.type = RECORD_POLICY_LOAD,
			       .id = fixture_id(901),
			       .profile = "main",
			       .profile_sha256 = "3f0a9c"});
	write_decisions(l);
	add(l, fixture_read_record(500));
	add(l, (struct record){.type = RECORD_MALFORMED,
			       .id = fixture_id(902),
			       .verdict = "deny",
			       .reason = "malformed"});
	add(l, (struct record){.type = RECORD_LOG_ALARM,
			       .id = fixture_id(903),
			       .cause = "space",
			       .text = HOSTILE});
	add(l, (struct record){.type = RECORD_WORKER_LOST, .id = fixture_id(904), .text = "w"});
	for (unsigned n = 905; n < 907; n++)
		add(l, (struct record){.type = RECORD_SUPPRESSED,
				       .id = fixture_id(n),
				       .identity = "bob",
				       .profile = "main",
				       .op_class = "exec",
				       .reason = "rate",
				       .count = 1000 + n});
	audit_log_close(l);
	open_set_fini(&set);
}

static void set_up(void)
{
	fixture_dir(dir);
	write_log();
}

static void tear_down(void)
{
	fixture_remove(dir);
}

static struct report *made(void)
{
	uint64_t now = clock_unix_ns();
	struct err err = {0};
	struct report *r = report_make(dir, now - UINT64_C(3600000000000),
				       now + UINT64_C(3600000000000), &err);

	CHECK_STR("made", "", err.msg);
	return r;
}

static void counts(void **state)
{
	static const struct {
		enum report_tally_id id;
		const char *name;
		uint64_t allowed, refused;
	} cases[] = {
		{TALLY_IDENTITIES, "alice", 5, 5},
		{TALLY_OWNERS, "team", 15, 5},
		{TALLY_PROFILES, "main", 15, 5},
		{TALLY_REASONS, "privileged", 0, 5},
		{TALLY_REASONS, "malformed", 0, 1},
		{TALLY_RULES, "settings", 15, 0},
		{TALLY_OPERATIONS, "container.create", 15, 5},
		{TALLY_CLASSES, "launch", 15, 5},
		{TALLY_CLASSES, "read", 1, 0},
		{TALLY_STATUSES, "ok", 14, 0},
		{TALLY_STATUSES, "unknown", 0, 1},
		{TALLY_EXCEPTIONS, "image, ann, T-1", 1, 0},
		{TALLY_OVERRIDES, "main, INC-1", 1, 1},
		{TALLY_CHANGES, "HostConfig.Runtime", 1, 0},
		{TALLY_ATTESTED, "seen", 1, 0},
		{TALLY_ATTESTED, "differs", 0, 1},
		{TALLY_SUPPRESSED, "bob, main, exec", 0, 3811},
	};
	struct report *r;

	(void)state;
	set_up();
	r = made();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct report_tally *t = &r->tallies[cases[i].id];
		size_t at = 0;

		while (at < t->count && strcmp(t->rows[at].name, cases[i].name) != 0)
			at++;
		CHECK_INT(cases[i].name, 1, at < t->count);
		CHECK_INT(cases[i].name, cases[i].allowed, t->rows[at].allowed);
		CHECK_INT(cases[i].name, cases[i].refused, t->rows[at].refused);
	}
	CHECK_INT("allowed", 16, r->allowed);
	CHECK_INT("refused", 6, r->refused);
	CHECK_INT("reads", 1, r->reads);
	CHECK_INT("records", r->verify.records, r->records);
	CHECK_INT("gaps", 0, r->gaps);
	CHECK_STR("whole", "whole", report_state(r));
	report_destroy(r);
	tear_down();
}

static void lists(void **state)
{
	static const struct {
		enum report_list_id id;
		const char *text;
	} cases[] = {
		{LIST_STARTS, "gate_start: it"},  {LIST_POLICIES, "main sha256 3f0a9c"},
		{LIST_ALARMS, "space: "},         {LIST_LOST, "worker_lost: w"},
		{LIST_UNKNOWN, "its worker has"}, {LIST_ATTEST_FAILED, "privileged"},
	};
	struct report *r;

	(void)state;
	set_up();
	r = made();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct report_list *l = &r->lists[cases[i].id];

		CHECK_INT(cases[i].text, 1, l->total);
		CHECK_INT(cases[i].text, 1, strstr(l->events[0].text, cases[i].text) != NULL);
	}
	CHECK_INT("clocks", 0, r->lists[LIST_CLOCKS].total);
	report_destroy(r);
	tear_down();
}

static const char *written(void (*write)(const struct report *, struct buf *))
{
	static struct buf out;
	struct report *r = made();

	buf_fini(&out);
	buf_init(&out, REPORT_OUT_MAX);
	write(r, &out);
	CHECK_INT("fits", 0, buf_spent(&out));
	buf_put(&out, "", 1);
	report_destroy(r);
	return buf_span(&out).at;
}

static void nothing_in_a_page_is_alive(void **state)
{
	static const char *const never[] = {"<script",    "onload", "http://", "https://", "\x1b",
					    "alert(1)</", "src=",   "url(",    "@import"};
	const char *page;

	(void)state;
	set_up();
	page = written(report_html);
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
		if (strstr(page, never[i]))
			fail_msg("the page has %s", never[i]);
	CHECK_INT("escaped", 1, strstr(page, "&#60;script&#62;alert(1)") != NULL);
	CHECK_INT("a chart", 1, strstr(page, "<svg class=\"time\"") != NULL);
	CHECK_INT("dark", 1, strstr(page, "prefers-color-scheme:dark") != NULL);
	CHECK_INT("print", 1, strstr(page, "@media print") != NULL);
	CHECK_INT("ends", 1, strstr(page, "</html>\n") != NULL);
	tear_down();
}

static void text_and_json(void **state)
{
	const char *text;
	struct arena *a = arena_create((size_t)16 << 20);
	struct err err = {0};
	enum jv_fault fault;
	struct jv tree;

	(void)state;
	set_up();
	text = written(report_text);
	CHECK_INT("no escape codes", 1, strpbrk(text, "\x1b\r") == NULL);
	CHECK_INT("shown", 1, strstr(text, "\\x1b[2J\\x0a\\xe2\\x80\\xae") != NULL);
	if (jv_parse(a, span_of(written(report_json)), &tree, &fault, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_INT("allowed", 16, jv_num(&tree, "allowed", 0));
	CHECK_STR("state", "whole", jv_str(jv_get(&tree, "verify"), "state", ""));
	CHECK_INT("alarms", 1, jv_num(jv_get(&tree, "alarms"), "total", 0));
	arena_destroy(a);
	tear_down();
}

static void many_names_are_bounded(void **state)
{
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;
	struct report *r;

	(void)state;
	set_up();
	open_set_init(&set, 1000);
	l = fixture_open(dir, 1 << 20, &set, &found);
	for (unsigned n = 0; n < 2 * REPORT_NAMES; n++) {
		struct record d = fixture_decision(1000 + n, "deny");
		char name[300];

		snprintf(name, sizeof(name), "caller-%u-%0200d", n, 0);
		d.identity = name;
		add(l, d);
		add(l, (struct record){.type = RECORD_WORKER_LOST, .id = fixture_id(2000 + n)});
	}
	audit_log_close(l);
	open_set_fini(&set);
	r = made();
	CHECK_INT("names", REPORT_NAMES + 1, r->tallies[TALLY_IDENTITIES].count);
	CHECK_STR("others", REPORT_OTHERS, r->tallies[TALLY_IDENTITIES].rows[REPORT_NAMES].name);
	CHECK_INT("events", REPORT_EVENTS, r->lists[LIST_LOST].count);
	CHECK_INT("events", 2 * REPORT_NAMES + 1, r->lists[LIST_LOST].total);
	report_destroy(r);
	tear_down();
}

static void an_altered_log_is_said_to_be(void **state)
{
	char path[FIXTURE_PATH];
	struct report *r;
	char *bytes;
	size_t len;

	(void)state;
	set_up();
	snprintf(path, sizeof(path), "%s", fixture_path(dir, "00000000000000000000.log"));
	bytes = fixture_read(path, &len);
	memcpy(strstr(bytes, "alice"), "elice", 5);
	fixture_write(path, bytes, len);
	free(bytes);
	r = made();
	CHECK_STR("altered", "altered", report_state(r));
	CHECK_INT("what", 1, *r->verify.what != '\0');
	report_destroy(r);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(lists),
		cmocka_unit_test(nothing_in_a_page_is_alive),
		cmocka_unit_test(text_and_json),
		cmocka_unit_test(many_names_are_bounded),
		cmocka_unit_test(an_altered_log_is_said_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
