/*
 * Memory that ends anywhere within a judgement: of Lua's, each growth in turn, and of the
 * request's, at any size.  It must deny, with a reason, and the next judgement must be as ever.
 */
#include "rules/engine_priv.h"
#include "rules/heap_priv.h"
#include "rules/sandbox_priv.h"
#include "tests/unit/rules/kit.h"

#include <stdio.h>

#define WHOLE ((size_t)1 << 30)

static const char rules[] =
	"return profile \"p\" { isolation = { min = \"kernel\" }, images = { "
	"\"reg.example/team/*\" }, "
	"mounts = { { \"/srv/ws\", \"rw\" } }, networks = { \"agents\" }, operations = { "
	"\"container.run\" }, "
	"rule(\"r\", function(req) local t = {} for m in each(req.workload.mounts) do "
	"table.insert(t, str.format(\"%s of %s\", m.source, req.identity.name)) end "
	"if not regex.match(\"/srv/.*\", t[1]) then deny(\"no\") end end) }";

/* change: merged into a create that is allowed. */
static enum verdict judge(struct engine *eng, const char *change, size_t arena_bytes,
			  struct kit_answer *ret)
{
	struct arena *parsed = arena_create(1 << 20);
	struct jv facts = kit_merged(parsed, kit_create, change);

	*ret = (struct kit_answer){.arena = arena_create(arena_bytes)};
	ret->result = engine_judge(eng, engine_profile(eng, "p"), &facts, ret->arena,
				   &ret->decision, &ret->err);
	arena_destroy(ret->arena);
	arena_destroy(parsed);
	return ret->result < 0 ? VERDICT_DENY : ret->decision.verdict;
}

static void lua_runs_out_of_memory(void **state)
{
	struct engine *eng = kit_open(rules);
	size_t loaded = heap_used(eng->sb->heap), denied = 0, allowed = 0;
	struct kit_answer ans;

	(void)state;
	CHECK_INT("with all of it", VERDICT_ALLOW, judge(eng, "", 1 << 20, &ans));
	for (size_t limit = loaded; allowed < 3; limit += 16) {
		char label[48];

		snprintf(label, sizeof(label), "%zu bytes", limit - loaded);
		heap_set_limit(eng->sb->heap, limit);
		if (judge(eng, "", 1 << 20, &ans) == VERDICT_ALLOW) {
			allowed++;
			continue;
		}
		denied++;
		CHECK_INT(label, REASON_rule_limit, ans.decision.violations.list[0].reason);
		heap_set_limit(eng->sb->heap, WHOLE);
		CHECK_INT(label, VERDICT_ALLOW, judge(eng, "", 1 << 20, &ans));
	}
	CHECK_INT("there was something to run out of", 1, denied > 10);
	engine_close(eng);
}

/* What is said of a denial is made in the request's memory; that there is too little allows
 * nothing. */
static void the_request_runs_out_of_memory(void **state)
{
	static const char *const changes[] = {
		"{\"workload\":{\"privileged\":true}}",
		"{\"workload\":{\"image\":{\"name\":\"evil.example/miner\"}}}",
		"{\"workload\":{\"mounts\":[{\"kind\":\"bind\",\"source\":\"/\",\"given\":\"/"
		"\",\"host\":{\"kind\":\"directory\",\"real\":\"/"
		"\",\"links\":0},\"field\":\"B\"}]}}",
	};
	struct engine *eng = kit_open(rules);
	struct kit_answer ans;

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		for (size_t bytes = 1; bytes < 16384; bytes += bytes < 2048 ? 8 : 256)
			CHECK_INT(changes[i], 1,
				  judge(eng, changes[i], bytes, &ans) != VERDICT_ALLOW);
	CHECK_INT("the next one", VERDICT_ALLOW, judge(eng, "", 1 << 20, &ans));
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lua_runs_out_of_memory),
		cmocka_unit_test(the_request_runs_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
