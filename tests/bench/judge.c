/*
 * judge.c - what a decision alone costs: parsed facts in, verdict out, state restored.
 *
 *	judge PROFILES FACTS PROFILE ROUNDS
 *
 * prints the median and the 99th percentile in nanoseconds of processor time, how long the profiles
 * took to load, and the verdict, as one JSON object.
 */
#include "gate/base/arena.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "rules/engine.h"

#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX ((size_t)4 << 20)
#define WARM_UP  200

static const struct engine_limits limits = {
	.instructions = 10000000, .time_ms = 1000, .memory_kib = 262144};

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int fail(const struct err *err)
{
	fprintf(stderr, "%s\n", err->msg);
	return 2;
}

/* What stands for a profile that judges in Lua, and for one that is asked before any fact is known.
 */
static enum verdict once(struct engine *eng, const struct profile *p, const struct jv *facts,
			 enum operation op, struct arena *a)
{
	static struct decision d; /* large; judging fills it anew */
	struct err err = {0};

	d = (struct decision){0};
	if (profile_grant(p, op) == GRANT_PLAIN)
		return VERDICT_ALLOW;
	return engine_judge(eng, p, facts, a, &d, &err) < 0 ? VERDICT_DENY : d.verdict;
}

static void measure(struct engine *eng, const struct profile *p, const struct jv *facts,
		    size_t rounds, uint64_t load_ns)
{
	uint64_t *took = calloc(rounds, sizeof(*took));
	enum operation op = operation_find(span_of(jv_str(jv_get(facts, "operation"), "name", "")));
	enum verdict verdict = VERDICT_DENY;

	for (size_t i = 0; took && i < rounds + WARM_UP; i++) {
		struct arena *a = arena_create(1 << 20);
		uint64_t began = clock_thread_ns();

		verdict = once(eng, p, facts, op, a);
		if (i >= WARM_UP)
			took[i - WARM_UP] = clock_thread_ns() - began;
		arena_destroy(a);
	}
	if (!took)
		return;
	qsort(took, rounds, sizeof(*took), by_size);
	printf("{\"verdict\":\"%s\",\"p50_ns\":%llu,\"p99_ns\":%llu,\"load_ns\":%llu}\n",
	       verdict_name(verdict), (unsigned long long)took[rounds / 2],
	       (unsigned long long)took[rounds * 99 / 100], (unsigned long long)load_ns);
	free(took);
}

int main(int argc, char **argv)
{
	struct arena *a = arena_create(16 << 20);
	struct buf profiles, text;
	struct err err = {0};
	enum jv_fault fault;
	struct rule_source source;
	struct engine *eng;
	struct jv facts;
	uint64_t began;

	jv_init();
	if (argc != 5) {
		fputs("judge PROFILES FACTS PROFILE ROUNDS\n", stderr);
		return 2;
	}
	if (io_read_file(argv[1], FILE_MAX, &profiles, &err) < 0 ||
	    io_read_file(argv[2], FILE_MAX, &text, &err) < 0 ||
	    jv_parse(a, buf_span(&text), &facts, &fault, &err) < 0)
		return fail(&err);
	source = (struct rule_source){"profiles.lua", buf_span(&profiles)};
	began = clock_thread_ns();
	eng = engine_open(&source, 1, &limits, &err);
	if (!eng)
		return fail(&err);
	began = clock_thread_ns() - began;
	if (!engine_profile(eng, argv[3]))
		return fail(&(struct err){.msg = "there is no such profile"});
	measure(eng, engine_profile(eng, argv[3]), &facts, (size_t)atoi(argv[4]), began);
	engine_close(eng);
	buf_fini(&profiles);
	buf_fini(&text);
	arena_destroy(a);
	return 0;
}
