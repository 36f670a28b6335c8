#include "gate/lint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Whether c can be part of a name. */
static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The line without its comment; texts in quotes stay whole. */
static struct span code_of(struct span line)
{
	char quote = 0;

	for (size_t i = 0; i < line.len; i++) {
		char c = line.at[i];

		if (quote && c == '\\')
			i++;
		else if (quote)
			quote = c == quote ? 0 : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '-' && i + 1 < line.len && line.at[i + 1] == '-')
			return (struct span){line.at, i};
	}
	return line;
}

/* Text in quotes as blanks, so that words in it are no words. */
static void blank_quotes(struct span code, char *out)
{
	char quote = 0;

	for (size_t i = 0; i < code.len; i++) {
		char c = code.at[i];

		out[i] = quote ? ' ' : c;
		if (quote && c == '\\' && i + 1 < code.len)
			out[++i] = ' ';
		else if (quote)
			quote = c == quote ? 0 : quote;
		else if (c == '"' || c == '\'')
			quote = c;
	}
	out[code.len] = '\0';
}

/* A word by itself, and not a member of something else. */
static const char *find_word(const char *code, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(code, word); at; at = strstr(at + 1, word))
		if ((at == code ||
		     (!is_word(at[-1]) && at[-1] != '.' && at[-1] != ':' && at[-1] != '"')) &&
		    !is_word(at[len]))
			return at;
	return NULL;
}

struct place {
	struct lint *lint;
	const char *file;
	int line;
	const char *code;  /* quotes blanked */
	struct span whole; /* with them, without the comment */
};

static void no_words(const struct place *p)
{
	static const char *const words[] = {
		"os",        "io",       "debug",          "string",       "utf8",
		"coroutine", "package",  "require",        "load",         "loadstring",
		"dofile",    "pcall",    "xpcall",         "print",        "rawget",
		"rawset",    "rawequal", "collectgarbage", "setmetatable", "getmetatable",
		"next"};
	static const char *const methods[] = {":find(", ":match(", ":gmatch(",
					      ":gsub(", ":rep(",   ":byte("};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const char *at = find_word(p->code, words[i]);
		size_t len = strlen(words[i]);

		/* A name of one's own, or a key of a table, is no use of it. */
		if (at && (at[len] == '.' || at[len] == '('))
			p->lint->found(p->lint, LINT_no_word, p->file, p->line, words[i]);
	}
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (strstr(p->code, methods[i]))
			p->lint->found(p->lint, LINT_no_word, p->file, p->line, methods[i] + 1);
}

/* name[a < b] */
static void comparisons(const struct place *p)
{
	for (const char *at = strchr(p->code, '['); at; at = strchr(at + 1, '[')) {
		const char *end = strchr(at, ']');
		bool indexes = at > p->code && (is_word(at[-1]) || at[-1] == ')');

		for (const char *c = at; indexes && end && c < end; c++)
			if ((*c == '<' || *c == '>' || (*c == '=' && c[1] == '=')) && c[1] != *at &&
			    c[-1] != '<' && c[-1] != '>') {
				p->lint->found(p->lint, LINT_index_by_comparison, p->file, p->line,
					       "");
				return;
			}
	}
}

/* 1 ~ (2 or 3) */
static void bit_constants(const struct place *p)
{
	for (const char *at = strchr(p->code, '('); at; at = strchr(at + 1, '(')) {
		const char *before = at, *c = at + 1;

		while (before > p->code && before[-1] == ' ')
			before--;
		if (before == p->code || !strchr("|&~", before[-1]))
			continue;
		c += strspn(c, " 0123456789xabcdefABCDEF");
		if (c > at + 1 && strncmp(c, "or ", 3) == 0 && c[-1] == ' ')
			p->lint->found(p->lint, LINT_bitwise_constant, p->file, p->line, "");
	}
}

