#include "rules/settings_entries_priv.h"

#include "gate/base/nearest.h"
#include "rules/decision.h"
#include "rules/match_priv.h"
#include "rules/opset_priv.h"
#include "rules/quota.h"
#include "rules/rate.h"
#include "rules/reach.h"
#include "rules/tree_priv.h"
#include "rules/workload.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#define LIST_MAX         512        /* entries of one setting */
#define QUOTA_NUMBER_MAX 1000000000 /* containers, processes, volumes */

/* "containers memory cpus ..." */
#define QUOTA(id, setting, fact, unit, of, doc) #setting " "
static const char QUOTA_SETTINGS[] =
#include "rules/quota.def"
	;
#undef QUOTA

const struct setting settings[] = {
#define ENFORCED SETTING_ENFORCED
#define NOT_YET  SETTING_NOT_YET
#define SETTING(name, kind, merge, enforced, doc)                                                  \
	{#name, KIND_##kind, MERGE_##merge, enforced, doc},
#include "rules/settings.def"
#undef SETTING
#undef ENFORCED
#undef NOT_YET
};
const size_t setting_count = sizeof(settings) / sizeof(*settings);

/* --- messages --- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether `setting =` stands in line, outside of strings in double quotes and comments. */
static bool sets(struct span line, const char *setting)
{
	size_t len = strlen(setting);
	bool quoted = false;

	for (size_t i = 0; i + len <= line.len; i++) {
		struct span behind = span_skip(line, i + len);

		if (line.at[i] == '"')
			quoted = !quoted;
		if (quoted || (i && is_word(line.at[i - 1])))
			continue;
		if (line.at[i] == '-' && i + 1 < line.len && line.at[i + 1] == '-')
			return false;
		while (behind.len && (behind.at[0] == ' ' || behind.at[0] == '\t'))
			behind = span_skip(behind, 1);
		if (memcmp(line.at + i, setting, len) == 0 && behind.len && behind.at[0] == '=')
			return true;
	}
	return false;
}

/* The line on which `setting =` stands, from the profile's first line on. */
static int line_of(const struct place *at, const char *setting)
{
	struct span rest = at->text, line;

	for (int n = 1; rest.len && *setting; n++) {
		span_cut(&rest, '\n', &line);
		if (n >= at->line && sets(line, setting))
			return n;
	}
	return at->line;
}

int settings_line(const struct place *at, const char *setting)
{
	return line_of(at, setting);
}

int settings_blame(const struct place *at, const char *setting, struct err *err)
{
	if (*setting)
		err_wrap(err, "%s", setting);
	return err_wrap(err, "%s:%d: profile \"%s\"", at->file, line_of(at, setting), at->profile);
}

static int check_list(struct checking *c, const struct jv *v)
{
	if (v->kind != JV_ARRAY)
		return settings_wrong(c, "a list", v);
	if (v->count > LIST_MAX)
		return err_set(c->err, ERR_CONFIG, "more than %d entries", LIST_MAX);
	return 0;
}

static int check_strings(struct checking *c, settings_entry_fn entry, struct jv *v)
{
	if (check_list(c, v) < 0)
		return -1;
	for (size_t i = 0; i < v->count; i++) {
		int bad = v->items[i].kind != JV_STRING
				  ? settings_wrong(c, "a string", &v->items[i])
				  : entry(c, &v->items[i]);

		if (bad)
			return err_wrap(c->err, "[%zu]", i + 1);
	}
	return 0;
}

/* --- words --- */

static int check_word(struct checking *c, const char *const *known, const char *want,
		      const struct jv *v)
{
	for (; v->kind == JV_STRING && *known; known++)
		if (span_is(v->str, *known))
			return 0;
	return settings_wrong(c, want, v);
}

static int check_users(struct checking *c, const struct jv *v)
{
	static const char *const known[] = {"nonroot", "any", NULL};

	return check_word(c, known, "\"nonroot\" or \"any\"", v);
}

const char *const host_tools_words[] = {"none", "confined", "bare", NULL};

static int check_host_tools(struct checking *c, const struct jv *v)
{
	return check_word(c, host_tools_words, "\"confined\", \"bare\" or \"none\"", v);
}

static int check_visibility(struct checking *c, const struct jv *v)
{
	struct reach reach;

	return reach_read(v, c->arena, &reach, c->err);
}

static int check_mode(struct checking *c, const struct jv *v)
{
	static const char *const known[] = {"enforce", "warn", "shadow", NULL};

	return check_word(c, known, "\"enforce\", \"warn\" or \"shadow\"", v);
}

static int check_denial(struct checking *c, const struct jv *v)
{
	static const char *const known[] = {"full", "code", NULL};

	return check_word(c, known, "\"full\" or \"code\"", v);
}

/* In the order of enum running. */
static const char *const running_words[] = {"report", "minimum", "stop", NULL};

enum running running_find(struct span word)
{
	for (int i = RUNNING_STOP; i > RUNNING_REPORT; i--)
		if (span_is(word, running_words[i]))
			return (enum running)i;
	return RUNNING_REPORT;
}

static int check_running(struct checking *c, const struct jv *v)
{
	return check_word(c, running_words, "\"report\", \"minimum\" or \"stop\"", v);
}

/* --- kinds with a form of their own --- */

static int check_modes(struct checking *c, struct jv *v)
{
	tree_expect_object(v);
	if (v->kind != JV_OBJECT)
		return settings_wrong(c, "{ CHECK = \"warn\" }", v);
	for (size_t i = 0; i < v->count; i++)
		if (check_mode(c, &v->members[i].value) < 0)
			return err_wrap(c->err, "%.64s", v->members[i].key.at);
	return 0;
}

static int unknown_member(struct checking *c, const char *known, const struct jv *v)
{
	for (size_t i = 0; i < v->count; i++) {
		struct span rest = span_of(known), word;
		bool found = false;

		while (rest.len && !found) {
			span_cut(&rest, ' ', &word);
			found = span_eq(word, v->members[i].key);
		}
		if (!found)
			return err_set(c->err, ERR_CONFIG, "\"%s\" is not known here (%s are)",
				       v->members[i].key.at, known);
	}
	return 0;
}

static int check_isolation(struct checking *c, struct jv *v)
{
	static const char *const levels[] = {"none", "process", "kernel", "vm", NULL};
	struct jv *runtimes;

	tree_expect_object(v);
	if (v->kind != JV_OBJECT)
		return settings_wrong(c, "{ min = \"kernel\", runtimes = { ... } }", v);
	if (unknown_member(c, "min runtimes attested", v) < 0)
		return -1;
	if (jv_get(v, "attested") && jv_get(v, "attested")->kind != JV_BOOL)
		return err_set(c->err, ERR_CONFIG, "attested: true or false is expected");
	if (!jv_get(v, "min"))
		jv_set(c->arena, v, "min", jv_string("process"));
	if (check_word(c, levels, "\"none\", \"process\", \"kernel\" or \"vm\"", jv_get(v, "min")) <
	    0)
		return err_wrap(c->err, "min");
	if (!jv_get(v, "runtimes"))
		jv_set(c->arena, v, "runtimes", jv_array());
	runtimes = (struct jv *)jv_get(v, "runtimes");
	if (check_strings(c, settings_any_word, runtimes) < 0)
		return err_wrap(c->err, "runtimes");
	return 0;
}

#define HARDEN_LABELS_MAX 16

static bool is_printable(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.at[i] < ' ' || s.at[i] == 0x7f)
			return false;
	return true;
}

