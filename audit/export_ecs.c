/* The Elastic Common Schema: one JSON object a record. */
#include "audit/export_priv.h"

#include <stdio.h>
#include <string.h>

#define ECS_VERSION "9.0.0"

enum kind { TEXT, NUMBER, DIGITS, LIST };

static const struct {
	const char *field, *path;
	enum kind kind;
} rows[] = {
#define COPY(field, path, kind) {field, path, kind},
#include "audit/export_ecs.def"
#undef COPY
};

/* Sets "a.b.c", making the objects on the way. */
static void put(struct arena *a, struct jv *event, const char *field, struct jv value)
{
	struct jv *at = event;
	const char *dot;

	while ((dot = strchr(field, '.'))) {
		struct span key = {field, (size_t)(dot - field)};
		const struct jv *there = jv_get_span(at, key);

		at = there ? (struct jv *)there : jv_set_span(a, at, key, jv_object());
		field = dot + 1;
	}
	jv_set(a, at, field, value);
}

static void put_text(struct arena *a, struct jv *event, const char *field, const char *text)
{
	put(a, event, field, jv_string(arena_strndup(a, text, strlen(text))));
}

static void put_list(struct arena *a, struct jv *event, const char *field, const char *const *list)
{
	struct jv array = jv_array();

	for (; *list; list++)
		jv_push(a, &array, jv_string(*list));
	put(a, event, field, array);
}

static void put_event(const struct fields *f, struct arena *a, struct jv *event)
{
	static const int severities[] = {
		[SEVERITY_USUAL] = 2, [SEVERITY_DENIED] = 5, [SEVERITY_ALARM] = 9};
	const struct export_type *t = export_type_of(f);
	bool alarm = t->ocsf_class == 2004, log = strcmp(t->cef_category, "auditlog") == 0;
	const char *type = *t->ecs_type ? t->ecs_type : export_operation_of(f)->ecs_type;
	const char *judged = strcmp(f->verdict, "allow") == 0 ? "allowed" : "denied";
	char code[64], dataset[32];

	put_text(a, event, "event.kind", alarm ? "alert" : "event");
	put_list(a, event, "event.category", (const char *const[]){t->ecs_category, NULL});
	put_list(a, event, "event.type",
		 (const char *const[]){type, *f->verdict ? judged : NULL, NULL});
	put_text(a, event, "event.code", export_code(f, code));
	put_text(a, event, "event.provider", "sallyport");
	snprintf(dataset, sizeof(dataset), "sallyport.%s", log ? "log" : "audit");
	put_text(a, event, "event.dataset", dataset);
	put(a, event, "event.sequence", jv_int((int64_t)f->seq));
	put(a, event, "event.severity", jv_int(severities[export_severity_of(f)]));
}

/* success, failure or unknown. */
static const char *outcome_of(const struct fields *f)
{
	if (strcmp(f->verdict, "deny") == 0 || f->type == RECORD_POLICY_REJECT)
		return "failure";
	if (!*f->status)
		return f->type == RECORD_DECISION ? "unknown" : "success";
	if (strcmp(f->status, "ok") == 0)
		return "success";
	return strcmp(f->status, "unknown") == 0 ? "unknown" : "failure";
}

static void put_copies(const struct fields *f, struct arena *a, struct jv *event)
{
	char digits[24];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct jv *v = export_at(f, rows[i].path);

		if (!v || (rows[i].kind == TEXT) != (v->kind == JV_STRING) ||
		    (rows[i].kind == LIST) != (v->kind == JV_ARRAY))
			continue;
		if (rows[i].kind == DIGITS) {
			snprintf(digits, sizeof(digits), "%lld", (long long)v->i);
			put_text(a, event, rows[i].field, digits);
		} else {
			put(a, event, rows[i].field, *v);
		}
	}
}

/* An object that is a container stands where Elastic looks for containers. */
static void put_object(const struct fields *f, struct arena *a, struct jv *event)
{
	bool image = strcmp(f->object_kind, "image") == 0;

	if (strcmp(f->object_kind, "container") == 0) {
		if (*f->object_id)
			put_text(a, event, "container.id", f->object_id);
		if (strcmp(f->object, f->object_id) != 0)
			put_text(a, event, "container.name", f->object);
	} else if (image && *f->object) {
		put_text(a, event, "container.image.name", f->object);
	}
}

void export_ecs(const struct fields *f, struct arena *a, struct buf *out)
{
	struct jv event = jv_object();
	const struct jv *ms = export_at(f, "outcome.dur_ms");

	put_text(a, &event, "@timestamp", f->time);
	put_text(a, &event, "ecs.version", ECS_VERSION);
	put_event(f, a, &event);
	put_text(a, &event, "event.outcome", outcome_of(f));
	if (ms && ms->kind == JV_INT && ms->i < INT64_MAX / 1000000)
		put(a, &event, "event.duration", jv_int(ms->i * 1000000));
	put_text(a, &event, "log.logger", f->log);
	put_text(a, &event, "observer.vendor", "Sallyport");
	put_text(a, &event, "observer.product", "Sallyport");
	put_text(a, &event, "observer.version", SALLYPORT_VERSION);
	put_copies(f, a, &event);
	put_object(f, a, &event);
	jv_write(out, &event);
}
