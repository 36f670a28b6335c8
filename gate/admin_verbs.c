/* admin_verbs.c - what each verb of the admin socket does, a function each. */
#include "gate/admin_priv.h"

#include "gate/base/clock.h"
#include "gate/base/jv.h"
#include "gate/base/log.h"

#include <string.h>

static int64_t now_s(void)
{
	return (int64_t)(clock_unix_ns() / 1000000000);
}

static void say(struct admin_use *u, const struct err *err)
{
	snprintf(u->text, sizeof(u->text), "%s", err->msg);
}

/* --- status, listener.list --- */

static void got_status(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	if (reply->code) {
		admin_finish(u, (enum admin_answer)reply->code);
		return;
	}
	buf_puts(&u->result, ",\"status\":");
	buf_put(&u->result, text.at, text.len);
	admin_finish(u, ADMIN_DONE);
}

static void ask_status(struct admin_use *u)
{
	admin_ask(u, ASK_STATUS, NULL, got_status);
}

static void admin_begin_status(struct admin_use *u)
{
	u->act = ask_status;
	admin_decide(u, ADMIN_DONE, NULL);
}

static void got_list(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	const struct jv *list = NULL;
	struct err err = {0};
	enum jv_fault fault;
	struct jv tree;

	if (!reply->code && jv_parse(u->arena, text, &tree, &fault, &err) == 0)
		list = jv_get(&tree, "listeners");
	if (!list) {
		admin_finish(u, reply->code ? (enum admin_answer)reply->code : ANSWER_no_answer);
		return;
	}
	buf_puts(&u->result, ",\"listeners\":");
	jv_write(&u->result, list);
	admin_finish(u, ADMIN_DONE);
}

static void ask_list(struct admin_use *u)
{
	admin_ask(u, ASK_STATUS, NULL, got_list);
}

static void admin_begin_listener_list(struct admin_use *u)
{
	u->act = ask_list;
	admin_decide(u, ADMIN_DONE, NULL);
}

/* --- reload --- */

static void got_reloaded(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	const struct jv *reload;
	const char *state;
	struct err err = {0};
	enum jv_fault fault;
	struct jv tree;

	arena_reset(u->arena, 2 * ADMIN_ANSWER_MAX);
	if (reply->code || jv_parse(u->arena, text, &tree, &fault, &err) < 0) {
		admin_finish(u, reply->code ? (enum admin_answer)reply->code : ANSWER_no_answer);
		return;
	}
	reload = jv_get(&tree, "reload");
	state = reload ? jv_str(reload, "state", "") : "";
	if (!reload || jv_num(reload, "count", 0) <= (int64_t)u->reloads ||
	    (strcmp(state, "done") != 0 && strcmp(state, "failed") != 0))
		return; /* another one goes on; its end is told as well */
	buf_puts(&u->result, ",\"status\":");
	buf_put(&u->result, text.at, text.len);
	snprintf(u->text, sizeof(u->text), "%s", jv_str(reload, "reason", ""));
	admin_finish(u, *u->text ? ANSWER_reload_failed : ADMIN_DONE);
}

static void waits_for_reload(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	(void)text;
	u->reloads = reply->reloads;
	u->reply = got_reloaded;
	if (reply->code)
		admin_finish(u, (enum admin_answer)reply->code);
}

static void ask_reload(struct admin_use *u)
{
	admin_ask(u, ASK_RELOAD, NULL, waits_for_reload);
}

static void admin_begin_reload(struct admin_use *u)
{
	u->act = ask_reload;
	admin_decide(u, ADMIN_DONE, NULL);
}

static void ask_rollback(struct admin_use *u)
{
	struct runtime_row row;

	memset(&row, 0, sizeof(row));
	snprintf(row.name, sizeof(row.name), "%s", admin_arg(&u->req, "generation")->text);
	admin_ask(u, ASK_ROLLBACK, &row, waits_for_reload);
}

static void admin_begin_rollback(struct admin_use *u)
{
	u->act = ask_rollback;
	admin_decide(u, ADMIN_DONE, NULL);
}

void admin_on_reloaded(struct admin *a)
{
	for (size_t i = 0; i < ADMIN_USES_MAX; i++)
		if (a->uses[i] && a->uses[i]->reply == got_reloaded && !a->uses[i]->ticket)
			admin_ask(a->uses[i], ASK_STATUS, NULL, got_reloaded);
}

/* --- listener.add --- */

static bool keep_state(struct admin_use *u)
{
	struct err err = {0};

	if (admin_state_write(u->a->conf->state, &u->a->state, &err) == 0)
		return true;
	log_line("the listeners made at run time cannot be kept: %s", err.msg);
	say(u, &err);
	return false;
}

