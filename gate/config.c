#include "gate/config_priv.h"

#include "backends/backend.h"
#include "gate/base/nearest.h"

#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

static const struct config_word words[] = {
#define WORD(word, shape, times, doc) {#word, SHAPE_##shape, TIMES_##times, doc},
#define KEY(word, key, kind, need, fallback, doc)
#define NUMBER(word, key, field, min, max, unit, doc)
#define TIMES_ONCE true
#define TIMES_MANY false
#include "gate/config.def"
#undef WORD
#undef KEY
#undef NUMBER
};
#define WORDS (sizeof(words) / sizeof(*words))

static const struct config_row rows[] = {
#define WORD(word, shape, times, doc)
#define KEY(word, key, kind, need, fallback, doc)                                                  \
	{#word, #key, KIND_##kind, NEED_##need, fallback, doc, 0, 0, 0, 0, ""},
#define NUMBER(word, key, field, min, max, unit, doc)                                              \
	{#word,                                                                                    \
	 #key,                                                                                     \
	 KIND_NUMBER,                                                                              \
	 NEED_OPTIONAL,                                                                            \
	 "",                                                                                       \
	 doc,                                                                                      \
	 offsetof(struct config, field),                                                           \
	 sizeof(((struct config *)0)->field),                                                      \
	 min,                                                                                      \
	 max,                                                                                      \
	 unit},
#include "gate/config.def"
#undef WORD
#undef KEY
#undef NUMBER
};
#define ROWS (sizeof(rows) / sizeof(*rows))

const struct config_word *config_word_at(size_t i)
{
	return i < WORDS ? &words[i] : NULL;
}

const struct config_row *config_row_at(size_t i)
{
	return i < ROWS ? &rows[i] : NULL;
}

const struct luadata_word *config_words(size_t *ret_count)
{
	static struct luadata_word list[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		list[i] = (struct luadata_word){words[i].word, words[i].shape == SHAPE_NAMED};
	*ret_count = WORDS;
	return list;
}

uint64_t config_number(const struct config *c, const struct config_row *row)
{
	const char *from = (const char *)c + row->offset;
	uint32_t narrow;
	uint64_t wide;

	if (row->width == sizeof(narrow)) {
		memcpy(&narrow, from, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, from, sizeof(wide));
	return wide;
}

static void store_number(struct config *c, const struct config_row *row, uint64_t value)
{
	char *to = (char *)c + row->offset;
	uint32_t narrow = (uint32_t)value;

	if (row->width == sizeof(narrow))
		memcpy(to, &narrow, sizeof(narrow));
	else
		memcpy(to, &value, sizeof(value));
}

int config_wrong(const struct config_entry *e, struct err *err, const char *fmt, ...)
{
	char what[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, ERR_CONFIG, "%s:%lld: %s%s%s%s: %s", e->path, (long long)e->line,
		       e->word, *e->name ? " \"" : "", e->name, *e->name ? "\"" : "", what);
}

/* --- how a value of each kind is checked; each says whether it is fine --- */

static bool is_text(const struct jv *v)
{
	if (v->kind != JV_STRING || v->str.len == 0 || v->str.len > 4096)
		return false;
	for (size_t i = 0; i < v->str.len; i++)
		if ((unsigned char)v->str.at[i] < 0x20 || v->str.at[i] == 0x7f)
			return false;
	return true;
}

static bool is_bool(const struct jv *v)
{
	return v->kind == JV_BOOL;
}

/* Absolute, and in its one plain form: "/a/b" without "//", "/./", "/../" or a last "/". */
static bool is_clean_path(const char *p)
{
	if (p[0] != '/' || !p[1])
		return false;
	while (*p) {
		size_t len = strcspn(p + 1, "/");

		if (len == 0 || (len == 1 && p[1] == '.') ||
		    (len == 2 && p[1] == '.' && p[2] == '.'))
			return false;
		p += 1 + len;
	}
	return true;
}

static bool is_path(const struct jv *v)
{
	return is_text(v) && v->str.len < 4096 && is_clean_path(v->str.at);
}

/* The status socket stands beside it, under a longer name. */
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof(".status"))

static bool is_socket(const struct jv *v)
{
	return is_path(v) && v->str.len <= SOCKET_PATH_MAX;
}

static bool is_address(const struct jv *v)
{
	const char *path = is_text(v) ? config_address_path(v->str.at) : NULL;
	struct conf_tcp tcp;

	if (!path)
		return is_text(v) && config_address_tcp(v->str.at, NULL, &tcp) == 0;
	return is_clean_path(path) && strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path);
}

static bool is_kind(const struct jv *v)
{
	return is_text(v) && backend_find(v->str.at);
}

static bool is_observe(const struct jv *v)
{
	return v->kind == JV_STRING &&
	       (span_is(v->str, "record") || span_is(v->str, "alarm") || span_is(v->str, "off"));
}

static bool is_files(const struct jv *v)
{
	return v->kind == JV_STRING && (span_is(v->str, "same_host") || span_is(v->str, "none"));
}

static bool is_user(const struct jv *v)
{
	return is_text(v) && getpwnam(v->str.at);
}

static bool is_group(const struct jv *v)
{
	return is_text(v) && getgrnam(v->str.at);
}

static bool is_id(const struct jv *v)
{
	return v->kind == JV_INT && v->i >= 0 && v->i < UINT32_MAX;
}

static bool is_uid(const struct jv *v)
{
	return is_id(v) || is_user(v);
}

static bool is_gid(const struct jv *v)
{
	return is_id(v) || is_group(v);
}

static bool is_mode(const struct jv *v)
{
	return v->kind == JV_STRING && (v->str.len == 3 || v->str.len == 4) &&
	       strspn(v->str.at, "01234567") == v->str.len &&
	       (v->str.len == 3 || v->str.at[0] == '0');
}

static bool is_names(const struct jv *v)
{
	if (v->kind != JV_ARRAY && !jv_is_neutral(v))
		return false;
	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++)
		if (!is_text(&v->items[i]))
			return false;
	return v->kind == JV_ARRAY || v->kind == JV_OBJECT;
}

