/* The admin socket: its requests, its roles, the file that keeps listeners, and the fence around
 * their paths. */
#include "gate/admin.h"
#include "gate/admin_sockets.h"
#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/jv.h"
#include "gate/emergency_state.h"
#include "gate/listen.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY 86400

static struct arena *room(void)
{
	return arena_create((size_t)16 << 20);
}

/* --- requests --- */

#define ADD(more)                                                                                  \
	"{\"verb\":\"listener.add\",\"args\":{\"profile\":\"p\",\"owner\":\"o\","                  \
	"\"path\":\"/run/a/x.sock\",\"lifetime\":60" more "}}"
#define WARN(seconds, ticket)                                                                      \
	"{\"verb\":\"mode.warn\",\"args\":{\"profile\":\"ci\",\"seconds\":" seconds                \
	",\"ticket\":" ticket "}}"
#define QUARANTINE(name, ticket)                                                                   \
	"{\"verb\":\"quarantine\",\"args\":{\"name\":" name ",\"ticket\":" ticket "}}"
#define REMOVE(name) "{\"verb\":\"listener.remove\",\"args\":{\"name\":" name "}}"

static void a_request_has_one_form(void **state)
{
	static const struct {
		const char *text;
		enum admin_answer want;
	} rows[] = {
		{"{\"verb\":\"status\"}", ADMIN_DONE},
		{" { \"verb\" : \"status\" , \"args\" : {} } ", ADMIN_DONE},
		{ADD(""), ADMIN_DONE},
		{ADD(",\"name\":\"n\",\"gid\":0,\"mode\":438,\"backend\":\"e\""), ADMIN_DONE},
		{REMOVE("\"a-b.c_D9\""), ADMIN_DONE},
		{"", ANSWER_malformed},
		{"{}", ANSWER_malformed},
		{"[]", ANSWER_malformed},
		{"\"status\"", ANSWER_malformed},
		{"{\"verb\":1}", ANSWER_malformed},
		{"{\"verb\":\"status\",\"args\":[]}", ANSWER_malformed},
		{"{\"verb\":\"status\",\"args\":null}", ANSWER_malformed},
		{"{\"verb\":\"status\",\"x\":1}", ANSWER_malformed},
		{"{\"args\":{},\"x\":1}", ANSWER_malformed},
		{"{\"verb\":\"status\",\"verb\":\"status\"}", ANSWER_malformed},
		{"{\"verb\":\"status\"}{}", ANSWER_malformed},
		{"{\"verb\":\"status\\u0000\"}", ANSWER_malformed},
		{"{\"verb\":\"halt\"}", ANSWER_unknown_verb},
		{"{\"verb\":\"STATUS\"}", ANSWER_unknown_verb},
		{"{\"verb\":\"\"}", ANSWER_unknown_verb},
		{"{\"verb\":\"status\",\"args\":{\"x\":1}}", ANSWER_bad_argument},
		{"{\"verb\":\"listener.add\"}", ANSWER_bad_argument},
		{ADD(",\"x\":1"), ANSWER_bad_argument},
		{ADD(",\"name\":\"\""), ANSWER_bad_argument},
		{ADD(",\"name\":null"), ANSWER_bad_argument},
		{ADD(",\"mode\":\"0660\""), ANSWER_bad_argument},
		{ADD(",\"mode\":439"), ANSWER_bad_argument},
		{ADD(",\"mode\":-1"), ANSWER_bad_argument},
		{ADD(",\"gid\":4294967295"), ANSWER_bad_argument},
		{ADD(",\"gid\":1.0"), ANSWER_bad_argument},
		{QUARANTINE("\"uid-7@main\"", "\"ACME/12\",\"kill\":true"), ADMIN_DONE},
		{QUARANTINE("\"a\"", "\"#7\",\"kill\":false"), ADMIN_DONE},
		{QUARANTINE("\"a\"", "\"#7\",\"kill\":1"), ANSWER_bad_argument},
		{QUARANTINE("\"a\"", "\"\""), ANSWER_bad_argument},
		{QUARANTINE("\"a b\"", "\"T\""), ANSWER_bad_argument},
		{QUARANTINE("\"a\\n\"", "\"T\""), ANSWER_bad_argument},
		{QUARANTINE("7", "\"T\""), ANSWER_bad_argument},
		{"{\"verb\":\"quarantine\",\"args\":{\"name\":\"a\"}}", ANSWER_bad_argument},
		{WARN("60", "\"T\""), ADMIN_DONE},
		{WARN("86400", "\"T\""), ADMIN_DONE},
		{WARN("86401", "\"T\""), ANSWER_bad_argument},
		{WARN("0", "\"T\""), ANSWER_bad_argument},
		{WARN("60", "\"\""), ANSWER_bad_argument},
		{"{\"verb\":\"mode.warn\",\"args\":{\"profile\":\"ci\",\"ticket\":\"T\"}}",
		 ANSWER_bad_argument},
		{REMOVE("\"..\""), ANSWER_bad_argument},
		{REMOVE("\".a\""), ANSWER_bad_argument},
		{REMOVE("\"a/b\""), ANSWER_bad_argument},
		{REMOVE("\"a b\""), ANSWER_bad_argument},
		{REMOVE("\"a\\nb\""), ANSWER_bad_argument},
		{REMOVE("\"\xc3\xa4\""), ANSWER_bad_argument},
		{REMOVE("7"), ANSWER_bad_argument},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = room();
		struct admin_request req;
		struct err err = {0};

		CHECK_INT(rows[i].text, rows[i].want,
			  admin_request_read(a, span_of(rows[i].text), &req, &err));
		CHECK_INT(rows[i].text, rows[i].want == ADMIN_DONE, err.kind == ERR_NONE);
		arena_destroy(a);
	}
}

