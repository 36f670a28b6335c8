/*
 * What must hold for any profiles and any facts, tried with random ones:
 *
 *	a rule more never turns a denial into an allow;
 *	a profile that extends another never allows what that one denies.
 *
 * SALLYPORT_PAIRS says how many pairs are tried (10,000; under sanitizers and with clang 1,000),
 *SALLYPORT_SEED where the random numbers begin; a failure prints both profiles and the facts.
 */
#include "tests/unit/rules/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
#define PAIRS 1000
#else
#define PAIRS 10000
#endif
#define FACTS_PER_PAIR 4

/* --- random numbers that come again --- */

static uint64_t state_of_random;

static unsigned below(unsigned n)
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	state_of_random ^= state_of_random << 17;
	return (unsigned)(state_of_random >> 33) % n;
}

/* --- profiles --- */

#define VALUES_MAX 8

/* The values of one setting, from what grants much to what grants little. */
static const struct pool {
	const char *setting;
	const char *values[VALUES_MAX];
} pools[] = {
	{"isolation", {"{}", "{ min = \"process\" }", "{ min = \"kernel\" }", "{ min = \"vm\" }"}},
	{"images",
	 {"{ \"**\" }", "{ \"reg.example/**\", \"alpine\" }", "{ \"reg.example/team/*\" }",
	  "{ \"reg.example/team/app:1\" }", "{}"}},
	{"local_images", {"{ \"**\" }", "{ \"reg.example/team/*\" }", "{}"}},
	{"own_images", {"true", "false"}},
	{"pin", {"false", "true"}},
	{"mounts",
	 {"{ { \"/srv\", \"rw\" }, { \"/etc\", \"ro\" } }", "{ { \"/srv/ws\", \"rw\" } }",
	  "{ { \"/srv/ws/{identity.name}\", \"rw\" } }",
	  "{ { \"/srv/ws/{identity.name}\", \"ro\" } }", "{}"}},
	{"movable_mounts", {"true", "false"}},
	{"networks", {"{ \"*\" }", "{ \"agents\", \"default\" }", "{ \"agents\" }", "{}"}},
	{"ports", {"{ \"*\" }", "{ \"127.0.0.1\" }", "{}"}},
	{"capabilities", {"{ \"CHOWN\", \"NET_ADMIN\" }", "{ \"CHOWN\" }", "{}"}},
	{"users", {"\"any\"", "\"nonroot\""}},
	{"host_tools", {"\"bare\"", "\"confined\"", "\"none\""}},
	{"limits",
	 {"nil", "{ memory = \"8GiB\", pids = 4096 }", "{ memory = \"1GiB\", pids = 256 }",
	  "{ memory = \"64MiB\" }"}},
	{"restart", {"{ \"always\", \"on-failure\" }", "{ \"on-failure\" }", "{}"}},
	{"healthchecks", {"true", "false"}},
	{"labels", {"{ \"**\" }", "{ \"team.**\" }", "{}"}},
	{"log_drivers", {"nil", "{ \"local\" }"}},
	{"operations",
	 {"{ \"read\", \"launch\", \"lifecycle\", \"exec\", \"data-out\" }",
	  "{ \"read\", \"container.run\", \"exec\" }", "{ \"container.list\", \"container.run\" }",
	  "{ \"container.create\", \"container.start\" }", "{ \"container.create\" }"}},
	{"mode", {"\"shadow\"", "\"warn\"", "\"enforce\""}},
	{"modes", {"{ image = \"shadow\", user = \"warn\" }", "{ image = \"warn\" }", "{}"}},
	{"harden", {"nil", "true"}},
};
#define POOLS (sizeof(pools) / sizeof(*pools))

static int count_of(const struct pool *p)
{
	int n = 0;

	while (n < VALUES_MAX && p->values[n])
		n++;
	return n;
}

/*
 * Settings as Lua.  at: which value of each pool, or -1 for none; a child's are at or behind its
 * parent's, so that most of them load, and now and then before it, so that what must not load is
 * tried as well.
 */
static void settings(char *out, size_t size, const int *parent, int *at)
{
	size_t len = 0;

	out[0] = 0;
	for (size_t i = 0; i < POOLS; i++) {
		int n = count_of(&pools[i]),
		    first = parent && parent[i] > 0 && below(40) ? parent[i] : 0;

		at[i] = below(3) ? first + (int)below((unsigned)(n - first)) : -1;
		/* What a parent does not say grants nothing; most children then say nothing,
		 * either. */
		if (parent && parent[i] < 0 && below(8))
			at[i] = -1;
		if (at[i] >= 0)
			len += (size_t)snprintf(out + len, size - len, "%s = %s, ",
						pools[i].setting, pools[i].values[at[i]]);
	}
}

/* --- facts --- */

static const char *const operations[] = {
	"\"container.create\",\"class\":\"launch\",\"group\":\"container.run\"",
	"\"container.start\",\"class\":\"lifecycle\",\"group\":\"container.run\"",
	"\"container.restart\",\"class\":\"lifecycle\",\"group\":\"container.run\"",
	"\"container.list\",\"class\":\"read\",\"group\":\"\"",
};