/* { team = "x" } becomes { "team=x" }: rules and merging see lists. */
static int check_harden_labels(struct checking *c, struct jv *v)
{
	struct jv list = jv_array();

	tree_expect_object(v);
	if (v->kind != JV_OBJECT)
		return settings_wrong(c, "{ name = \"value\" }", v);
	if (v->count > HARDEN_LABELS_MAX)
		return err_set(c->err, ERR_CONFIG, "more than %d labels", HARDEN_LABELS_MAX);
	for (size_t i = 0; i < v->count; i++) {
		struct span name = v->members[i].key, value = v->members[i].value.str;
		struct buf text;

		if (v->members[i].value.kind != JV_STRING)
			return settings_wrong(c, "a text as the label's value",
					      &v->members[i].value);
		if (name.len >= 10 && strncasecmp(name.at, "sallyport.", 10) == 0)
			return err_set(c->err, ERR_CONFIG,
				       "labels of the gate itself cannot be set");
		if (!name.len || name.len + value.len >= VIOLATION_VALUE_MAX ||
		    !is_printable(name) || !is_printable(value) || memchr(name.at, '=', name.len))
			return err_set(c->err, ERR_CONFIG,
				       "\"%.40s\": a name without \"=\" and a value are expected, "
				       "printable and short",
				       name.at);
		buf_init(&text, VIOLATION_VALUE_MAX + 1);
		buf_printf(&text, "%.*s=%.*s", SPAN_FMT(name), SPAN_FMT(value));
		jv_push(c->arena, &list,
			jv_string(arena_strndup(c->arena, buf_span(&text).at, buf_len(&text))));
		buf_fini(&text);
	}
	*v = list;
	return 0;
}

