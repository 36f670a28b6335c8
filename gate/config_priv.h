/* config_priv.h - the rows of config.def, between config.c and those that build and explain. */
#ifndef GATE_CONFIG_PRIV_H
#define GATE_CONFIG_PRIV_H

#include "gate/base/hash.h"
#include "gate/config.h"
#include "gate/listen.h"

#define TOKEN_PREFIX "sha256:"

enum config_shape { SHAPE_TABLE = 0, SHAPE_NAMED, SHAPE_LIST };

enum config_need { NEED_OPTIONAL = 0, NEED_REQUIRED, NEED_NOT_YET };

enum config_kind {
	KIND_TEXT = 0,
	KIND_BOOL,
	KIND_PATH,
	KIND_SOCKET,
	KIND_ADDRESS,
	KIND_KIND,
	KIND_FILES,
	KIND_OBSERVE,
	KIND_USER,
	KIND_GROUP,
	KIND_UID,
	KIND_GID,
	KIND_MODE,
	KIND_NAMES,
	KIND_TOKEN,
	KIND_TCP,
	KIND_CERT,
	KIND_CLIENTS,
	KIND_TABLE,
	KIND_MODE_OF_RETENTION,
	KIND_SINK,
	KIND_NUMBER,
	KIND_COUNT
};

struct config_word {
	const char *word;
	enum config_shape shape;
	bool once;
	const char *doc;
};

struct config_row {
	const char *word, *key;
	enum config_kind kind;
	enum config_need need;
	const char *fallback, *doc;
	/* KIND_NUMBER */
	size_t offset, width; /* in struct config */
	uint64_t min, max;
	const char *unit;
};

const struct config_word *config_word_at(size_t i); /* NULL behind the last */
const struct config_row *config_row_at(size_t i);
bool config_fits(enum config_kind kind, const struct jv *v);
const char *config_kind_text(enum config_kind kind); /* "an absolute path" */

/* The defaults of all numbers. */
void config_defaults(struct config *ret);
uint64_t config_number(const struct config *c, const struct config_row *row);

/* One entry of the tree while it is looked at, for messages. */
struct config_entry {
	const char *path; /* the file */
	int64_t line;
	const char *word, *name; /* name: "" if the word takes none */
	const struct jv *value;
};

/* err_set() with ERR_CONFIG and "path:line: word "name": " in front. */
int config_wrong(const struct config_entry *e, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Every entry's words, keys, kinds and ranges; numbers go into *ret. */
int config_check(const struct jv *entries, const char *path, struct config *ret, struct err *err);

/* Entry i of that word; false behind the last. */
bool config_entry_at(const struct jv *entries, const char *path, const char *word, size_t i,
		     struct config_entry *ret);

/* "signed" and so on; false: there is no such mode. */
bool config_retention_mode(const char *name, enum retention_mode *ret);

/* "unix:///x" -> "/x"; NULL if it is no such address. */
const char *config_address_path(const char *address);

/* https://HOST[:PORT]/PATH: host, port and path. */
int config_sink_url(const char *url, struct arena *a, struct sink_conf *to, struct err *err);

/* "tcp://host:2376", "tcp://[::1]:2376" in one plain form; host lives in the arena.  -1: it is
 * none. */
int config_address_tcp(const char *address, struct arena *a, struct conf_tcp *ret);

#define CONFIG_FILES_MAX 1024

/* to->path, and its text once the bundle is read.  to lives as long as the configuration. */
int config_add_file(struct config *c, struct arena *a, const char *path, struct conf_file *to,
		    struct err *err);

/* --- config_backend.c --- */

int config_build_backends(const struct jv *entries, struct arena *a, struct config *ret,
			  struct err *err);

/* --- config_keeper.c --- */

/* What entry e, backend number `backend`, says of the keeper, which may be nothing. */
int config_build_keeper(const struct config_entry *e, struct arena *a, struct config *c,
			size_t backend, struct err *err);

/* network { plaintext = true }, and plaintext = true in the entry. */
bool config_plaintext(const struct jv *entries, const struct config_entry *e);

/* --- config_sandboxes.c --- */

/* sandboxes { ... } */
int config_build_sandboxes(const struct jv *entries, struct arena *a, struct config *ret,
			   struct err *err);

/* What a listener says of them, which may be nothing. */
int config_listener_sandboxes(const struct config_entry *e, struct config *c, struct arena *a,
			      struct conf_listener *l, struct err *err);

/* Its callers can be known by this. */
int config_sandbox_identity(const struct config_entry *e, const struct conf_listener *l,
			    const struct conf_identity *i, struct err *err);

/* --- config_sink.c --- */

int config_build_witness(const struct config_entry *e, struct arena *a, struct config *to,
			 struct err *err);

int config_build_sinks(const struct jv *entries, struct arena *a, struct config *ret,
		       struct err *err);

/* --- config_tls.c --- */

/* What a listener says of TLS, which may be nothing. */
int config_tls(const struct config_entry *e, struct config *c, struct arena *a,
	       struct conf_listener *l, struct err *err);

/* Callers of l can show what i is known by, and the gate looks at it. */
int config_can_show(const struct config_entry *e, const struct conf_listener *l,
		    const struct conf_identity *i, struct err *err);

/* Host paths by which callers of a listener mean the engine's socket, in all their spellings. */
const char *const *engine_names(const struct config *c, size_t listener, struct arena *a);

/* Host paths that no mount may touch, in all their spellings. */
const char *const *protected_paths(const struct config *c, struct arena *a);

#endif
