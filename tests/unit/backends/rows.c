#include "tests/unit/backends/rows.h"

#include "tests/unit/backends/drive.h"
#include "tests/unit/backends/vocabulary.h"
#include "tests/unit/check.h"

#include <string.h>

struct row {
	struct drive *d;
	const char *label;
	enum step step;
	const char *head, *body;
	int wrong;
};

static void complain(struct row *r, struct span expectation, const char *got)
{
	r->wrong++;
	print_error("%s\n    want: %.*s\n    got:  %s\n", r->label, SPAN_FMT(expectation), got);
}

static const char *refusals(struct row *r)
{
	struct buf b;
	const char *ret;

	buf_init(&b, 65536);
	buf_puts(&b, r->step == STEP_REFUSED ? "refused" : "ready");
	for (size_t i = 0; i < r->d->call.refused.count; i++) {
		const struct violation *v = &r->d->call.refused.list[i];

		buf_printf(&b, " [%s %s=%s: %s]", reason_name(v->reason), v->field, v->value,
			   v->text);
	}
	ret = arena_strndup(r->d->arena, buf_span(&b).at, buf_len(&b));
	buf_fini(&b);
	return ret;
}

static bool is_refused(struct row *r, struct span want)
{
	struct span reason;

	span_cut(&want, ' ', &reason);
	for (size_t i = 0; r->step == STEP_REFUSED && i < r->d->call.refused.count; i++) {
		const struct violation *v = &r->d->call.refused.list[i];

		if (span_is(reason, reason_name(v->reason)) &&
		    (!want.len || span_is(want, v->field)))
			return true;
	}
	return false;
}

static void render(struct row *r)
{
	if (!r->head && r->step == STEP_READY)
		r->head = drive_rendered(r->d, &r->body);
	if (!r->head)
		r->head = r->body = "(refused)";
}

static void check_tree(struct row *r, const struct jv *tree, struct span want, struct span whole)
{
	struct span path;
	const char *got;
	const struct jv *v;
	struct jv wanted;

	span_cut(&want, ' ', &path);
	v = drive_at(tree, arena_strndup(r->d->arena, path.at, path.len));
	got = drive_text(r->d->arena, v);
	if (span_is(want, "(absent)") != !v) {
		complain(r, whole, got);
		return;
	}
	if (!v)
		return;
	wanted = drive_parse(r->d->arena, arena_strndup(r->d->arena, want.at, want.len));
	if (!jv_equal(v, &wanted))
		complain(r, whole, got);
}

static void check_part(struct row *r, struct span want, struct span whole)
{
	struct jv body;

	render(r);
	if (r->step != STEP_READY) {
		complain(r, whole, refusals(r));
		return;
	}
	body = drive_parse(r->d->arena, r->body);
	check_tree(r, &body, want, whole);
}

static bool has_line(const char *head, struct span want)
{
	struct span rest = span_of(head), line;

	while (rest.len) {
		span_cut(&rest, '\r', &line);
		if (line.len && line.at[0] == '\n')
			line = span_skip(line, 1);
		if (span_eq(line, want))
			return true;
	}
	return false;
}

static const char *first_line(struct arena *a, struct span want)
{
	char text[4096];

	snprintf(text, sizeof(text), "%.*s HTTP/1.1\r\n", SPAN_FMT(want));
	return arena_strndup(a, text, strlen(text));
}

static void check_sent(struct row *r, struct span want, struct span whole, bool first)
{
	const char *line = first_line(r->d->arena, want);

	render(r);
	if (first ? strncmp(r->head, line, strlen(line)) != 0 : !has_line(r->head, want))
		complain(r, whole, r->head);
}

static void check_object(struct row *r, struct span want, struct span whole)
{
	const struct object *o = &r->d->call.object;
	char got[512];

	snprintf(got, sizeof(got), "%s %s %s", o->kind ? o->kind : "", o->name ? o->name : "",
		 o->mine ? "mine" : "not-mine");
	if (!span_is(want, got))
		complain(r, whole, got);
}

static void check_reply(struct row *r, struct span want, struct span whole)
{
	static const char *const names[] = {"stream", "rows", "held", "launch", "hijack"};

	if (!span_is(want, names[r->d->call.reply]))
		complain(r, whole, names[r->d->call.reply]);
}

static void check_warning(struct row *r, struct span want, struct span whole)
{
	for (size_t i = 0; i < r->d->call.warning_count; i++)
		if (strncmp(r->d->call.warnings[i].text, want.at, want.len) == 0)
			return;
	complain(r, whole, "no such warning");
}

static void check_instead(struct row *r, struct span want, struct span whole)
{
	const struct violation *v = &r->d->call.instead;
	char got[512];

	snprintf(got, sizeof(got), "%s %s", reason_name(v->reason), v->text ? v->text : "");
	if (!span_is(want, got))
		complain(r, whole, got);
}

