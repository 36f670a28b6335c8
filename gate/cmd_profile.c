#include "gate/command.h"

#include "gate/base/jv.h"
#include "gate/base/nearest.h"
#include "gate/serve.h"
#include "rules/engine.h"

#include <string.h>

static const char *grant_name(enum grant g)
{
	switch (g) {
	case GRANT_NONE:
		return "no";
	case GRANT_JUDGE:
		return "judged";
	case GRANT_PLAIN:
		return "yes";
	}
	return "no";
}

static size_t granted(const struct profile *p)
{
	size_t n = 0;

	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++)
		if (profile_grant(p, op) != GRANT_NONE)
			n++;
	return n;
}

static int print_tree(const struct jv *tree)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	jv_write(&text, tree);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
	return EXIT_YES;
}

static struct jv summary(const struct profile *p, struct arena *a)
{
	struct jv to = jv_object();

	jv_set(a, &to, "name", jv_string(profile_name(p)));
	jv_set(a, &to, "sha256", jv_string(profile_hash(p)));
	jv_set(a, &to, "hardens", jv_bool(profile_hardens(p)));
	jv_set(a, &to, "sees_all", jv_bool(reach_sees_all(profile_reach(p))));
	jv_set(a, &to, "operations", jv_int((int64_t)granted(p)));
	return to;
}

static int list(const struct engine *eng, const struct args *args, struct arena *a)
{
	struct jv all = jv_array();
	const struct profile *p;

	for (size_t i = 0; (p = engine_profile_at(eng, i)); i++) {
		if (args->json)
			jv_push(a, &all, summary(p, a));
		else
			printf("%-28s %3zu operations  %s  %.16s\n", profile_name(p), granted(p),
			       profile_hardens(p) ? "hardens" : "       ", profile_hash(p));
	}
	return args->json ? print_tree(&all) : EXIT_YES;
}

static int show_json(const struct profile *p, struct arena *a)
{
	struct jv tree = summary(p, a), *ops = jv_set(a, &tree, "operations", jv_object());
	struct jv *origins;
	const char *name;
	int line;

	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++)
		jv_set(a, ops, operation_name(op), jv_string(grant_name(profile_grant(p, op))));
	jv_set(a, &tree, "settings", *profile_settings(p));
	origins = jv_set(a, &tree, "origins", jv_object());
	for (size_t i = 0; (name = profile_setting_at(i)); i++) {
		const struct profile *from = profile_origin(p, name, &line);

		jv_set(a, origins, name, jv_string(from ? profile_name(from) : "default"));
	}
	return print_tree(&tree);
}

/* Who says it: this profile, one that it extends, or nobody. */
static void print_origin(const struct profile *p, const char *setting)
{
	int line;
	const struct profile *from = profile_origin(p, setting, &line);

	if (!from)
		puts("   (default)");
	else
		printf("   (%s:%d%s%s)\n", profile_file(from), line, from == p ? "" : ", from ",
		       from == p ? "" : profile_name(from));
}

/* Its operations are listed one by one. */
static void print_settings(const struct profile *p)
{
	const struct jv *settings = profile_settings(p);
	struct buf text;

	for (size_t i = 0; settings->kind == JV_OBJECT && i < settings->count; i++) {
		const struct jv_member *m = &settings->members[i];

		if (span_is(m->key, "operations"))
			continue;
		buf_init(&text, 1 << 20);
		jv_write(&text, &m->value);
		printf("%-14.*s %.*s", SPAN_FMT(m->key), SPAN_FMT(buf_span(&text)));
		print_origin(p, m->key.at);
		buf_fini(&text);
	}
}

static void print_rules(const struct engine *eng, const struct profile *p)
{
	struct rule_view v;
	struct exception_view x;

	for (size_t i = 0; profile_rule_at(eng, p, i, &v); i++)
		if (!v.is_check || v.mode != MODE_ENFORCE)
			printf("%-14s %s, %s   (%s:%d)\n", v.is_check ? "check" : "rule", v.name,
			       rule_mode_name(v.mode), v.file, v.line);
	for (size_t i = 0; engine_exception_at(eng, i, &x); i++)
		if (strcmp(x.profile, profile_name(p)) == 0)
			printf("%-14s %s until %s, %s for %s: %s   (%s:%d)\n", "exception", x.rule,
			       x.expires, x.ticket, x.owner, x.reason, x.file, x.line);
	fputs("\nyes: granted; judged: granted where no check refuses what is asked for; no: "
	      "refused\n\n",
	      stdout);
}

static int show(const struct engine *eng, const struct args *args, struct arena *a)
{
	const struct profile *p = engine_profile(eng, args->rest[0]), *other;
	struct nearest near = nearest_to(span_of(args->rest[0]));
	char hint[NEAREST_TEXT_MAX];

	if (!p) {
		for (size_t i = 0; (other = engine_profile_at(eng, i)); i++)
			nearest_offer(&near, profile_name(other));
		fprintf(stderr, "sallyport: no profile is called '%s'%s\n", args->rest[0],
			nearest_text(&near, hint));
		return EXIT_NO;
	}
	if (args->json)
		return show_json(p, a);
	printf("profile   %s\nsha256    %s\nobjects   %s\nabsent    %s\n\n", profile_name(p),
	       profile_hash(p),
	       reach_sees_all(profile_reach(p)) ? "sees all" : "sees what visibility says",
	       profile_hardens(p) ? "what a caller leaves out is filled in"
				  : "what a caller leaves out stays out");
	print_settings(p);
	print_rules(eng, p);
	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++)
		printf("%-7s %-24s %s\n", grant_name(profile_grant(p, op)), operation_name(op),
		       operation_doc(op));
	return EXIT_YES;
}

static int with_profiles(const struct args *args,
			 int (*fn)(const struct engine *, const struct args *, struct arena *))
{
	struct err err = {0};
	struct loaded loaded;
	struct engine *eng;
	int answer;

	if (load(args->config, &loaded, &err) < 0)
		return command_failed(&err);
	eng = engine_open(loaded.config.proxy.rules, loaded.config.proxy.rule_count,
			  &loaded.config.proxy.rule_limits, &err);
	answer = eng ? fn(eng, args, loaded.arena) : command_failed(&err);
	engine_close(eng);
	unload(&loaded);
	return answer;
}

int run_profile_list(const struct args *args)
{
	return with_profiles(args, list);
}

int run_profile_show(const struct args *args)
{
	struct err err = {0};

	if (!args->rest_count) {
		err_set(&err, ERR_INPUT, "name a profile; 'sallyport profile list' has them");
		return command_failed(&err);
	}
	return with_profiles(args, show);
}
