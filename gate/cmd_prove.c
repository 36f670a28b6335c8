/* `audit checkpoint` and `audit prove`, for somebody outside; what is asked of the running gate. */
#include "gate/command.h"

#include "audit/prove.h"
#include "audit/requests.h"
#include "audit/when.h"
#include "gate/base/clock.h"
#include "gate/serve.h"

/* The log's folder: the plain argument at that place, or from the configuration. */
static int find_folder(const struct args *args, size_t place, struct loaded *loaded,
		       const char **ret, struct err *err)
{
	*loaded = (struct loaded){.bundle = {.fd = -1}};
	if ((args->rest_count > place) == (args->config != NULL))
		return err_set(err, ERR_INPUT, "give the log's folder or --config FILE");
	if (args->rest_count > place) {
		*ret = args->rest[place];
		return 0;
	}
	if (load(args->config, loaded, err) < 0)
		return -1;
	*ret = loaded->config.auditor.dir;
	return 0;
}

static int print(struct buf *out, int result, struct loaded *loaded, const struct err *err)
{
	if (result == 0)
		fwrite(buf_span(out).at, 1, buf_len(out), stdout);
	buf_fini(out);
	unload(loaded);
	return result < 0 ? command_failed(err) : EXIT_YES;
}

int run_audit_checkpoint(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	const char *dir;
	struct buf out;
	int result;

	if (find_folder(args, 0, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	buf_init(&out, PROOF_MAX);
	if (args->vkey)
		result = log_key(dir, &out, &err);
	else if (args->has_count)
		result = log_prove_growth(dir, args->count, &out, &err);
	else
		result = log_checkpoint(dir, &out, &err);
	return print(&out, result, &loaded, &err);
}

int run_audit_prove(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	const char *dir;
	struct buf out;
	uint64_t seq;

	if (!args->rest_count || command_count(span_of(args->rest[0]), &seq) < 0) {
		err_set(&err, ERR_INPUT, "say which record: its number (`seq`)");
		return command_failed(&err);
	}
	if (find_folder(args, 1, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	log_tell_read(dir, "audit prove");
	buf_init(&out, PROOF_MAX);
	return print(&out, log_prove(dir, seq, &out, &err), &loaded, &err);
}

int run_audit_rotate_key(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	const char *dir;
	int result;

	if (find_folder(args, 0, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	result = log_rotate_key(dir, &err);
	unload(&loaded);
	return result < 0 ? command_failed(&err) : EXIT_YES;
}

int run_audit_erase(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	uint64_t before_ns = 0;
	const char *dir;
	int result;

	if (!args->identity && !args->until) {
		err_set(&err, ERR_INPUT, "give --identity NAME, --before WHEN, or both");
		return command_failed(&err);
	}
	if (args->until && when_parse(args->until, clock_unix_ns(), &before_ns, &err) < 0)
		return command_failed(&err);
	if (args->until && before_ns < 1000000000) {
		err_set(&err, ERR_INPUT,
			"--before: there is nothing of before 1970-01-01T00:00:01Z");
		return command_failed(&err);
	}
	if (find_folder(args, 0, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	result = log_erase(dir, args->ticket, args->identity ? args->identity : "",
			   (int64_t)(before_ns / 1000000000), &err);
	unload(&loaded);
	if (result < 0)
		return command_failed(&err);
	puts("asked; records of type log_erase say what became of it");
	return EXIT_YES;
}
