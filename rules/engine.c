#include "rules/engine_priv.h"

#include "rules/heap_priv.h"
#include "rules/library_priv.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

const struct engine_limits engine_default_limits = {
	.instructions = 200000,
	.time_ms = 20,
	.memory_kib = 4096,
};

/* Loading is done once, on text that the operator vouches for; it is bounded all the same. */
static const struct sandbox_limits load_limits = {
	.instructions = 20000000,
	.time_ms = 3000,
	.block_bytes = (size_t)2 << 20,
};

#define MEMORY_MAX ((size_t)32 << 20) /* settings and names of all profiles */

/*
 * The largest block that one judgement may take.  What a single instruction
 * can cost grows with it: a rehash of 2,048 keys that collide takes 3 ms.
 */
#define JUDGE_BLOCK_MIN ((size_t)64 * 1024)

/* --- loading; all of it runs under sandbox_call() --- */

struct loading {
	struct engine *eng;
	const struct rule_source *sources;
	size_t count;
	struct reading reading;
	struct rule_source prelude; /* the file of standard checks that is being read */
};

static void run(lua_State *lua, const struct rule_source *source, int words, int results)
{
	lua_rawgeti(lua, LUA_REGISTRYINDEX, words);
	sandbox_compile(lua, source->text, source->name, -1);
	lua_remove(lua, -2);
	lua_call(lua, 0, results);
}

static void load_prelude(lua_State *lua, struct loading *l)
{
	l->reading.prelude = true;
	for (size_t i = 0; i < prelude_file_count; i++) {
		const struct prelude_file *f = &prelude_files[i];

		l->prelude = (struct rule_source){f->name, {f->text, f->len}};
		l->reading.source = &l->prelude;
		run(lua, &l->prelude, l->eng->check_words, 0);
	}
}

static void load_source(lua_State *lua, struct loading *l, size_t i)
{
	int top = lua_gettop(lua);

	l->reading.source = &l->sources[i];
	l->reading.index = i;
	l->reading.prelude = false;
	if (l->sources[i].text.len > SOURCE_MAX)
		luaL_error(lua, "%s: the file is larger than %d KiB", l->sources[i].name,
			   (int)(SOURCE_MAX / 1024));
	run(lua, &l->sources[i], l->eng->profile_words, LUA_MULTRET);
	language_take_profiles(lua, top + 1);
	lua_settop(lua, top);
}

static int load_protected(lua_State *lua)
{
	struct loading *l = lua_touserdata(lua, 1);

	language_open(lua);
	load_prelude(lua, l);
	for (size_t i = 0; i < l->count; i++)
		if (!seccomp_is_file(l->sources[i].name))
			load_source(lua, l, i);
	return 0;
}

/* Garbage of loading goes, and no collection runs from here on: each judgement is short. */
static int settle_protected(lua_State *lua)
{
	lua_gc(lua, LUA_GCCOLLECT);
	lua_gc(lua, LUA_GCSTOP);
	return 0;
}

static int load(struct engine *eng, const struct rule_source *sources, size_t count,
		struct err *err)
{
	struct loading l = {.eng = eng, .sources = sources, .count = count, .reading.err = err};
	int result;

	eng->reading = &l.reading;
	result = sandbox_call(eng->sb, &load_limits, load_protected, &l, err);
	eng->reading = NULL;
	if (result == 0)
		return 0;
	/* A limit has no line of its own; what was read then must do. */
	if (eng->sb->stop != STOP_RAISED && eng->sb->stop != STOP_HOST) {
		err_wrap(err, "%s: loading takes",
			 l.reading.source ? l.reading.source->name : "the standard checks");
		err->kind = ERR_CONFIG;
	}
	return -1;
}