static void remember(struct admin *a, const struct admin_kept *k)
{
	a->state.list[a->state.count++] = *k;
	a->restored++;
}

static void forget(struct admin *a, const char *name)
{
	struct admin_kept *k = admin_state_find(&a->state, name);

	if (!k)
		return;
	if (k < a->state.list + a->restored)
		a->restored--;
	admin_state_drop(&a->state, k);
}

static void put_row(struct admin_use *u, const struct runtime_row *row)
{
	char until[CLOCK_TEXT_MAX];

	clock_format((uint64_t)row->until * 1000000000, until);
	buf_printf(&u->result,
		   ",\"listener\":{\"name\":\"%s\",\"profile\":\"%s\",\"owner\":\"%s\","
		   "\"path\":\"%s\",\"backend\":\"%s\",\"until\":\"%s\"}",
		   row->name, row->profile, row->owner, row->path, u->kept.backend, until);
}

static void got_added(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	(void)text;
	if (reply->code) {
		forget(u->a, u->kept.row.name);
		keep_state(u);
		snprintf(u->text, sizeof(u->text), "%s", reply->text);
		admin_finish(u, (enum admin_answer)reply->code);
		return;
	}
	put_row(u, &u->kept.row);
	admin_finish(u, ADMIN_DONE);
}

/* Kept first: what was made and is not kept would be gone after a restart, and nobody knew. */
static void add(struct admin_use *u)
{
	remember(u->a, &u->kept);
	if (!keep_state(u)) {
		forget(u->a, u->kept.row.name);
		admin_finish(u, ANSWER_state_lost);
		return;
	}
	admin_ask(u, ASK_ADD, &u->kept.row, got_added);
}

static void got_tried(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	char note[160];

	(void)text;
	snprintf(u->text, sizeof(u->text), "%s", reply->text);
	snprintf(note, sizeof(note), "the owner is that of identity %.64s as well",
		 reply->identity);
	u->act = add;
	admin_decide(u, (enum admin_answer)reply->code, reply->owner_is_known ? note : NULL);
}

static enum admin_answer find_backend(struct admin_use *u, const struct admin_value *name)
{
	const struct proxy_conf *p = &u->a->conf->config->proxy;

	for (size_t i = 0; i < p->backend_count; i++)
		if (name->given ? strcmp(p->backends[i].name, name->text) == 0
				: p->backend_count == 1) {
			u->kept.row.backend = (uint32_t)i;
			snprintf(u->kept.backend, sizeof(u->kept.backend), "%s",
				 p->backends[i].name);
			return ADMIN_DONE;
		}
	return ANSWER_backend_missing;
}

/* The file's name without ".sock". */
static void default_name(const char *path, char out[RUNTIME_NAME_MAX + 1])
{
	struct span base = span_of(strrchr(path, '/') + 1);

	if (base.len > 5 && span_ends(base, ".sock"))
		base.len -= 5;
	snprintf(out, RUNTIME_NAME_MAX + 1, "%.*s", SPAN_FMT(base));
}

static enum admin_answer fill_row(struct admin_use *u)
{
	const struct admin_value *name = admin_arg(&u->req, "name"),
				 *gid = admin_arg(&u->req, "gid"),
				 *mode = admin_arg(&u->req, "mode");
	struct runtime_row *row = &u->kept.row;

	memset(&u->kept, 0, sizeof(u->kept));
	snprintf(row->path, sizeof(row->path), "%s", admin_arg(&u->req, "path")->text);
	snprintf(row->profile, sizeof(row->profile), "%s", admin_arg(&u->req, "profile")->text);
	snprintf(row->owner, sizeof(row->owner), "%s", admin_arg(&u->req, "owner")->text);
	if (name->given)
		snprintf(row->name, sizeof(row->name), "%s", name->text);
	else
		default_name(row->path, row->name);
	row->until = now_s() + (int64_t)admin_arg(&u->req, "lifetime")->number;
	row->uid = u->a->conf->starter;
	row->gid = gid->given ? (uint32_t)gid->number : u->a->conf->group;
	row->mode = mode->given ? (uint32_t)mode->number : gid->given ? 0660 : 0600;
	return find_backend(u, admin_arg(&u->req, "backend"));
}

/* What can be said without asking the supervisor. */
static enum admin_answer cannot(const struct admin_use *u)
{
	if (u->a->conf->state < 0)
		return ANSWER_not_configured;
	if (u->a->damaged)
		return ANSWER_state_lost;
	return u->a->restored < u->a->state.count ? ANSWER_no_log : ADMIN_DONE;
}

