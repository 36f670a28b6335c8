#include "gate/ledger.h"

#include "gate/base/hash.h"
#include "gate/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNER_MAX 128

/* --- entries --- */

static const char *const members[] = {"backend", "kind",  "id", "name",
				      "created", "owner", "by", "at"};
#define MEMBERS (sizeof(members) / sizeof(*members))

static bool is_known(const struct jv *doc)
{
	for (size_t i = 0; i < doc->count; i++) {
		bool found = doc->members[i].value.kind == JV_STRING;
		size_t k = 0;

		while (k < MEMBERS && !span_is(doc->members[i].key, members[k]))
			k++;
		if (!found || k == MEMBERS)
			return false;
	}
	return true;
}

static bool is_kind(const char *kind)
{
	return strcmp(kind, "container") == 0 || strcmp(kind, "network") == 0 ||
	       strcmp(kind, "volume") == 0;
}

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_CONFIG, "%s", what);
}

int ledger_entry_parse(const struct jv *doc, struct ledger_entry *ret, struct err *err)
{
	bool volume;

	if (doc->kind != JV_OBJECT || !is_known(doc))
		return bad(err, "an entry has the strings backend, kind, id, name, created, "
				"owner, by and at, and nothing else");
	*ret = (struct ledger_entry){
		.backend = jv_str(doc, "backend", ""),
		.kind = jv_str(doc, "kind", ""),
		.id = jv_str(doc, "id", ""),
		.name = jv_str(doc, "name", ""),
		.created = jv_str(doc, "created", ""),
		.owner = jv_str(doc, "owner", ""),
		.by = jv_str(doc, "by", ""),
		.at = jv_str(doc, "at", ""),
	};
	volume = strcmp(ret->kind, "volume") == 0;
	if (!is_kind(ret->kind))
		return bad(err, "kind is container, network or volume");
	if (volume ? !*ret->id || !*ret->created : !hash_is_hex(span_of(ret->id)) || *ret->created)
		return bad(err, "containers and networks have a full id, volumes a name and the "
				"time at which they were made");
	if (!*ret->backend || !*ret->owner || strlen(ret->owner) > OWNER_MAX)
		return bad(err, "an entry names a backend and an owner");
	return 0;
}

void ledger_entry_write(struct buf *out, const struct ledger_entry *e)
{
	const char *const values[MEMBERS] = {e->backend, e->kind,  e->id, e->name,
					     e->created, e->owner, e->by, e->at};
	const char *between = "{";

	for (size_t i = 0; i < MEMBERS; i++) {
		if (!values[i] || !*values[i])
			continue;
		buf_printf(out, "%s\"%s\":", between, members[i]);
		jv_write_str(out, span_of(values[i]));
		between = ",";
	}
	buf_puts(out, "}");
}

/* --- the list --- */

static int compare(const struct ledger_entry *a, const char *backend, const char *kind,
		   const char *id)
{
	int by = strcmp(a->backend, backend);

	if (!by)
		by = strcmp(a->kind, kind);
	return by ? by : strcmp(a->id, id);
}

struct ledger_entry *ledger_find(const struct ledger *l, const char *backend, const char *kind,
				 const char *id)
{
	for (size_t i = 0; i < l->count; i++)
		if (compare(&l->entries[i], backend, kind, id) == 0)
			return &l->entries[i];
	return NULL;
}

