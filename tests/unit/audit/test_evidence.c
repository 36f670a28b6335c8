/* The pieces of `audit evidence`: its table of controls, queries, and what a tar file says. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/evidence/evidence_priv.h"
#include "audit/evidence/ustar_priv.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void every_control_is_answered(void **state)
{
	static const char *const frameworks[] = {"pci", "soc2", "iso27001"};

	(void)state;
	for (size_t i = 0; i < evidence_control_count; i++) {
		const struct control *c = &evidence_controls[i];

		CHECK_INT(c->id, 1, control_query_valid(c->query));
		CHECK_INT(c->id, 1, *evidence_framework_title(c->framework) != '\0');
		CHECK_INT(c->id, 1, strlen(c->id) <= 40 && strlen(c->answer) > 20 && *c->title);
		for (size_t k = 0; k < i; k++)
			CHECK_INT(c->id, 0,
				  strcmp(c->framework, evidence_controls[k].framework) == 0 &&
					  strcmp(c->id, evidence_controls[k].id) == 0);
	}
	for (size_t i = 0; i < 3; i++) {
		size_t count = 0;

		for (size_t k = 0; k < evidence_control_count; k++)
			count += strcmp(evidence_controls[k].framework, frameworks[i]) == 0;
		CHECK_INT(frameworks[i], 1, count >= 10 && count <= EVIDENCE_CONTROLS);
	}
}

static void queries(void **state)
{
	static const struct {
		const char *query;
		bool valid, matches;
	} cases[] = {
		{"decision", true, true},
		{"read", true, false},
		{"read,decision", true, true},
		{"read | decision", true, true},
		{"read | outcome", true, false},
		{"decision verdict=deny", true, true},
		{"decision verdict=allow", true, false},
		{"decision verdict=deny reason=privileged", true, true},
		{"decision verdict=deny reason=bind", true, false},
		{"decision verdict=allow | decision reason=privileged", true, true},
		{"decision op=container.*", true, true},
		{"decision op=container", true, false},
		{"decision op=image.*", true, false},
		{"decision class=launch", true, true},
		{"decision has=pol", true, true},
		{"decision has=exceptions", true, false},
		{"decision status=ok", true, false},
		{"decision cause=space", true, false},
		{"decison", false, false},
		{"decision,", true, true},
		{"decision reason", false, false},
		{"decision reason=", false, false},
		{"decision colour=red", false, false},
		{"", false, false},
	};
	const char text[] = "{\"type\":\"decision\",\"pol\":{}}";
	struct arena *a = arena_create(65536);
	struct fields f = {.type = RECORD_DECISION,
			   .type_name = "decision",
			   .verdict = "deny",
			   .op = "container.create",
			   .op_class = "launch",
			   .reason = "privileged",
			   .status = "",
			   .cause = ""};
	enum jv_fault fault;
	struct err err = {0};

	(void)state;
	CHECK_INT("parsed", 0, jv_parse(a, span_of(text), &f.tree, &fault, &err));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CHECK_INT(cases[i].query, cases[i].valid, control_query_valid(cases[i].query));
		CHECK_INT(cases[i].query, cases[i].matches, control_matches(cases[i].query, &f));
	}
	arena_destroy(a);
}

static void commands(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 65536);
	control_commands(
		"decision,read verdict=deny | admin op=listener.* | outcome has=attestation "
		"status=ok",
		"A", "B", &out);
	buf_put(&out, "", 1);
	CHECK_STR(
		"commands",
		"sallyport audit query LOG --type decision --verdict deny --since A --until B "
		"--format json\n"
		"sallyport audit query LOG --type read --verdict deny --since A --until B "
		"--format json\n"
		"sallyport audit query LOG --type admin --since A --until B --format json | jq -c "
		"'select((.op//\"\"|startswith(\"listener.\")))'\n"
		"sallyport audit query LOG --type outcome --since A --until B --format json | jq "
		"-c "
		"'select(.attestation and .outcome.status==\"ok\")'\n",
		buf_span(&out).at);
	buf_fini(&out);
}

static void names_that_are_near(void **state)
{
	struct err err = {0};

	(void)state;
	CHECK_INT("pci", 0, evidence_framework("pci", &err));
	CHECK_INT("soc", -1, evidence_framework("soc", &err));
	CHECK_STR("soc", "--for takes pci, soc2 or iso27001, not 'soc' (did you mean 'soc2'?)",
		  err.msg);
}

/* What is too long, or cannot be written, is an error and no archive. */
static void archives(void **state)
{
	char dir[FIXTURE_PATH], long_name[USTAR_NAME_MAX + 2];
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), fd;
	struct err err = {0};
	struct ustar t;
	struct hash h;

	(void)state;
	fixture_dir(dir);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	fd = open(fixture_path(dir, "0.tar"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ustar_open(&t, fd, "top");
	CHECK_INT("too long", -1, ustar_add(&t, long_name, span_of("x"), &err));
	CHECK_INT("longest", 0, ustar_add(&t, long_name + 1, span_of("x"), &err));
	CHECK_INT("not so much", -1, ustar_add_file(&t, "more", fd, 100000, &err));
	CHECK_STR("not so much", "more became shorter while it was read", err.msg);
	ustar_free(&t);
	ustar_open(&t, fd, "top");
	CHECK_INT("empty", 0, ustar_add(&t, "a", span_of(""), &err));
	CHECK_INT("end", 0, ustar_end(&t, "SUMS", &h, &err));
	CHECK_INT("a multiple", 0, (long)(t.bytes % 10240));
	ustar_free(&t);
	ustar_open(&t, full, "top");
	CHECK_INT("a full disk", -1, ustar_end(&t, "SUMS", &h, &err));
	ustar_free(&t);
	close(full);
	close(fd);
	fixture_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_control_is_answered),
		cmocka_unit_test(queries),
		cmocka_unit_test(commands),
		cmocka_unit_test(names_that_are_near),
		cmocka_unit_test(archives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