static void arguments_are_told_apart(void **state)
{
	static const struct {
		const char *path;
		bool good;
	} paths[] = {
		{"/a", true},     {"/run/x/y.sock", true}, {"/", false},     {"a", false},
		{"//a", false},   {"/a/", false},          {"/a//b", false}, {"/a/./b", false},
		{"/../a", false}, {"/a/..", false},        {"/a/.b", false}, {"/a b", false},
	};
	struct arena *a = room();
	struct admin_request req;
	struct err err = {0};

	(void)state;
	CHECK_INT("add", ADMIN_DONE, admin_request_read(a, span_of(ADD("")), &req, &err));
	CHECK_STR("profile", "p", admin_arg(&req, "profile")->text);
	CHECK_STR("path", "/run/a/x.sock", admin_arg(&req, "path")->text);
	CHECK_INT("lifetime", 60, admin_arg(&req, "lifetime")->number);
	CHECK_INT("no gid", false, admin_arg(&req, "gid")->given);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char text[256];

		snprintf(text, sizeof(text),
			 "{\"verb\":\"listener.add\",\"args\":{\"profile\":\"p\",\"owner\":\"o\","
			 "\"path\":\"%s\",\"lifetime\":60}}",
			 paths[i].path);
		CHECK_INT(paths[i].path, paths[i].good ? ADMIN_DONE : ANSWER_bad_argument,
			  admin_request_read(a, span_of(text), &req, &err));
	}
	arena_destroy(a);
}

/* --- roles --- */

static void roles_come_from_user_and_groups(void **state)
{
	static const uint32_t ops_uids[] = {1500}, ops_gids[] = {60, 61}, audit_gids[] = {8};
	const struct config_admin conf = {
		.operate = {ops_uids, ops_gids, 1, 2},
		.audit = {NULL, audit_gids, 0, 1},
		.approve = {NULL, ops_gids + 1, 0, 1},
	};
	static const struct {
		const char *label, *want;
		struct admin_peer peer;
	} rows[] = {
		{"root", "operate,audit", {.uid = 0}},
		{"who started the gate", "operate,audit", {.uid = 999}},
		{"a user", "operate", {.uid = 1500, .gid = 1500}},
		{"a primary group", "operate", {.uid = 7, .gid = 60}},
		{"supplementary",
		 "audit",
		 {.uid = 7, .gid = 7, .groups = {1, 8}, .group_count = 2}},
		{"two", "operate,approve", {.uid = 7, .gid = 61}},
		{"a uid like a group", "none", {.uid = 60, .gid = 7}},
		{"nobody", "none", {.uid = 7, .gid = 7, .groups = {1, 2}, .group_count = 2}},
		{"beyond the count",
		 "none",
		 {.uid = 7, .gid = 7, .groups = {60}, .group_count = 0}},
		{"unknown", "none", {.uid = (uid_t)-1, .gid = 60}},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		admin_roles_text(admin_roles_of(&conf, &rows[i].peer, 999), text);
		CHECK_STR(rows[i].label, rows[i].want, text);
	}
}