static bool is_token(const struct jv *v)
{
	struct hash hash;

	return v->kind == JV_STRING && span_starts(v->str, TOKEN_PREFIX) &&
	       hash_parse(span_skip(v->str, sizeof(TOKEN_PREFIX) - 1), &hash) == 0;
}

static bool is_tcp(const struct jv *v)
{
	struct listen_tcp at;

	return v->kind == JV_STRING && listen_tcp_parse(v->str.at, &at) == 0;
}

static bool is_cert(const struct jv *v)
{
	struct cert_rule ignored;

	return v->kind == JV_STRING && cert_rule_parse(v->str, &ignored) == 0;
}

static bool is_clients(const struct jv *v)
{
	return v->kind == JV_STRING && (span_is(v->str, "required") || span_is(v->str, "optional"));
}

/* Its keys are looked at one by one. */
static bool is_table(const struct jv *v)
{
	return v->kind == JV_OBJECT || v->kind == JV_STRING ||
	       (v->kind == JV_ARRAY && v->count == 0);
}

static bool is_retention_mode(const struct jv *v)
{
	enum retention_mode ignored;

	return v->kind == JV_STRING && config_retention_mode(v->str.at, &ignored);
}

static bool is_sink(const struct jv *v)
{
	return v->kind == JV_STRING && sink_kind_find(v->str.at);
}

static bool is_number(const struct jv *v)
{
	return v->kind == JV_INT || v->kind == JV_STRING;
}

static const struct {
	bool (*fits)(const struct jv *v);
	const char *text;
} kinds[] = {
	[KIND_TEXT] = {is_text, "a text of one line"},
	[KIND_BOOL] = {is_bool, "true or false"},
	[KIND_PATH] = {is_path, "an absolute path without '..', '.', '//' or a '/' at its end"},
	[KIND_SOCKET] = {is_socket, "an absolute path of at most 100 bytes"},
	[KIND_ADDRESS] = {is_address, "\"unix:///PATH\" or \"tcp://HOST:PORT\""},
	[KIND_KIND] = {is_kind, "the name of an adapter"},
	[KIND_OBSERVE] = {is_observe, "\"record\", \"alarm\" or \"off\""},
	[KIND_FILES] = {is_files, "\"same_host\" or \"none\""},
	[KIND_USER] = {is_user, "the name of a user of this host"},
	[KIND_GROUP] = {is_group, "the name of a group of this host"},
	[KIND_UID] = {is_uid, "a uid, or the name of a user of this host"},
	[KIND_GID] = {is_gid, "a gid, or the name of a group of this host"},
	[KIND_MODE] = {is_mode, "an octal mode as a string, such as \"0660\""},
	[KIND_TOKEN] = {is_token,
			"\"sha256:\" and 64 hexadecimal digits (`sallyport token` makes one)"},
	[KIND_TCP] = {is_tcp,
		      "an address with a port, such as \"127.0.0.1:2375\" or \"[::1]:2375\""},
	[KIND_CERT] = {is_cert, CERT_RULE_TEXT},
	[KIND_CLIENTS] = {is_clients, "\"required\" or \"optional\""},
	[KIND_TABLE] = {is_table, "a table of keys, such as { key = value }"},
	[KIND_MODE_OF_RETENTION] = {is_retention_mode, "\"signed\", \"evidence\" or \"forever\""},
	[KIND_SINK] = {is_sink, "\"postgres\", \"syslog\", \"https\" or \"journald\""},
	[KIND_NAMES] = {is_names, "a list of names"},
	[KIND_NUMBER] = {is_number, "a whole number"},
};
_Static_assert(sizeof(kinds) / sizeof(*kinds) == KIND_COUNT, "a check each");

