#include "audit/evidence/evidence_priv.h"

#include "gate/base/nearest.h"

#include <string.h>

#define ALTERNATIVE " | "

static const struct {
	const char *name, *title;
} frameworks[] = {
#define FRAMEWORK(name, title) {#name, title},
#define CONTROL(framework, id, title, answer, query)
#include "audit/evidence/controls.def"
#undef FRAMEWORK
#undef CONTROL
};
#define FRAMEWORKS (sizeof(frameworks) / sizeof(*frameworks))

const struct control evidence_controls[] = {
#define FRAMEWORK(name, title)
#define CONTROL(framework, id, title, answer, query) {#framework, id, title, answer, query},
#include "audit/evidence/controls.def"
#undef FRAMEWORK
#undef CONTROL
};
const size_t evidence_control_count = sizeof(evidence_controls) / sizeof(*evidence_controls);

const char *evidence_framework_title(const char *name)
{
	for (size_t i = 0; i < FRAMEWORKS; i++)
		if (strcmp(frameworks[i].name, name) == 0)
			return frameworks[i].title;
	return "";
}

int evidence_framework(const char *name, struct err *err)
{
	struct nearest near = nearest_to(span_of(name));
	char hint[NEAREST_TEXT_MAX];

	if (*evidence_framework_title(name))
		return 0;
	for (size_t i = 0; i < FRAMEWORKS; i++)
		nearest_offer(&near, frameworks[i].name);
	return err_set(err, ERR_INPUT, "--for takes pci, soc2 or iso27001, not '%.40s'%s", name,
		       nearest_text(&near, hint));
}

/* --- queries --- */

/* What a key of a query stands for: in a record, for `audit query`, and for jq. */
static const struct key {
	const char *name, *option, *jq;
} keys[] = {
	{"verdict", "--verdict", ".verdict"},
	{"op", "--op", ".op"},
	{"class", NULL, ".class"},
	{"reason", "--reason", ".reason"},
	{"status", NULL, ".outcome.status"},
	{"cause", NULL, ".cause"},
	{"has", NULL, NULL},
};
#define KEYS (sizeof(keys) / sizeof(*keys))

static const char *field_of(const struct key *k, const struct fields *f)
{
	const char *const values[KEYS] = {f->verdict, f->op,    f->op_class, f->reason,
					  f->status,  f->cause, ""};

	return values[k - keys];
}

static const struct key *find_key(struct span name)
{
	for (size_t i = 0; i < KEYS; i++)
		if (span_is(name, keys[i].name))
			return &keys[i];
	return NULL;
}

/* Cuts one alternative off the front. */
static bool next_alternative(struct span *rest, struct span *ret)
{
	const char *end;

	if (!rest->len)
		return false;
	end = memmem(rest->at, rest->len, ALTERNATIVE, strlen(ALTERNATIVE));
	*ret = (struct span){rest->at, end ? (size_t)(end - rest->at) : rest->len};
	*rest = span_skip(*rest, end ? ret->len + strlen(ALTERNATIVE) : ret->len);
	return true;
}

/* Cuts a word off, up to c or to the end. */
static bool next_word(struct span *rest, char c, struct span *ret)
{
	if (!rest->len)
		return false;
	(void)span_cut(rest, c, ret);
	return true;
}

static bool word_matches(struct span word, const struct fields *f)
{
	struct span name;
	const struct key *k;

	if (!span_cut(&word, '=', &name) || !(k = find_key(name)))
		return false;
	if (!k->jq)
		return jv_get_span(&f->tree, word) != NULL;
	if (word.len && word.at[word.len - 1] == '*')
		return strncmp(field_of(k, f), word.at, word.len - 1) == 0;
	return span_is(word, field_of(k, f));
}

static bool alternative_matches(struct span rest, const struct fields *f)
{
	struct span types, type, word;
	bool is_type = false;

	if (!next_word(&rest, ' ', &types))
		return false;
	while (next_word(&types, ',', &type))
		is_type = is_type || span_is(type, f->type_name);
	while (is_type && next_word(&rest, ' ', &word))
		if (!word_matches(word, f))
			return false;
	return is_type;
}

bool control_matches(const char *query, const struct fields *f)
{
	struct span rest = span_of(query), one;

	while (next_alternative(&rest, &one))
		if (alternative_matches(one, f))
			return true;
	return false;
}

static bool is_type(struct span name)
{
	for (enum record_type t = RECORD_NONE + 1; t < RECORD_TYPE_COUNT; t++)
		if (span_is(name, record_type_name(t)))
			return true;
	return false;
}

static bool alternative_valid(struct span rest)
{
	struct span types, type, word, name;

	if (!next_word(&rest, ' ', &types))
		return false;
	while (next_word(&types, ',', &type))
		if (!is_type(type))
			return false;
	while (next_word(&rest, ' ', &word))
		if (!span_cut(&word, '=', &name) || !find_key(name) || !word.len)
			return false;
	return true;
}

bool control_query_valid(const char *query)
{
	struct span rest = span_of(query), one;
	bool any = false;

	while (next_alternative(&rest, &one)) {
		if (!alternative_valid(one))
			return false;
		any = true;
	}
	return any;
}

/* --- commands --- */

static void put_jq(struct buf *out, const struct key *k, struct span value, bool *any)
{
	buf_puts(out, *any ? " and " : " | jq -c 'select(");
	*any = true;
	if (!k->jq)
		buf_printf(out, ".%.*s", SPAN_FMT(value));
	else if (value.at[value.len - 1] == '*')
		buf_printf(out, "(%s//\"\"|startswith(\"%.*s\"))", k->jq, (int)value.len - 1,
			   value.at);
	else
		buf_printf(out, "%s==\"%.*s\"", k->jq, SPAN_FMT(value));
}

static void put_command(struct buf *out, struct span type, struct span words, const char *from,
			const char *to)
{
	struct span rest = words, word, name;
	const struct key *k;
	bool any = false;

	buf_printf(out, "sallyport audit query LOG --type %.*s", SPAN_FMT(type));
	while (next_word(&rest, ' ', &word))
		if (span_cut(&word, '=', &name) && (k = find_key(name)) && k->option &&
		    word.at[word.len - 1] != '*')
			buf_printf(out, " %s %.*s", k->option, SPAN_FMT(word));
	buf_printf(out, " --since %s --until %s --format json", from, to);
	for (rest = words; next_word(&rest, ' ', &word);)
		if (span_cut(&word, '=', &name) && (k = find_key(name)) &&
		    (!k->option || word.at[word.len - 1] == '*'))
			put_jq(out, k, word, &any);
	buf_puts(out, any ? ")'\n" : "\n");
}

void control_commands(const char *query, const char *from, const char *to, struct buf *out)
{
	struct span rest = span_of(query), one, types, type;

	while (next_alternative(&rest, &one)) {
		if (!next_word(&one, ' ', &types))
			continue;
		while (next_word(&types, ',', &type))
			put_command(out, type, one, from, to);
	}
}