static void expect(struct row *r, struct span whole)
{
	struct span want = whole, word;
	char number[32];

	span_cut(&want, ' ', &word);
	snprintf(number, sizeof(number), "%d", r->d->rounds);
	if (span_is(word, "refused")) {
		if (!is_refused(r, want))
			complain(r, whole, refusals(r));
	} else if (span_is(word, "ready")) {
		if (r->step != STEP_READY)
			complain(r, whole, refusals(r));
	} else if (span_is(word, "text")) {
		if (!r->d->call.refused.count || !span_is(want, r->d->call.refused.list[0].text))
			complain(r, whole, refusals(r));
	} else if (span_is(word, "op")) {
		if (!span_is(want, operation_name(r->d->call.op)))
			complain(r, whole, operation_name(r->d->call.op));
	} else if (span_is(word, "fact")) {
		if (r->step != STEP_READY)
			complain(r, whole, refusals(r));
		else
			check_tree(r, &r->d->call.workload.facts, want, whole);
	} else if (span_is(word, "part")) {
		check_part(r, want, whole);
	} else if (span_is(word, "body")) {
		render(r);
		if (!span_is(want, r->body))
			complain(r, whole, r->body);
	} else if (span_is(word, "sent") || span_is(word, "header")) {
		check_sent(r, want, whole, span_is(word, "sent"));
	} else if (span_is(word, "object")) {
		check_object(r, want, whole);
	} else if (span_is(word, "reply")) {
		check_reply(r, want, whole);
	} else if (span_is(word, "warning")) {
		check_warning(r, want, whole);
	} else if (span_is(word, "instead")) {
		check_instead(r, want, whole);
	} else if (span_is(word, "withheld")) {
		snprintf(number, sizeof(number), "%u", r->d->call.withheld);
		if (!span_is(want, number))
			complain(r, whole, number);
	} else if (span_is(word, "rounds")) {
		if (!span_is(want, number))
			complain(r, whole, number);
	} else {
		complain(r, whole, "this is no expectation");
	}
}

/* How the request is asked. */
static void how(struct drive *d, struct span line)
{
	struct span word, rest = line;

	if (!span_cut(&rest, ' ', &word))
		word = line;
	if (span_is(word, "sees_all"))
		drive_see(d, "\"all\"");
	else if (span_is(word, "sees"))
		drive_see(d, arena_strndup(d->arena, rest.at, rest.len));
	else if (span_is(word, "adopted"))
		drive_adopt(d, arena_strndup(d->arena, rest.at, rest.len));
	else if (span_is(word, "self"))
		d->call.self = arena_strndup(d->arena, rest.at, rest.len);
	else if (span_is(word, "own_socket"))
		d->has_own_socket = true;
	else if (span_is(word, "offline"))
		d->offline = true;
	else if (span_is(word, "unreachable"))
		d->unreachable = true;
	else
		fail_msg("? %.*s: nobody knows how", SPAN_FMT(line));
}

/* The lines of a row, without its label: how, request, expectations. */
static int run_row(const char *label, struct span text, const struct jv *world)
{
	struct backend *be = drive_open();
	struct drive d;
	struct row r = {.d = &d, .label = label};
	struct span rest = text, line, request = {NULL, 0};
	bool asked = false;
	char bad[600];

	drive_start(&d, be, world);
	while (rest.len) {
		span_cut(&rest, '\n', &line);
		if (span_starts(line, "? ")) {
			how(&d, span_skip(line, 2));
		} else if (!span_starts(line, "= ")) {
			if (!request.at)
				request.at = line.at;
			request.len = (size_t)(line.at - request.at) + line.len;
		} else {
			if (!asked)
				r.step = drive_request(
					&d, arena_strndup(d.arena, request.at, request.len));
			asked = true;
			expect(&r, span_skip(line, 2));
		}
	}
	if (!asked)
		complain(&r, span_of("an expectation"), "none");
	vocabulary_check(&d.call.workload.facts, bad, sizeof(bad));
	if (*bad)
		complain(&r, span_of("facts that are rows of workload.def"), bad);
	drive_end(&d);
	be->ops->close(be);
	return r.wrong;
}

static bool is_label(struct span line)
{
	return span_starts(line, "## ");
}

int rows_run(const char *file)
{
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct span rest = drive_read(a, file), line, text = {NULL, 0};
	const char *label = NULL;
	int count = 0, wrong = 0;

	while (rest.len || label) {
		bool more = rest.len > 0;

		if (more)
			span_cut(&rest, '\n', &line);
		if (more && !is_label(line)) {
			if (line.len && line.at[0] == '#')
				continue;
			if (!text.at)
				text.at = line.at;
			text.len = (size_t)(line.at - text.at) + line.len;
			continue;
		}
		if (label) {
			wrong += run_row(label, text, &world);
			count++;
		}
		label = more ? arena_strndup(a, line.at + 3, line.len - 3) : NULL;
		text = (struct span){NULL, 0};
	}
	arena_destroy(a);
	if (wrong)
		fail_msg("%s: %d expectations failed", file, wrong);
	return count;
}