static int settle(struct engine *eng, struct err *err)
{
	size_t block;

	if (sandbox_call(eng->sb, &load_limits, settle_protected, NULL, err) < 0)
		return -1;
	/* Tables that loading made may grow by one doubling. */
	block = 2 * heap_largest(eng->sb->heap);
	eng->judge_limits = (struct sandbox_limits){
		.instructions = eng->limits.instructions,
		.time_ms = eng->limits.time_ms,
		.block_bytes = block < JUDGE_BLOCK_MIN ? JUDGE_BLOCK_MIN : block,
	};
	return heap_freeze(eng->sb->heap, err);
}

/* --- hashes --- */

static struct span hash_span(const struct hash *h)
{
	return (struct span){(const char *)h->bytes, HASH_BYTES};
}

struct hash engine_prelude_hash(void)
{
	struct hash h = hash_of(span_of(""));

	for (size_t i = 0; i < prelude_file_count; i++) {
		struct hash file =
			hash_two(span_of(prelude_files[i].name),
				 (struct span){prelude_files[i].text, prelude_files[i].len});

		h = hash_two(hash_span(&h), hash_span(&file));
	}
	return h;
}

struct hash profile_hash_over(const struct hash *prelude, const struct hash *files, size_t count,
			      const char *name)
{
	struct hash h = *prelude;

	for (size_t i = 0; i < count; i++)
		h = hash_two(hash_span(&h), hash_span(&files[i]));
	return hash_two(hash_span(&h), span_of(name));
}

bool engine_prelude_at(size_t i, struct rule_source *ret)
{
	if (i >= prelude_file_count)
		return false;
	*ret = (struct rule_source){prelude_files[i].name,
				    {prelude_files[i].text, prelude_files[i].len}};
	return true;
}

/* --- opening and closing --- */

static int load_seccomp(struct engine *eng, const struct rule_source *sources, size_t count,
			struct err *err)
{
	if (seccomp_list_begin(&eng->seccomp, eng->memory, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (seccomp_is_file(sources[i].name) &&
		    seccomp_list_add(&eng->seccomp, sources[i].name, sources[i].text, eng->memory,
				     err) < 0)
			return -1;
	return 0;
}

static struct engine *create(const struct engine_limits *limits, struct err *err)
{
	struct engine *eng = calloc(1, sizeof(*eng));

	if (!eng) {
		err_sys(err, "memory for the rules");
		return NULL;
	}
	eng->limits = *limits;
	eng->harden_function = LUA_NOREF;
	eng->memory = arena_create(MEMORY_MAX);
	eng->sb = sandbox_open((size_t)limits->memory_kib * 1024, eng, err);
	if (eng->memory && eng->sb)
		return eng;
	if (!eng->memory)
		err_sys(err, "memory for the rules");
	engine_close(eng);
	return NULL;
}

/* Source texts belong to the caller. */
static void forget_texts(struct engine *eng)
{
	for (size_t i = 0; i < eng->profile_count; i++)
		eng->profiles[i]->at.text = (struct span){"", 0};
}

struct engine *engine_open(const struct rule_source *sources, size_t count,
			   const struct engine_limits *limits, struct err *err)
{
	struct engine *eng;

	if (count > PROFILES_MAX) {
		err_set(err, ERR_CONFIG, "more than %d files of profiles", PROFILES_MAX);
		return NULL;
	}
	eng = create(limits, err);
	if (!eng)
		return NULL;
	eng->prelude_hash = engine_prelude_hash();
	for (size_t i = 0; i < count; i++)
		eng->source_hashes[i] = hash_of(sources[i].text);
	if (load_seccomp(eng, sources, count, err) < 0 || load(eng, sources, count, err) < 0 ||
	    profile_resolve_all(eng, err) < 0 || exception_check_all(eng, err) < 0 ||
	    settle(eng, err) < 0 || examples_check_all(eng, err) < 0) {
		engine_close(eng);
		return NULL;
	}
	forget_texts(eng);
	return eng;
}

void engine_close(struct engine *eng)
{
	if (!eng)
		return;
	sandbox_close(eng->sb);
	arena_destroy(eng->memory);
	free(eng);
}
