#include "gate/emergency_state.h"

#include "gate/admin.h"
#include "gate/base/arena.h"
#include "gate/base/clock.h"
#include "gate/base/jv.h"

#include <string.h>

#define ARENA_MAX ((size_t)16 << 20)

/* NULL: it is missing, no string, too long, or holds a NUL. */
static const char *text_of(const struct jv *from, const char *key, size_t most)
{
	const struct jv *v = jv_get(from, key);

	if (!v || v->kind != JV_STRING || !v->str.len || v->str.len > most ||
	    memchr(v->str.at, '\0', v->str.len))
		return NULL;
	return v->str.at;
}

static int take_quarantine(const struct jv *from, struct emergency_view *ret, struct err *err)
{
	const char *owner = text_of(from, "owner", EMERGENCY_OWNER_MAX);
	const char *ticket = text_of(from, "ticket", EMERGENCY_TICKET_MAX);
	const struct jv *since = jv_get(from, "since"), *kill = jv_get(from, "kill");
	struct quarantine *q;

	if (from->kind != JV_OBJECT || from->count != 4 || !owner || !ticket || !since ||
	    since->kind != JV_INT || since->i < 0 || !kill || kill->kind != JV_BOOL)
		return err_set(err, ERR_CONFIG, "a member is missing, unknown, or of another kind");
	if (emergency_quarantine(ret, owner))
		return err_set(err, ERR_CONFIG, "its owner comes twice");
	q = emergency_begin(ret, owner, ticket, kill->b);
	if (!q)
		return err_set(err, ERR_CONFIG, "a member is not what it should be");
	q->since = since->i;
	return 0;
}

/* What has ended meanwhile is taken as well, so that its end comes on record. */
static int take_mode(const struct jv *from, struct emergency_view *ret, struct err *err)
{
	const char *profile = text_of(from, "profile", EMERGENCY_PROFILE_MAX);
	const char *ticket = text_of(from, "ticket", EMERGENCY_TICKET_MAX);
	const char *mode = text_of(from, "mode", sizeof("warn") - 1);
	int64_t since = jv_num(from, "since", -1), until = jv_num(from, "until", -1);
	int64_t now = (int64_t)(clock_unix_ns() / 1000000000), left = until - now;
	struct emergency_mode *m;

	if (from->kind != JV_OBJECT || from->count != 5 || !profile || !ticket || !mode ||
	    strcmp(mode, "warn") != 0 || since < 0 || until <= since ||
	    until - since > EMERGENCY_MODE_MAX_S)
		return err_set(err, ERR_CONFIG, "a member is missing, unknown, or of another kind");
	for (size_t i = 0; i < ret->mode_count; i++)
		if (strcmp(ret->modes[i].profile, profile) == 0)
			return err_set(err, ERR_CONFIG, "its profile comes twice");
	m = emergency_mode_begin(ret, profile, ticket, 1);
	if (!m)
		return err_set(err, ERR_CONFIG, "a member is not what it should be");
	m->since = since;
	m->until = until;
	m->ends_ms = left > 0 && left <= EMERGENCY_MODE_MAX_S
			     ? clock_boot_ms() + (uint64_t)left * 1000
			     : 0;
	return 0;
}

static int take_modes(const struct jv *list, struct emergency_view *ret, struct err *err)
{
	if (list->kind != JV_ARRAY || list->count > EMERGENCY_MODES)
		return err_set(err, ERR_CONFIG, "'modes' is no list of at most %d",
			       EMERGENCY_MODES);
	for (size_t i = 0; i < list->count; i++)
		if (take_mode(&list->items[i], ret, err) < 0)
			return err_wrap(err, "mode %zu", i + 1);
	return 0;
}

static int take_all(const struct jv *doc, struct emergency_view *ret, struct err *err)
{
	const struct jv *list = jv_get(doc, "quarantines"), *modes = jv_get(doc, "modes");

	if (doc->kind != JV_OBJECT || doc->count != (modes ? 3u : 2u) ||
	    jv_num(doc, "version", 0) != 1 || !list || list->kind != JV_ARRAY)
		return err_set(err, ERR_CONFIG, "it is no {\"version\":1,\"quarantines\":[...]}");
	if (modes && take_modes(modes, ret, err) < 0)
		return -1;
	if (list->count > EMERGENCY_OWNERS)
		return err_set(err, ERR_CONFIG, "there are more than %d quarantines",
			       EMERGENCY_OWNERS);
	for (size_t i = 0; i < list->count; i++)
		if (take_quarantine(&list->items[i], ret, err) < 0)
			return err_wrap(err, "quarantine %zu", i + 1);
	return 0;
}

int emergency_state_parse(struct span text, struct emergency_view *ret, struct err *err)
{
	struct arena *a = arena_create(ARENA_MAX);
	enum jv_fault fault;
	struct jv doc;
	int rc = -1;

	*ret = (struct emergency_view){0};
	if (!a)
		return err_set(err, ERR_SYSTEM, "no memory");
	if (jv_parse(a, text, &doc, &fault, err) == 0 && take_all(&doc, ret, err) == 0)
		rc = 0;
	else
		err->kind = ERR_CONFIG;
	arena_destroy(a);
	if (rc < 0)
		*ret = (struct emergency_view){0};
	return rc;
}

/* What stands in names and tickets needs no escaping. */
static void put_modes(const struct emergency_view *view, struct buf *out)
{
	for (size_t i = 0; i < view->mode_count; i++) {
		const struct emergency_mode *m = &view->modes[i];

		buf_printf(out, "%s{\"profile\":\"%s\",\"mode\":\"warn\",\"ticket\":\"%s\",",
			   i ? ",\n" : "", m->profile, m->ticket);
		buf_printf(out, "\"since\":%lld,\"until\":%lld}", (long long)m->since,
			   (long long)m->until);
	}
}

void emergency_state_text(const struct emergency_view *view, struct buf *out)
{
	buf_puts(out, "{\"version\":1,\"quarantines\":[\n");
	for (size_t i = 0; i < view->owner_count; i++) {
		const struct quarantine *q = &view->owners[i];

		buf_puts(out, "{\"owner\":");
		jv_write_str(out, span_of(q->owner));
		/* What stands in a ticket needs no escaping. */
		buf_printf(out, ",\"ticket\":\"%s\",\"since\":%lld,\"kill\":%s}%s", q->ticket,
			   (long long)q->since, q->kill ? "true" : "false",
			   i + 1 < view->owner_count ? ",\n" : "\n");
	}
	if (view->mode_count) { /* a gate that knows none of these refuses the file */
		buf_puts(out, "],\"modes\":[\n");
		put_modes(view, out);
	}
	buf_puts(out, "]}\n");
}

int emergency_state_read(int folder, struct emergency_view *ret, struct err *err)
{
	struct buf text;
	int rc;

	*ret = (struct emergency_view){0};
	rc = admin_file_read(folder, EMERGENCY_FILE, &text, err);
	if (rc == 1 && emergency_state_parse(buf_span(&text), ret, err) < 0)
		rc = err_wrap(err, "%s", EMERGENCY_FILE);
	buf_fini(&text);
	return rc < 0 ? -1 : 0;
}

int emergency_state_write(int folder, const struct emergency_view *view, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, ADMIN_STATE_BYTES_MAX);
	emergency_state_text(view, &text);
	rc = admin_file_write(folder, EMERGENCY_FILE, &text, err);
	buf_fini(&text);
	return rc;
}
