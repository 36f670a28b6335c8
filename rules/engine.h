/*
 * engine.h - judges requests by trust profiles written in Lua.
 *
 * An engine holds the standard checks (rules/prelude, part of the binary) and
 * the operator's profiles, loaded once.  No state survives a judgement: after
 * each, also a failed one, its memory is restored to what it was after
 * loading, so the same facts get the same answer until a reload.
 *
 * Instructions, time and memory of each judgement are capped; running out is
 * a denial that a rule cannot catch.  An engine belongs to one thread.
 *
 *
 * The language of profiles
 *
 *	return profile "name" {              -- or a list of profiles
 *		extends    = "other",        -- only tightens it
 *		operations = { "read", "container.run" },
 *		images     = { "reg.example/team-*", "alpine" },
 *		...                          -- settings.def
 *		rule("name", { operations = { "launch" }, mode = "warn" }, function(req)
 *			if req.workload.image.tag == "latest" then
 *				deny("name a version", { field = "Image", hint = "team/app:1.2" })
 *			end
 *		end),
 *	}
 *
 * What a profile does not say grants nothing; settings_merge.c has the table.
 * A rule without options concerns the class launch.  It says deny(text,
 * {field, value, hint, reason}), ask(text, {...}) or warn(text); saying it is
 * enough, returning it is allowed, and no other value may be returned.  No
 * objection is no denial: what is granted is what `operations` names.
 *
 * req holds facts (engine_facts() below, workload.def), which are read-only.
 * null and absent are nil; lists count from 1.  A name that no fact has is an
 * error, so that a misspelt rule denies.  each(list) goes through a list that
 * may be absent; get(req, "workload.network.ports") reads along a path.
 *
 * Image patterns are globs over registry/repository[:tag][@digest]: `*` and `?`
 * stay within one part of the name, `**` does not.  Without tag and digest a
 * pattern grants every tag and digest of that name; with a tag it does not fit
 * a reference that has a digest too.  `alpine` is docker.io/library/alpine.
 *
 * Mount paths are compared by components; {identity.name} and {identity.owner}
 * stand for the caller's, and match nothing if that is empty or holds '/'.
 *
 * library_priv.h lists the words that rules may call.
 */
#ifndef RULES_ENGINE_H
#define RULES_ENGINE_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "rules/decision.h"
#include "rules/identity.h"
#include "rules/operation.h"
#include "rules/workload.h"

struct engine;
struct profile;

/* One file of profiles.  Text only, at most 256 KiB; not kept. */
struct rule_source {
	const char *name; /* in messages: file name without its folder */
	struct span text;
};

struct engine_limits {
	unsigned instructions; /* Lua VM instructions for one judgement */
	unsigned time_ms;      /* of processor time */
	unsigned memory_kib;   /* of the whole engine, loaded profiles included */
};

extern const struct engine_limits engine_default_limits;

/*
 * Loads the sources; each returns one profile or a list of them, and may
 * extend one that any source defines.  NULL with ERR_CONFIG names file, line,
 * what was found, what is known and the nearest known name.
 */
struct engine *engine_open(const struct rule_source *sources, size_t count,
			   const struct engine_limits *limits, struct err *err);
void engine_close(struct engine *eng); /* NULL is allowed */

/* NULL if there is none.  Belongs to the engine. */
const struct profile *engine_profile(const struct engine *eng, const char *name);

/* Names of all profiles, in order; NULL behind the last. */
const char *profile_name(const struct profile *p);
const char *profile_hash(const struct profile *p); /* 64 hex digits */
const struct profile *engine_profile_at(const struct engine *eng, size_t i);

/* What a profile says of an operation before any fact is known: from a table made at load. */
enum grant {
	GRANT_NONE = 0, /* not granted: REASON_operation */
	GRANT_JUDGE,    /* granted if engine_judge() finds nothing wrong */
	GRANT_PLAIN     /* granted; no check or rule concerns it */
};

enum grant profile_grant(const struct profile *p, enum operation op);
/*
 * What to say when profile_grant() is GRANT_NONE: operation, or the code that
 * belongs to that operation alone (rename, export, ...).  Strings come from the
 * arena.  engine_judge() says the same, but first what is wrong with the
 * request itself where that says more (import_url, image_retag).
 */
struct violation profile_refusal(const struct profile *p, enum operation op, struct arena *a);

bool profile_sees_all(const struct profile *p); /* visibility = "all" */
bool profile_hardens(const struct profile *p);
bool profile_redacts_env(const struct profile *p); /* redact = { "env" } */

/* All settings as they hold: completed, within what a parent grants.  Belongs to the engine. */
const struct jv *profile_settings(const struct profile *p);

/*
 * What one judgement is about.  Rules see request as `req`: an object made by
 * engine_facts(); exactly these bytes belong into the record.
 */
struct question {
	enum operation op;
	const struct identity *who;
	const char *backend;       /* its configured name */
	const struct jv *object;   /* {kind,id,name,mine}; NULL if none */
	const struct jv *workload; /* workload facts; NULL or JV_NULL if none */
};

/* {"operation":{...},"identity":{...},"backend":"...","object":{...},"workload":{...}} */
struct jv engine_facts(struct arena *a, const struct question *q);

/*
 * Asks the profile what should be filled in or tightened (its `harden` table).
 * Writes at most CHANGES_MAX; strings come from the arena.  -1: ERR_CONFIG or
 * ERR_LIMIT, and the caller denies (rule_error, rule_limit).
 */
int engine_harden(struct engine *eng, const struct profile *p, const struct jv *facts,
		  struct arena *a, struct change ret[CHANGES_MAX], size_t *ret_count,
		  struct err *err) __attribute__((warn_unused_result));

/*
 * Judges.  Fills verdict, would, mode, rule, violations and warnings of *ret;
 * strings come from the arena.  0 also for a denial; -1 (ERR_CONFIG: a rule
 * failed; ERR_LIMIT: it ran out) leaves *ret a denial whose violations name
 * the trouble.  All violations are found, not only the first.
 */
int engine_judge(struct engine *eng, const struct profile *p, const struct jv *facts,
		 struct arena *a, struct decision *ret, struct err *err)
	__attribute__((warn_unused_result));

#endif
