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
 * req holds facts (request.def, workload.def), which are read-only.
 * null and absent are nil; lists count from 1.  A name that no fact has is an
 * error, so that a misspelt rule denies.  each(list) goes through a list that
 * may be absent; get(req, "workload.network.ports") reads along a path.
 *
 * A rule may bring examples, partial facts, that must hold or nothing loads:
 *
 *	rule("name", { examples = { match = { {...} }, not_match = { {...} } } }, ...)
 *
 * The rule objects to each of `match`, and to none of `not_match`.
 *
 *
 * Exceptions
 *
 *	exception {
 *		rule = "image", value = "docker.io/library/redis:*",
 *		when = { ["identity.name"] = "ci-*" },       -- or function(req) ... end
 *		owner = "ann", ticket = "SEC-12", reason = "until it has moved",
 *		expires = "2026-12-31",
 *	},
 *
 * lets violations pass that a rule or a standard check found, if `when` holds:
 * every fact that it names is there and is the value (a glob, for texts) or one
 * of a list of values; a function says true.  `value`, `field` and `code` (a
 * reason code) narrow it to violations that say so.  It does not hold behind
 * the day `expires`, UTC, and where facts have no `now`.  Trouble, what is
 * unknown, and an operation that is not granted know no exception.  It holds in
 * its own profile only, and a profile that extends another can make one for
 * rules of its own only: it must not grant more than the other does.  So that it
 * is about one thing, no rule is named like a standard check.
 *
 * Image patterns are globs over registry/repository[:tag][@digest]: `*` and `?`
 * stay within one part of the name, `**` does not.  Without tag and digest a
 * pattern grants every tag and digest of that name; with a tag it does not fit
 * a reference that has a digest too.  `alpine` is docker.io/library/alpine.
 *
 * Mount paths are compared by components; {identity.name}, {identity.owner},
 * {identity.container.name} and {identity.container.id} stand for the caller's,
 * and match nothing if that is empty or holds '/'.  The name of a container that was
 * made through the gate stands for nothing: its maker could choose another's.
 *
 * library.def lists the words that rules may use, and `sallyport help words` prints them.
 */
#ifndef RULES_ENGINE_H
#define RULES_ENGINE_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "rules/decision.h"
#include "rules/hide.h"
#include "rules/identity.h"
#include "rules/operation.h"
#include "rules/reach.h"
#include "rules/workload.h"

struct engine;
struct profile;

/* One file of profiles, or a profile of system calls (seccomp.h).  Text only, at most 256 KiB;
   not kept. */
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

/* What becomes of what runs and would not be started now; each does what those before it do. */
enum running {
	RUNNING_REPORT = 0, /* it is on record */
	RUNNING_MINIMUM,    /* and stopped, if it is below the isolation that it was made with */
	RUNNING_STOP        /* or refused for whatever reason, or unknown */
};

const struct reach *profile_reach(const struct profile *p); /* visibility */
bool profile_hardens(const struct profile *p);              /* harden, own_socket or pin */
bool profile_tells_codes_only(const struct profile *p);     /* denial = "code" */
unsigned profile_hides(const struct profile *p);            /* redact: enum hide */
bool profile_wants_attested(const struct profile *p);       /* isolation = { attested = true } */
bool profile_wants_two_approvers(const struct profile *p);  /* two_approvers */
bool profile_closes_streams(const struct profile *p);       /* close_streams */
enum isolation profile_minimum(const struct profile *p);    /* isolation = { min = ... } */
enum running profile_running(const struct profile *p);      /* what `running` says */

/* The profile of system calls that containers get; "" where the engine's own is meant. */
struct span profile_seccomp(const struct profile *p);

/* update: seconds for which what is taken away is remembered; 0: it is no profile for updates. */
int64_t profile_updates(const struct profile *p);

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
	const struct jv *quota;    /* {used,asked,by}: quota.def; NULL if nothing was counted */
	const struct jv *replaces; /* the container that it replaces, or that would come again:
				      {id,name,owner,by,at,loses,workload}; NULL if none */
	int64_t now; /* seconds since 1970, read once for the decision; 0: not known */
};

/*
 * {"operation":{...},"identity":{...},"backend":"...","object":{...},"workload":{...},
 * "quota":{...},"replaces":{...},"now":N}
 */