static int check_harden(struct checking *c, struct jv *v)
{
	if (v->kind == JV_BOOL)
		return 0;
	if (v->kind != JV_OBJECT)
		return settings_wrong(c, "true or false", v);
	if (unknown_member(c, "read_only log_limits init auto_remove labels", v) < 0)
		return -1;
	for (size_t i = 0; i < v->count; i++) {
		struct jv *value = &v->members[i].value;

		if (span_is(v->members[i].key, "labels")) {
			if (check_harden_labels(c, value) < 0)
				return err_wrap(c->err, "labels");
		} else if (value->kind != JV_BOOL) {
			return err_set(c->err, ERR_CONFIG, "%s: true or false is expected",
				       v->members[i].key.at);
		}
	}
	return 0;
}

/* { "/srv/x", "rw" }: a path without placeholders in it is clean, and never the whole host. */
static int check_mount(struct checking *c, struct jv *v)
{
	const struct path_words any = {span_of("x"), span_of("x"), span_of("x"), span_of("x")};
	const char *const usage = "{ path, \"ro\" or \"rw\" }";
	char sample[PATH_MAX_LEN + 1];
	struct jv mount = jv_object();
	struct span path;

	if (v->kind != JV_ARRAY || v->count < 1 || v->count > 2 || v->items[0].kind != JV_STRING)
		return settings_wrong(c, usage, v);
	path = v->items[0].str;
	if (v->count == 2 && (v->items[1].kind != JV_STRING ||
			      !(span_is(v->items[1].str, "ro") || span_is(v->items[1].str, "rw"))))
		return settings_wrong(c, "\"ro\" or \"rw\"", &v->items[1]);
	if (!path_fill(path, &any, sample, sizeof(sample)) || !path_is_clean(span_of(sample)) ||
	    strpbrk(sample, "{}*?"))
		return settings_wrong(
			c,
			"an absolute path without //, . and .. (placeholders: "
			"{identity.name}, {identity.owner}, {identity.container.name}, "
			"{identity.container.id})",
			&v->items[0]);
	if (path.len == 1)
		return err_set(c->err, ERR_CONFIG, "the root of the host cannot be granted");
	jv_set(c->arena, &mount, "path", v->items[0]);
	jv_set(c->arena, &mount, "mode", v->count == 2 ? v->items[1] : jv_string("ro"));
	*v = mount;
	return 0;
}

