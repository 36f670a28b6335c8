/* cmd_adopt.c - the ledger of objects that are older than the gate: adding, showing, removing. */
#include "gate/command.h"

#include "audit/verify.h"
#include "gate/base/jv.h"
#include "gate/base/nearest.h"
#include "gate/ledger.h"
#include "gate/serve.h"
#include "proxy/engine_get.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARENA_MAX     ((size_t)128 << 20)
#define LIMIT_MS      30000
#define ID_PREFIX_MIN 12
#define LINE_MAX_     65536 /* of the audit log, with its end */

/* One run of a verb. */
struct adopting {
	const struct args *args;
	const struct config *config;
	struct arena *arena;
	struct ledger ledger;
	const char *self; /* the gate's own container, or "" */
};

/* --- what the engine has --- */

static const struct {
	const char *kind, *target, *list; /* list: where the rows are; "" for the whole */
	enum reach_kind reach;
} kinds[] = {
	{"container", "/containers/json?all=1", "", REACH_CONTAINERS},
	{"volume", "/volumes", "Volumes", REACH_VOLUMES},
	{"network", "/networks", "", REACH_NETWORKS},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* The rows of a list; the engine is asked as the operator who runs this. */
static int ask(const struct adopting *a, const struct conf_backend *b, size_t kind, struct jv *ret,
	       struct err *err)
{
	const struct jv *rows;
	enum jv_fault fault;
	struct buf body;
	struct jv doc;
	int status, rc = -1;

	if (engine_get(b, kinds[kind].target, LIMIT_MS, &status, &body, err) < 0)
		return err_wrap(err, "backend \"%s\"", b->name);
	if (status != 200)
		err_set(err, ERR_UPSTREAM, "backend \"%s\" answered GET %s with status %d", b->name,
			kinds[kind].target, status);
	else
		rc = jv_parse(a->arena, buf_span(&body), &doc, &fault, err);
	buf_fini(&body);
	if (rc < 0)
		return -1;
	rows = *kinds[kind].list ? jv_get(&doc, kinds[kind].list) : &doc;
	*ret = rows && rows->kind == JV_ARRAY ? *rows : jv_array();
	return 0;
}

/* "/web" of a container; links to it have a second slash. */
static const char *name_of(size_t kind, const struct jv *row)
{
	const struct jv *names = jv_get(row, "Names");

	if (kinds[kind].reach != REACH_CONTAINERS)
		return jv_str(row, "Name", "");
	for (size_t i = 0; names && names->kind == JV_ARRAY && i < names->count; i++)
		if (names->items[i].kind == JV_STRING && names->items[i].str.len &&
		    !strchr(names->items[i].str.at + 1, '/'))
			return names->items[i].str.at + 1;
	return "";
}

static struct ledger_entry entry_of(const struct adopting *a, const struct conf_backend *b,
				    size_t kind, const struct jv *row)
{
	bool volume = kinds[kind].reach == REACH_VOLUMES;
	const char *name = name_of(kind, row);

	return (struct ledger_entry){
		.backend = b->name,
		.kind = kinds[kind].kind,
		.id = volume ? name : jv_str(row, "Id", ""),
		.name = name,
		.created = volume ? jv_str(row, "CreatedAt", "") : "",
		.owner = a->args->owner,
		.by = "",
		.at = "",
	};
}

/* --- the filter --- */

/* "label=a=b" and "name=web-*" mean what they mean in a profile's visibility. */
static int read_filter(const struct adopting *a, struct reach *ret, struct span *ret_id,
		       struct err *err)
{
	struct span value = span_of(a->args->filter), word;
	struct jv entry = jv_object(), list = jv_array();

	*ret_id = (struct span){"", 0};
	if (!span_cut(&value, '=', &word) || !value.len)
		return err_set(err, ERR_INPUT,
			       "--filter takes label=NAME[=GLOB], name=GLOB or id=ID");
	if (span_is(word, "id")) {
		*ret_id = value;
		*ret = (struct reach){NULL, 0};
		return 0;
	}
	if (!span_is(word, "label") && !span_is(word, "name"))
		return err_set(err, ERR_INPUT,
			       "--filter takes label=NAME[=GLOB], name=GLOB or id=ID");
	jv_set_span(a->arena, &entry, word, jv_span(value));
	jv_push(a->arena, &list, entry);
	if (reach_read(&list, a->arena, ret, err) < 0)
		return err_wrap(err, "--filter %s", a->args->filter);
	return 0;
}

/* A part of an id is enough where it is long; a volume's name is whole. */
static bool has_id(const struct ledger_entry *e, struct span id)
{
	if (span_is(id, e->id))
		return true;
	return strcmp(e->kind, "volume") != 0 && id.len >= ID_PREFIX_MIN &&
	       strlen(e->id) >= id.len && memcmp(e->id, id.at, id.len) == 0;
}

static bool is_meant(const struct ledger_entry *e, enum reach_kind kind, const struct jv *labels,
		     const struct reach *reach, struct span id)
{
	const char *const names[] = {e->name, NULL};
	const struct reach_object o = {.kind = kind, .names = names, .labels = labels};

	return id.len ? has_id(e, id) : reach_of(reach, &o) != ACCESS_NONE;
}

/* What is somebody's, the gate's or the engine's own cannot be given away: why not, or NULL. */
static const char *why_not(const struct adopting *a, const struct ledger_entry *e,
			   const struct jv *labels)
{
	const struct ledger_entry *old = ledger_find(&a->ledger, e->backend, e->kind, e->id);
	const char *self = a->self;

	if (jv_get(labels, GATE_LABEL_SELF) ||
	    (*self && strcmp(e->kind, "container") == 0 &&
	     (strcmp(self, e->name) == 0 || has_id(e, span_of(self)))))
		return "is the gate's own";
	if (*jv_str(labels, GATE_LABEL_OWNER, ""))
		return "was made through the gate, and has an owner";
	if (strcmp(e->kind, "network") == 0 &&
	    (strcmp(e->name, "bridge") == 0 || strcmp(e->name, "host") == 0 ||
	     strcmp(e->name, "none") == 0))
		return "is the engine's own";
	if (!*e->id || (strcmp(e->kind, "volume") == 0 && !*e->created))
		return "is not told by the engine in full";
	/* Another volume had that name. */
	if (old && strcmp(old->created, e->created) != 0)
		return NULL;
	if (old && strcmp(old->owner, e->owner) != 0)
		return "belongs to somebody else; 'adopt remove' it first";
	return old ? "is adopted already" : NULL;
}

/* --- adopt --- */

/* A mistyped owner would be nobody. */
static int check_owner(const struct adopting *a, struct err *err)
{
	const struct proxy_conf *p = &a->config->proxy;
	const char *owner = a->args->owner, *at = strchr(owner, '@');
	struct nearest near = nearest_to(span_of(owner));
	char hint[NEAREST_TEXT_MAX];

	for (size_t i = 0; i < p->identity_count; i++) {
		if (strcmp(p->identities[i].owner, owner) == 0)
			return 0;
		nearest_offer(&near, p->identities[i].owner);
	}
	for (size_t i = 0; at && strncmp(owner, "uid-", 4) == 0 && i < p->listener_count; i++)
		if (strcmp(p->listeners[i].callers, at + 1) == 0 &&
		    strspn(owner + 4, "0123456789") == (size_t)(at - owner) - 4)
			return 0;
	return err_set(err, ERR_INPUT, "no identity has the owner '%.80s'%s", owner,
		       nearest_text(&near, hint));
}

static const struct conf_backend *find_backend(const struct adopting *a, struct err *err)
{
	const struct proxy_conf *p = &a->config->proxy;
	const char *name = a->args->backend;

	if (!name && p->backend_count > 1) {
		err_set(err, ERR_INPUT, "there are several backends: give --backend NAME");
		return NULL;
	}
	for (size_t i = 0; i < p->backend_count; i++)
		if (!name || strcmp(p->backends[i].name, name) == 0)
			return &p->backends[i];
	err_set(err, ERR_INPUT, "no backend is called '%.80s'", name);
	return NULL;
}

static const char *who(const struct adopting *a)
{
	const struct passwd *pw = getpwuid(getuid());
	char text[64];

	snprintf(text, sizeof(text), "uid %u", (unsigned)getuid());
	if (pw)
		snprintf(text, sizeof(text), "%.60s", pw->pw_name);
	return arena_strndup(a->arena, text, strlen(text));
}

static const char *now(const struct adopting *a)
{
	char text[32];
	time_t t = time(NULL);
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	return arena_strndup(a->arena, text, strlen(text));
}

static int take(struct adopting *a, struct ledger_entry e, struct err *err)
{
	struct ledger_entry *old = ledger_find(&a->ledger, e.backend, e.kind, e.id);

	if (old)
		ledger_drop(&a->ledger, old);
	e.by = who(a);
	e.at = now(a);
	printf("%s %s (%.12s) belongs to %s\n", e.kind, e.name, e.id, e.owner);
	return ledger_add(&a->ledger, &e, err);
}

/* All of one kind that are meant; *taken counts them. */
static int take_kind(struct adopting *a, const struct conf_backend *b, size_t kind, size_t *taken,
		     struct err *err)
{
	struct reach reach;
	struct span id;
	struct jv rows = jv_array();

	if (read_filter(a, &reach, &id, err) < 0 || ask(a, b, kind, &rows, err) < 0)
		return -1;
	for (size_t i = 0; i < rows.count; i++) {
		const struct jv *labels = jv_get(&rows.items[i], "Labels");
		struct ledger_entry e = entry_of(a, b, kind, &rows.items[i]);
		const char *no;

		if (!is_meant(&e, kinds[kind].reach, labels, &reach, id))
			continue;
		no = why_not(a, &e, labels);
		if (no) {
			printf("%s %s (%.12s) %s\n", e.kind, e.name, e.id, no);
			continue;
		}
		if (take(a, e, err) < 0)
			return -1;
		(*taken)++;
	}
	return 0;
}

static int check_kind(const char *kind, struct err *err)
{
	if (!kind)
		return 0;
	if (strcmp(kind, "image") == 0)
		return err_set(err, ERR_INPUT, "images belong to nobody, so none can be adopted");
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].kind, kind) == 0)
			return 0;
	return err_set(err, ERR_INPUT, "--kind is container, volume or network");
}

