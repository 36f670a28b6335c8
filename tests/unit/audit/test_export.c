/* Exports: each form has what it requires, and nothing in a record gets out of its place. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/export_priv.h"
#include "audit/line_priv.h"
#include "audit/segment_priv.h"
#include "gate/base/jv.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ALLOWED                                                                                    \
	"\"type\":\"decision\",\"id\":\"01900000-0000-7000-8000-00000000000a\",\"surf\":"          \
	"\"docker\",\"backend\":\"engine\",\"listener\":\"agents\",\"mode\":\"enforce\","          \
	"\"actor\":{\"identity\":\"agent-7\",\"owner\":\"team-a\",\"auth\":{\"method\":"           \
	"\"peercred\",\"uid\":1001,\"gid\":1002,\"pid\":4711}},\"op\":\"container.create\","       \
	"\"class\":\"launch\",\"req\":{\"method\":\"POST\",\"path\":\"/containers/create\","       \
	"\"bytes\":214},\"res\":[{\"type\":\"image\",\"name\":\"python:3.12\",\"id\":\"sha256:"    \
	"1b\""                                                                                     \
	"}],\"pol\":{\"profile\":\"main\",\"profile_sha256\":\"3f0a\",\"rule\":\"settings\"},"     \
	"\"verdict\":\"allow\""
#define MODIFIED ALLOWED ",\"mut\":[{\"field\":\"HostConfig.Runtime\",\"to\":\"runsc\"}]"
#define OBSERVED ALLOWED ",\"would\":\"deny\""
#define DENIED                                                                                     \
	"\"type\":\"decision\",\"id\":\"i\",\"op\":\"exec.start\",\"class\":\"exec\",\"pol\":{"    \
	"\"rule\":\"privileges\"},\"verdict\":\"deny\",\"reason\":\"privileged\""
#define OUTCOME                                                                                    \
	"\"type\":\"outcome\",\"id\":\"o\",\"of\":\"i\",\"op\":\"container.remove\",\"outcome\":{" \
	"\"status\":\"ok\",\"http\":201,\"in\":7,\"out\":88,\"dur_ms\":41}"
#define FAILED                                                                                     \
	"\"type\":\"outcome\",\"id\":\"o\",\"of\":\"i\",\"op\":\"image.pull\",\"outcome\":{"       \
	"\"status\":\"fail\",\"http\":502,\"err\":\"gone\"}"
#define READ                                                                                       \
	"\"type\":\"read\",\"id\":\"r\",\"op\":\"container.list\",\"verdict\":\"allow\","          \
	"\"outcome\":{\"status\":\"ok\",\"http\":200}"
#define UNANSWERED                                                                                 \
	"\"type\":\"approval\",\"id\":\"p\",\"of\":\"i\",\"op\":\"container.create\",\"class\":"   \
	"\"launch\",\"verdict\":\"deny\",\"reason\":\"approval_denied\",\"approval\":{\"id\":"     \
	"\"i\","                                                                                   \
	"\"by\":\"uid 7\"},\"outcome\":{\"status\":\"denied\"}"
#define SET_ASIDE                                                                                  \
	OBSERVED ",\"judged\":\"allow\",\"override\":{\"mode\":\"warn\",\"ticket\":\"INC-1\"}"
#define MASKED       OBSERVED ",\"masked\":[\"facts.workload.env\",\"req.headers.x-registry-auth\"]"
#define SIMPLE(type) "\"type\":\"" type "\",\"id\":\"x\",\"text\":\"words\""

/* A record's line, taken apart; lives until the next call. */
static struct fields record_of(const char *body)
{
	static struct arena *a;
	static struct buf line;
	static const struct hash none;
	struct line_writer w = {.origin = "gate.example/host7", .epoch = 1};
	struct err err = {0};
	struct fields f;

	arena_destroy(a);
	a = arena_create(2 * FIELDS_ARENA_MAX);
	buf_fini(&line);
	buf_init(&line, RECORD_LINE_MAX + 1);
	line_writer_set(&w, 42, &none);
	CHECK_INT(body, 1, line_write(&w, &line, span_of(body)));
	CHECK_INT(err.msg, 0,
		  fields_take(a, (struct span){buf_span(&line).at, buf_len(&line) - 1}, &f, &err));
	return f;
}

