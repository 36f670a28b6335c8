/* Values that can be erased, although the log that commits to them cannot be changed. */
#include "audit/auditor_priv.h"
#include "audit/export.h"
#include "audit/requests.h"
#include "gate/base/clock.h"
#include "tests/unit/audit/running.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADDRESS "203.0.113.77"
#define OTHER   "198.51.100.4"
#define SUBJECT "CN=al\"ice,O=\xc3\xa4x"
#define EMAIL   "alice@example.org"
#define PRINT   "5f1d0b6e3c9a4872e1d6b7a0c4f3928e7d5c6b1a0f9e8d7c6b5a49382716f5e4"
#define SPKI    "0c9b8a79685746352413f2e1d0cfbead9c8b7a69584736251403f2e1d0cfbead"

#define FACTS                                                                                      \
	"{\"operation\":{\"name\":\"container.create\"},\"identity\":{\"name\":\"agent-7\","       \
	"\"address\":\"%s\",\"cert\":{\"sha256\":\"" PRINT "\",\"spki\":\"" SPKI                   \
	"\",\"subject\":\"CN=al\\\"ice,O=\xc3\xa4x\","                                             \
	"\"emails\":[\"" EMAIL "\",\"b@example.org\"]}},\"workload\":{\"dns\":[\"192.0.2.53\"]}}"

static void begin(struct gate *g)
{
	gate_init(g);
	g->more.erasable = erasable_word("address") | erasable_word("certificate");
}

static void decide(struct audit_client *c, unsigned n, const char *identity, const char *address)
{
	struct record r = fixture_decision(n, "deny");
	struct asked asked = {.calls = 0};
	char text[1024];

	snprintf(text, sizeof(text), FACTS, address);
	r.identity = identity;
	r.auth_method = "cert";
	r.address = address;
	r.cert_subject = SUBJECT;
	r.cert_sha256 = PRINT;
	r.facts = span_of(text);
	CHECK_INT("asked", 0, audit_require(c, &r, worker_answered, &asked));
	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !asked.calls;) {
		worker_turn(c, 10);
		CHECK_INT("answered in time", 1, clock_boot_ms() < end);
	}
	CHECK_INT("granted", 1, asked.granted);
}