static void every_verb_needs_a_role(void **state)
{
	(void)state;
	for (int v = 0; v < VERB_COUNT; v++) {
		CHECK_INT(admin_verb_name(v), true, admin_verb_roles(v) != 0);
		CHECK_INT(admin_verb_name(v), 0,
			  admin_verb_acts(v) ? admin_verb_roles(v) & ADMIN_AUDIT : 0);
	}
	CHECK_INT("none", 0, admin_verb_roles(VERB_COUNT));
}

/* --- what is kept --- */

#define KEPT(name, path)                                                                           \
	"{\"name\":\"" name "\",\"profile\":\"p\",\"owner\":\"o\",\"path\":\"" path                \
	"\",\"backend\":\"e\",\"uid\":0,\"gid\":5,\"mode\":432,\"until\":1790000000}"
#define FILE_OF(list) "{\"version\":1,\"listeners\":[" list "]}"

static void the_file_has_one_form(void **state)
{
	static const struct {
		const char *text;
		int want; /* listeners; -1: refused */
	} rows[] = {
		{"", 0},
		{FILE_OF(""), 0},
		{FILE_OF(KEPT("a", "/r/a")), 1},
		{FILE_OF(KEPT("a", "/r/a") "," KEPT("b", "/r/b")), 2},
		{FILE_OF(KEPT("a", "/r/a") "," KEPT("a", "/r/b")), -1},
		{FILE_OF(KEPT("a", "/r/a") "," KEPT("b", "/r/a")), -1},
		{FILE_OF(KEPT("..", "/r/a")), -1},
		{FILE_OF(KEPT("a", "r/a")), -1},
		{FILE_OF(KEPT("a", "/r/../a")), -1},
		{FILE_OF(KEPT("a\\u0000b", "/r/a")), -1},
		{FILE_OF("{}"), -1},
		{FILE_OF("1"), -1},
		{FILE_OF("") "x", -1},
		{"{\"version\":2,\"listeners\":[]}", -1},
		{"{\"version\":1}", -1},
		{"{\"version\":1,\"listeners\":[],\"x\":0}", -1},
		{"{\"version\":1,\"listeners\":{}}", -1},
		{"[]", -1},
		{"{", -1},
	};
	struct admin_kept list[RUNTIME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct admin_state s = {.list = list};
		struct err err = {0};
		int rc = admin_state_parse(span_of(rows[i].text), &s, &err);

		CHECK_INT(rows[i].text, rows[i].want, rc < 0 ? -1 : (int)s.count);
		CHECK_INT(rows[i].text, rc < 0 ? ERR_CONFIG : ERR_NONE, err.kind);
	}
}

