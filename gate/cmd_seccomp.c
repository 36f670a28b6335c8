/* cmd_seccomp.c - seccomp check, seccomp diff: profiles of system calls, looked at by themselves.
 */
#include "gate/command.h"

#include "gate/base/capability.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "rules/seccomp.h"

#include <string.h>

#define ARENA_MAX ((size_t)32 << 20)
#define MORE_MAX  4096

/* One that is looked at. */
struct subject {
	const char *name;
	struct span text;
	const struct seccomp_profile *profile;
};

struct session {
	struct arena *arena;
	bool json;
	struct jv out;
};

/* A name that comes with the program, or else a file. */
static int read_subject(struct session *s, const char *name, struct subject *ret, struct err *err)
{
	const struct seccomp_file *known = strchr(name, '/') ? NULL : seccomp_file_find(name);
	struct buf text;

	ret->name = name;
	if (known) {
		ret->text = (struct span){known->text, known->length};
		return 0;
	}
	if (io_read_file(name, SECCOMP_TEXT_MAX, &text, err) < 0)
		return -1;
	ret->text = (struct span){arena_strndup(s->arena, buf_span(&text).at, buf_len(&text)),
				  buf_len(&text)};
	buf_fini(&text);
	return ret->text.at ? 0 : err_set(err, ERR_LIMIT, "no memory");
}

static int parse_subject(struct session *s, struct subject *ret, struct err *err)
{
	ret->profile = seccomp_profile_parse(s->arena, ret->text, SECCOMP_FILE, err);
	return ret->profile ? 0 : err_wrap(err, "%s", ret->name);
}

static const struct seccomp_profile *engines_own(struct session *s, struct err *err)
{
	struct subject usual;

	if (read_subject(s, SECCOMP_DEFAULT, &usual, err) < 0 || parse_subject(s, &usual, err) < 0)
		return NULL;
	return usual.profile;
}

