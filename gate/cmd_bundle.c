/* cmd_bundle.c - signed bundles of rules: the key, the bundle, and who can trust it. */
#include "gate/command.h"

#include "audit/signed.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/pack.h"
#include "gate/profile_folder.h"
#include "rules/engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE_MAX 1024
#define ARENA_MAX    ((size_t)64 << 20)

/* A new file with this text; nothing is written over. */
static int write_new(const char *path, struct span text, mode_t mode, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode), rc;

	if (fd < 0)
		return err_sys(err, "make %s", path);
	rc = io_write_all(fd, text.at, text.len, err);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_sys(err, "write %s", path);
	close(fd);
	return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

static struct span first_line(const struct buf *text)
{
	struct span rest = buf_span(text), line;

	span_cut(&rest, '\n', &line);
	return line;
}

/* --- bundle key --- */

static int make_key(const struct args *args, struct err *err)
{
	char secret[SIGNED_KEY_MAX], key[SIGNED_KEY_MAX];
	struct buf line;
	int rc;

	if (args->rest_count != 1 || !args->out)
		return err_set(err, ERR_INPUT, "say: sallyport bundle key NAME --out FILE");
	if (signed_init(err) < 0 || signed_key_make(args->rest[0], secret, key, err) < 0)
		return -1;
	buf_init(&line, KEY_FILE_MAX);
	buf_printf(&line, "%s\n", secret);
	rc = write_new(args->out, buf_span(&line), 0600, err);
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(line.mem, line.size);
	buf_fini(&line);
	if (rc == 0)
		printf("secret, for 'bundle build':  %s\nfor configurations:          rules { "
		       "signed = true, keys = { \"%s\" } }\n",
		       args->out, key);
	return rc;
}

int run_bundle_key(const struct args *args)
{
	struct err err = {0};

	return make_key(args, &err) < 0 ? command_failed(&err) : EXIT_YES;
}

/* --- bundle build --- */

static int read_all(const struct args *args, struct profile_folder *all, struct arena *a,
		    struct err *err)
{
	struct profile_folder *one = arena_take(a, sizeof(*one));

	if (!one)
		return err_set(err, ERR_SYSTEM, "no memory");
	for (size_t i = 0; i < args->rest_count; i++) {
		if (profile_folder_read(args->rest[i], a, one, err) < 0)
			return -1;
		if (all->source_count + one->source_count > FOLDER_FILES_MAX)
			return err_set(err, ERR_LIMIT, "more than %d files", FOLDER_FILES_MAX);
		memcpy(all->sources + all->source_count, one->sources,
		       one->source_count * sizeof(*one->sources));
		all->source_count += one->source_count;
	}
	return 0;
}

/* In a bundle files have no folders. */
static int without_folders(struct profile_folder *folder, struct err *err)
{
	for (size_t i = 0; i < folder->source_count; i++) {
		struct rule_source *s = &folder->sources[i];
		const char *slash = strrchr(s->name, '/');

		s->name = slash ? slash + 1 : s->name;
		for (size_t k = 0; k < i; k++)
			if (strcmp(folder->sources[k].name, s->name) == 0)
				return err_set(err, ERR_INPUT, "two files are called %s", s->name);
	}
	return folder->source_count ? 0 : err_set(err, ERR_INPUT, "there are no profiles");
}