/* Members of a workload that differ from what kit_create has. */
static const char *const changes[] = {
	"\"privileged\":true",
	"\"capabilities\":{\"add\":[{\"name\":\"CHOWN\",\"field\":\"C\"}]}",
	"\"capabilities\":{\"add\":[{\"name\":\"SYS_ADMIN\",\"field\":\"C\"}]}",
	"\"user\":{\"given\":\"0\",\"effective\":\"0\",\"root\":true}",
	"\"user\":{\"given\":\"x\",\"effective\":\"x\",\"root\":null}",
	"\"image\":{\"name\":\"docker.io/library/alpine\",\"digests\":[\"docker.io/library/"
	"alpine@sha256:bb\"]}",
	"\"image\":{\"name\":\"evil.example/miner\",\"digests\":[\"evil.example/"
	"miner@sha256:bb\"]}",
	"\"image\":{\"digests\":[]}",
	"\"image\":{\"tag\":\"2\"}",
	"\"image\":{\"mine\":true,\"digests\":[]}",
	"\"isolation\":{\"level\":\"process\",\"base\":\"process\",\"runtime\":\"runc\"}",
	"\"isolation\":{\"level\":\"none\"}",
	"\"mounts\":[]",
	"\"mounts\":[{\"kind\":\"bind\",\"source\":\"/etc\",\"given\":\"/etc\",\"target\":\"/"
	"e\",\"read_only\":true,\"options\":[],\"host\":{\"kind\":\"directory\",\"real\":\"/"
	"etc\",\"links\":0},\"field\":\"B\"}]",
	"\"mounts\":[{\"kind\":\"bind\",\"source\":\"/srv/ws/ann\",\"given\":\"/srv/ws/"
	"ann\",\"target\":\"/"
	"e\",\"read_only\":true,\"options\":[],\"host\":{\"kind\":\"directory\",\"real\":\"/srv/ws/"
	"ann\",\"links\":0,\"movable\":true},\"field\":\"B\"}]",
	"\"mounts\":[{\"kind\":\"bind\",\"source\":\"/\",\"given\":\"/\",\"target\":\"/"
	"e\",\"read_only\":false,\"options\":[],\"host\":{\"kind\":\"directory\",\"real\":\"/"
	"\",\"links\":0},\"field\":\"B\"}]",
	"\"network\":{\"mode\":\"none\",\"endpoints\":[]}",
	"\"network\":{\"mode\":\"host\",\"endpoints\":[]}",
	"\"network\":{\"mode\":\"default\",\"endpoints\":[]}",
	"\"network\":{\"ports\":[{\"port\":\"80/"
	"tcp\",\"address\":\"\",\"host_port\":\"80\",\"field\":\"P\"}]}",
	"\"network\":{\"ports\":[{\"port\":\"80/"
	"tcp\",\"address\":\"127.0.0.1\",\"host_port\":\"80\",\"field\":\"P\"}]}",
	"\"limits\":{\"memory\":134217728,\"pids\":16}",
	"\"limits\":{\"memory\":17179869184,\"pids\":16}",
	"\"limits\":{\"memory\":null}",
	"\"restart\":\"always\"",
	"\"restart\":\"on-failure\"",
	"\"labels\":[{\"name\":\"team.a\",\"field\":\"L\"}]",
	"\"labels\":[{\"name\":\"traefik.enable\",\"field\":\"L\"}]",
	"\"command\":{\"healthcheck\":true}",
	"\"log\":{\"driver\":\"syslog\"}",
	"\"security\":[{\"name\":\"seccomp\",\"value\":\"unconfined\",\"field\":\"S\"}]",
	"\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"D\"}]",
	"\"sysctls\":[{\"name\":\"kernel.x\",\"field\":\"S\"}]",
	"\"namespaces\":[{\"name\":\"pid\",\"mode\":\"host\",\"field\":\"N\"}]",
};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* An operation, and up to three changes; that one of them may come twice does no harm. */
static void random_change(char *out, size_t size)
{
	size_t len = (size_t)snprintf(out, size, "{\"operation\":{\"name\":%s},\"workload\":{",
				      operations[below(COUNT(operations))]);
	unsigned first = below(COUNT(changes)), n = below(3);

	for (unsigned i = 0; i < n; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s", i ? "," : "",
					changes[(first + i * 7) % COUNT(changes)]);
	snprintf(out + len, size - len, "}}");
}

static bool allows(struct engine *eng, const char *profile, const char *change)
{
	struct kit_answer ans;
	bool allowed;

	kit_judge(eng, profile, kit_create, change, &ans);
	allowed = ans.result == 0 && ans.decision.verdict == VERDICT_ALLOW;
	kit_drop(&ans);
	return allowed;
}

/* --- the properties --- */

