#include "backends/docker/dockerfile_priv.h"

#include <ctype.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool dockerfile_word(struct span *rest, char escape, struct span *ret)
{
	size_t i = 0;
	char quote = '\0';

	while (rest->len && is_blank(rest->at[0]))
		*rest = span_skip(*rest, 1);
	if (!rest->len)
		return false;
	for (; i < rest->len && (quote || !is_blank(rest->at[i])); i++) {
		char c = rest->at[i];

		if (c == escape && quote != '\'' && i + 1 < rest->len)
			i++;
		else if (quote)
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
	}
	if (i > rest->len)
		i = rest->len;
	*ret = (struct span){rest->at, i};
	*rest = span_skip(*rest, i);
	return true;
}

bool dockerfile_unquote(struct span word, char escape, struct span *ret)
{
	char quote = word.len ? word.at[0] : '\0';

	if (quote == '"' || quote == '\'') {
		if (word.len < 2 || word.at[word.len - 1] != quote)
			return false;
		word = (struct span){word.at + 1, word.len - 2};
	}
	for (size_t i = 0; i < word.len; i++)
		if (strchr("\"'\\", word.at[i]) || word.at[i] == escape)
			return false;
	*ret = word;
	return true;
}

/* --- ${variables} --- */

static size_t name_length(struct span s)
{
	size_t len = 0;

	if (s.len && isdigit((unsigned char)s.at[0]))
		return 0;
	while (len < s.len && (isalnum((unsigned char)s.at[len]) || s.at[len] == '_'))
		len++;
	return len;
}

/*
 * What stands behind a dollar.  *s is left behind it.  NULL, or why it is not
 * certain.  Versions differ in all forms but these.
 */
static const char *one_variable(struct span *s, const struct jv *vars, struct span *ret)
{
	bool braces = s->len && s->at[0] == '{';
	struct span name, inner = *s, word = {"", 0};
	const struct jv *value;
	char how = '\0';

	if (braces) {
		struct span all = span_skip(*s, 1);

		if (!span_cut(&all, '}', &inner))
			return "a brace is not closed";
		*s = all;
	}
	name = (struct span){inner.at, name_length(inner)};
	if (!name.len)
		return "this is no variable";
	if (braces && name.len < inner.len) {
		word = span_skip(inner, name.len + 2);
		how = inner.len > name.len + 1 ? inner.at[name.len + 1] : '\0';
		if (inner.at[name.len] != ':' || (how != '-' && how != '+') ||
		    memchr(word.at, '$', word.len) || memchr(word.at, '{', word.len))
			return "of ${...} only ${X}, ${X:-word} and ${X:+word} are read";
	}
	if (!braces)
		*s = span_skip(*s, name.len);
	value = jv_get_span(vars, name);
	if (!value)
		return "the variable is not declared by an ARG above the first FROM";
	*ret = value->kind == JV_STRING ? value->str : (struct span){"", 0};
	if (how == '-')
		*ret = ret->len ? *ret : word;
	else if (how == '+')
		*ret = ret->len ? word : *ret;
	else if (value->kind != JV_STRING)
		return "the variable has no value";
	return NULL;
}

const char *dockerfile_expand(struct backend_call *call, struct span word, const struct jv *vars,
			      const char **ret_why)
{
	struct buf out;
	const char *copy = NULL;

	*ret_why = NULL;
	buf_init(&out, 4096);
	while (word.len && !*ret_why) {
		const char *dollar = memchr(word.at, '$', word.len);
		size_t plain = dollar ? (size_t)(dollar - word.at) : word.len;
		struct span value = {"", 0};

		buf_put(&out, word.at, plain);
		word = span_skip(word, plain);
		if (!word.len)
			break;
		word = span_skip(word, 1);
		*ret_why = one_variable(&word, vars, &value);
		buf_put(&out, value.at, value.len);
	}
	if (buf_spent(&out))
		*ret_why = "it is too long";
	if (!*ret_why)
		copy = arena_strndup(call->arena, buf_span(&out).at, buf_len(&out));
	if (!copy && !*ret_why)
		*ret_why = "there is too much of it";
	buf_fini(&out);
	return copy;
}