static void what_is_kept_is_read_again(void **state)
{
	struct admin_kept list[RUNTIME_MAX], again[RUNTIME_MAX];
	struct admin_state s = {.list = list}, back = {.list = again};
	char dir[] = "/tmp/sallyport-test-XXXXXX", path[64];
	struct err err = {0};
	int folder;

	(void)state;
	CHECK_INT("dir", 1, mkdtemp(dir) != NULL);
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT("none", 0, admin_state_read(folder, &back, &err));
	CHECK_INT("none", 0, back.count);
	CHECK_INT("parse", 0,
		  admin_state_parse(span_of(FILE_OF(KEPT("a", "/r/a") "," KEPT("b", "/r/b"))), &s,
				    &err));
	CHECK_INT(err.msg, 0, admin_state_write(folder, &s, &err));
	CHECK_INT(err.msg, 0, admin_state_read(folder, &back, &err));
	CHECK_INT("count", 2, back.count);
	CHECK_INT("same", 0, memcmp(list, again, 2 * sizeof(*list)));
	admin_state_drop(&s, admin_state_find(&s, "a"));
	CHECK_STR("the other", "b", s.list[0].row.name);
	CHECK_INT("gone", true, admin_state_find(&s, "a") == NULL);

	snprintf(path, sizeof(path), "%s/%s", dir, ADMIN_STATE_FILE);
	chmod(path, 0620);
	CHECK_INT("writable by others", -1, admin_state_read(folder, &back, &err));
	unlink(path);
	CHECK_INT("link", 0, symlink("/etc/hostname", path));
	CHECK_INT("a link", -1, admin_state_read(folder, &back, &err));
	unlink(path);
	close(folder);
	rmdir(dir);
}

/* --- sockets --- */

struct place {
	char dir[64], folder[96];
	struct config config;
	struct conf_listener listeners[1];
	struct conf_backend backends[1];
	struct admin_sockets *sockets;
};

static void prepare(struct place *p)
{
	static const char *const profiles[] = {"p", NULL};
	struct err err = {0};

	memset(p, 0, sizeof(*p));
	strcpy(p->dir, "/tmp/sallyport-test-XXXXXX");
	CHECK_INT("dir", 1, mkdtemp(p->dir) != NULL);
	snprintf(p->folder, sizeof(p->folder), "%s/agents", p->dir);
	p->listeners[0] = (struct conf_listener){.name = "main", .socket = "/r/main.sock"};
	p->backends[0] = (struct conf_backend){.name = "e", .socket = "/r/engine.sock"};
	p->config = (struct config){
		.proxy = {.listeners = p->listeners,
			  .listener_count = 1,
			  .backends = p->backends,
			  .backend_count = 1},
		.profile_names = profiles,
		.status_socket = "/r/status.sock",
		.admin = {.sockets = p->folder, .listeners = 2, .lifetime_s = DAY},
	};
	p->sockets = admin_sockets_create(geteuid());
	CHECK_INT(err.msg, 0, admin_sockets_folder(p->sockets, p->folder, &err));
}

static struct runtime_row row_of(const struct place *p, const char *name, const char *file)
{
	struct runtime_row row;

	memset(&row, 0, sizeof(row));
	row.until = (int64_t)(clock_unix_ns() / 1000000000) + 100;
	row.gid = getegid();
	row.mode = 0600;
	snprintf(row.name, sizeof(row.name), "%s", name);
	strcpy(row.profile, "p");
	strcpy(row.owner, "o");
	if (*file == '/')
		snprintf(row.path, sizeof(row.path), "%s", file);
	else
		snprintf(row.path, sizeof(row.path), "%s/%s", p->folder, file);
	return row;
}

static void clean(struct place *p)
{
	static const char *const left[] = {
		"agents/x",    "agents/a.sock", "agents/r.sock", "agents/out",
		"agents/file", "agents/open",   "agents",        ""};
	char path[160];

	admin_sockets_destroy(p->sockets);
	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		snprintf(path, sizeof(path), "%s/%s", p->dir, left[i]);
		if (unlink(path) < 0)
			rmdir(path);
	}
}

/* --- quarantines that are kept --- */

#define Q(owner, ticket, more)                                                                     \
	"{\"owner\":\"" owner "\",\"ticket\":\"" ticket "\",\"since\":5,\"kill\":true" more "}"
#define QUARANTINES(list) "{\"version\":1,\"quarantines\":[" list "]}"

