/*
 * conf.h - what a worker serves: made by gate/ from the configuration bundle.
 *
 * Strings and arrays belong to whoever made the structure and outlive the worker.
 */
#ifndef PROXY_CONF_H
#define PROXY_CONF_H

#include "backends/backend.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"
#include "proxy/certificate.h"
#include "proxy/emergency.h"
#include "proxy/runtime.h"
#include "proxy/tls_server.h"
#include "rules/caller.h"
#include "rules/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf_identity {
	const char *name, *profile;
	const char *owner; /* stable id; the name by default */
	bool has_uid, has_gid;
	bool has_token;
	struct hash token; /* SHA-256 */
	bool has_cert;
	struct cert_rule cert; /* which TLS client certificate is its own */
	uint32_t uid, gid;
	struct caller_sign container; /* that it runs in; of no kind: anywhere */
	const char *own_socket; /* what its containers get for the engine's socket; "" or NULL:
				   nothing */
	size_t own_backend;     /* index into backends: where that leads */
};

/* A file that the configuration names, as it was when it was read; text is empty if it is not
 * known. */
struct conf_file {
	const char *path;
	struct span text;
	bool to_serve; /* read by who serves alone: other commands need not be able to */
	bool is_key;   /* others may neither read nor change it */
};

struct dial_addresses; /* tunnel.h */

struct conf_tcp {
	const char *host; /* a name or an address */
	unsigned port;
	bool loopback;                      /* only this host is reached there */
	const struct dial_addresses *found; /* NULL: the name was not looked up yet */
};

/* TLS to an engine: whose certificates are trusted, what is shown, whom it must be. */
struct conf_tls {
	struct conf_file ca, cert, key; /* cert and key: path NULL if none is shown */
	const char *name;
};

enum observe_how { OBSERVE_OFF = 0, OBSERVE_RECORD, OBSERVE_ALARM };

struct conf_backend {
	const char *name, *kind;
	const char *address;           /* as it is written, for messages */
	const char *socket;            /* path of the engine's unix socket; "" if it has none */
	const struct conf_tcp *tcp;    /* or where it is reached; NULL: by its socket */
	const struct conf_tls *tls;    /* NULL: without */
	bool sees_files;               /* files = "same_host": mount sources can be looked at */
	enum observe_how observe;      /* what happens past the gate */
	const struct adopted *adopted; /* whose its older objects are: by kind and id, in order */
	size_t adopted_count;
};

/* TLS for callers: what is shown, and whose certificates are demanded. */
struct conf_caller_tls {
	struct conf_file files[TLS_FILE_COUNT]; /* path NULL: there is none */
	bool optional;                          /* callers may come without a certificate */
};

struct conf_listener {
	const char *name;
	const char *socket;      /* path, for messages */
	int fd;                  /* listening socket; -1 in `check` */
	size_t backend;          /* index into backends */
	const size_t *sandboxes; /* another process serves it, with the sandbox API: on which
				    backends, in the order in which they are tried; NULL: none */
	size_t sandbox_count;
	const size_t
		*identities; /* indices into identities, in order; the first that fits counts */
	size_t identity_count;
	bool takes_tokens;                /* one of identities is known by a token */
	bool looks_inside;                /* it is looked at which container callers run in */
	const char *const *caller_labels; /* of these containers, that are shown: globs; NULL at the
					     end, or NULL */
	const char *tcp;                  /* "127.0.0.1:2375"; "" or NULL: it is a unix socket */
	const struct conf_caller_tls *tls; /* NULL: callers speak plain HTTP */
	bool metrics;          /* serves what was counted (scrape.h), and nothing else */
	const char *otherwise; /* profile for everybody else; "" refuses them */
	const char *callers;   /* in their owner ids; the name by default */
	bool as_one;           /* everybody is identities[0], whatever their user */
	const struct conf_identity *alone; /* ... or this one, on a listener made at run time */
	const char *const *engine_names;   /* host paths by which its callers mean the engine's
					      socket; NULL at the end, or NULL */
};

static inline bool conf_is_tcp(const struct conf_listener *l)
{
	return l->tcp && *l->tcp;
}

struct conf_limits {
	unsigned connections; /* open at once, per worker */
	unsigned connections_per_uid;
	unsigned handshakes;       /* of TLS, under way at once, per worker */
	uint64_t body_bytes;       /* one inspected body */
	uint64_t context_bytes;    /* held of one build context */
	uint64_t bodies_bytes;     /* all inspected bodies of a worker */
	unsigned head_ms, body_ms; /* a request's head; an upload that stalls */
	unsigned engine_ms;        /* until an engine answers a request that does not wait */
	unsigned ask_ms;           /* a request is held so long for an operator's yes */
	unsigned engine_waiting;   /* requests that wait for one engine, in a worker */
};

/* The sandbox API, where a listener serves it. */
struct conf_sandboxes {
	const char *state;             /* folder; "": there is no such API */
	const char *inside;            /* host path of the helper */
	unsigned max, owner_max;       /* sandboxes at once: in all, of one owner */
	unsigned execs;                /* commands at once of one sandbox */
	unsigned connections;          /* of callers at once */
	unsigned lifetime_s;           /* no sandbox lives longer */
	unsigned default_s;            /* it lives so long where nobody says anything */
	uint64_t memory, disk, output; /* bytes, where nobody says anything */
	unsigned pids;
};

struct proxy_conf {
	const struct conf_backend *backends;
	size_t backend_count;
	const struct conf_identity *identities;
	size_t identity_count;
	const struct conf_listener *listeners;
	size_t listener_count;
	const struct runtime_listener *runtime; /* those there are when a worker starts */
	size_t runtime_count;
	const struct rule_source *rules;
	size_t rule_count;
	struct engine_limits rule_limits;
	struct conf_limits limits;
	const char *const
		*protected_paths;   /* NULL at the end: gate sockets, state, log, engine sockets */
	const char *sandbox_inside; /* sandboxes.inside; "" or NULL: there is none */
	struct conf_sandboxes sandboxes;
	const char *self; /* the gate's own container, by id or name; NULL or "": none */
	bool reads_without_log;
	struct metrics *metrics; /* shared by all workers; NULL: nothing is counted */
	struct watched *watched; /* shared by workers and watchers: what engines were asked for */
	struct audit_state *audit_state; /* likewise */
	struct engines *engines;         /* shared, too; NULL: nothing is known of them */
	struct rates *rates;             /* shared by all workers; NULL: none are kept (`check`) */
	struct suppressed *suppressed;   /* as rates */
	struct quotas *quotas;           /* likewise */
	struct updates *updates;         /* as rates */
	const struct emergency *emergency; /* shared by all; NULL: there is none (`check`) */
	struct approvals *approvals;       /* as rates */
	/*
	 * Reads the configuration that follows this one, and takes the descriptor; *ret_kept is
	 * what drop_next() gets when it is not needed any more.  NULL: streams are not judged
	 * again.
	 */
	int (*read_next)(int bundle, const struct proxy_conf **ret, void **ret_kept,
			 struct err *err);
	void (*drop_next)(void *kept);
	const char *generation;   /* hash of the bundle */
	const char *rules_origin; /* which signed bundles the rules are from; NULL: none */
	const char *replaces; /* how the worker before this one was lost, for the log; "" or NULL:
				 none was */
};

extern const struct conf_limits conf_default_limits;

#endif