/* reason = "code" */
static void reasons(const struct place *p)
{
	const char *at = find_word(p->code, "reason");
	const char *quote, *end;
	char code[64];

	if (!at || !find_word(p->code, "deny"))
		return;
	at += strspn(at + 6, " ") + 6;
	quote = *at == '=' ? strchr(at, '"') : NULL;
	if (!quote)
		return;
	quote = p->whole.at + (quote - p->code) + 1;
	end = memchr(quote, '"', (size_t)(p->whole.at + p->whole.len - quote));
	if (!end || (size_t)(end - quote) >= sizeof(code))
		return;
	if (reason_find((struct span){quote, (size_t)(end - quote)}) != REASON_NONE)
		return;
	snprintf(code, sizeof(code), "%.*s", (int)(end - quote), quote);
	p->lint->found(p->lint, LINT_reason_unknown, p->file, p->line, code);
}

/* req.workload.a.b fails where workload or a is absent. */
static void deep_reads(const struct place *p)
{
	for (const char *at = strstr(p->code, "req.workload."); at;
	     at = strstr(at + 1, "req.workload.")) {
		const char *c = at + 13;

		while (is_word(*c))
			c++;
		if ((at > p->code && is_word(at[-1])) || *c != '.' || !is_word(c[1]))
			continue;
		p->lint->found(p->lint, LINT_deep_read, p->file, p->line, "");
		return;
	}
}

/* Names below which anybody can have one. */
static const char *const suffixes[] = {
	"com",
	"org",
	"net",
	"io",
	"dev",
	"app",
	"ai",
	"co",
	"me",
	"info",
	"biz",
	"cloud",
	"co.uk",
	"com.au",
	"co.jp",
	"de",
	"fr",
	"eu",
	"github.io",
	"gitlab.io",
	"githubusercontent.com",
	"herokuapp.com",
	"netlify.app",
	"vercel.app",
	"pages.dev",
	"workers.dev",
	"web.app",
	"firebaseapp.com",
	"amazonaws.com",
	"cloudfront.net",
	"azurewebsites.net",
	"blob.core.windows.net",
	"storage.googleapis.com",
	"appspot.com",
	"run.app",
	"ngrok.io",
	"ngrok-free.app",
	"fly.dev",
};

static void public_suffixes(const struct place *p)
{
	struct span rest = p->whole;
	const char *at;

	while ((at = memmem(rest.at, rest.len, "\"*.", 3))) {
		struct span name;

		rest = span_skip(rest, (size_t)(at - rest.at) + 3);
		name = (struct span){rest.at, 0};
		while (name.len < rest.len && name.at[name.len] != '"' && name.at[name.len] != ':')
			name.len++;
		for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
			if (span_is(name, suffixes[i]))
				p->lint->found(p->lint, LINT_public_suffix, p->file, p->line,
					       suffixes[i]);
	}
}

void lint_text(struct lint *l, const struct rule_source *file)
{
	struct span rest = file->text, line;

	for (int n = 1; rest.len; n++) {
		struct place p = {l, file->name, n, NULL, {"", 0}};
		char *blanked;

		span_cut(&rest, '\n', &line);
		p.whole = code_of(line);
		blanked = arena_take(l->arena, p.whole.len + 1);
		if (!blanked)
			return;
		blank_quotes(p.whole, blanked);
		p.code = blanked;
		no_words(&p);
		comparisons(&p);
		bit_constants(&p);
		reasons(&p);
		deep_reads(&p);
		public_suffixes(&p);
	}
}

int lint_line_of(const struct lint *l, const char *file, int from, const char *text)
{
	for (size_t i = 0; i < l->folder->source_count; i++) {
		struct span rest = l->folder->sources[i].text, line;

		if (strcmp(l->folder->sources[i].name, file) != 0)
			continue;
		for (int n = 1; rest.len; n++) {
			span_cut(&rest, '\n', &line);
			if (n >= from && memmem(line.at, line.len, text, strlen(text)))
				return n;
		}
	}
	return from;
}