static void quarantines_have_one_form(void **state)
{
	static const struct {
		const char *text;
		int want; /* quarantines; -1: refused */
	} rows[] = {
		{QUARANTINES(""), 0},
		{QUARANTINES(Q("a", "INC-1", "")), 1},
		{QUARANTINES(Q("a \\u00e4", "INC-1", "") "," Q("uid-1@m", "INC-1", "")), 2},
		{"", -1},
		{QUARANTINES(Q("a", "1", "") "," Q("a", "2", "")), -1},
		{QUARANTINES(Q("", "1", "")), -1},
		{QUARANTINES(Q("a", "", "")), -1},
		{QUARANTINES(Q("a", "two words", "")), -1},
		{QUARANTINES(Q("a\\u0000b", "1", "")), -1},
		{QUARANTINES(Q("a", "1", ",\"x\":1")), -1},
		{QUARANTINES("{\"owner\":\"a\",\"ticket\":\"1\",\"since\":5}"), -1},
		{QUARANTINES("{\"owner\":\"a\",\"ticket\":\"1\",\"since\":-5,\"kill\":true}"), -1},
		{QUARANTINES("{\"owner\":\"a\",\"ticket\":\"1\",\"since\":5,\"kill\":1}"), -1},
		{QUARANTINES("1"), -1},
		{QUARANTINES("") "x", -1},
		{"{\"version\":2,\"quarantines\":[]}", -1},
		{"{\"version\":1,\"quarantines\":{}}", -1},
		{"{\"version\":1,\"quarantines\":[],\"x\":0}", -1},
		{"[]", -1},
		{"{", -1},
	};
	static struct emergency_view view, back;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = {0};
		int rc = emergency_state_parse(span_of(rows[i].text), &view, &err);
		struct buf text;

		CHECK_INT(rows[i].text, rows[i].want, rc < 0 ? -1 : (int)view.owner_count);
		CHECK_INT(rows[i].text, rc < 0 ? ERR_CONFIG : ERR_NONE, err.kind);
		CHECK_INT("nobody on failure", true, rc == 0 || view.owner_count == 0);
		if (rc < 0)
			continue;
		buf_init(&text, ADMIN_STATE_BYTES_MAX);
		emergency_state_text(&view, &text);
		CHECK_INT("again", 0, emergency_state_parse(buf_span(&text), &back, &err));
		CHECK_INT("the same", 0, memcmp(&view, &back, sizeof(view)));
		buf_fini(&text);
	}
}

#define M(profile, mode, since, until)                                                             \
	"{\"profile\":\"" profile "\",\"mode\":\"" mode "\",\"ticket\":\"T\",\"since\":" since     \
	",\"until\":" until "}"
#define MODES(list) "{\"version\":1,\"quarantines\":[],\"modes\":" list "}"

static void modes_have_one_form(void **state)
{
	static const struct {
		const char *text;
		int want; /* profiles; -1: refused */
	} rows[] = {
		{MODES("[]"), 0},
		{MODES("[" M("ci", "warn", "5", "65") "]"), 1},
		{MODES("[" M("ci", "warn", "5", "65") "," M("b", "warn", "5", "65") "]"), 2},
		{MODES("[" M("ci", "warn", "5", "86405") "]"), 1},
		{MODES("[" M("ci", "warn", "5", "86406") "]"), -1},
		{MODES("[" M("ci", "warn", "5", "5") "]"), -1},
		{MODES("[" M("ci", "warn", "-5", "5") "]"), -1},
		{MODES("[" M("ci", "shadow", "5", "65") "]"), -1},
		{MODES("[" M("ci", "enforce", "5", "65") "]"), -1},
		{MODES("[" M("ci", "warn", "5", "\"65\"") "]"), -1},
		{MODES("[" M("ci", "warn", "5", "65") "," M("ci", "warn", "5", "65") "]"), -1},
		{MODES("[" M("two words", "warn", "5", "65") "]"), -1},
		{MODES("[" M("", "warn", "5", "65") "]"), -1},
		{MODES("[1]"), -1},
		{MODES("{}"), -1},
		{MODES("[],\"x\":1"), -1},
	};
	static struct emergency_view view, back;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = {0};
		int rc = emergency_state_parse(span_of(rows[i].text), &view, &err);
		struct buf text;

		CHECK_INT(rows[i].text, rows[i].want, rc < 0 ? -1 : (int)view.mode_count);
		CHECK_INT("nobody on failure", true, rc == 0 || view.mode_count == 0);
		if (rc < 0)
			continue;
		CHECK_INT("long ago", true, emergency_mode(&view, "ci") == NULL);
		buf_init(&text, ADMIN_STATE_BYTES_MAX);
		emergency_state_text(&view, &text);
		CHECK_INT("again", 0, emergency_state_parse(buf_span(&text), &back, &err));
		CHECK_INT("the same", 0, memcmp(&view, &back, sizeof(view)));
		buf_fini(&text);
	}
}

