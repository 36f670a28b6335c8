#include "audit/export_priv.h"

#include "audit/erasable_priv.h"

#include "audit/line_priv.h"
#include "audit/segment_priv.h"
#include "gate/base/auto.h"
#include "gate/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OUT_BYTES (256u << 10)
#define ONE_MAX   (8 * RECORD_LINE_MAX) /* a record whose every byte is escaped, and more */

static const struct export_type types[RECORD_TYPE_COUNT] = {
	[RECORD_NONE] = {1008, 99, "configuration", "info", "auditlog", "A record of another kind"},
#define TYPE(type, class, activity, category, ecs_type, cef, name)                                 \
	[RECORD_##type] = {class, activity, category, ecs_type, cef, name},
#include "audit/export_types.def"
#undef TYPE
};

static const struct export_operation operations[] = {
#define VERB(verb, activity, ecs_type) {verb, activity, ecs_type},
#include "audit/export_operations.def"
#undef VERB
};

const struct export_type *export_type_of(const struct fields *f)
{
	return &types[f->type];
}

const struct export_operation *export_operation_of(const struct fields *f)
{
	static const struct export_operation other = {"", 99, "change"}, read = {"", 2, "access"};
	const char *dot = strrchr(f->op, '.');

	for (size_t i = 0; dot && i < sizeof(operations) / sizeof(*operations); i++)
		if (strcmp(operations[i].verb, dot + 1) == 0)
			return &operations[i];
	return f->type == RECORD_READ ? &read : &other;
}

enum export_severity export_severity_of(const struct fields *f)
{
	if (export_type_of(f)->ocsf_class == 2004)
		return SEVERITY_ALARM;
	if (strcmp(f->verdict, "deny") == 0 || f->type == RECORD_POLICY_REJECT ||
	    f->type == RECORD_OUTCOME_UNKNOWN || *f->reason)
		return SEVERITY_DENIED;
	return SEVERITY_USUAL;
}

const char *export_code(const struct fields *f, char room[64])
{
	snprintf(room, 64, "%.30s%s%.20s", *f->type_name ? f->type_name : "other",
		 *f->verdict ? "." : "", f->verdict);
	return room;
}

const char *export_place(const struct fields *f, char room[192])
{
	snprintf(room, 192, "%.128s/%" PRIu64, f->log, f->seq);
	return room;
}

const struct jv *export_at(const struct fields *f, const char *path)
{
	const struct jv *res;

	if (strncmp(path, "res.0.", 6) != 0)
		return jv_path(&f->tree, path);
	res = jv_get(&f->tree, "res");
	return res && res->kind == JV_ARRAY && res->count ? jv_get(res->items, path + 6) : NULL;
}

enum export_format export_format_find(const char *name)
{
	static const char *const names[] = {
		[EXPORT_OCSF] = "ocsf", [EXPORT_ECS] = "ecs", [EXPORT_CEF] = "cef"};

	for (int i = EXPORT_OCSF; name && i <= EXPORT_CEF; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return EXPORT_NONE;
}

void export_record(enum export_format format, const struct fields *f, struct arena *a,
		   struct buf *out)
{
	switch (format) {
	case EXPORT_OCSF:
		export_ocsf(f, a, out);
		return;
	case EXPORT_ECS:
		export_ecs(f, a, out);
		return;
	case EXPORT_CEF:
		export_cef(f, out);
		return;
	case EXPORT_NONE:
		return;
	}
}

/* --- a whole log --- */

struct exporting {
	const struct export_options *options;
	struct arena *arena;
	struct buf out;
	int fd;
	uint64_t count, last;
	bool any;
	struct erasable_reader values;
};

static int flush(struct exporting *e, struct err *err)
{
	if (buf_spent(&e->out))
		return err_set(err, ERR_LIMIT, "no memory to export record %" PRIu64, e->last);
	if (io_write_all(e->fd, buf_span(&e->out).at, buf_len(&e->out), err) < 0)
		return -1;
	buf_clear(&e->out);
	return 0;
}

static bool is_wanted(const struct export_options *o, const struct fields *f)
{
	return (!o->has_after || f->seq > o->after) && (!o->since_ns || f->t_ns >= o->since_ns) &&
	       (!o->until_ns || f->t_ns < o->until_ns);
}

static int export_line(struct exporting *e, struct span text, struct err *err)
{
	struct fields f;

	arena_reset(e->arena, 2 * FIELDS_ARENA_MAX);
	if (fields_take(e->arena, text, &f, err) < 0)
		return -1;
	e->any = true;
	e->last = f.seq;
	if (!is_wanted(e->options, &f))
		return 0;
	erasable_show(&e->values, f.seq, e->arena, &f.tree);
	fields_take_who(&f);
	if (buf_len(&e->out) > OUT_BYTES && flush(e, err) < 0)
		return -1;
	export_record(e->options->format, &f, e->arena, &e->out);
	buf_put(&e->out, "\n", 1);
	e->count++;
	return arena_spent(e->arena) || buf_spent(&e->out)
		       ? err_set(err, ERR_LIMIT, "no memory to export record %" PRIu64, f.seq)
		       : 0;
}

static int export_segment(struct exporting *e, int dir_fd, uint64_t first, struct err *err)
{
	auto_fd int fd = segment_open(dir_fd, first, O_RDONLY, err);
	struct line_reader r;
	struct span text;
	int rc = 0;

	if (fd < 0)
		return -1;
	if (!line_reader_init(&r, fd))
		return err_set(err, ERR_LIMIT, "no memory to read the log");
	erasable_begin(&e->values, dir_fd, first);
	while (rc == 0 && line_reader_next(&r, &text) == LINE_WHOLE)
		rc = export_line(e, text, err);
	erasable_end(&e->values);
	if (rc == 0 && r.error) {
		errno = r.error;
		rc = err_sys(err, "read the audit log");
	}
	line_reader_fini(&r);
	return rc;
}

/* From the segment that holds the first record that is wanted. */
static int export_segments(struct exporting *e, int dir_fd, const struct segments *all,
			   struct err *err)
{
	uint64_t from = e->options->has_after ? e->options->after : 0;

	for (size_t i = 0; i < all->count; i++) {
		if (i + 1 < all->count && all->first[i + 1] <= from)
			continue;
		if (export_segment(e, dir_fd, all->first[i], err) < 0)
			return -1;
	}
	if (e->options->has_after && (!e->any || e->last < e->options->after))
		return err_set(err, ERR_INPUT,
			       "there is no record %" PRIu64 " in this log, it ends before",
			       e->options->after);
	return flush(e, err);
}

int export_log(const char *dir, const struct export_options *options, int fd,
	       struct export_result *ret, struct err *err)
{
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct exporting e = {.options = options, .fd = fd};
	struct segments all;
	int rc;

	if (dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (segments_list(dir_fd, &all, err) < 0)
		return -1;
	buf_init(&e.out, OUT_BYTES + ONE_MAX);
	e.arena = arena_create(2 * FIELDS_ARENA_MAX);
	if (!all.count)
		rc = err_set(err, ERR_CONFIG, "there are no log segments in %s", dir);
	else if (!e.arena)
		rc = err_set(err, ERR_LIMIT, "no memory to export");
	else
		rc = export_segments(&e, dir_fd, &all, err);
	ret->count = e.count;
	ret->missed = 0;
	if (options->has_after && all.count && all.first[0] > options->after + 1)
		ret->missed = all.first[0] - options->after - 1;
	arena_destroy(e.arena);
	buf_fini(&e.out);
	segments_free(&all);
	return rc;
}
