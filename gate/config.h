/*
 * config.h - what the operator wrote, checked and made into structures.
 *
 * The text is read elsewhere (bundle.h), by a process without privileges; here
 * comes its tree.  Every mistake is one message: file, line, what was found,
 * what is accepted, the nearest known name.
 */
#ifndef GATE_CONFIG_H
#define GATE_CONFIG_H

#include "audit/auditor.h"
#include "audit/sink.h"
#include "audit/witness.h"
#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "proxy/conf.h"
#include "rules/luadata.h"

#include <stdio.h>

struct config_access { /* of a listening socket; names, "" for who starts the gate */
	const char *owner, *group;
	unsigned mode;
};

struct config_engine { /* the group that may open an engine's socket */
	bool has_gid;  /* false: the socket's own */
	uint32_t gid;
};

struct config_users { /* names */
	const char *worker, *auditor, *resolver, *admin, *sandbox, *keeper;
};

/* The one backend of kind "local", whose service is a process of the gate: gate/keeper. */
struct config_keeper {
	bool wanted;
	size_t backend; /* index */
	const char *state, *path;
	const char *const *read_only; /* NULL at the end */
	bool bare;
	unsigned sandboxes, execs, connections, pids;
	uint64_t memory, scratch, file, output;
};

struct config_members { /* a role of the admin socket */
	const uint32_t *uids, *gids;
	size_t uid_count, gid_count;
};

struct config_admin {
	struct config_access access;
	struct config_members operate, approve, audit;
	const char *sockets, *state; /* folders; "": none */
	unsigned listeners, lifetime_s;
};

extern const struct config_users config_default_users;

struct config {
	const char *path;                 /* of the configuration file, absolute */
	struct jv *entries;               /* what was written, as luadata_read() gives it */
	struct proxy_conf proxy;          /* without rules and generation */
	struct conf_listener *listeners;  /* proxy.listeners, to set their descriptors */
	struct conf_identity *identities; /* proxy.identities */
	struct conf_backend *backends;    /* proxy.backends */
	const char *updates;              /* the file that remembers; "" if there is none */
	const char *ledger;               /* of adopted objects; "" if there is none */
	struct config_access *access;     /* one a listener */
	struct config_engine *engines;    /* one a backend */
	struct auditor_conf auditor;
	struct config_users users;
	struct config_admin admin;
	struct config_keeper keeper;
	bool alarms_syslog;            /* alarms go to the system's log, at once */
	const struct sink_conf *sinks; /* for `audit ship`; the auditor looks how far each is */
	size_t sink_count;
	struct witness_conf witness; /* for `audit ship`; file NULL: none */
	unsigned witness_every_s;
	const char *const *profile_names; /* those that are loaded; NULL at the end, or NULL */
	unsigned workers;                 /* 0: one a processor */
	const char *const *profile_paths; /* absolute; NULL at the end */
	const char *const *rule_keys;     /* of signed bundles; NULL at the end */
	bool only_signed;                 /* rules come from such bundles alone */
	const char *status_socket;        /* beside the first listener */
	/* What is named beside profiles (keys, certificates): its text comes with the bundle. */
	struct conf_file **files;
	size_t file_count;
};

#define CONFIG_ENTRIES_MAX 256 /* of one word */

/* The words, for luadata_read(). */
const struct luadata_word *config_words(size_t *ret_count);

/*
 * entries: what luadata_read() gave.  path: absolute.  Everything in *ret lives
 * in the arena or in entries.  ERR_CONFIG: "path:line: ...".
 */
int config_build(const struct jv *entries, const char *path, struct arena *a, struct config *ret,
		 struct err *err);

/*
 * The listener in whose folder the admin socket lies although that folder is
 * meant for containers: their root is root here as well.  NULL: none.
 */
const char *config_beside_admin(const struct config *c);

/* A listener serves the sandbox API. */
bool config_has_sandboxes(const struct config *c);

/* `sallyport help config` */
void config_help(FILE *out);

#endif