/* What is left of its time, and no more, is left behind a restart. */
static void a_mode_is_read_again(void **state)
{
	static struct emergency_view view, back;
	struct emergency_mode *m;
	struct err err = {0};
	struct buf text;

	(void)state;
	memset(&view, 0, sizeof(view));
	m = emergency_mode_begin(&view, "ci", "T", 3600);
	m->since -= 1800;
	m->until -= 1800;
	buf_init(&text, ADMIN_STATE_BYTES_MAX);
	emergency_state_text(&view, &text);
	CHECK_INT(err.msg, 0, emergency_state_parse(buf_span(&text), &back, &err));
	CHECK_STR("holds", "T", emergency_mode(&back, "ci")->ticket);
	CHECK_INT("until", m->until, back.modes[0].until);
	CHECK_INT("by the other clock, too", true, back.modes[0].ends_ms + 1790000 < m->ends_ms);
	buf_fini(&text);
}

static void quarantines_are_read_again(void **state)
{
	char path[] = "/tmp/sp-emergency-XXXXXX";
	static struct emergency_view view, back;
	struct err err = {0};
	auto_fd int folder = -1;

	(void)state;
	CHECK_INT("folder", true, mkdtemp(path) != NULL);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT("none", 0, emergency_state_read(folder, &back, &err));
	CHECK_INT("none", 0, back.owner_count);
	emergency_begin(&view, "a", "INC-1", true);
	CHECK_INT(err.msg, 0, emergency_state_write(folder, &view, &err));
	CHECK_INT(err.msg, 0, emergency_state_read(folder, &back, &err));
	CHECK_STR("ticket", "INC-1", emergency_quarantine(&back, "a")->ticket);
	fchmodat(folder, EMERGENCY_FILE, 0666, 0);
	CHECK_INT("writable by others", -1, emergency_state_read(folder, &back, &err));
	CHECK_INT("nobody", 0, back.owner_count);
	unlinkat(folder, EMERGENCY_FILE, 0);
	symlinkat("/etc/passwd", folder, EMERGENCY_FILE);
	CHECK_INT("a link", -1, emergency_state_read(folder, &back, &err));
	unlinkat(folder, EMERGENCY_FILE, 0);
	rmdir(path);
}

static void a_path_cannot_lead_out(void **state)
{
	static const struct {
		const char *file;
		enum admin_answer want;
	} rows[] = {
		{"a.sock", ADMIN_DONE},
		{"/elsewhere/a.sock", ANSWER_path_outside},
		{"missing/a.sock", ANSWER_path_unsafe},
		{"out/a.sock", ANSWER_path_unsafe},
		{"open/a.sock", ANSWER_path_unsafe},
		{"file/a.sock", ANSWER_path_unsafe},
		{"file", ANSWER_path_taken},
		{"out", ANSWER_path_taken},
	};
	char path[160];
	struct place p;

	(void)state;
	prepare(&p);
	snprintf(path, sizeof(path), "%s/out", p.folder);
	CHECK_INT("link", 0, symlink("/tmp", path));
	snprintf(path, sizeof(path), "%s/open", p.folder);
	CHECK_INT("folder", 0, mkdir(path, 0755) + chmod(path, 0775));
	snprintf(path, sizeof(path), "%s/file", p.folder);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct runtime_row row = row_of(&p, "n", rows[i].file);
		struct err err = {0};

		CHECK_INT(rows[i].file, rows[i].want,
			  admin_sockets_try(p.sockets, &p.config, &row, false, &err));
	}
	/* The folder itself: what others can write to is no fence. */
	chmod(p.folder, 0777);
	{
		struct runtime_row row = row_of(&p, "n", "a.sock");
		struct err err = {0};

		CHECK_INT("open folder", ANSWER_path_unsafe,
			  admin_sockets_try(p.sockets, &p.config, &row, false, &err));
	}
	clean(&p);
}