static int check_mounts(struct checking *c, struct jv *v)
{
	if (check_list(c, v) < 0)
		return -1;
	for (size_t i = 0; i < v->count; i++)
		if (check_mount(c, &v->items[i]) < 0)
			return err_wrap(c->err, "[%zu]", i + 1);
	return 0;
}

static int check_egress(struct checking *c, const struct jv *v)
{
	if (v->kind != JV_ARRAY)
		return settings_wrong(c, "{}", v);
	if (v->count)
		return err_set(
			c->err, ERR_CONFIG,
			"names and ports cannot be enforced by this version; only {} (none) can");
	return 0;
}

static int check_memory(struct checking *c, struct jv *v)
{
	int64_t bytes = v->kind == JV_INT ? v->i : 0;

	if (v->kind == JV_STRING && !size_parse(v->str, &bytes))
		return settings_wrong(c, "a size like \"512MiB\"", v);
	if (v->kind != JV_INT && v->kind != JV_STRING)
		return settings_wrong(c, "a size like \"512MiB\"", v);
	if (bytes < 6 << 20)
		return err_set(c->err, ERR_CONFIG, "at least 6MiB are needed for anything to run");
	*v = jv_int(bytes);
	return 0;
}

static int check_cpus(struct checking *c, const struct jv *v, struct jv *ret)
{
	double cpus = v->kind == JV_INT ? (double)v->i : v->kind == JV_REAL ? v->real : 0;

	if (!(cpus >= 0.01 && cpus <= 4096))
		return settings_wrong(c, "a number of processors from 0.01 to 4096", v);
	*ret = jv_int(llround(cpus * 1e9));
	return 0;
}

/*
 * `pids` also bounds the steps of builds, which the classic builder cannot do, so that none runs;
 * `container_pids` does not.
 */
static int check_pids(struct checking *c, const struct jv *limits, const struct jv *v,
		      struct jv *out)
{
	bool both = jv_get(limits, "pids") != NULL;

	if (both && jv_get(limits, "container_pids"))
		return err_set(c->err, ERR_CONFIG, "pids and container_pids exclude each other");
	if (v->kind != JV_INT || v->i < 1 || v->i > 4194304)
		return settings_wrong(c, "a number of processes from 1 to 4194304", v);
	jv_set(c->arena, out, "pids", *v);
	if (both)
		jv_set(c->arena, out, "build_pids", *v);
	return 0;
}

static int check_limits(struct checking *c, struct jv *v)
{
	struct jv out = jv_object();

	tree_expect_object(v);
	if (v->kind != JV_OBJECT)
		return settings_wrong(c, "{ memory = \"2GiB\", cpus = 2, pids = 256 }", v);
	for (size_t i = 0; i < v->count; i++) {
		const char *name = v->members[i].key.at;
		struct jv *value = &v->members[i].value, result = jv_null();
		int bad = 0;

		if (strcmp(name, "memory") == 0) {
			bad = check_memory(c, value);
			result = *value;
		} else if (strcmp(name, "cpus") == 0) {
			bad = check_cpus(c, value, &result);
			name = "nano_cpus";
		} else if (strcmp(name, "pids") == 0 || strcmp(name, "container_pids") == 0) {
			bad = check_pids(c, v, value, &out);
			name = NULL;
		} else if (strcmp(name, "lifetime") == 0) {
			bad = err_set(c->err, ERR_CONFIG,
				      "this version cannot enforce it yet; leave it out");
		} else {
			return unknown_member(c, "memory cpus pids container_pids", v);
		}
		if (bad)
			return err_wrap(c->err, "%s", v->members[i].key.at);
		if (name)
			jv_set(c->arena, &out, name, result);
	}
	*v = out;
	return 0;
}

