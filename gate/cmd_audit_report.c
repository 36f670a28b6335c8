/* `audit report`: what an auditor asks of a period. */
#include "gate/command.h"

#include "audit/report.h"
#include "audit/requests.h"
#include "audit/when.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/log_folder.h"

#include <string.h>
#include <unistd.h>

#define FROM_DEFAULT "30d"

typedef void write_fn(const struct report *r, struct buf *out);

static int take_format(const char *given, write_fn **ret, struct err *err)
{
	static const struct {
		const char *name;
		write_fn *write;
	} formats[] = {{"text", report_text}, {"json", report_json}, {"html", report_html}};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!given || strcmp(given, formats[i].name) == 0) {
			*ret = formats[i].write;
			return 0;
		}
	return err_set(err, ERR_INPUT, "--format takes text, json or html, not '%.40s'", given);
}

static int take_period(const struct args *args, uint64_t *from, uint64_t *to, struct err *err)
{
	uint64_t now = clock_unix_ns();

	*to = now;
	if (when_parse(args->since ? args->since : FROM_DEFAULT, now, from, err) < 0)
		return err_wrap(err, "--from");
	if (args->until && when_parse(args->until, now, to, err) < 0)
		return err_wrap(err, "--to");
	return 0;
}

static int print(write_fn *write, const struct report *r, struct err *err)
{
	struct buf out;
	int rc;

	buf_init(&out, REPORT_OUT_MAX);
	write(r, &out);
	if (buf_spent(&out))
		rc = err_set(err, ERR_LIMIT, "no memory for the report");
	else
		rc = io_write_all(STDOUT_FILENO, buf_span(&out).at, buf_len(&out), err);
	buf_fini(&out);
	return rc;
}

int run_audit_report(const struct args *args)
{
	uint64_t from = 0, to = 0;
	struct report *report;
	struct loaded loaded;
	struct err err = {0};
	write_fn *write = NULL;
	const char *dir;
	int result = EXIT_CANNOT;

	if (take_format(args->format, &write, &err) < 0 ||
	    take_period(args, &from, &to, &err) < 0 || log_folder(args, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	log_tell_read(dir, "audit report");
	report = report_make(dir, from, to, &err);
	if (report && print(write, report, &err) == 0)
		result = report->verify.result == VERIFY_FINE ? EXIT_YES : EXIT_NO;
	else
		command_failed(&err);
	report_destroy(report);
	unload(&loaded);
	return result;
}