int ledger_add(struct ledger *l, const struct ledger_entry *e, struct err *err)
{
	size_t at = 0;

	if (l->count == LEDGER_ENTRIES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d objects", LEDGER_ENTRIES_MAX);
	while (at < l->count && compare(&l->entries[at], e->backend, e->kind, e->id) < 0)
		at++;
	if (at < l->count && compare(&l->entries[at], e->backend, e->kind, e->id) == 0)
		return err_set(err, ERR_INPUT, "%s %.80s stands twice", e->kind, e->id);
	memmove(&l->entries[at + 1], &l->entries[at], (l->count - at) * sizeof(*e));
	l->entries[at] = *e;
	l->count++;
	return 0;
}

void ledger_drop(struct ledger *l, struct ledger_entry *e)
{
	size_t at = (size_t)(e - l->entries);

	memmove(e, e + 1, (l->count - at - 1) * sizeof(*e));
	l->count--;
}

/* --- reading --- */

static int read_objects(const struct jv *doc, struct ledger *ret, struct err *err)
{
	const struct jv *list = jv_get(doc, "objects");

	if (doc->kind != JV_OBJECT || doc->count != 2 || jv_num(doc, "version", 0) != 1 || !list ||
	    list->kind != JV_ARRAY)
		return bad(err, "{\"version\":1,\"objects\":[...]} is expected");
	for (size_t i = 0; i < list->count; i++) {
		struct ledger_entry e;

		if (ledger_entry_parse(&list->items[i], &e, err) < 0 ||
		    ledger_add(ret, &e, err) < 0)
			return err_wrap(err, "object %zu", i + 1);
	}
	return 0;
}

int ledger_parse(struct span text, struct arena *a, struct ledger *ret, struct err *err)
{
	enum jv_fault fault;
	struct jv doc;

	*ret = (struct ledger){arena_take(a, LEDGER_ENTRIES_MAX * sizeof(*ret->entries)), 0};
	if (!ret->entries)
		return err_set(err, ERR_LIMIT, "no memory");
	if (!text.len)
		return 0;
	if (jv_parse(a, text, &doc, &fault, err) < 0 || read_objects(&doc, ret, err) < 0) {
		err->kind = ERR_CONFIG;
		return -1;
	}
	return 0;
}

/* Whoever can write it says whose things are. */
static int check_writers(const char *path, const struct stat *st, struct err *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(err, ERR_CONFIG, "%s belongs to uid %u: chown it to root", path,
			       (unsigned)st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, ERR_CONFIG, "%s can be written by others: chmod go-w it", path);
	return 0;
}

static int check_file(const char *path, struct err *err)
{
	char copy[PATH_MAX];
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_sys(err, "look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s is no plain file", path);
	if (check_writers(path, &st, err) < 0)
		return -1;
	snprintf(copy, sizeof(copy), "%s", path);
	if (stat(dirname(copy), &st) < 0)
		return err_sys(err, "look at the folder of %s", path);
	/* In a folder like /tmp nobody can replace what is not theirs. */
	if (st.st_mode & S_ISVTX)
		return 0;
	snprintf(copy, sizeof(copy), "%s", path);
	return check_writers(dirname(copy), &st, err);
}

int ledger_read(const char *path, struct arena *a, struct ledger *ret, struct err *err)
{
	struct buf text;
	int rc = -1;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return ledger_parse((struct span){"", 0}, a, ret, err);
	if (check_file(path, err) < 0)
		return err_wrap(err, "the ledger");
	if (io_read_file(path, LEDGER_BYTES_MAX, &text, err) < 0)
		return err_wrap(err, "the ledger");
	if (!buf_len(&text))
		err_set(err, ERR_CONFIG, "it is empty");
	else
		rc = ledger_parse(buf_span(&text), a, ret, err);
	buf_fini(&text);
	return rc < 0 ? err_wrap(err, "the ledger %s", path) : 0;
}

/* --- writing --- */

static void write_text(struct buf *out, const struct ledger *l)
{
	buf_puts(out, "{\"version\":1,\"objects\":[\n");
	for (size_t i = 0; i < l->count; i++) {
		ledger_entry_write(out, &l->entries[i]);
		buf_puts(out, i + 1 < l->count ? ",\n" : "\n");
	}
	buf_puts(out, "]}\n");
}

int ledger_write(const char *path, const struct ledger *l, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, LEDGER_BYTES_MAX);
	write_text(&text, l);
	rc = buf_spent(&text) ? err_set(err, ERR_LIMIT, "the ledger would be too large")
			      : io_replace(AT_FDCWD, path, 0644, buf_span(&text), err);
	buf_fini(&text);
	return rc;
}

/* --- for those who work by it --- */

/* The entries of one backend are next to each other. */
static int give_backends(struct config *c, const struct ledger *l, struct arena *a, struct err *err)
{
	struct adopted *list = arena_take(a, l->count * sizeof(*list));

	if (!list)
		return err_set(err, ERR_LIMIT, "the ledger: no memory");
	for (size_t i = 0; i < l->count; i++) {
		const struct ledger_entry *e = &l->entries[i];
		struct conf_backend *b = NULL;

		list[i] = (struct adopted){e->kind, e->id, e->created, e->owner};
		for (size_t k = 0; k < c->proxy.backend_count; k++)
			if (strcmp(c->backends[k].name, e->backend) == 0)
				b = &c->backends[k];
		if (!b)
			return err_set(err, ERR_CONFIG,
				       "the ledger %s: no backend is called '%.80s'", c->ledger,
				       e->backend);
		if (!b->adopted_count++)
			b->adopted = &list[i];
	}
	return 0;
}

static int give_auditor(struct config *c, const struct ledger *l, struct arena *a, struct err *err)
{
	struct audit_adoption *list = arena_take(a, l->count * sizeof(*list));
	struct buf text;

	for (size_t i = 0; list && i < l->count; i++) {
		const struct ledger_entry *e = &l->entries[i];

		buf_init(&text, 65536);
		ledger_entry_write(&text, e);
		list[i] = (struct audit_adoption){
			.backend = e->backend,
			.kind = e->kind,
			.id = e->id,
			.name = e->name,
			.owner = e->owner,
			.entry = span_of(arena_strndup(a, buf_span(&text).at, buf_len(&text))),
		};
		buf_fini(&text);
	}
	if (!list || arena_spent(a))
		return err_set(err, ERR_LIMIT, "the ledger: no memory");
	c->auditor.adoptions = list;
	c->auditor.adoption_count = l->count;
	return 0;
}

int ledger_load(struct config *c, struct arena *a, struct err *err)
{
	struct ledger l;

	if (!c->ledger || !*c->ledger)
		return 0;
	if (ledger_read(c->ledger, a, &l, err) < 0 || give_backends(c, &l, a, err) < 0)
		return -1;
	return give_auditor(c, &l, a, err);
}

int ledger_carry(const struct config *from, struct config *to, struct arena *a, struct err *err)
{
	struct ledger l;
	struct buf text;
	int rc;

	if (!from->auditor.adoption_count)
		return 0;
	buf_init(&text, 2 * LEDGER_BYTES_MAX);
	buf_puts(&text, "{\"version\":1,\"objects\":[");
	for (size_t i = 0; i < from->auditor.adoption_count; i++) {
		struct span entry = from->auditor.adoptions[i].entry;

		buf_puts(&text, i ? "," : "");
		buf_put(&text, entry.at, entry.len);
	}
	buf_puts(&text, "]}");
	rc = buf_spent(&text) ? err_set(err, ERR_LIMIT, "the ledger: no memory")
			      : ledger_parse(buf_span(&text), a, &l, err);
	buf_fini(&text);
	if (rc < 0 || give_backends(to, &l, a, err) < 0)
		return -1;
	return give_auditor(to, &l, a, err);
}
