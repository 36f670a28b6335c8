/* cmd_lint.c - lint: mistakes in profiles, each with its place, its reason and what to do. */
#include "gate/command.h"

#include "gate/base/capability.h"
#include "gate/base/clock.h"
#include "gate/lint.h"
#include "rules/seccomp.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX    ((size_t)128 << 20)
#define FINDINGS_MAX 4096

static const struct {
	const char *name;
	enum lint_level level;
	const char *why, *fix;
} codes[] = {
#define LINT(code, level, why, fix) {#code, LINT_##level, why, fix},
#include "gate/lint.def"
#undef LINT
};
_Static_assert(sizeof(codes) / sizeof(*codes) == LINT_COUNT, "a row each");

const char *lint_code_name(enum lint_code c)
{
	return codes[c].name;
}

enum lint_level lint_level_of(enum lint_code c)
{
	return codes[c].level;
}

const char *lint_level_name(enum lint_level l)
{
	static const char *const names[] = {"error", "warning", "hint"};

	return names[l];
}

const char *lint_why(enum lint_code c)
{
	return codes[c].why;
}

const char *lint_fix(enum lint_code c)
{
	return codes[c].fix;
}

struct finding {
	enum lint_code code;
	const char *file;
	int line;
	const char *what;
};

struct findings {
	struct finding list[FINDINGS_MAX];
	size_t count, dropped;
};

/* `-- lint: ok CODE` on the line */
static bool is_meant(const struct lint *l, enum lint_code code, const char *file, int line)
{
	char word[64];

	snprintf(word, sizeof(word), "lint: ok %s", codes[code].name);
	return code != LINT_does_not_load && lint_line_of(l, file, line, word) == line &&
	       lint_line_of(l, file, line - 1, word) == line;
}

static void found(struct lint *l, enum lint_code code, const char *file, int line, const char *what)
{
	struct findings *all = l->arg;

	if (is_meant(l, code, file, line))
		return;
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].code == code && all->list[i].line == line &&
		    strcmp(all->list[i].file, file) == 0 && strcmp(all->list[i].what, what) == 0)
			return;
	if (all->count == FINDINGS_MAX) {
		all->dropped++;
		return;
	}
	all->list[all->count++] =
		(struct finding){code, file, line, arena_strndup(l->arena, what, strlen(what))};
}

/* Where a message of the loader begins: "file:line: ...". */
static int line_of_message(const char *message, const char *file)
{
	size_t len = strlen(file);
	uint64_t line = 0;

	if (strncmp(message, file, len) != 0 || message[len] != ':')
		return 0;
	message += len + 1;
	if (command_count((struct span){message, strspn(message, "0123456789")}, &line) < 0)
		return 0;
	return line > 0 && line < 1000000 ? (int)line : 0;
}

static void does_not_load(struct lint *l, const struct err *err)
{
	for (size_t i = 0; i < l->folder->source_count; i++) {
		const char *file = l->folder->sources[i].name;
		int line = line_of_message(err->msg, file);
		const char *rest = line ? strchr(err->msg + strlen(file) + 1, ':') : NULL;

		if (line) {
			found(l, LINT_does_not_load, file, line, rest ? rest + 2 : err->msg);
			return;
		}
	}
	found(l, LINT_does_not_load, l->folder->sources[0].name, 1, err->msg);
}

/* What is read well may still be more than the kernel takes. */
static void lint_seccomp(struct lint *l, const struct rule_source *source)
{
	struct err err = {0};
	const struct seccomp_profile *p =
		seccomp_profile_parse(l->arena, source->text, SECCOMP_FILE, &err);
	struct buf program;

	buf_init(&program, (size_t)1 << 20);
	if (p && seccomp_profile_unknown(p, 0) == NULL &&
	    seccomp_profile_bpf(p, capability_engine_default(), &program, &err) < 0)
		found(l, LINT_does_not_load, source->name, 1, err.msg);
	buf_fini(&program);
}

static int lint_folder(const char *path, struct findings *all, struct arena *a, int64_t now,
		       struct err *err)
{
	struct profile_folder *folder = arena_take(a, sizeof(*folder));
	struct lint l = {.folder = folder, .now = now, .arena = a, .found = found, .arg = all};
	struct err trouble = {0};
	struct engine *eng;