/* The export's line. */
static const char *exported(enum export_format format, const char *body)
{
	static char text[8 * RECORD_LINE_MAX];
	struct arena *a = arena_create((size_t)16 << 20);
	struct fields f = record_of(body);
	struct buf out;

	buf_init(&out, sizeof(text) - 1);
	export_record(format, &f, a, &out);
	CHECK_INT(body, 0, buf_spent(&out) || arena_spent(a));
	snprintf(text, sizeof(text), "%.*s", SPAN_FMT(buf_span(&out)));
	CHECK_INT(body, buf_len(&out), strlen(text));
	CHECK_INT("one line", 1, strpbrk(text, "\n\r") == NULL);
	buf_fini(&out);
	arena_destroy(a);
	return text;
}

static const struct jv *parsed(enum export_format format, const char *body)
{
	static struct arena *a;
	static struct jv tree;
	struct err err = {0};
	enum jv_fault fault;

	arena_destroy(a);
	a = arena_create((size_t)16 << 20);
	if (jv_parse(a, span_of(exported(format, body)), &tree, &fault, &err) < 0)
		fail_msg("%s: %s", body, err.msg);
	return &tree;
}

static int64_t number(const struct jv *tree, const char *path)
{
	const struct jv *v = jv_path(tree, path);

	return v && v->kind == JV_INT ? v->i : -1;
}

static const char *text(const struct jv *tree, const char *path)
{
	const struct jv *v = jv_path(tree, path);

	return v && v->kind == JV_STRING ? v->str.at : "";
}

