/* `audit query`: records that are found by the index, for people and for programs. */
#include "gate/command.h"

#include "audit/index.h"
#include "audit/record.h"
#include "audit/requests.h"
#include "audit/when.h"
#include "gate/base/clock.h"
#include "gate/base/nearest.h"
#include "gate/log_folder.h"
#include "gate/printed.h"
#include "rules/decision.h"

#include <inttypes.h>
#include <string.h>

#define TABLE_LIMIT 100
#define LINE_MAX_   (4 * RECORD_LINE_MAX)

enum { TIME, IDENTITY, OPERATION, OBJECT, VERDICT, REASON, STATUS, COLUMNS };

static const struct {
	const char *name;
	size_t width; /* in the table; longer ones are cut at `most` */
	size_t most;
} columns[COLUMNS] = {
	[TIME] = {"TIME", 24, 24},           [IDENTITY] = {"IDENTITY", 14, 40},
	[OPERATION] = {"OPERATION", 18, 40}, [OBJECT] = {"OBJECT", 28, 60},
	[VERDICT] = {"VERDICT", 7, 20},      [REASON] = {"REASON", 16, 40},
	[STATUS] = {"STATUS", 12, 60},
};

typedef void print_fn(struct buf *out, const struct log_hit *hit);

struct printing {
	print_fn *print;
	struct buf out;
	uint64_t count;
};

/* Where there is a status, that column has no room for the text. */
static const char *object_of(const struct fields *f, bool has_status)
{
	if (*f->object)
		return f->object;
	if (*f->path)
		return f->path;
	return has_status ? f->text : "";
}

/* What stands in the column of a hit; room is for texts that are put together. */
static const char *cell(const struct log_hit *hit, int column, char room[64])
{
	const struct fields *f = &hit->fields, *o = hit->outcome_line.len ? &hit->outcome : f;

	switch (column) {
	case TIME:
		snprintf(room, 64, "%.23s%s", f->time, strlen(f->time) > 23 ? "Z" : "");
		return room;
	case IDENTITY:
		return *f->identity ? f->identity : f->owner;
	case OPERATION:
		return *f->op ? f->op : f->type_name;
	case OBJECT:
		return object_of(f, o->http || *o->status);
	case VERDICT:
		return f->verdict;
	case REASON:
		return *f->reason ? f->reason : *o->reason ? o->reason : f->cause;
	default:
		if (o->http)
			snprintf(room, 64, "%.40s%s%" PRId64, o->status, *o->status ? " " : "",
				 o->http);
		else if (*o->status)
			snprintf(room, 64, "%.60s", o->status);
		else
			return f->text; /* what else there is to say: of alarms, of refusals */
		return room;
	}
}

static void print_row(struct buf *out, const struct log_hit *hit)
{
	char room[64];

	for (int i = 0; i < COLUMNS; i++) {
		size_t before = buf_len(out), width;

		printed_plain(out, cell(hit, i, room), columns[i].most);
		width = buf_len(out) - before;
		if (i + 1 < COLUMNS)
			buf_printf(out, "%*s",
				   (int)(width < columns[i].width ? columns[i].width - width : 0) +
					   2,
				   "");
	}
	buf_puts(out, "\n");
}

static void print_json(struct buf *out, const struct log_hit *hit)
{
	buf_put(out, hit->line.at, hit->line.len);
	buf_puts(out, "\n");
	if (!hit->outcome_line.len)
		return;
	buf_put(out, hit->outcome_line.at, hit->outcome_line.len);
	buf_puts(out, "\n");
}

static void print_csv(struct buf *out, const struct log_hit *hit)
{
	const struct fields *f = &hit->fields, *o = hit->outcome_line.len ? &hit->outcome : f;
	char seq[24], http[24];
	const char *const cells[] = {
		seq,         f->time,      f->type_name, f->id,     f->identity, f->owner,
		f->listener, f->op,        f->op_class,  f->method, f->path,     f->object_kind,
		f->object,   f->object_id, f->profile,   f->rule,   f->verdict,  f->would,
		f->reason,   o->status,    http,         f->text};

	snprintf(seq, sizeof(seq), "%" PRIu64, f->seq);
	snprintf(http, sizeof(http), "%" PRId64, o->http);
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		buf_puts(out, i ? "," : "");
		printed_csv(out, cells[i] == http && !o->http ? "" : cells[i]);
	}
	buf_puts(out, "\r\n");
}