static const char *const objections[] = {
	"deny(\"no\")",
	"if req.workload and get(req.workload, \"privileged\") then deny(\"no\") end",
	"ask(\"may it?\")",
	"warn(\"hm\")",
	"error(\"trouble\")",
	"if get(req, \"workload.restart\") == \"always\" then deny(\"no\") end",
};

struct tally {
	unsigned loaded, allowed, denied, narrowed;
};

static void check_one(struct engine *eng, unsigned i, const char *pair, struct tally *t)
{
	char change[2048], parent[16], child[16], more[16];
	bool allowed, by_child, by_more;

	snprintf(parent, sizeof(parent), "parent%u", i);
	snprintf(child, sizeof(child), "child%u", i);
	snprintf(more, sizeof(more), "more%u", i);
	random_change(change, sizeof(change));
	allowed = allows(eng, parent, change);
	by_child = allows(eng, child, change);
	by_more = allows(eng, more, change);
	if ((by_child || by_more) && !allowed) {
		print_error("%s allows what the parent denies:\n%s\nfacts: %s\n",
			    by_child ? "the child" : "a rule more", pair, change);
		fail();
	}
	t->allowed += allowed;
	t->denied += !allowed;
	t->narrowed += allowed && !by_child;
}

static void make_pair(char *out, size_t size, unsigned i)
{
	static char parent[4096], child[4096];
	int of_parent[POOLS], of_child[POOLS];

	settings(parent, sizeof(parent), NULL, of_parent);
	settings(child, sizeof(child), of_parent, of_child);
	snprintf(out, size,
		 "profile \"parent%u\" { %s },\nprofile \"child%u\" { extends = \"parent%u\", %s "
		 "},\n"
		 "profile \"more%u\" { %s rule(\"r%u\", { operations = { \"read\", \"launch\", "
		 "\"lifecycle\" } }, function(req) %s end) },\n",
		 i, parent, i, i, child, i, parent, i, objections[below(COUNT(objections))]);
}

/* Pairs share an engine, since loading the standard checks takes longer than judging. */
#define BATCH 8

struct batch {
	char pairs[BATCH][16384];
	bool loads[BATCH];
	char text[BATCH * 16384];
};

static struct engine *open_batch(struct batch *b, struct err *err)
{
	static const struct engine_limits limits = {
		.instructions = 1000000, .time_ms = 1000, .memory_kib = 65536};
	struct rule_source source;
	size_t len = (size_t)snprintf(b->text, sizeof(b->text), "return {\n");

	for (unsigned i = 0; i < BATCH; i++)
		if (b->loads[i])
			len += (size_t)snprintf(b->text + len, sizeof(b->text) - len, "%s",
						b->pairs[i]);
	snprintf(b->text + len, sizeof(b->text) - len, "}");
	source = (struct rule_source){"pairs.lua", span_of(b->text)};
	return engine_open(&source, 1, &limits, err);
}

/* A child that would grant more does not load, and is taken out. */
static struct engine *open_those_that_load(struct batch *b)
{
	for (int tries = 0; tries <= BATCH; tries++) {
		struct err err = {0};
		struct engine *eng = open_batch(b, &err);
		const char *who = eng ? NULL : strstr(err.msg, "\"child");

		if (eng)
			return eng;
		if (!who || atoi(who + 6) >= BATCH) {
			print_error("%s\n", err.msg);
			fail();
		}
		b->loads[atoi(who + 6)] = false;
	}
	return NULL;
}

static void check_batch(struct batch *b, struct tally *t)
{
	struct engine *eng;

	for (unsigned i = 0; i < BATCH; i++) {
		b->loads[i] = true;
		make_pair(b->pairs[i], sizeof(b->pairs[i]), i);
	}
	eng = open_those_that_load(b);
	for (unsigned i = 0; i < BATCH; i++)
		for (int k = 0; b->loads[i] && k < FACTS_PER_PAIR; k++)
			check_one(eng, i, b->pairs[i], t);
	for (unsigned i = 0; i < BATCH; i++)
		t->loaded += b->loads[i];
	engine_close(eng);
}

static void random_profiles_only_tighten(void **state)
{
	const char *pairs = getenv("SALLYPORT_PAIRS"), *seed = getenv("SALLYPORT_SEED");
	unsigned n = pairs ? (unsigned)atoi(pairs) : PAIRS;
	struct batch *b = malloc(sizeof(*b));
	struct tally t = {0};

	(void)state;
	state_of_random = 0x9e3779b97f4a7c15u ^ (seed ? strtoull(seed, NULL, 10) : 1);
	assert_non_null(b);
	while (t.loaded < n)
		check_batch(b, &t);
	free(b);
	print_message(
		"%u pairs; of %u requests the parent allowed %u, of which the child denied %u\n",
		t.loaded, t.allowed + t.denied, t.allowed, t.narrowed);
	/* Otherwise nothing was tried. */
	CHECK_INT("allowed often enough", 1, t.allowed > n / 10);
	CHECK_INT("denied often enough", 1, t.denied > n / 10);
	CHECK_INT("children that deny more", 1, t.narrowed > n / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_profiles_only_tighten)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