/* As a collector gets it. */
static char *exported(const struct gate *g)
{
	const struct export_options options = {.format = EXPORT_OCSF};
	struct export_result result = {.count = 0};
	char path[FIXTURE_PATH + 16], *text;
	struct err err = {0};
	size_t len;
	int fd;

	snprintf(path, sizeof(path), "%s-export", g->dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (export_log(g->dir, &options, fd, &result, &err) < 0)
		fail_msg("export: %s", err.msg);
	close(fd);
	text = fixture_read(path, &len);
	unlink(path);
	return text;
}

static int shows(const struct gate *g, const char *what)
{
	char *text = exported(g);
	int count = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		count++;
	free(text);
	return count;
}

/* The bytes of all that lies beside the log. */
static bool is_kept(const struct gate *g, const char *what)
{
	size_t len;
	char *text = fixture_read(fixture_path(g->dir, "erasable/00000000000000000000"), &len);
	bool found = memmem(text, len, what, strlen(what)) != NULL;

	free(text);
	return found;
}

static void erase(const struct gate *g, const char *ticket, const char *identity, int64_t before)
{
	struct err err = {0};

	if (log_erase(g->dir, ticket, identity, before, &err) < 0)
		fail_msg("erase: %s", err.msg);
}

static void values_are_shown_until_they_are_erased(void **state)
{
	struct audit_client *c;
	struct gate g;

	(void)state;
	begin(&g);
	gate_start(&g);
	c = worker_start(&g);
	decide(c, 1, "agent-7", ADDRESS);
	decide(c, 2, "agent-8", OTHER);
	CHECK_INT("not in the log", 0, gate_log_count(&g, ADDRESS));
	CHECK_INT("nor the certificate", 0, gate_log_count(&g, "al\\\"ice"));
	CHECK_INT("nor a list", 0, gate_log_count(&g, EMAIL));
	CHECK_INT("nor the hash, which names it", 0, gate_log_count(&g, PRINT));
	CHECK_INT("nor that of the key", 0, gate_log_count(&g, SPKI));
	CHECK_INT("what is not of the identity is", 2, gate_log_count(&g, "192.0.2.53"));
	CHECK_INT("a commitment", 2, gate_log_count(&g, "\"addr\":\"c:"));
	CHECK_INT("it says so", 2, gate_log_count(&g, ",\"erasable\":true,\"prev\""));
	CHECK_INT("shown", 1, shows(&g, "\"ip\":\"" ADDRESS "\""));
	CHECK_INT("of each its own", 1, shows(&g, "\"ip\":\"" OTHER "\""));
	erase(&g, "GDPR-17", "agent-7", 0);
	gate_until_log_says(&g, 1, "\"cause\":\"done\"");
	CHECK_INT("on record first", 1, gate_log_count(&g, "\"cause\":\"asked\""));
	CHECK_INT("how many", 1,
		  gate_log_count(&g, "\"text\":\"ticket GDPR-17: values that records "
				     "commit to were erased\",\"count\":9,"));
	CHECK_INT("gone", 0, shows(&g, ADDRESS));
	CHECK_INT("a commitment is no address", 0, shows(&g, "\"ip\":\"c:"));
	CHECK_INT("from the disk", 0, is_kept(&g, ADDRESS));
	CHECK_INT("the other is there", 1, shows(&g, "\"ip\":\"" OTHER "\""));
	decide(c, 3, "agent-7", ADDRESS);
	CHECK_INT("what comes later is kept", 1, shows(&g, "\"ip\":\"" ADDRESS "\""));
	erase(&g, "OLD-1", "", (int64_t)(clock_unix_ns() / 1000000000) + 3600);
	gate_until_log_says(&g, 2, "\"cause\":\"done\"");
	CHECK_INT("by age", 0, shows(&g, ADDRESS) + shows(&g, OTHER));
	CHECK_INT("of everybody", 2,
		  gate_log_count(&g, "\"res\":[{\"type\":\"identity\",\"name\":\"*\"}]"));
	audit_client_destroy(c);
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(&g));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* Who asked, as where from: shown until it is erased, and not named by the record of that. */
static void identities_are_values_too(void **state)
{
	struct audit_client *c;
	struct gate g;

	(void)state;
	begin(&g);
	g.more.erasable |= erasable_word("identity");
	gate_start(&g);
	c = worker_start(&g);
	decide(c, 1, "agent-7", ADDRESS);
	decide(c, 2, "agent-8", OTHER);
	CHECK_INT("no identity", 0, gate_log_count(&g, "agent-"));
	CHECK_INT("nor owner", 0, gate_log_count(&g, "\"owner\":\"team\""));
	CHECK_INT("commitments", 2, gate_log_count(&g, "\"actor\":{\"identity\":\"c:"));
	CHECK_INT("in facts", 2, gate_log_count(&g, "\"identity\":{\"name\":\"c:"));
	CHECK_INT("the address as before", 2, gate_log_count(&g, "\"addr\":\"c:"));
	CHECK_INT("shown", 1, shows(&g, "agent-7") > 0);
	erase(&g, "GDPR-20", "agent-7", 0);
	gate_until_log_says(&g, 1, "\"cause\":\"done\"");
	CHECK_INT("gone", 0, shows(&g, "agent-7"));
	CHECK_INT("also from what tells of it", 0, gate_log_count(&g, "agent-7"));
	CHECK_INT("and from the disk", 0, is_kept(&g, "\"identity\":\"agent-7\""));
	CHECK_INT("the other is there", 1, shows(&g, "agent-8") > 0);
	audit_client_destroy(c);
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(&g));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* A value that was exchanged aside is not what was committed to. */
static void a_value_that_was_exchanged_is_not_shown(void **state)
{
	struct audit_client *c;
	struct gate g;
	size_t len;
	char *text, *at;

	(void)state;
	begin(&g);
	gate_start(&g);
	c = worker_start(&g);
	decide(c, 1, "agent-7", ADDRESS);
	audit_client_destroy(c);
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(&g));
	text = fixture_read(fixture_path(g.dir, "erasable/00000000000000000000"), &len);
	at = strstr(text, ADDRESS);
	CHECK_INT("it is there", 1, at != NULL);
	memcpy(at, "203.0.113.78", sizeof("203.0.113.78") - 1);
	fixture_write(fixture_path(g.dir, "erasable/00000000000000000000"), text, len);
	free(text);
	CHECK_INT("not shown", 0, shows(&g, "203.0.113.7"));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* What a record is too long for is neither in it nor kept. */
static void bodies_keep_their_form(void **state)
{
	static const char *const same[] = {
		"\"type\":\"gate_stop\"",
		"\"type\":\"read\",\"actor\":{\"identity\":\"a\",\"auth\":{\"method\":\"token\"}}",
		"\"type\":\"read\",\"text\":\"\\\"auth\\\":{\\\"addr\\\":\\\"1.2.3.4\\\"}\"",
	};
	struct record long_one = fixture_decision(1, "deny");
	struct err err = {0};
	struct erasable e;
	struct span got;
	struct buf body;
	char dir[FIXTURE_PATH], *list;
	size_t at = 0;

	(void)state;
	fixture_dir(dir);
	CHECK_INT("open", 0,
		  erasable_open(&e, open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				erasable_word("address") | erasable_word("certificate"), &err));
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		got = erasable_take(&e, span_of(same[i]));
		CHECK_INT(same[i], 1, span_is(got, same[i]));
	}
	list = calloc(1, 70000);
	at += (size_t)sprintf(list, "{\"identity\":{\"emails\":[");
	for (int i = 0; i < 4000; i++)
		at += (size_t)sprintf(list + at, "%s\"a%d@b.cd\"", i ? "," : "", i);
	sprintf(list + at, "]}}");
	long_one.facts = span_of(list);
	buf_init(&body, RECORD_BODY_MAX);
	record_write(&body, &long_one);
	got = erasable_take(&e, buf_span(&body));
	CHECK_INT("it fits", 1, got.len > 0 && got.len <= buf_len(&body));
	CHECK_INT("and is a record", 1, record_valid(got));
	CHECK_INT("without them", 1, memmem(got.at, got.len, "@b.cd", 5) == NULL);
	buf_fini(&body);
	free(list);
	erasable_close(&e);
	fixture_remove(dir);
}