/* What does not load is not signed. */
static int check_loads(const struct rule_source *files, size_t count, struct err *err)
{
	struct engine *eng = engine_open(files, count, &engine_default_limits, err);

	engine_close(eng);
	return eng ? 0 : -1;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static int build(const struct args *args, struct profile_folder *folder, struct arena *a,
		 struct err *err)
{
	char now[CLOCK_TEXT_MAX];
	struct pack_origin origin = {.name = or_empty(args->name),
				     .made = now,
				     .commit = or_empty(args->commit),
				     .author = or_empty(args->author),
				     .approver = or_empty(args->approver),
				     .ticket = or_empty(args->ticket)};
	struct buf key, out;
	int rc;

	if (read_all(args, folder, a, err) < 0 || without_folders(folder, err) < 0 ||
	    check_loads(folder->sources, folder->source_count, err) < 0 || signed_init(err) < 0 ||
	    io_read_file(args->key, KEY_FILE_MAX, &key, err) < 0)
		return -1;
	clock_format(clock_unix_ns(), now);
	buf_init(&out, PACK_MAX);
	rc = pack_write(&origin, folder->sources, folder->source_count, first_line(&key), &out,
			err);
	if (rc == 0)
		rc = write_new(args->out, buf_span(&out), 0644, err);
	explicit_bzero(key.mem, key.size);
	buf_fini(&key);
	buf_fini(&out);
	return rc;
}

int run_bundle_build(const struct args *args)
{
	struct profile_folder *folder = calloc(1, sizeof(*folder));
	struct arena *a = arena_create(ARENA_MAX);
	struct err err = {0};
	int rc;

	if (!folder || !a)
		rc = err_set(&err, ERR_SYSTEM, "no memory");
	else if (!args->rest_count)
		rc = err_set(&err, ERR_INPUT, "name the folder with the profiles");
	else
		rc = build(args, folder, a, &err);
	if (rc == 0)
		printf("%s: %zu files\n", args->out, folder->source_count);
	arena_destroy(a);
	free(folder);
	return rc < 0 ? command_failed(&err) : EXIT_YES;
}

/* --- bundle verify --- */

/* The key itself, or a file with it. */
static int read_key(const char *given, char out[SIGNED_KEY_MAX], struct err *err)
{
	struct buf text;

	if (!signed_key_is_valid(span_of(given))) {
		if (io_read_file(given, KEY_FILE_MAX, &text, err) < 0)
			return -1;
		snprintf(out, SIGNED_KEY_MAX, "%.*s", SPAN_FMT(first_line(&text)));
		buf_fini(&text);
	} else {
		snprintf(out, SIGNED_KEY_MAX, "%s", given);
	}
	return signed_key_is_valid(span_of(out))
		       ? 0
		       : err_set(err, ERR_INPUT, "%s is no public key, and no file with one",
				 given);
}

static void show(const struct pack *p, bool json)
{
	if (json) {
		printf("%.*s\n", SPAN_FMT(p->manifest));
		return;
	}
	printf("signed by   %.*s\nname        %s\nmade        %s\ncommit      %s\nauthor      %s\n"
	       "approver    %s\nticket      %s\n",
	       SPAN_FMT(p->signer), p->origin.name, p->origin.made, p->origin.commit,
	       p->origin.author, p->origin.approver, p->origin.ticket);
	for (size_t i = 0; i < p->file_count; i++)
		printf("file        %s, %zu bytes\n", p->files[i].name, p->files[i].text.len);
}

static int verify(const struct args *args, struct arena *a, struct err *err)
{
	char key[SIGNED_KEY_MAX];
	const char *const keys[] = {key, NULL};
	struct pack *pack = arena_take(a, sizeof(*pack));
	struct buf text;
	int rc;

	if (args->rest_count != 1 || !pack)
		return err_set(err, ERR_INPUT, "name one bundle");
	if (signed_init(err) < 0 || read_key(args->key, key, err) < 0 ||
	    io_read_file(args->rest[0], PACK_MAX, &text, err) < 0)
		return -1;
	rc = pack_read(buf_span(&text), keys, a, pack, err);
	if (rc == 0)
		rc = check_loads(pack->files, pack->file_count, err);
	if (rc == 0)
		show(pack, args->json);
	buf_fini(&text);
	if (rc < 0) {
		fprintf(stderr, "sallyport: %s: %s\n", args->rest[0], err->msg);
		return EXIT_NO;
	}
	return EXIT_YES;
}

int run_bundle_verify(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct err err = {0};
	int rc = a ? verify(args, a, &err) : err_set(&err, ERR_SYSTEM, "no memory");

	arena_destroy(a);
	return rc < 0 ? command_failed(&err) : rc;
}
