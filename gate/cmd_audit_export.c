/* `audit export`: the log as events for a collector. */
#include "gate/command.h"

#include "audit/export.h"
#include "audit/requests.h"
#include "audit/when.h"
#include "gate/base/clock.h"
#include "gate/log_folder.h"

#include <inttypes.h>
#include <unistd.h>

static int take_options(const struct args *args, struct export_options *ret, struct err *err)
{
	uint64_t now = clock_unix_ns();

	*ret = (struct export_options){.format = export_format_find(args->format)};
	if (!ret->format)
		return err_set(err, ERR_INPUT, "--format takes ocsf, ecs or cef, not '%.40s'",
			       args->format);
	if (args->since && when_parse(args->since, now, &ret->since_ns, err) < 0)
		return err_wrap(err, "--since");
	if (args->until && when_parse(args->until, now, &ret->until_ns, err) < 0)
		return err_wrap(err, "--until");
	ret->has_after = args->has_count;
	ret->after = args->count;
	return 0;
}

int run_audit_export(const struct args *args)
{
	struct export_options options;
	struct loaded loaded;
	struct err err = {0};
	struct export_result result = {0};
	const char *dir;
	int rc;

	if (take_options(args, &options, &err) < 0 || log_folder(args, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	log_tell_read(dir, "audit export");
	rc = export_log(dir, &options, STDOUT_FILENO, &result, &err);
	unload(&loaded);
	if (rc < 0)
		return command_failed(&err);
	if (result.missed)
		fprintf(stderr,
			"sallyport: %" PRIu64 " records behind %" PRIu64
			" were removed from the log before this\n",
			result.missed, options.after);
	return result.count ? EXIT_YES : EXIT_NO;
}