static int check_amount(struct checking *c, enum quota q, struct jv *v)
{
	int64_t bytes;

	switch (quota_unit(q)) {
	case QUOTA_UNIT_CPUS:
		return check_cpus(c, v, v);
	case QUOTA_UNIT_BYTES:
		if (v->kind == JV_STRING && size_parse(v->str, &bytes))
			*v = jv_int(bytes);
		return v->kind == JV_INT && v->i >= 0
			       ? 0
			       : settings_wrong(c, "a size like \"6GiB\"", v);
	case QUOTA_UNIT_NUMBER:
		break;
	}
	if (v->kind != JV_INT || v->i < 0 || v->i > QUOTA_NUMBER_MAX)
		return settings_wrong(c, "a number from 0 to 1000000000", v);
	return 0;
}

static int check_quota(struct checking *c, struct jv *v)
{
	struct jv out = jv_object();

	tree_expect_object(v);
	if (v->kind != JV_OBJECT)
		return settings_wrong(c, "{ containers = 5, memory = \"6GiB\" }", v);
	for (size_t i = 0; i < v->count; i++) {
		int q = 0;

		while (q < QUOTA_COUNT && !span_is(v->members[i].key, quota_setting((enum quota)q)))
			q++;
		if (q == QUOTA_COUNT)
			return unknown_member(c, QUOTA_SETTINGS, v);
		if (check_amount(c, (enum quota)q, &v->members[i].value) < 0)
			return err_wrap(c->err, "%s", v->members[i].key.at);
		jv_set(c->arena, &out, quota_fact((enum quota)q), v->members[i].value);
	}
	*v = out;
	return 0;
}

static int operation_entry(struct checking *c, struct jv *entry)
{
	struct op_set set = {{0}};
	char near[NEAREST_TEXT_MAX];

	if (op_set_add_word(&set, entry->str))
		return 0;
	return err_set(c->err, ERR_CONFIG, "\"%.60s\" is no operation, group or class%s",
		       entry->str.at, nearest_said(op_word_nearest(entry->str), near));
}

static int check_rates(struct checking *c, struct jv *v)
{
	struct rate rate;

	tree_expect_object(v);
	if (v->kind != JV_OBJECT)
		return settings_wrong(c, "{ launch = \"20/min\" }", v);
	if (v->count > RATES_MAX)
		return err_set(c->err, ERR_CONFIG, "more than %d rates", RATES_MAX);
	for (size_t i = 0; i < v->count; i++) {
		struct jv word = {.kind = JV_STRING, .str = v->members[i].key};
		const struct jv *value = &v->members[i].value;

		if (operation_entry(c, &word) < 0)
			return -1;
		if (value->kind != JV_STRING || !rate_parse(value->str, &rate)) {
			settings_wrong(c, "a rate like \"20/min\" (s, min, h, day)", value);
			return err_wrap(c->err, "%s", v->members[i].key.at);
		}
	}
	return 0;
}

/* What lands in a security option: no separators, nothing to quote. */
static int check_name(struct checking *c, const char *want, const struct jv *v)
{
	bool fine = v->kind == JV_STRING && v->str.len > 0 && v->str.len <= 64;

	for (size_t i = 0; fine && i < v->str.len; i++)
		fine = isalnum((unsigned char)v->str.at[i]) || (i && strchr("-_.", v->str.at[i]));
	return fine ? 0 : settings_wrong(c, want, v);
}

static int check_apparmor(struct checking *c, const struct jv *v)
{
	if (check_name(c, "the name of a profile that is loaded on the engine's host", v) < 0)
		return -1;
	if (span_is(v->str, "unconfined"))
		return err_set(c->err, ERR_CONFIG, "\"unconfined\" is no profile");
	return 0;
}