static int save(struct adopting *a, struct err *err)
{
	if (a->args->dry_run)
		return 0;
	if (arena_spent(a->arena))
		return err_set(err, ERR_LIMIT, "no memory");
	if (ledger_write(a->config->ledger, &a->ledger, err) < 0)
		return -1;
	printf("%s has %zu objects. Restart the gate, a reload is not enough: it reads them, and "
	       "puts them on record, when "
	       "it starts.\n",
	       a->config->ledger, a->ledger.count);
	return 0;
}

static int adopt(struct adopting *a, struct err *err)
{
	const struct conf_backend *b;
	size_t taken = 0;

	if (check_kind(a->args->kind, err) < 0 || check_owner(a, err) < 0)
		return -1;
	b = find_backend(a, err);
	if (!b)
		return -1;
	for (size_t i = 0; i < KINDS; i++)
		if ((!a->args->kind || strcmp(kinds[i].kind, a->args->kind) == 0) &&
		    take_kind(a, b, i, &taken, err) < 0)
			return -1;
	if (taken)
		return save(a, err) < 0 ? -1 : EXIT_YES;
	puts("Nothing was adopted.");
	return EXIT_NO;
}

/* --- list and remove --- */

static int list(struct adopting *a, struct err *err)
{
	struct buf text;

	(void)err;
	buf_init(&text, LEDGER_BYTES_MAX);
	for (size_t i = 0; i < a->ledger.count; i++) {
		const struct ledger_entry *e = &a->ledger.entries[i];

		if (a->args->json) {
			buf_puts(&text, i ? "," : "");
			ledger_entry_write(&text, e);
		} else {
			printf("%-10s %-9s %-12.12s %-24s %-20s %s by %s\n", e->backend, e->kind,
			       e->id, e->name, e->owner, e->at, e->by);
		}
	}
	if (a->args->json)
		printf("[%.*s]\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
	return EXIT_YES;
}

static int drop_one(struct adopting *a, const char *id, struct err *err)
{
	size_t dropped = 0;

	for (size_t i = a->ledger.count; i-- > 0;) {
		struct ledger_entry *e = &a->ledger.entries[i];

		if (!has_id(e, span_of(id)) ||
		    (a->args->backend && strcmp(a->args->backend, e->backend) != 0))
			continue;
		printf("%s %s (%.12s) belongs to %s no more\n", e->kind, e->name, e->id, e->owner);
		ledger_drop(&a->ledger, e);
		dropped++;
	}
	return dropped ? 0 : err_set(err, ERR_INPUT, "the ledger has no '%.80s'", id);
}

static int drop(struct adopting *a, struct err *err)
{
	if (!a->args->rest_count)
		return err_set(err, ERR_INPUT, "name what is to be removed: full ids, or volumes");
	for (size_t i = 0; i < a->args->rest_count; i++)
		if (drop_one(a, a->args->rest[i], err) < 0)
			return -1;
	return save(a, err) < 0 ? -1 : EXIT_YES;
}

/* --- from the log --- */

/* Each start of the gate writes down the whole ledger; the newest that had one counts. */
static int take_line(struct adopting *a, struct span line, bool *fresh, struct err *err)
{
	struct ledger_entry e;
	enum jv_fault fault;
	struct jv doc;

	if (memmem(line.at, line.len, "\"type\":\"gate_start\"", 19)) {
		*fresh = true;
		return 0;
	}
	if (!memmem(line.at, line.len, "\"type\":\"adopt\"", 14))
		return 0;
	if (jv_parse(a->arena, line, &doc, &fault, err) < 0)
		return -1;
	if (strcmp(jv_str(&doc, "type", ""), "adopt") != 0)
		return 0; /* the words stood in a string */
	if (*fresh)
		a->ledger.count = 0;
	*fresh = false;
	if (!jv_get(&doc, "facts"))
		return err_set(err, ERR_INPUT, "a record of an adoption has no entry");
	return ledger_entry_parse(jv_get(&doc, "facts"), &e, err) < 0
		       ? -1
		       : ledger_add(&a->ledger, &e, err);
}

static int take_log(struct adopting *a, FILE *log, struct err *err)
{
	char *line = NULL;
	bool fresh = true;
	size_t size = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = getline(&line, &size, log)) > 0)
		if (line && n <= LINE_MAX_)
			rc = take_line(a, (struct span){line, (size_t)n}, &fresh, err);
	free(line);
	return rc;
}

