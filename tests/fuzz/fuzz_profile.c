/*
 * Profiles: loaded, or refused with file and line, whatever the file does; and what loads judges
 * the same request twice in the same way, since nothing of a judgement stays behind.
 */
#include "tests/fuzz/fuzz.h"

#include "rules/engine.h"

static const struct engine_limits limits = {
	.instructions = 100000, .time_ms = 500, .memory_kib = 4096};

static const char create[] = "{\"operation\":{\"name\":\"container.create\",\"class\":\"launch\","
			     "\"group\":\"container.run\"},"
			     "\"identity\":{\"name\":\"ann\",\"owner\":\"ann\",\"uid\":1000},"
			     "\"backend\":\"e\",\"now\":1767225600,"
			     "\"workload\":{\"privileged\":true,\"image\":{\"name\":\"a.b/"
			     "c\",\"tag\":\"1\"},\"mounts\":[]}}";

/* One line of printable text. */
static bool is_clean(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return true;
}

static enum verdict judge(struct engine *eng, const struct profile *p, struct arena *a)
{
	struct jv facts = jv_null();
	struct decision d = {0};
	enum jv_fault fault;
	struct err err = {0};

	HOLDS(jv_parse(a, span_of(create), &facts, &fault, &err) == 0);
	if (engine_judge(eng, p, &facts, a, &d, &err) < 0)
		return VERDICT_DENY;
	/* What is not granted is not allowed, whatever the rules say. */
	HOLDS(d.verdict != VERDICT_ALLOW || profile_grant(p, OP_CONTAINER_CREATE) != GRANT_NONE);
	return d.verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct rule_source source = {"f.lua", fuzz_text(a, data, size)};
	struct err err = {0};
	struct engine *eng;
	const struct profile *p;

	jv_init();
	eng = engine_open(&source, 1, &limits, &err);
	if (!eng)
		HOLDS(err.kind != ERR_NONE && *err.msg && is_clean(err.msg));
	for (size_t i = 0; eng && (p = engine_profile_at(eng, i)); i++)
		HOLDS(judge(eng, p, a) == judge(eng, p, a));
	engine_close(eng);
	arena_destroy(a);
	return 0;
}