static void ocsf_classes(void **state)
{
	static const struct {
		const char *body;
		int class, activity, severity, status;
		const char *required; /* by its class */
	} cases[] = {
		{ALLOWED, 6003, 1, 1, 1, "api.operation"},
		{DENIED, 6003, 3, 3, 2, "api.operation"},
		{OUTCOME, 6003, 4, 1, 1, "api.operation"},
		{FAILED, 6003, 1, 1, 2, "api.operation"},
		{READ, 6003, 2, 1, 1, "api.operation"},
		{UNANSWERED, 6003, 1, 3, 2, "api.operation"},
		{SIMPLE("outcome_unknown"), 6003, 99, 3, 1, "api.operation"},
		{SIMPLE("malformed"), 6003, 99, 1, 1, "api.operation"},
		{SIMPLE("policy_load"), 3004, 10, 1, 1, "entity.name"},
		{SIMPLE("policy_reject"), 3004, 3, 3, 2, "entity.name"},
		{SIMPLE("gate_start"), 6002, 3, 1, 1, "app.name"},
		{SIMPLE("gate_stop"), 6002, 4, 1, 1, "app.name"},
		{SIMPLE("gate_recover"), 6002, 99, 1, 1, "app.name"},
		{SIMPLE("log_alarm"), 2004, 1, 5, 1, "finding_info.title"},
		{SIMPLE("worker_lost"), 2004, 1, 5, 1, "finding_info.uid"},
		{SIMPLE("clock_step"), 2004, 1, 5, 1, "finding_info.uid"},
		{SIMPLE("log_open"), 1008, 99, 1, 1, "log_name"},
		{SIMPLE("log_seal"), 1008, 5, 1, 1, "log_name"},
		{SIMPLE("log_prune"), 1008, 2, 1, 1, "log_name"},
		{SIMPLE("log_erase"), 1008, 2, 1, 1, "log_name"},
		{SIMPLE("log_read"), 1008, 99, 1, 1, "log_name"},
		{SIMPLE("checkpoint"), 1008, 99, 1, 1, "log_name"},
		{SIMPLE("key_rotate"), 1008, 99, 1, 1, "log_name"},
		{SIMPLE("of_tomorrow"), 1008, 99, 1, 1, "log_name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *label = cases[i].body;
		const struct jv *e = parsed(EXPORT_OCSF, label);

		CHECK_INT(label, cases[i].class, number(e, "class_uid"));
		CHECK_INT(label, cases[i].class / 1000, number(e, "category_uid"));
		CHECK_INT(label, cases[i].activity, number(e, "activity_id"));
		CHECK_INT(label, cases[i].class * 100 + cases[i].activity, number(e, "type_uid"));
		CHECK_INT(label, cases[i].severity, number(e, "severity_id"));
		CHECK_INT(label, cases[i].status, number(e, "status_id"));
		CHECK_STR(label, "1.8.0", text(e, "metadata.version"));
		CHECK_STR(label, "Sallyport", text(e, "metadata.product.vendor_name"));
		CHECK_STR(label, "gate.example/host7", text(e, "metadata.log_name"));
		CHECK_INT(label, 42, number(e, "metadata.sequence"));
		CHECK_INT(label, 1, number(e, "time") > INT64_C(1600000000000));
		CHECK_INT(label, 1, *text(e, cases[i].required) != '\0');
		CHECK_INT(label, HASH_HEX_LEN, strlen(text(e, "unmapped.h")));
		if (cases[i].class == 6003)
			CHECK_INT(label, 1,
				  *text(e, "src_endpoint.name") && *text(e, "actor.user.name"));
		if (cases[i].class == 2004)
			CHECK_INT(label, 1, jv_true(e, "is_alert"));
		if (cases[i].activity == 99)
			CHECK_INT(label, 1, *text(e, "activity_name") != '\0');
	}
}

static void ocsf_verdicts(void **state)
{
	static const struct {
		const char *body;
		int action, disposition;
		const char *decision;
	} cases[] = {
		{ALLOWED, 1, 1, "allow"},    {DENIED, 2, 2, "deny"},     {OBSERVED, 3, 15, "allow"},
		{SET_ASIDE, 3, 15, "allow"}, {UNANSWERED, 2, 2, "deny"}, {MODIFIED, 4, 1, "allow"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct jv *e = parsed(EXPORT_OCSF, cases[i].body);
		const struct jv *list = jv_get(e, "authorizations");

		CHECK_INT(cases[i].body, cases[i].action, number(e, "action_id"));
		CHECK_INT(cases[i].body, cases[i].disposition, number(e, "disposition_id"));
		CHECK_STR(cases[i].body, cases[i].decision, jv_str(list->items, "decision", ""));
	}
}

/* What one member of a record becomes. */
static void members_have_their_places(void **state)
{
	static const struct {
		enum export_format format;
		const char *body, *path, *want;
	} cases[] = {
		{EXPORT_OCSF, ALLOWED, "actor.user.name", "agent-7"},
		{EXPORT_OCSF, ALLOWED, "actor.user.uid", "1001"},
		{EXPORT_OCSF, ALLOWED, "actor.user.org.name", "team-a"},
		{EXPORT_OCSF, ALLOWED, "http_request.http_method", "POST"},
		{EXPORT_OCSF, ALLOWED, "http_request.url.path", "/containers/create"},
		{EXPORT_OCSF, ALLOWED, "firewall_rule.name", "settings"},
		{EXPORT_OCSF, ALLOWED, "metadata.uid", "01900000-0000-7000-8000-00000000000a"},
		{EXPORT_OCSF, DENIED, "status_code", "privileged"},
		{EXPORT_OCSF, OUTCOME, "metadata.correlation_uid", "i"},
		{EXPORT_OCSF, FAILED, "api.response.error", "gone"},
		{EXPORT_OCSF, UNANSWERED, "metadata.correlation_uid", "i"},
		{EXPORT_OCSF, UNANSWERED, "status_code", "approval_denied"},
		{EXPORT_OCSF, UNANSWERED, "unmapped.approval.id", "i"},
		{EXPORT_OCSF, UNANSWERED, "unmapped.approval.by", "uid 7"},
		{EXPORT_OCSF, SET_ASIDE, "unmapped.override.ticket", "INC-1"},
		{EXPORT_ECS, UNANSWERED, "event.code", "approval.deny"},
		{EXPORT_ECS, UNANSWERED, "event.outcome", "failure"},
		{EXPORT_ECS, UNANSWERED, "trace.id", "i"},
		{EXPORT_ECS, UNANSWERED, "sallyport.approval.id", "i"},
		{EXPORT_ECS, UNANSWERED, "sallyport.approval.by", "uid 7"},
		{EXPORT_ECS, SET_ASIDE, "sallyport.override.mode", "warn"},
		{EXPORT_ECS, SET_ASIDE, "sallyport.override.ticket", "INC-1"},
		{EXPORT_ECS, ALLOWED, "ecs.version", "9.0.0"},
		{EXPORT_ECS, ALLOWED, "event.kind", "event"},
		{EXPORT_ECS, ALLOWED, "event.action", "container.create"},
		{EXPORT_ECS, ALLOWED, "event.code", "decision.allow"},
		{EXPORT_ECS, ALLOWED, "event.outcome", "unknown"},
		{EXPORT_ECS, ALLOWED, "event.dataset", "sallyport.audit"},
		{EXPORT_ECS, ALLOWED, "user.id", "1001"},
		{EXPORT_ECS, ALLOWED, "user.name", "agent-7"},
		{EXPORT_ECS, ALLOWED, "organization.id", "team-a"},
		{EXPORT_ECS, ALLOWED, "rule.ruleset", "main"},
		{EXPORT_ECS, ALLOWED, "container.image.name", "python:3.12"},
		{EXPORT_ECS, DENIED, "event.reason", "privileged"},
		{EXPORT_ECS, DENIED, "event.outcome", "failure"},
		{EXPORT_ECS, OUTCOME, "event.outcome", "success"},
		{EXPORT_ECS, OUTCOME, "trace.id", "i"},
		{EXPORT_ECS, FAILED, "event.outcome", "failure"},
		{EXPORT_ECS, FAILED, "error.message", "gone"},
		{EXPORT_ECS, SIMPLE("log_alarm"), "event.kind", "alert"},
		{EXPORT_ECS, SIMPLE("log_seal"), "event.dataset", "sallyport.log"},
	};
	const struct jv *e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_STR(cases[i].path, cases[i].want,
			  text(parsed(cases[i].format, cases[i].body), cases[i].path));
	e = parsed(EXPORT_OCSF, OUTCOME);
	CHECK_INT("in", 7, number(e, "traffic.bytes_in"));
	CHECK_INT("out", 88, number(e, "traffic.bytes_out"));
	CHECK_INT("duration", 41, number(e, "duration"));
	CHECK_INT("code", 201, number(e, "http_response.code"));
	e = parsed(EXPORT_ECS, OUTCOME);
	CHECK_INT("duration", 41000000, number(e, "event.duration"));
	CHECK_INT("code", 201, number(e, "http.response.status_code"));
	CHECK_INT("sequence", 42, number(e, "event.sequence"));
	CHECK_INT("severity", 5, number(parsed(EXPORT_ECS, DENIED), "event.severity"));
	CHECK_INT("hash", HASH_HEX_LEN, strlen(text(parsed(EXPORT_ECS, READ), "event.hash")));
}

static void what_is_masked_is_told(void **state)
{
	static const char list[] =
		"\"masked\":[\"facts.workload.env\",\"req.headers.x-registry-auth\"]";
	static const enum export_format formats[] = {EXPORT_OCSF, EXPORT_ECS};

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		const char *got = exported(formats[i], MASKED);

		if (!strstr(got, list))
			fail_msg("%s has no %s", got, list);
		got = exported(formats[i], ALLOWED);
		CHECK_INT(got, 1, strstr(got, "masked") == NULL);
	}
	CHECK_INT("CEF", 1, strstr(exported(EXPORT_CEF, ALLOWED), "Masked") == NULL);
}

static void ecs_types_are_lists(void **state)
{
	static const struct {
		const char *body, *type, *judged;
	} cases[] = {
		{ALLOWED, "creation", "allowed"},   {DENIED, "start", "denied"},
		{READ, "access", "allowed"},        {OUTCOME, "deletion", NULL},
		{SIMPLE("gate_stop"), "end", NULL}, {SIMPLE("policy_load"), "change", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct jv *e = parsed(EXPORT_ECS, cases[i].body);
		const struct jv *types = jv_path(e, "event.type");

		CHECK_INT("list", JV_ARRAY, types->kind);
		CHECK_INT("list", JV_ARRAY, jv_path(e, "event.category")->kind);
		CHECK_INT("list", cases[i].judged ? 2 : 1, types->count);
		CHECK_STR("type", cases[i].type, types->items[0].str.at);
		if (cases[i].judged)
			CHECK_STR("type", cases[i].judged, types->items[1].str.at);
	}
}

static void cef_is_escaped(void **state)
{
	static const struct {
		const char *body, *want;
	} cases[] = {
		{ALLOWED, "|decision.allow|container.create|2|rt="},
		{DENIED, "|decision.deny|exec.start|5|rt="},
		{SIMPLE("log_alarm"), "|log_alarm|Alarm of the audit log|9|rt="},
		{ALLOWED,
		 " externalId=gate.example/host7/42 cat=decision suser=agent-7 suid=1001 "
		 "spid=4711 app=docker dvchost=engine requestMethod=POST request="
		 "/containers/create fname=python:3.12 deviceExternalId=sha256:1b act=allow "
		 "cs1=01900000-0000-7000-8000-00000000000a cs1Label=decisionId cs2=team-a "
		 "cs2Label=owner cs4="},
		{OUTCOME, " outcome=ok in=7 out=88 cn1=41 cn1Label=durMs cn2=201 cn2Label="
			  "httpStatus "},
		{UNANSWERED, " flexString1=i flexString1Label=approvalId"},
		{MASKED, " SallyportMasked=facts.workload.env,req.headers.x-registry-auth"},
		{SET_ASIDE, " flexString2=INC-1 flexString2Label=overrideTicket"},
		{"\"type\":\"read\",\"op\":\"a|b\\\\c\\nd\"", "|a\\|b\\\\c d|"},
		{"\"type\":\"read\",\"text\":\"a=b|c\\\\d\\ne\\rf\"", " msg=a\\=b|c\\\\d\\ne\\rf"},
		{"\"type\":\"read\",\"text\":\"\\u001b[2J\\u2028x\"", " msg=\\\\x1b[2J\\nx"},
		{"\"type\":\"read\",\"text\":\"x act=allow\"", " msg=x act\\=allow"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *got = exported(EXPORT_CEF, cases[i].body);

		if (!strstr(got, cases[i].want))
			fail_msg("%s has no %s", got, cases[i].want);
		CHECK_INT(got, 0, strncmp(got, "CEF:0|Sallyport|Sallyport|", 26));
	}
}

/* The longest record, each byte of which must be escaped, in each form. */
static void long_and_hostile_records(void **state)
{
	static const char *const units[] = {"\\u001b", "\\\"", "\\\\",
					    "=",       "|",    "<script>",
					    "\\u2028", "\\n",  "\xf0\x9f\x92\xa9"};
	static char body[RECORD_LINE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = (size_t)snprintf(body, sizeof(body), "\"type\":\"read\",\"text\":\"");

		while (n + 16 < RECORD_LINE_MAX - 512)
			n += (size_t)snprintf(body + n, sizeof(body) - n, "%s", units[i]);
		snprintf(body + n, sizeof(body) - n, "\"");
		CHECK_INT(units[i], 6003, number(parsed(EXPORT_OCSF, body), "class_uid"));
		CHECK_INT(units[i], 42, number(parsed(EXPORT_ECS, body), "event.sequence"));
		CHECK_INT(units[i], 1, strlen(exported(EXPORT_CEF, body)) > 1000);
	}
}

/* A type that is new must get a row of export_types.def. */
static void every_type_has_a_row(void **state)
{
	char body[128];

	(void)state;
	for (int t = RECORD_NONE + 1; t < RECORD_TYPE_COUNT; t++) {
		struct fields f;

		snprintf(body, sizeof(body), "\"type\":\"%s\",\"id\":\"x\"", record_type_name(t));
		f = record_of(body);
		CHECK_INT(body, t, f.type);
		CHECK_INT(body, 1, export_type_of(&f)->name && export_type_of(&f)->ocsf_class);
		CHECK_INT(body, 1, *exported(EXPORT_CEF, body) && *exported(EXPORT_ECS, body));
	}
}

/* What is nested too deep to be read still is an event, with its number. */
static void what_cannot_be_read_is_still_there(void **state)
{
	char body[512] = "\"type\":\"decision\",\"id\":\"i\",\"verdict\":\"allow\",\"facts\":";

	(void)state;
	for (int i = 0; i < 50; i++)
		strcat(body, "[");
	for (int i = 0; i < 50; i++)
		strcat(body, "]");
	CHECK_INT("number", 42, number(parsed(EXPORT_OCSF, body), "metadata.sequence"));
	CHECK_INT("class", 6003, number(parsed(EXPORT_OCSF, body), "class_uid"));
}

/* Leaves of a log of one segment what stands from that record on, as pruning would. */
static void begin_at(const char *dir, unsigned seq)
{
	char path[FIXTURE_PATH], name[SEGMENT_NAME_MAX], mark[64];
	size_t len;
	char *bytes, *from;

	snprintf(path, sizeof(path), "%s", fixture_path(dir, "00000000000000000000.log"));
	bytes = fixture_read(path, &len);
	snprintf(mark, sizeof(mark), LINE_START "test/log\",\"seq\":%u,", seq);
	from = strstr(bytes, mark);
	assert_non_null(from);
	segment_name(seq, name);
	fixture_write(fixture_path(dir, name), from, len - (size_t)(from - bytes));
	CHECK_INT("removed", 0, unlink(path));
	free(bytes);
}

static uint64_t missed; /* by the last export */

static uint64_t lines_of(const char *dir, const struct export_options *options, struct err *err)
{
	char path[FIXTURE_PATH];
	struct export_result result = {0};
	uint64_t lines = 0;
	size_t len;
	char *bytes;
	int fd;

	snprintf(path, sizeof(path), "%s", fixture_path(dir, "exported"));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (export_log(dir, options, fd, &result, err) < 0)
		result.count = 0;
	close(fd);
	bytes = fixture_read(path, &len);
	for (size_t i = 0; i < len; i++)
		lines += bytes[i] == '\n';
	free(bytes);
	CHECK_INT("lines", result.count, lines);
	missed = result.missed;
	return result.count;
}

static void goes_on_behind_a_number(void **state)
{
	struct export_options o = {.format = EXPORT_CEF};
	struct audit_log_found found;
	struct err err = {0};
	struct open_set set;
	struct audit_log *l;
	char dir[FIXTURE_PATH];
	uint64_t all, last = 0;

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 1000);
	l = fixture_open(dir, 8192, &set, &found);
	for (unsigned n = 0; n < 100; n++) {
		struct record r = fixture_read_record(n);

		last = fixture_append(l, &r).seq;
	}
	audit_log_close(l);
	open_set_fini(&set);
	all = lines_of(dir, &o, &err);
	CHECK_INT("all", last + 1, all);
	o.has_after = true;
	for (o.after = 0; o.after <= last; o.after++)
		CHECK_INT("behind", last - o.after, lines_of(dir, &o, &err));
	CHECK_STR("so far", "", err.msg);
	CHECK_INT("nothing was missed", 0, missed);
	lines_of(dir, &o, &err);
	CHECK_INT("not of this log", ERR_INPUT, err.kind);
	/* As pruning leaves it. */
	begin_at(dir, 50);
	o.after = 2;
	all = lines_of(dir, &o, &err);
	CHECK_INT("the rest", last - 2, all + missed);
	CHECK_INT("missed", 47, missed);
	fixture_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ocsf_classes),
		cmocka_unit_test(ocsf_verdicts),
		cmocka_unit_test(members_have_their_places),
		cmocka_unit_test(what_is_masked_is_told),
		cmocka_unit_test(ecs_types_are_lists),
		cmocka_unit_test(cef_is_escaped),
		cmocka_unit_test(long_and_hostile_records),
		cmocka_unit_test(every_type_has_a_row),
		cmocka_unit_test(what_cannot_be_read_is_still_there),
		cmocka_unit_test(goes_on_behind_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
