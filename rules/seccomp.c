#include "rules/seccomp.h"

#include <stdio.h>
#include <string.h>

#define ROOM ((size_t)4 << 20) /* bytes for one profile in memory */

const struct seccomp_file *seccomp_file_find(const char *name)
{
	for (size_t i = 0; i < seccomp_file_count; i++)
		if (strcmp(seccomp_files[i].name, name) == 0)
			return &seccomp_files[i];
	return NULL;
}

int seccomp_named_bpf(const char *name, uint64_t capabilities, struct buf *ret, struct err *err)
{
	const struct seccomp_file *file = seccomp_file_find(name);
	const struct seccomp_profile *p;
	struct arena *a;
	int rc = -1;

	if (!file)
		return err_set(err, ERR_CONFIG, "there is no seccomp profile \"%s\"", name);
	a = arena_create(ROOM);
	if (!a)
		return err_set(err, ERR_LIMIT, "no memory");
	p = seccomp_profile_parse(a, (struct span){file->text, file->length}, SECCOMP_FILE, err);
	if (p)
		rc = seccomp_profile_bpf(p, capabilities, ret, err);
	arena_destroy(a);
	return rc < 0 ? err_wrap(err, "seccomp profile %s", name) : 0;
}

/* --- the list --- */

bool seccomp_is_file(const char *name)
{
	size_t len = strlen(name), tail = strlen(SECCOMP_SUFFIX);

	return len > tail && strcmp(name + len - tail, SECCOMP_SUFFIX) == 0;
}

const struct seccomp_known *seccomp_list_find(const struct seccomp_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->list[i].name, name) == 0)
			return &list->list[i];
	return NULL;
}

static int keep(struct seccomp_list *list, struct seccomp_known *one, struct arena *a,
		struct err *err)
{
	struct hash h;
	struct buf text;

	if (list->count == SECCOMP_PROFILES_MAX)
		return err_set(err, ERR_CONFIG, "more than %d profiles of system calls",
			       SECCOMP_PROFILES_MAX);
	buf_init(&text, SECCOMP_TEXT_MAX * 2);
	if (strcmp(one->name, SECCOMP_DEFAULT) != 0)
		seccomp_profile_write(one->profile, &text);
	one->text =
		(struct span){arena_strndup(a, buf_span(&text).at, buf_len(&text)), buf_len(&text)};
	h = hash_of(one->text);
	hash_hex(&h, one->sha256);
	buf_fini(&text);
	if (!one->text.at)
		return err_set(err, ERR_LIMIT, "profiles take too much memory");
	list->list[list->count++] = *one;
	return 0;
}

int seccomp_list_begin(struct seccomp_list *list, struct arena *a, struct err *err)
{
	list->count = 0;
	for (size_t i = 0; i < seccomp_file_count; i++) {
		const struct seccomp_file *f = &seccomp_files[i];
		struct seccomp_known one = {.name = f->name, .file = f->name};

		one.profile = seccomp_profile_parse(a, (struct span){f->text, f->length},
						    SECCOMP_FILE, err);
		if (!one.profile || keep(list, &one, a, err) < 0)
			return err_wrap(err, "seccomp profile %s", f->name);
	}
	return 0;
}

/* --- what an operator's file may not be --- */

int seccomp_line_of(struct span text, const char *call)
{
	size_t len = strlen(call);
	int line = 1;

	for (size_t i = 0; i + len + 1 < text.len; i++) {
		if (text.at[i] == '\n')
			line++;
		if (text.at[i] == '"' && memcmp(text.at + i + 1, call, len) == 0 &&
		    (text.at[i + 1 + len] == '"' || text.at[i + 1 + len] == ':'))
			return line;
	}
	return 1;
}

struct reading_file {
	const char *file;
	struct span text;
	struct err *err;
};

/* Kinds are of whoever wrote the file. */
static int blame(const struct reading_file *r, const char *call)
{
	r->err->kind = ERR_CONFIG;
	return err_wrap(r->err, "%s:%d", r->file, *call ? seccomp_line_of(r->text, call) : 1);
}

bool seccomp_is_marked(const struct seccomp_profile *p, const char *call)
{
	struct span name, reason;

	for (size_t i = 0; seccomp_profile_weaker(p, i, &name, &reason); i++)
		if (span_is(name, call))
			return true;
	return false;
}

void seccomp_more_say(const struct seccomp_more *more, char *ret, size_t size)
{
	snprintf(ret, size, "%s%s", strcmp(more->call, "*") == 0 ? "all other calls" : more->call,
		 more->unclear     ? " (its rules can be read in two ways)"
		 : more->arguments ? " (with other arguments)"
				   : "");
}