static void admin_begin_listener_add(struct admin_use *u)
{
	enum admin_answer wrong = cannot(u);

	if (!wrong)
		wrong = fill_row(u);
	if (!wrong && admin_state_find(&u->a->state, u->kept.row.name))
		wrong = ANSWER_name_taken;
	if (!wrong && u->a->state.count >= RUNTIME_MAX)
		wrong = ANSWER_too_many;
	if (wrong)
		admin_decide(u, wrong, NULL);
	else
		admin_ask(u, ASK_TRY, &u->kept.row, got_tried);
}

/* --- listener.remove --- */

static void got_removed(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	(void)reply; /* one that could not be restored is in the state alone */
	(void)text;
	put_row(u, &u->kept.row);
	admin_finish(u, ADMIN_DONE);
}

/* Forgotten first: what is not kept any more must not come back. */
static void take_away(struct admin_use *u)
{
	if (!admin_state_find(&u->a->state,
			      u->kept.row.name)) { /* its lifetime has ended meanwhile */
		admin_finish(u, ANSWER_listener_missing);
		return;
	}
	forget(u->a, u->kept.row.name);
	if (keep_state(u)) {
		admin_ask(u, ASK_REMOVE, &u->kept.row, got_removed);
		return;
	}
	remember(u->a, &u->kept);
	admin_finish(u, ANSWER_state_lost);
}

static void admin_begin_listener_remove(struct admin_use *u)
{
	enum admin_answer wrong = cannot(u);
	const struct admin_kept *k =
		wrong ? NULL : admin_state_find(&u->a->state, admin_arg(&u->req, "name")->text);

	if (!wrong && !k)
		wrong = ANSWER_listener_missing;
	if (k)
		u->kept = *k;
	u->act = take_away;
	admin_decide(u, wrong, NULL);
}

void admin_on_ended(struct admin *a, const struct runtime_row *row)
{
	struct err err = {0};

	admin_note_row(a, "listener.end", row, "its lifetime has ended");
	forget(a, row->name);
	if (a->conf->state >= 0 && !a->damaged &&
	    admin_state_write(a->conf->state, &a->state, &err) < 0)
		log_line("%s", err.msg); /* what has ended does not come back at a start, either */
}

/* --- after a start --- */

static void got_restored(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	(void)text;
	if (reply->code)
		log_line("listener %s is not there again: %s%s%s", u->kept.row.name,
			 admin_answer_text((enum admin_answer)reply->code), *reply->text ? " " : "",
			 reply->text);
	snprintf(u->text, sizeof(u->text), "%s", reply->text);
	u->a->restored++;
	admin_finish(u, (enum admin_answer)reply->code);
}

static void restore(struct admin_use *u)
{
	admin_ask(u, ASK_RESTORE, &u->kept.row, got_restored);
}

static void got_cleared(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	(void)reply;
	(void)text;
	u->a->holder = NULL;
	admin_on_ended(u->a, &u->kept.row);
}

bool admin_restore_next(struct admin *a)
{
	struct admin_use *u = &a->keeper;
	const struct proxy_conf *p = &a->conf->config->proxy;

	if (a->restored >= a->state.count)
		return false;
	u->kept = a->state.list[a->restored];
	u->kept.row.backend = UINT32_MAX; /* which the supervisor refuses */
	for (size_t i = 0; i < p->backend_count; i++)
		if (strcmp(p->backends[i].name, u->kept.backend) == 0)
			u->kept.row.backend = (uint32_t)i;
	a->holder = u;
	if (u->kept.row.until <= now_s()) {
		admin_ask(u, ASK_CLEAR, &u->kept.row, got_cleared);
		return true;
	}
	uuid_make(u->id);
	u->op = "listener.restore";
	u->act = restore;
	admin_decide(u, ADMIN_DONE, NULL);
	return true;
}

/* --- the table --- */

bool admin_needs_turn(const struct admin_use *u)
{
	return u->req.verb == VERB_listener_add || u->req.verb == VERB_listener_remove;
}

void admin_begin(struct admin_use *u)
{
	static admin_step_fn *const begin[VERB_COUNT] = {
#define ADMIN_VERB(id, name, roles, acts, doc) [VERB_##id] = admin_begin_##id,
#define ADMIN_ARG(verb, key, kind, need, least, most, doc)
#include "gate/admin.def"
#undef ADMIN_VERB
#undef ADMIN_ARG
	};

	begin[u->req.verb](u);
}