	if (!folder)
		return err_set(err, ERR_LIMIT, "no memory");
	if (profile_folder_read(path, a, folder, err) < 0)
		return -1;
	if (!folder->source_count)
		return err_set(err, ERR_INPUT, "%s: there are no *.lua files of profiles", path);
	eng = engine_open(folder->sources, folder->source_count, &engine_default_limits, &trouble);
	l.engine = eng;
	if (eng)
		lint_profiles(&l);
	else
		does_not_load(&l, &trouble);
	for (size_t i = 0; i < folder->source_count; i++)
		if (seccomp_is_file(folder->sources[i].name))
			lint_seccomp(&l, &folder->sources[i]);
		else
			lint_text(&l, &folder->sources[i]);
	/* Texts of findings that belong to the engine go with it. */
	for (size_t i = 0; i < all->count; i++)
		all->list[i].file = arena_strndup(a, all->list[i].file, strlen(all->list[i].file));
	engine_close(eng);
	return arena_spent(a) ? err_set(err, ERR_LIMIT, "no memory") : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	if (order)
		return order;
	return x->line != y->line ? (x->line > y->line) - (x->line < y->line)
				  : (int)x->code - (int)y->code;
}

static void print_text(const struct findings *all)
{
	unsigned counts[3] = {0};

	for (size_t i = 0; i < all->count; i++) {
		const struct finding *f = &all->list[i];

		counts[codes[f->code].level]++;
		printf("%s:%d: %s [%s] %s%s%s\n    %s\n", f->file, f->line,
		       lint_level_name(codes[f->code].level), codes[f->code].name, f->what,
		       *f->what ? ": " : "", codes[f->code].why, codes[f->code].fix);
	}
	printf("%u errors, %u warnings, %u hints\n", counts[LINT_ERROR], counts[LINT_WARNING],
	       counts[LINT_HINT]);
}

static void print_json(const struct findings *all, struct arena *a)
{
	struct jv list = jv_array();
	struct buf text;

	for (size_t i = 0; i < all->count; i++) {
		const struct finding *f = &all->list[i];
		struct jv *one = jv_push(a, &list, jv_object());

		jv_set(a, one, "file", jv_string(f->file));
		jv_set(a, one, "line", jv_int(f->line));
		jv_set(a, one, "level", jv_string(lint_level_name(codes[f->code].level)));
		jv_set(a, one, "code", jv_string(codes[f->code].name));
		jv_set(a, one, "what", jv_string(f->what));
		jv_set(a, one, "why", jv_string(codes[f->code].why));
		jv_set(a, one, "fix", jv_string(codes[f->code].fix));
	}
	buf_init(&text, (size_t)16 << 20);
	jv_write(&text, &list);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

static int lint_all(const struct args *args, struct findings *all, struct arena *a, struct err *err)
{
	int64_t now = (int64_t)(clock_unix_ns() / 1000000000);
	int answer = EXIT_YES;

	if (!args->rest_count)
		return err_set(err, ERR_INPUT, "name folders with profiles");
	for (size_t i = 0; i < args->rest_count; i++)
		if (lint_folder(args->rest[i], all, a, now, err) < 0)
			return -1;
	if (all->dropped)
		return err_set(err, ERR_LIMIT, "more than %d findings", FINDINGS_MAX);
	qsort(all->list, all->count, sizeof(*all->list), by_place);
	if (args->json)
		print_json(all, a);
	else
		print_text(all);
	for (size_t i = 0; i < all->count; i++)
		if (codes[all->list[i].code].level != LINT_HINT)
			answer = EXIT_NO;
	return answer;
}

int run_lint(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct findings *all = a ? arena_take(a, sizeof(*all)) : NULL;
	struct err err = {0};
	int answer = -1;

	if (!all)
		err_set(&err, ERR_SYSTEM, "no memory");
	else
		answer = lint_all(args, all, a, &err);
	arena_destroy(a);
	return answer < 0 ? command_failed(&err) : answer;
}