static int rebuild(struct adopting *a, struct err *err)
{
	const char *dir = a->config->auditor.dir;
	struct verify_report report;
	FILE *log;
	int rc;

	verify_log(dir, NULL, &report);
	if (report.result != VERIFY_FINE)
		return err_set(err, ERR_INPUT, "the log %s is not whole: %s", dir, report.what);
	log = tmpfile();
	if (!log)
		return err_sys(err, "make a temporary file");
	a->ledger.count = 0;
	rc = log_tail(dir, report.records, false, fileno(log), err);
	rewind(log);
	if (rc == 0)
		rc = take_log(a, log, err);
	fclose(log);
	if (rc < 0)
		return -1;
	if (!a->ledger.count) {
		puts("The log says nothing of adopted objects.");
		return EXIT_NO;
	}
	list(a, err);
	return save(a, err) < 0 ? -1 : EXIT_YES;
}

/* --- running --- */

static int with_ledger(const struct args *args, int (*fn)(struct adopting *, struct err *),
		       bool from_file)
{
	struct adopting a = {.args = args, .arena = arena_create(ARENA_MAX)};
	char self[SELF_ID_MAX + 1] = "";
	struct err err = {0};
	struct loaded loaded;
	int answer = -1;

	if (!a.arena)
		err_set(&err, ERR_SYSTEM, "no memory");
	else if (load_without_ledger(args->config, &loaded, &err) == 0) {
		a.config = &loaded.config;
		a.self = *loaded.config.proxy.self || !self_container(self)
				 ? loaded.config.proxy.self
				 : self;
		if (!*loaded.config.ledger)
			err_set(&err, ERR_CONFIG,
				"%s names no ledger: add adopted { ledger = "
				"\"/var/lib/sallyport/adopted.json\" }",
				args->config);
		else if ((from_file ? ledger_read(loaded.config.ledger, a.arena, &a.ledger, &err)
				    : ledger_parse((struct span){"", 0}, a.arena, &a.ledger,
						   &err)) == 0)
			answer = fn(&a, &err);
		unload(&loaded);
	}
	arena_destroy(a.arena);
	return answer < 0 ? command_failed(&err) : answer;
}

int run_adopt(const struct args *args)
{
	return with_ledger(args, adopt, true);
}

int run_adopt_list(const struct args *args)
{
	return with_ledger(args, list, true);
}

int run_adopt_remove(const struct args *args)
{
	return with_ledger(args, drop, true);
}

int run_adopt_rebuild(const struct args *args)
{
	return with_ledger(args, rebuild, false);
}