static void what_may_be_added(void **state)
{
	static const struct {
		const char *label, *name, *profile, *file;
		int64_t lives;
		uint32_t backend, mode;
		enum admin_answer want, restored;
	} rows[] = {
		{"fine", "n", "p", "x", 100, 0, 0600, ADMIN_DONE, ADMIN_DONE},
		{"no profile", "n", "q", "x", 100, 0, 0600, ANSWER_profile_missing, ADMIN_DONE},
		{"too long", "n", "p", "x", DAY + 100, 0, 0600, ANSWER_too_long, ADMIN_DONE},
		{"over", "n", "p", "x", -1, 0, 0600, ANSWER_too_long, ADMIN_DONE},
		{"backend", "n", "p", "x", 100, 1, 0600, ANSWER_backend_missing,
		 ANSWER_backend_missing},
		{"set-user-id", "n", "p", "x", 100, 0, 04600, ANSWER_bad_argument,
		 ANSWER_bad_argument},
		{"name of the configuration", "main", "p", "x", 100, 0, 0600, ANSWER_name_taken,
		 ANSWER_name_taken},
		{"name", "a", "p", "x", 100, 0, 0600, ANSWER_name_taken, ANSWER_name_taken},
		{"path", "n", "p", "a.sock", 100, 0, 0600, ANSWER_path_taken, ANSWER_path_taken},
		{"path of the configuration", "n", "p", "/r/main.sock", 100, 0, 0600,
		 ANSWER_path_taken, ANSWER_path_taken},
		{"path of the engine", "n", "p", "/r/engine.sock", 100, 0, 0600, ANSWER_path_taken,
		 ANSWER_path_taken},
		{"path of the admin socket", "n", "p", "/r/status.sock", 100, 0, 0600,
		 ANSWER_path_taken, ANSWER_path_taken},
		{"no name", "", "p", "x", 100, 0, 0600, ANSWER_bad_argument, ANSWER_bad_argument},
	};
	const struct runtime_listener *made = NULL;
	struct runtime_row a;
	struct err err = {0};
	struct place p;

	(void)state;
	prepare(&p);
	a = row_of(&p, "a", "a.sock");
	CHECK_INT(err.msg, ADMIN_DONE,
		  admin_sockets_add(p.sockets, &p.config, &a, false, &made, &err));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct runtime_row row = row_of(&p, rows[i].name, rows[i].file);

		row.until += rows[i].lives - 100;
		row.backend = rows[i].backend;
		row.mode = rows[i].mode;
		strcpy(row.profile, rows[i].profile);
		CHECK_INT(rows[i].label, rows[i].want,
			  admin_sockets_try(p.sockets, &p.config, &row, false, &err));
		CHECK_INT(rows[i].label, rows[i].restored,
			  admin_sockets_try(p.sockets, &p.config, &row, true, &err));
	}
	memset(a.name, 'x', sizeof(a.name)); /* no NUL */
	CHECK_INT("a text without an end", ANSWER_bad_argument,
		  admin_sockets_try(p.sockets, &p.config, &a, true, &err));
	clean(&p);
}