static void print_json(struct session *s)
{
	struct buf text;

	buf_init(&text, (size_t)16 << 20);
	jv_write(&text, &s->out);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

/* --- check --- */

/* One finding, with the line that names it. */
static void find(struct session *s, const struct subject *file, const char *call, const char *what)
{
	int line = *call ? seccomp_line_of(file->text, call) : 1;
	struct jv *list, *one;

	if (!s->json) {
		printf("%s:%d: %s%s%s\n", file->name, line, call, *call ? ": " : "", what);
		return;
	}
	list = (struct jv *)jv_get(&s->out, "findings");
	one = jv_push(s->arena, list, jv_object());
	jv_set(s->arena, one, "line", jv_int(line));
	jv_set(s->arena, one, "call", jv_string(call));
	jv_set(s->arena, one, "what", jv_string(arena_strndup(s->arena, what, strlen(what))));
}

static size_t find_unknown(struct session *s, const struct subject *file)
{
	const char *call;
	size_t i = 0;

	for (; (call = seccomp_profile_unknown(file->profile, i)); i++)
		find(s, file, call, "no such system call is known here");
	return i;
}

static size_t find_unclear(struct session *s, const struct subject *file)
{
	const struct seccomp_place at = {.capabilities = capability_engine_default()};
	const char *call;
	size_t i = 0;

	for (; (call = seccomp_profile_unclear(file->profile, &at, i)); i++)
		find(s, file, call, "its rules can be read in two ways");
	return i;
}

static size_t find_weaker(struct session *s, const struct subject *file,
			  const struct seccomp_profile *usual)
{
	struct seccomp_more *more = arena_take(s->arena, MORE_MAX * sizeof(*more));
	size_t count =
		more ? seccomp_profile_more_anywhere(file->profile, usual, s->arena, more, MORE_MAX)
		     : 0;
	size_t found = 0;

	for (size_t i = 0; i < count && i < MORE_MAX; i++) {
		if (more[i].unclear || seccomp_is_marked(file->profile, more[i].call))
			continue;
		find(s, file, more[i].call,
		     more[i].arguments
			     ? "allowed beyond the engine's default with some arguments; leave it "
			       "out, or name it in sallyport.weaker with a reason"
			     : "allowed beyond the engine's default; leave it out, or name it in "
			       "sallyport.weaker with a reason");
		found++;
	}
	return found;
}

static void say_weaker(struct session *s, const struct subject *file)
{
	struct span call, reason;

	for (size_t i = 0; !s->json && seccomp_profile_weaker(file->profile, i, &call, &reason);
	     i++)
		printf("%s: meant to be weaker than the engine's default: %.*s (%.*s)\n",
		       file->name, SPAN_FMT(call), SPAN_FMT(reason));
}

static size_t find_all(struct session *s, const struct subject *file,
		       const struct seccomp_profile *usual)
{
	size_t found = find_unknown(s, file);

	found += find_unclear(s, file);
	found += find_weaker(s, file, usual);
	say_weaker(s, file);
	return found;
}

/* What libseccomp makes of it, once nothing else is wrong. */
static size_t compile(struct session *s, const struct subject *file)
{
	struct err err = {0};
	struct buf program;
	size_t wrong = 0;

	buf_init(&program, (size_t)1 << 20);
	if (seccomp_profile_bpf(file->profile, capability_engine_default(), &program, &err) < 0) {
		find(s, file, "", err.msg);
		wrong = 1;
	} else if (!s->json) {
		printf("%s: fine; %zu instructions\n", file->name, buf_len(&program) / 8);
	}
	buf_fini(&program);
	return wrong;
}

static int check(struct session *s, const struct args *args, struct err *err)
{
	struct subject file;
	const struct seccomp_profile *usual = engines_own(s, err);
	struct err trouble = {0};
	size_t found = 1;

	if (args->rest_count != 1)
		return err_set(err, ERR_INPUT, "name one file");
	if (!usual || read_subject(s, args->rest[0], &file, err) < 0)
		return -1;
	jv_set(s->arena, &s->out, "findings", jv_array());
	file.profile = seccomp_profile_parse(s->arena, file.text, SECCOMP_FILE, &trouble);
	if (!file.profile)
		find(s, &file, "", trouble.msg);
	else
		found = find_all(s, &file, usual);
	if (!found)
		found = compile(s, &file);
	if (s->json)
		print_json(s);
	return found ? EXIT_NO : EXIT_YES;
}

/* --- diff --- */

static size_t list_more(struct session *s, const struct subject *more, const struct subject *less,
			const char *sign)
{
	struct seccomp_more *list = arena_take(s->arena, MORE_MAX * sizeof(*list));
	struct jv *out =
		jv_set(s->arena, &s->out, *sign == '-' ? "only_first" : "only_second", jv_array());
	size_t count = list ? seccomp_profile_more_anywhere(more->profile, less->profile, s->arena,
							    list, MORE_MAX)
			    : 0;

	for (size_t i = 0; i < count && i < MORE_MAX; i++) {
		char text[200];

		seccomp_more_say(&list[i], text, sizeof(text));
		if (s->json)
			jv_push(s->arena, out,
				jv_string(arena_strndup(s->arena, text, strlen(text))));
		else
			printf("%s %s: %s\n", sign, more->name, text);
	}
	return count;
}

static int diff(struct session *s, const struct args *args, struct err *err)
{
	struct subject a, b;
	size_t count;

	if (args->rest_count != 2)
		return err_set(err, ERR_INPUT, "name two profiles");
	if (read_subject(s, args->rest[0], &a, err) < 0 || parse_subject(s, &a, err) < 0 ||
	    read_subject(s, args->rest[1], &b, err) < 0 || parse_subject(s, &b, err) < 0)
		return -1;
	count = list_more(s, &a, &b, "-");
	count += list_more(s, &b, &a, "+");
	if (arena_spent(s->arena))
		return err_set(err, ERR_LIMIT, "no memory");
	if (s->json)
		print_json(s);
	else if (!count)
		printf("%s and %s allow the same\n", a.name, b.name);
	return count ? EXIT_NO : EXIT_YES;
}

static int run(const struct args *args,
	       int (*what)(struct session *, const struct args *, struct err *))
{
	struct session s = {
		.arena = arena_create(ARENA_MAX), .json = args->json, .out = jv_object()};
	struct err err = {0};
	int answer = s.arena ? what(&s, args, &err) : err_set(&err, ERR_LIMIT, "no memory");

	arena_destroy(s.arena);
	return answer < 0 ? command_failed(&err) : answer;
}

int run_seccomp_check(const struct args *args)
{
	return run(args, check);
}

int run_seccomp_diff(const struct args *args)
{
	return run(args, diff);
}