bool config_fits(enum config_kind kind, const struct jv *v)
{
	return kinds[kind].fits(v);
}

const char *config_kind_text(enum config_kind kind)
{
	return kinds[kind].text;
}

/* What stood there, short enough for a message. */
static const char *shown(const struct jv *v, char out[64])
{
	if (v->kind == JV_STRING)
		snprintf(out, 64, "\"%.48s\"", v->str.at);
	else if (v->kind == JV_INT)
		snprintf(out, 64, "%lld", (long long)v->i);
	else if (v->kind == JV_BOOL)
		snprintf(out, 64, "%s", v->b ? "true" : "false");
	else
		snprintf(out, 64, "this %s", jv_kind_name(v->kind));
	return out;
}

/* --- numbers --- */

static bool number_of(const struct config_row *row, const struct jv *v, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		unsigned shift;
	} sizes[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
	size_t digits;
	uint64_t n = 0;

	if (v->kind == JV_INT) {
		*ret = (uint64_t)v->i;
		return v->i >= 0;
	}
	digits = strspn(v->str.at, "0123456789");
	if (strcmp(row->unit, "bytes") != 0 || digits == 0 || digits > 6)
		return false;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (uint64_t)(v->str.at[i] - '0');
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (span_is(span_skip(v->str, digits), sizes[i].suffix)) {
			*ret = n << sizes[i].shift;
			return true;
		}
	return false;
}

static int check_number(const struct config_entry *e, const struct config_row *row,
			const struct jv *v, struct config *ret, struct err *err)
{
	char text[64];
	uint64_t n;

	if (!number_of(row, v, &n) || n < row->min || n > row->max)
		return config_wrong(e, err, "%s takes %llu to %llu %s, not %s", row->key,
				    (unsigned long long)row->min, (unsigned long long)row->max,
				    row->unit, shown(v, text));
	store_number(ret, row, n);
	return 0;
}

/* --- entries --- */

bool config_retention_mode(const char *name, enum retention_mode *ret)
{
	static const char *const names[RETENTION_MODE_COUNT] = {
		[RETENTION_FOREVER] = "forever",
		[RETENTION_SIGNED] = "signed",
		[RETENTION_EVIDENCE] = "evidence",
	};

	for (size_t i = 0; i < RETENTION_MODE_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum retention_mode)i;
			return true;
		}
	return false;
}

static const struct config_row *find_row(const char *word, struct span key)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].word, word) == 0 && span_is(key, rows[i].key))
			return &rows[i];
	return NULL;
}

static int unknown_key(const struct config_entry *e, const char *word, struct span key,
		       struct err *err)
{
	char typed[64], hint[NEAREST_TEXT_MAX];
	struct nearest near;

	snprintf(typed, sizeof(typed), "%.*s", SPAN_FMT(key));
	near = nearest_to(span_of(typed));
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].word, word) == 0)
			nearest_offer(&near, rows[i].key);
	return config_wrong(e, err, "there is no key '%s'%s", typed, nearest_text(&near, hint));
}

static int wrong_kind(const struct config_entry *e, const struct config_row *row,
		      const struct jv *v, struct err *err)
{
	char text[64], hint[NEAREST_TEXT_MAX];
	struct nearest near = nearest_to(span_of(v->kind == JV_STRING ? v->str.at : ""));

	if (row->kind == KIND_KIND)
		for (const struct backend_ops *const *o = backend_all(); *o; o++)
			nearest_offer(&near, (*o)->kind);
	if (row->kind == KIND_TOKEN) /* what stands there may be the token itself */
		return config_wrong(e, err, "%s must be %s", row->key, kinds[row->kind].text);
	return config_wrong(e, err, "%s must be %s, not %s%s", row->key, kinds[row->kind].text,
			    shown(v, text), nearest_text(&near, hint));
}

static int check_inner(const struct config_entry *e, const struct config_row *row,
		       const struct jv *v, struct config *ret, struct err *err);

/* word: the entry's, or the key of a table in it. */
static int check_member(const struct config_entry *e, const char *word, const struct jv_member *m,
			struct config *ret, struct err *err)
{
	const struct config_row *row = find_row(word, m->key);