static void a_socket_comes_and_goes(void **state)
{
	const struct runtime_listener *made = NULL, *again = NULL;
	struct runtime_row row, other, gone;
	struct err err = {0};
	struct stat st;
	struct place p;
	int fd = -1;

	(void)state;
	prepare(&p);
	row = row_of(&p, "a", "a.sock");
	CHECK_INT(err.msg, ADMIN_DONE,
		  admin_sockets_add(p.sockets, &p.config, &row, false, &made, &err));
	CHECK_INT("id", 1, made->row.id);
	CHECK_INT("owner", geteuid(), made->row.uid);
	CHECK_INT("there", 0, lstat(row.path, &st));
	CHECK_INT("mode", S_IFSOCK | 0600, st.st_mode);
	CHECK_INT("answers", 0, listen_connect(row.path, 1000, &fd, &err));
	close(fd);
	CHECK_INT("again", ANSWER_name_taken,
		  admin_sockets_add(p.sockets, &p.config, &row, false, &again, &err));
	CHECK_INT("restored", ADMIN_DONE,
		  admin_sockets_add(p.sockets, &p.config, &row, true, &again, &err));
	CHECK_INT("the same", true, again == made && admin_sockets_count(p.sockets) == 1);
	other = row_of(&p, "r", "r.sock");
	CHECK_INT("two", ADMIN_DONE,
		  admin_sockets_add(p.sockets, &p.config, &other, false, &made, &err));
	other = row_of(&p, "x", "x");
	CHECK_INT("three", ANSWER_too_many,
		  admin_sockets_add(p.sockets, &p.config, &other, false, &made, &err));
	CHECK_INT("removed", ADMIN_DONE, admin_sockets_remove(p.sockets, &p.config, "a", &gone));
	CHECK_STR("it", row.path, gone.path);
	CHECK_INT("no file", -1, lstat(row.path, &st));
	CHECK_INT("twice", ANSWER_listener_missing,
		  admin_sockets_remove(p.sockets, &p.config, "a", &gone));
	CHECK_STR("the other stays", "r", admin_sockets_at(p.sockets, 0)->row.name);

	/* What took the place of its file is not removed with it. */
	unlink(admin_sockets_at(p.sockets, 0)->row.path);
	close(open(admin_sockets_at(p.sockets, 0)->row.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK_INT("removed", ADMIN_DONE, admin_sockets_remove(p.sockets, &p.config, "r", &gone));
	CHECK_INT("the file stays", 0, lstat(gone.path, &st));
	clean(&p);
}

static void a_lifetime_ends(void **state)
{
	const struct runtime_listener *made = NULL;
	struct runtime_row row, gone;
	struct err err = {0};
	struct stat st;
	struct place p;

	(void)state;
	prepare(&p);
	CHECK_INT("never", true, admin_sockets_due(p.sockets) == UINT64_MAX);
	row = row_of(&p, "a", "a.sock");
	CHECK_INT("add", ADMIN_DONE,
		  admin_sockets_add(p.sockets, &p.config, &row, false, &made, &err));
	CHECK_INT("not yet", false, admin_sockets_expire(p.sockets, &p.config, &gone));
	CHECK_INT("a look in time", true, admin_sockets_due(p.sockets) <= clock_boot_ms() + 100000);
	row = row_of(&p, "r", "r.sock");
	row.until -= 200;
	CHECK_INT("over already", ADMIN_DONE,
		  admin_sockets_add(p.sockets, &p.config, &row, true, &made, &err));
	CHECK_INT("due", true, admin_sockets_due(p.sockets) <= clock_boot_ms());
	CHECK_INT("ended", true, admin_sockets_expire(p.sockets, &p.config, &gone));
	CHECK_STR("which", "r", gone.name);
	CHECK_INT("file", -1, lstat(gone.path, &st));
	CHECK_INT("no more", false, admin_sockets_expire(p.sockets, &p.config, &gone));
	clean(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_one_form),
		cmocka_unit_test(arguments_are_told_apart),
		cmocka_unit_test(roles_come_from_user_and_groups),
		cmocka_unit_test(every_verb_needs_a_role),
		cmocka_unit_test(the_file_has_one_form),
		cmocka_unit_test(what_is_kept_is_read_again),
		cmocka_unit_test(quarantines_have_one_form),
		cmocka_unit_test(modes_have_one_form),
		cmocka_unit_test(a_mode_is_read_again),
		cmocka_unit_test(quarantines_are_read_again),
		cmocka_unit_test(a_path_cannot_lead_out),
		cmocka_unit_test(what_may_be_added),
		cmocka_unit_test(a_socket_comes_and_goes),
		cmocka_unit_test(a_lifetime_ends),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