#define MORE_MAX 512

static int check_weaker(const struct reading_file *r, const struct seccomp_list *list,
			const struct seccomp_profile *p, struct arena *a)
{
	const struct seccomp_profile *usual = seccomp_list_find(list, SECCOMP_DEFAULT)->profile;
	struct seccomp_more *more = arena_take(a, MORE_MAX * sizeof(*more));
	size_t count = more ? seccomp_profile_more_anywhere(p, usual, a, more, MORE_MAX) : 0;
	struct span name, reason;

	if (!more || arena_spent(a))
		return err_set(r->err, ERR_LIMIT, "profiles take too much memory");
	for (size_t i = 0; i < count && i < MORE_MAX; i++) {
		char text[200];

		if (seccomp_is_marked(p, more[i].call))
			continue;
		seccomp_more_say(&more[i], text, sizeof(text));
		err_set(r->err, ERR_CONFIG,
			"%s is allowed beyond the engine's default; leave it out, or say why: "
			"\"sallyport\": { \"weaker\": [\"%s: the reason\"] }",
			text, more[i].call);
		return blame(r, more[i].call);
	}
	for (size_t i = 0; seccomp_profile_weaker(p, i, &name, &reason); i++) {
		size_t k = 0;

		while (k < count && k < MORE_MAX && !span_is(name, more[k].call))
			k++;
		if (k < count && k < MORE_MAX)
			continue;
		err_set(r->err, ERR_CONFIG,
			"\"%.*s\" is marked as weaker than the engine's default and is not; leave "
			"the mark out",
			(int)(name.len > 64 ? 64 : name.len), name.at);
		return blame(r, "weaker");
	}
	return 0;
}

static int check_names(const struct reading_file *r, const struct seccomp_profile *p)
{
	const struct seccomp_place here = {.capabilities = 0}, all = {.capabilities = ~UINT64_C(0)};
	const char *unknown = seccomp_profile_unknown(p, 0);
	const char *unclear = seccomp_profile_unclear(p, &here, 0);

	if (!unclear)
		unclear = seccomp_profile_unclear(p, &all, 0);
	if (unknown) {
		err_set(r->err, ERR_CONFIG,
			"no system call \"%s\" is known here; correct it, or name it in "
			"\"sallyport\": { \"newer\": [...] } if it is only too new",
			unknown);
		return blame(r, unknown);
	}
	if (!unclear)
		return 0;
	err_set(r->err, ERR_CONFIG,
		"the rules of %s can be read in two ways; give it one action, and either one rule "
		"or "
		"rules of SCMP_CMP_EQ and SCMP_CMP_MASKED_EQ alone",
		unclear);
	return blame(r, unclear);
}

static int name_it(const struct reading_file *r, const struct seccomp_list *list, struct arena *a,
		   const char **ret)
{
	const char *slash = strrchr(r->file, '/'), *base = slash ? slash + 1 : r->file;
	size_t len = strlen(base) - strlen(SECCOMP_SUFFIX);
	char *name = arena_strndup(a, base, len);

	if (!name)
		return err_set(r->err, ERR_LIMIT, "profiles take too much memory");
	for (const char *c = name; *c; c++)
		if ((*c < 'a' || *c > 'z') && (*c < '0' || *c > '9') && *c != '-')
			len = 0;
	if (!len || len > 64) {
		err_set(r->err, ERR_CONFIG,
			"a profile's name has small letters, digits and '-', at most 64");
		return blame(r, "");
	}
	if (seccomp_list_find(list, name)) {
		err_set(r->err, ERR_CONFIG, "there is another seccomp profile \"%s\"", name);
		return blame(r, "");
	}
	*ret = name;
	return 0;
}

int seccomp_list_add(struct seccomp_list *list, const char *file, struct span text, struct arena *a,
		     struct err *err)
{
	struct reading_file r = {file, text, err};
	struct seccomp_known one = {.file = file};
	struct arena *scratch;
	int rc;

	if (name_it(&r, list, a, &one.name) < 0)
		return -1;
	one.profile = seccomp_profile_parse(a, text, SECCOMP_FILE, err);
	if (!one.profile)
		return blame(&r, "");
	scratch = arena_create(ROOM);
	if (!scratch)
		return err_set(err, ERR_LIMIT, "no memory");
	rc = check_names(&r, one.profile);
	if (rc == 0)
		rc = check_weaker(&r, list, one.profile, scratch);
	arena_destroy(scratch);
	return rc < 0 ? -1 : keep(list, &one, a, err);
}