static int on_hit(void *arg, const struct log_hit *hit)
{
	struct printing *p = arg;

	buf_clear(&p->out);
	p->print(&p->out, hit);
	p->count++;
	/* Nobody reads any more: no need to go on. */
	return fwrite(buf_span(&p->out).at, 1, buf_len(&p->out), stdout) != buf_len(&p->out);
}

static void print_head(print_fn *print)
{
	if (print == print_csv)
		fputs("seq,time,type,id,identity,owner,listener,operation,class,method,path,"
		      "object_type,object,object_id,profile,rule,verdict,would,reason,status,"
		      "http,text\r\n",
		      stdout);
	for (int i = 0; print == print_row && i < COLUMNS; i++)
		printf(i + 1 < COLUMNS ? "%-*s  " : "%.0d%s\n",
		       i + 1 < COLUMNS ? (int)columns[i].width : 0, columns[i].name);
}

static int take_format(const char *given, print_fn **ret, struct err *err)
{
	static const struct {
		const char *name;
		print_fn *print;
	} formats[] = {{"table", print_row}, {"json", print_json}, {"csv", print_csv}};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!given || strcmp(given, formats[i].name) == 0) {
			*ret = formats[i].print;
			return 0;
		}
	return err_set(err, ERR_INPUT, "--format takes table, json or csv, not '%.40s'", given);
}

/* A mistyped word would find nothing, which says something else. */
static int check_words(const struct args *args, struct err *err)
{
	bool verdict = !args->verdict, type = !args->type;
	char hint[NEAREST_TEXT_MAX];
	struct nearest near;

	for (int i = 0; i < VERDICT_COUNT && !verdict; i++)
		verdict = strcmp(verdict_name((enum verdict)i), args->verdict) == 0;
	if (!verdict)
		return err_set(err, ERR_INPUT, "--verdict takes allow, ask or deny, not '%.40s'",
			       args->verdict);
	if (type)
		return 0;
	near = nearest_to(span_of(args->type));
	for (int i = 0; i < RECORD_TYPE_COUNT && !type; i++) {
		nearest_offer(&near, record_type_name((enum record_type)i));
		type = strcmp(record_type_name((enum record_type)i), args->type) == 0;
	}
	return type ? 0
		    : err_set(err, ERR_INPUT, "no record is of the type '%.40s'%s", args->type,
			      nearest_text(&near, hint));
}

static int take_query(const struct args *args, bool table, struct log_query *ret, struct err *err)
{
	uint64_t now = clock_unix_ns();

	*ret = (struct log_query){
		.identity = args->identity,
		.owner = args->owner,
		.op = args->op,
		.verdict = args->verdict,
		.reason = args->reason,
		.rule = args->rule,
		.profile = args->profile,
		.object = args->object,
		.type = args->type,
		.text = args->text,
		.id = args->id,
		.limit = args->has_count ? args->count
			 : table         ? TABLE_LIMIT
					 : 0,
	};
	if (args->since && when_parse(args->since, now, &ret->since_ns, err) < 0)
		return err_wrap(err, "--since");
	if (args->until && when_parse(args->until, now, &ret->until_ns, err) < 0)
		return err_wrap(err, "--until");
	return 0;
}

static int find(const char *dir, const char *file, const struct log_query *q, struct printing *p,
		struct err *err)
{
	struct log_index *ix = log_index_open(dir, file, err);
	int rc = ix ? log_index_query(ix, q, on_hit, p, err) : -1;

	log_index_close(ix);
	if (fflush(stdout) != 0 && rc == 0)
		rc = 1;
	return rc > 0 ? err_sys(err, "print") : rc;
}

int run_audit_query(const struct args *args)
{
	struct printing p = {.count = 0};
	struct loaded loaded;
	struct log_query q;
	struct err err = {0};
	const char *dir;
	int rc;

	if (take_format(args->format, &p.print, &err) < 0 || check_words(args, &err) < 0 ||
	    take_query(args, p.print == print_row, &q, &err) < 0 ||
	    log_folder(args, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	log_tell_read(dir, "audit query");
	buf_init(&p.out, LINE_MAX_);
	print_head(p.print);
	rc = find(dir, args->index, &q, &p, &err);
	buf_fini(&p.out);
	unload(&loaded);
	if (rc < 0)
		return command_failed(&err);
	if (p.print == print_row && !args->has_count && p.count == TABLE_LIMIT)
		fprintf(stderr, "These are the newest %d; --limit 0 shows all.\n", TABLE_LIMIT);
	return p.count ? EXIT_YES : EXIT_NO;
}