	if (!row)
		return unknown_key(e, word, m->key, err);
	if (row->need == NEED_NOT_YET)
		return config_wrong(e, err, "'%s' is not in this version; leave it out", row->key);
	if (!kinds[row->kind].fits(&m->value))
		return wrong_kind(e, row, &m->value, err);
	if (row->kind == KIND_NUMBER)
		return check_number(e, row, &m->value, ret, err);
	if (row->kind == KIND_TABLE)
		return check_inner(e, row, &m->value, ret, err);
	return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): no row of a table in a table is one */
static int check_inner(const struct config_entry *e, const struct config_row *row,
		       const struct jv *v, struct config *ret, struct err *err)
{
	const struct config_row *mode = find_row(row->key, span_of("mode"));

	if (v->kind == JV_STRING && !(mode && kinds[mode->kind].fits(v)))
		return wrong_kind(e, mode ? mode : row, v, err);
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		if (check_member(e, row->key, &v->members[i], ret, err) < 0)
			return -1;
	return 0;
}

static int check_table(const struct config_entry *e, struct config *ret, struct err *err)
{
	/* {} in Lua is an empty list as well as an empty table. */
	if (e->value->kind != JV_OBJECT && !(e->value->kind == JV_ARRAY && e->value->count == 0))
		return config_wrong(e, err, "takes a table of keys, such as { key = value }");
	for (size_t i = 0; e->value->kind == JV_OBJECT && i < e->value->count; i++)
		if (check_member(e, e->word, &e->value->members[i], ret, err) < 0)
			return -1;
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].word, e->word) == 0 && rows[i].need == NEED_REQUIRED &&
		    !jv_get(e->value, rows[i].key))
			return config_wrong(e, err, "'%s' is missing: %s", rows[i].key,
					    rows[i].doc);
	return 0;
}

static int check_list(const struct config_entry *e, struct err *err)
{
	if (e->value->kind != JV_ARRAY || !is_names(e->value))
		return config_wrong(e, err, "takes a list of texts, such as { \"a\", \"b\" }");
	return 0;
}

/* Names stand in records, labels and paths of messages. */
static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       len;
}

static int check_entry(const struct config_entry *e, struct config *ret, struct err *err)
{
	const struct config_word *w = NULL;

	for (size_t i = 0; i < WORDS; i++)
		if (strcmp(words[i].word, e->word) == 0)
			w = &words[i];
	if (!w)
		return config_wrong(e, err, "is no word of the configuration");
	if (w->shape == SHAPE_NAMED && !is_name(e->name))
		return config_wrong(e, err, "a name is 1 to 64 letters, digits, '.', '_' and '-'");
	if (w->shape == SHAPE_LIST)
		return check_list(e, err);
	return check_table(e, ret, err);
}

bool config_entry_at(const struct jv *entries, const char *path, const char *word, size_t i,
		     struct config_entry *ret)
{
	for (size_t at = 0; at < entries->count; at++) {
		const struct jv *entry = &entries->items[at];

		if (strcmp(jv_str(entry, "word", ""), word) != 0 || i-- > 0)
			continue;
		*ret = (struct config_entry){
			.path = path,
			.line = jv_num(entry, "line", 0),
			.word = word,
			.name = jv_str(entry, "name", ""),
			.value = jv_get(entry, "value"),
		};
		return true;
	}
	return false;
}

/* A word that stands once, and names that stand once. */
static int check_times(const struct jv *entries, const char *path, const struct config_word *w,
		       struct err *err)
{
	struct config_entry e, before;

	for (size_t i = 0; config_entry_at(entries, path, w->word, i, &e); i++) {
		if (i >= CONFIG_ENTRIES_MAX)
			return config_wrong(&e, err, "there are more than %d", CONFIG_ENTRIES_MAX);
		if (i > 0 && w->once)
			return config_wrong(&e, err, "stands twice");
		for (size_t j = 0; w->shape == SHAPE_NAMED && j < i; j++)
			if (config_entry_at(entries, path, w->word, j, &before) &&
			    strcmp(before.name, e.name) == 0)
				return config_wrong(&e, err, "stands twice, first in line %lld",
						    (long long)before.line);
	}
	return 0;
}

int config_check(const struct jv *entries, const char *path, struct config *ret, struct err *err)
{
	if (entries->kind != JV_ARRAY)
		return err_set(err, ERR_CONFIG, "%s: is no configuration", path);
	for (size_t i = 0; i < entries->count; i++) {
		const struct jv *entry = &entries->items[i];
		struct config_entry e = {
			.path = path,
			.line = jv_num(entry, "line", 0),
			.word = jv_str(entry, "word", ""),
			.name = jv_str(entry, "name", ""),
			.value = jv_get(entry, "value"),
		};

		if (!e.value)
			return config_wrong(&e, err, "has no value");
		if (check_entry(&e, ret, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < WORDS; i++)
		if (check_times(entries, path, &words[i], err) < 0)
			return -1;
	return 0;
}
