/*
 * Facts: whatever they are, what is allowed is what the profile grants, and the same facts get the
 * same answer.
 */
#include "tests/fuzz/fuzz.h"

#include "rules/engine.h"

#include <string.h>

static const char profiles[] =
	"return profile \"p\" { isolation = { min = \"kernel\" }, images = { "
	"\"reg.example/team/*\" }, "
	"mounts = { { \"/srv/ws\", \"rw\" } }, networks = { \"agents\" }, limits = { memory = "
	"\"2GiB\" }, "
	"operations = { \"read\", \"container.run\", \"exec\", \"image.pull\", \"volume.use\", "
	"\"network.use\", \"image.build\" } }";

static struct engine *open_once(void)
{
	static struct engine *eng;
	static const struct rule_source source = {"p.lua", {profiles, sizeof(profiles) - 1}};
	struct err err = {0};

	if (!eng) {
		jv_init();
		eng = engine_open(&source, 1, &engine_default_limits, &err);
	}
	HOLDS(eng != NULL);
	return eng;
}

static bool is_text(const struct jv *v, const char *text)
{
	return v && v->kind == JV_STRING && span_is(v->str, text);
}

/* What the profile "p" must never let pass; facts that are not there are not fine. */
static void check_allowed(const struct jv *facts)
{
	const struct jv *op = jv_get(jv_get(facts, "operation"), "name");
	const struct jv *w = jv_get(facts, "workload");
	const struct jv *privileged = jv_get(w, "privileged");
	const struct jv *level = jv_get(jv_get(w, "isolation"), "level");
	const struct jv *image = jv_get(jv_get(w, "image"), "name");

	if (!is_text(op, "container.create"))
		return;
	HOLDS(privileged && privileged->kind == JV_BOOL && !privileged->b);
	HOLDS(is_text(level, "kernel") || is_text(level, "vm"));
	HOLDS(image && image->kind == JV_STRING && span_starts(image->str, "reg.example/team/"));
}

static enum verdict judge(const struct jv *facts, struct arena *a)
{
	struct engine *eng = open_once();
	struct decision d = {0};
	struct err err = {0};

	if (engine_judge(eng, engine_profile(eng, "p"), facts, a, &d, &err) < 0)
		return VERDICT_DENY;
	if (d.verdict == VERDICT_ALLOW)
		check_allowed(facts);
	return d.verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct jv facts = jv_null();
	enum jv_fault fault;
	struct err err = {0};

	open_once();
	if (jv_parse(a, fuzz_text(a, data, size), &facts, &fault, &err) == 0 &&
	    facts.kind == JV_OBJECT)
		HOLDS(judge(&facts, a) == judge(&facts, a));
	arena_destroy(a);
	return 0;
}