/* What the gate would not take is refused at once, not left to be dropped. */
static void words_are_bounded(void **state)
{
	static const char longest[] =
		"12345678901234567890123456789012345678901234567890123456789012345678901234567890";
	char longer[sizeof(longest) + 1];
	struct audit_client *c;
	struct err err = {0};
	struct gate g;

	(void)state;
	snprintf(longer, sizeof(longer), "%s1", longest);
	begin(&g);
	gate_start(&g);
	c = worker_start(&g);
	decide(c, 1, "agent-7", ADDRESS);
	CHECK_INT("ticket", -1, log_erase(g.dir, longer, "a", 0, &err));
	CHECK_INT("of the asker", ERR_INPUT, err.kind);
	CHECK_INT("identity", -1, log_erase(g.dir, "T", longer, 0, &err));
	CHECK_INT("no ticket", -1, log_erase(g.dir, "", "a", 0, &err));
	CHECK_INT("a quote", -1, log_erase(g.dir, "a\"b", "a", 0, &err));
	erase(&g, longest, longest, 4102444800);
	gate_until_log_says(&g, 1, "\"cause\":\"done\"");
	CHECK_INT("whole, of both records", 4, gate_log_count(&g, longest));
	audit_client_destroy(c);
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(&g));
	fixture_remove(g.dir);
}

/* One that was not ended, by a crash or a stop, is on record as failed; nothing of it stays. */
static void what_was_not_ended_is_on_record(void **state)
{
	static const char asked[] = "erase values\nGDPR-18\nagent-7\n0\n";
	struct audit_client *c;
	struct gate g;

	(void)state;
	begin(&g);
	gate_start(&g);
	c = worker_start(&g);
	decide(c, 1, "agent-7", ADDRESS);
	gate_kill(&g);
	audit_client_destroy(c);
	/* As it is left in the middle of a file. */
	fixture_write(fixture_path(g.dir, "erasable/going"), asked, sizeof(asked) - 1);
	fixture_write(fixture_path(g.dir, "erasable/00000000000000000000.tmp"), ADDRESS, 5);
	gate_start(&g);
	c = worker_start(&g);
	gate_until_log_says(&g, 1, "\"cause\":\"failed\"");
	CHECK_INT("whose", 1, gate_log_count(&g, "ticket GDPR-18: the gate ended before"));
	CHECK_INT("no copy", -1,
		  access(fixture_path(g.dir, "erasable/00000000000000000000.tmp"), F_OK));
	CHECK_INT("told once", -1, access(fixture_path(g.dir, "erasable/going"), F_OK));
	erase(&g, "GDPR-19", "agent-7", 0);
	gate_until_log_says(&g, 1, "\"cause\":\"asked\"");
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(&g));
	audit_client_destroy(c);
	CHECK_INT("each has an end", 2,
		  gate_log_count(&g, "\"cause\":\"failed\"") +
			  gate_log_count(&g, "\"cause\":\"done\""));
	CHECK_INT("and nothing is left", -1, access(fixture_path(g.dir, "erasable/going"), F_OK));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* Whoever leaves the request: neither whose nor of when would be all there is. */
static void everything_at_once_is_refused(void **state)
{
	struct audit_client *c;
	struct gate g;

	(void)state;
	begin(&g);
	gate_start(&g);
	c = worker_start(&g);
	decide(c, 1, "agent-7", ADDRESS);
	erase(&g, "ALL-1", "", 0);
	gate_until_log_says(&g, 1, "neither an identity nor a time was given");
	CHECK_INT("refused", 1, gate_log_count(&g, "\"cause\":\"refused\""));
	CHECK_INT("still there", 1, shows(&g, "\"ip\":\"" ADDRESS "\""));
	audit_client_destroy(c);
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(&g));
	fixture_remove(g.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_shown_until_they_are_erased),
		cmocka_unit_test(a_value_that_was_exchanged_is_not_shown),
		cmocka_unit_test(words_are_bounded),
		cmocka_unit_test(identities_are_values_too),
		cmocka_unit_test(what_was_not_ended_is_on_record),
		cmocka_unit_test(everything_at_once_is_refused),
		cmocka_unit_test(bodies_keep_their_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
