/*
 * engine_priv.h - what an engine is made of, for its own files.
 *
 *	engine.c     opening: standard checks, sources, profiles, image; and closing
 *	language.c   the words that make profiles, rules and standard checks
 *	saying.c     the words that rules and checks judge with
 *	profile.c    inheritance, decision tables, hashes
 *	judge.c      one judgement, one hardening
 *	exception.c  what lets a violation pass
 *	examples.c   the examples of rules, judged once when all is loaded
 *
 * All of Lua lives in sb and is restored after each judgement.  Everything
 * else here is made while loading and only read afterwards, but for `call`.
 */
#ifndef RULES_ENGINE_PRIV_H
#define RULES_ENGINE_PRIV_H

#include "gate/base/hash.h"
#include "rules/engine.h"
#include "rules/opset_priv.h"
#include "rules/quota.h"
#include "rules/rate.h"
#include "rules/sandbox_priv.h"
#include "rules/seccomp.h"
#include "rules/settings_priv.h"

#define PROFILES_MAX           256
#define ITEMS_MAX              4096 /* checks and rules of an engine */
#define PROFILE_ITEMS_MAX      512  /* rules of a profile, inherited ones included */
#define EXTENDS_MAX            8    /* profiles above one */
#define SETTINGS_MAX           64
#define EXCEPTIONS_MAX         256 /* of an engine */
#define PROFILE_EXCEPTIONS_MAX 32
#define EXCEPTION_WARN_S       (14 * 86400) /* each use says so this long before the end */
#define SOURCE_MAX             ((size_t)256 * 1024)
#define NAME_MAX_LEN           64

struct reason_set {
	uint64_t bits[(REASON_COUNT + 63) / 64];
};

/* A standard check or a rule of a profile. */
struct item {
	const char *name, *doc;
	const char *file;
	int line;
	int function; /* reference in Lua's registry */
	size_t index; /* in the engine's list */
	struct op_set concerns;
	struct reason_set
		reasons; /* checks: those that it may give; rules: none, which means any */
	bool is_check;
	bool also_closed; /* checks: says something better than "not granted" */
	bool has_mode;
	enum rule_mode mode;
	struct jv match, not_match; /* examples */
};

/* exception { ... }: texts are "" where nothing is said. */
struct exception {
	const char *rule, *owner, *ticket, *reason, *expires;
	const char *code, *field, *value; /* of the violation; field and value are globs */
	int64_t ends;                     /* the first second in which it does not hold */
	int function;                     /* `when`: reference in Lua's registry, or LUA_NOREF */
	struct jv when;                   /* else facts by path, and what they must be */
	const char *file;
	int line;
	const struct profile *profile;
};

struct profile {
	const char *name, *file;
	struct place at;
	size_t source; /* index of the file */
	bool returned; /* by its file; only then does it count */
	int progress;  /* of profile_resolve() */

	struct jv given, settings; /* settings_priv.h */
	const struct profile *parent;
	int depth; /* profiles above it */
	struct op_set granted;
	struct rate rates[RATES_MAX];
	struct op_set rated[RATES_MAX]; /* what each of them counts */
	size_t rate_count;
	bool has_quota;
	int64_t quota[QUOTA_COUNT]; /* below 0: none */
	enum rule_mode mode;
	struct reach reach;
	bool hardens, wants_attested;
	const struct jv *update;                     /* the setting; NULL if there is none */
	unsigned hides;                              /* enum hide */
	const struct item *items[PROFILE_ITEMS_MAX]; /* rules, the parent's first */
	int setting_lines[SETTINGS_MAX];
	size_t item_count, inherited_count; /* of these, the parent's */
	const struct exception *exceptions[PROFILE_EXCEPTIONS_MAX];
	size_t exception_count;
	bool codes_only;
	enum isolation minimum;
	const struct seccomp_known *seccomp; /* the setting; never NULL once resolved */
	enum running running;
	unsigned char check_modes[ITEMS_MAX]; /* of standard checks: enum rule_mode */
	unsigned char grants[OP_COUNT];       /* enum grant */
	char hash[HASH_HEX_LEN + 1];
};

/* One running judgement or hardening. */
struct judging {
	const struct profile *profile;
	const struct jv *facts;
	struct arena *arena;
	enum operation op;
	bool closed;                     /* the profile does not grant op */
	const struct override *override; /* above the profile's modes; NULL: none */