static int check_value(struct checking *c, const struct setting *s, struct jv *v)
{
	switch (s->kind) {
	case KIND_STRING:
		return v->kind == JV_STRING && v->str.len <= 1000
			       ? 0
			       : settings_wrong(c, "a short string", v);
	case KIND_BOOL:
		return v->kind == JV_BOOL ? 0 : settings_wrong(c, "true or false", v);
	case KIND_HARDEN:
		return check_harden(c, v);
	case KIND_STRINGS:
		return check_strings(c, settings_entry_check(s->name), v);
	case KIND_ISOLATION:
		return check_isolation(c, v);
	case KIND_MOUNTS:
		return check_mounts(c, v);
	case KIND_EGRESS:
		return check_egress(c, v);
	case KIND_USERS:
		return check_users(c, v);
	case KIND_HOST_TOOLS:
		return check_host_tools(c, v);
	case KIND_LIMITS:
		return check_limits(c, v);
	case KIND_OPERATIONS:
		return check_strings(c, operation_entry, v);
	case KIND_VISIBILITY:
		return check_visibility(c, v);
	case KIND_MODE:
		return check_mode(c, v);
	case KIND_MODES:
		return check_modes(c, v);
	case KIND_DENIAL:
		return check_denial(c, v);
	case KIND_RUNNING:
		return check_running(c, v);
	case KIND_RATE:
		return check_rates(c, v);
	case KIND_UPDATE:
		return settings_check_update(v, c->arena, c->err);
	case KIND_QUOTA:
		return check_quota(c, v);
	case KIND_SECCOMP:
		return check_name(c, "the name of a seccomp profile", v);
	case KIND_APPARMOR:
		return check_apparmor(c, v);
	case KIND_SANDBOX:
		return settings_check_sandbox(v, c->arena, c->err);
	}
	return err_set(c->err, ERR_CONFIG, "this version cannot enforce it yet; leave it out");
}

/* --- the whole --- */

static const struct setting *find(struct span name)
{
	for (size_t i = 0; i < setting_count; i++)
		if (span_is(name, settings[i].name))
			return &settings[i];
	return NULL;
}

static int unknown_setting(const struct place *at, struct span name, struct err *err)
{
	struct nearest near = nearest_to(name);
	struct buf known;

	buf_init(&known, 1024);
	for (size_t i = 0; i < setting_count; i++) {
		nearest_offer(&near, settings[i].name);
		if (settings[i].enforced)
			buf_printf(&known, "%s%s", i ? ", " : "", settings[i].name);
	}
	if (near.best)
		err_set(err, ERR_CONFIG, "unknown setting \"%.40s\", the nearest is \"%s\"",
			name.at, near.best);
	else
		err_set(err, ERR_CONFIG, "unknown setting \"%.40s\"; known: %.*s", name.at,
			SPAN_FMT(buf_span(&known)));
	buf_fini(&known);
	err_wrap(err, "%s:%d: profile \"%s\"", at->file, line_of(at, name.at), at->profile);
	return -1;
}

int settings_check(const struct place *at, const struct jv *raw, struct arena *a, struct jv *ret,
		   struct err *err)
{
	struct checking c = {a, err};

	*ret = jv_object();
	for (size_t i = 0; i < raw->count; i++) {
		struct jv value = raw->members[i].value;
		const struct setting *s = find(raw->members[i].key);

		if (!s)
			return unknown_setting(at, raw->members[i].key, err);
		if (!s->enforced) {
			err_set(err, ERR_CONFIG,
				"this version cannot enforce it yet; leave it out");
			return settings_blame(at, s->name, err);
		}
		if (check_value(&c, s, &value) < 0)
			return settings_blame(at, s->name, err);
		jv_set(a, ret, s->name, value);
	}
	if (jv_get(ret, "egress") && jv_get(ret, "networks") && jv_get(ret, "networks")->count) {
		err_set(err, ERR_CONFIG,
			"{} grants only the network 'none', so networks must be empty");
		return settings_blame(at, "egress", err);
	}
	return arena_spent(a) ? err_set(err, ERR_LIMIT, "profiles take too much memory") : 0;
}