struct jv engine_facts(struct arena *a, const struct question *q);

/* The container that a caller runs in, as facts and records show it. */
struct jv caller_tree(struct arena *a, const struct caller_container *c);

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

/* The same, with what an operator has put above the profile's modes (NULL: nothing). */
struct matter {
	const struct profile *profile;
	const struct jv *facts;
	const struct override *override;
};

int engine_judge_under(struct engine *eng, const struct matter *what, struct arena *a,
		       struct decision *ret, struct err *err) __attribute__((warn_unused_result));

/* Whether every name in an object of facts is one that facts can have; ERR_CONFIG names one that is
 * not. */
int engine_check_facts(const struct jv *facts, struct err *err);

/*
 * Looking on: what each rule said in a judgement.  For explain and tests; the
 * judgement is the same with and without it.
 */
enum rule_outcome {
	OUTCOME_NOT_RUN = 0, /* it does not concern the operation, or trouble came before */
	OUTCOME_PASSED,
	OUTCOME_WARNED,
	OUTCOME_ASKED,
	OUTCOME_DENIED,
	OUTCOME_SOFTENED, /* it objected, and its mode or an exception let that pass */
	OUTCOME_FAILED,
	OUTCOME_COUNT
};

const char *rule_outcome_name(enum rule_outcome o);

struct rule_trace {
	const char *rule, *doc, *file;
	int line;
	bool is_check; /* a standard check; else a rule of the profile */
	enum rule_outcome outcome;
};

#define TRACE_MAX 256

struct engine_trace {
	struct rule_trace list[TRACE_MAX];
	size_t count;
	/* Called for each line that runs, if set. */
	void (*on_line)(void *arg, const char *file, int line);
	void *arg;
};

/* From now on judgements fill *trace; NULL ends it. */
void engine_watch(struct engine *eng, struct engine_trace *trace);

/* The files of standard checks, in their order; false behind the last. */
bool engine_prelude_at(size_t i, struct rule_source *ret);

/* What profile_hash() is: over all of them, the files of all ancestors, its own, and its name. */
struct hash engine_prelude_hash(void);
struct hash profile_hash_over(const struct hash *prelude, const struct hash *files, size_t count,
			      const char *name);

/* Exceptions, in the order in which they are written; NULL behind the last. */
struct exception_view {
	const char *profile, *rule, *owner, *ticket, *reason, *expires, *file;
	int line;
	int64_t ends; /* the first second, since 1970, in which it does not hold */
	bool always;  /* its condition is only that some fact is there */
};

bool engine_exception_at(const struct engine *eng, size_t i, struct exception_view *ret);

/* Rules and standard checks that a profile judges by, in their order. */
struct rule_view {
	const char *name, *doc, *file;
	int line;
	bool is_check;
	enum rule_mode mode; /* in this profile */
	bool has_mode;       /* of its own */
	bool inherited, examples;
	bool reached; /* the profile grants something that it concerns */
};

/* Whether one entry of a list grants all that another one does. */
bool profile_entry_within(const char *setting, const struct jv *outer, const struct jv *inner);

/* How a profile stands to another in one respect: what the second grants beside the first. */
enum relation {
	RELATION_EQUAL = 0,
	RELATION_TIGHTER,
	RELATION_LOOSER,
	RELATION_BOTH, /* more here, less there */
	RELATION_OTHER /* it differs, and is nothing that grants: doc, the order of runtimes */
};

enum relation profile_compare(const struct profile *first, const struct profile *second,
			      const char *setting, struct arena *a);
const char *profile_setting_at(size_t i); /* names of all settings; NULL behind the last */

/* Where a setting's value comes from: the profile that says it and its line; NULL: the default. */
const struct profile *profile_origin(const struct profile *p, const char *setting, int *ret_line);

bool profile_rule_at(const struct engine *eng, const struct profile *p, size_t i,
		     struct rule_view *ret);
const struct profile *profile_parent(const struct profile *p); /* NULL: it extends none */
const struct jv *profile_given(const struct profile *p);       /* what it says itself */
const char *profile_file(const struct profile *p);
int profile_line(const struct profile *p);

#endif