	const struct item *item; /* what runs now; NULL for hardening */
	struct decision *decision;
	bool soft[VIOLATIONS_MAX]; /* decision->violations.list[i] is softened by a mode */
	bool ask[VIOLATIONS_MAX];
	size_t hard_count, ask_count, soft_count, soft_ask_count;
	unsigned char held[PROFILE_EXCEPTIONS_MAX]; /* exceptions: not asked, holds, does not */
	bool excepting;                             /* the `when` of an exception runs */
	bool held_off;                              /* no exception holds */
	const struct item *alone;                   /* only this rule runs */
	const struct violations *update; /* what is wrong with it as an update, or NULL */
	bool again; /* the re-creation of what is taken away: nothing comes to what there is */
	bool keeps; /* what standard checks find was there in the container that is replaced */
	size_t kept_count; /* ... and was found */

	struct change *changes;
	size_t change_count;
};

/* What the source that is being read has said so far. */
struct reading {
	const struct rule_source *source;
	size_t index;
	bool prelude;
	struct err *err;
};

struct engine {
	struct sandbox *sb;
	struct arena *memory;
	struct engine_limits limits;
	struct sandbox_limits judge_limits;

	struct item items[ITEMS_MAX]; /* the standard checks in their order, then all rules */
	size_t item_count, check_count;
	int harden_function;            /* reference in Lua's registry */
	int check_words, profile_words; /* the two environments, as references */

	struct exception exceptions[EXCEPTIONS_MAX];
	size_t exception_count;
	struct engine_trace *trace; /* NULL: nobody looks on */

	struct seccomp_list seccomp;

	struct profile *profiles[PROFILES_MAX];
	size_t profile_count;
	struct hash prelude_hash, source_hashes[PROFILES_MAX];

	struct reading *reading; /* while loading */
	struct judging *call;    /* while judging */
};

static inline struct engine *engine_of(lua_State *lua)
{
	return sandbox_of(lua)->owner;
}

/* --- language.c --- */

/* Makes the environments of the standard checks and of profiles.  Under sandbox_call(). */
void language_open(lua_State *lua);

/* Takes what a source returned, from index `first` of the stack on. */
void language_take_profiles(lua_State *lua, int first);

/* --- saying.c: Lua functions --- */

int saying_deny(lua_State *lua);
int saying_ask(lua_State *lua);
int saying_warn(lua_State *lua);
int saying_refuse(lua_State *lua); /* standard checks only, as the next */
int saying_change(lua_State *lua);
int saying_refuse_update(lua_State *lua);

/* Whether a value that a rule returned is one of those that mean something: nil, or deny(...). */
bool saying_is_verdict(lua_State *lua, int index);

/* The mode in which it judges, for what it says of this reason; ask: it wants a person's yes. */
enum rule_mode judging_mode(const struct judging *call, const struct item *it, enum reason r,
			    bool ask);

/* --- seccomp_words.c: Lua functions of standard checks and hardening --- */

/* seccomp_more(text, name, machine, add, drop): what a profile of system calls in a request allows
 * that the one of that name does not, as a list of texts. */
int word_seccomp_more(lua_State *lua);
int word_seccomp_sha256(lua_State *lua); /* seccomp_sha256(name) */

/* --- judge.c --- */

/* One rule by itself, as if it were enforced and nothing else were there. */
int rule_run_alone(struct engine *eng, const struct profile *p, const struct item *it,
		   const struct jv *facts, struct arena *a, struct decision *ret, struct err *err);

/* --- exception.c --- */

/* Makes one from the table at index 1, or raises. */
struct exception *exception_take(lua_State *lua);

/* After all profiles are resolved: what each is about exists, and is the profile's own. */
int exception_check_all(struct engine *eng, struct err *err);

/* The one that lets v pass, or NULL.  While judging; may raise. */
const struct exception *exception_for(lua_State *lua, struct judging *call,
				      const struct violation *v);

/* --- examples.c --- */

int examples_take(lua_State *lua, int table, struct item *it); /* the option `examples` */
int examples_check_all(struct engine *eng, struct err *err);

/* --- profile.c --- */

/* Parents before children; decision tables; hashes.  The profiles are then in order of name. */
int profile_resolve_all(struct engine *eng, struct err *err);

/* --- prelude (made by embed.py) --- */

struct prelude_file {
	const char *name;
	const char *text;
	size_t len;
};

extern const struct prelude_file prelude_files[];
extern const size_t prelude_file_count;

#endif
