#include "tests/unit/backends/drive.h"

#include "backends/docker/tar_write_priv.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

struct span drive_read(struct arena *a, const char *name)
{
	char path[4096];
	FILE *f;
	char *text;
	long size;

	snprintf(path, sizeof(path), "%s/%s", DATA_DIR, name);
	f = fopen(path, "re");
	if (!f)
		fail_msg("%s cannot be opened", path);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	text = arena_take(a, (size_t)size + 1);
	if (!text || fread(text, 1, (size_t)size, f) != (size_t)size)
		fail_msg("%s cannot be read", path);
	fclose(f);
	return (struct span){text, (size_t)size};
}

static struct jv parse(struct arena *a, struct span text, const char *what)
{
	enum jv_fault fault;
	struct err err = {0};
	struct jv v;

	if (jv_parse(a, text, &v, &fault, &err) < 0)
		fail_msg("%s: %s", what, err.msg);
	return v;
}

struct jv drive_json(struct arena *a, const char *name)
{
	return parse(a, drive_read(a, name), name);
}

struct jv drive_parse(struct arena *a, const char *text)
{
	return parse(a, span_of(text), text);
}

struct backend *drive_open(void)
{
	const struct backend_conf conf = {.name = "t"};
	struct err err = {0};
	struct backend *be = backend_find("docker")->open(&conf, &err);

	if (!be)
		fail_msg("the adapter: %s", err.msg);
	return be;
}

struct backend *drive_once(const struct jv **ret_world)
{
	static struct backend *be;
	/* Kept in memory although it is not read again: the leak checker looks for it. */
	static struct arena *volatile forever;
	static struct jv world;

	if (!be) {
		jv_init();
		forever = arena_create(DRIVE_ARENA_BYTES);
		world = drive_json(forever, "world.json");
		be = drive_open();
	}
	*ret_world = &world;
	return be;
}

void drive_start(struct drive *d, struct backend *be, const struct jv *world)
{
	*d = (struct drive){.be = be, .world = world, .arena = arena_create(DRIVE_ARENA_BYTES)};
	if (!d->arena)
		fail_msg("no memory");
	drive_see(d, "\"own\"");
}

void drive_see(struct drive *d, const char *visibility)
{
	struct reach *reach = arena_take(d->arena, sizeof(*reach));
	struct err err = {0};
	struct jv value;

	if (*visibility == '"')
		value = jv_string(strcmp(visibility, "\"all\"") == 0 ? "all" : "own");
	else
		value = drive_parse(d->arena, visibility);
	if (reach_read(&value, d->arena, reach, &err) < 0)
		fail_msg("%s: %s", visibility, err.msg);
	d->call.reach = reach;
}

void drive_adopt(struct drive *d, const char *entry)
{
	struct adopted *list = arena_take(d->arena, (d->call.adopted_count + 1) * sizeof(*list));
	struct jv doc = drive_parse(d->arena, entry);

	for (size_t i = 0; i < d->call.adopted_count; i++)
		list[i] = d->call.adopted[i];
	list[d->call.adopted_count++] = (struct adopted){
		.kind = jv_str(&doc, "kind", ""),
		.id = jv_str(&doc, "id", ""),
		.created = jv_str(&doc, "created", ""),
		.owner = jv_str(&doc, "owner", ""),
	};
	d->call.adopted = list;
}

void drive_end(struct drive *d)
{
	arena_destroy(d->arena);
	d->arena = NULL;
}

/* --- requests --- */

static int hex(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static struct span decoded(struct arena *a, struct span s)
{
	char *out = arena_take(a, s.len + 1);
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] == '%' && i + 2 < s.len) {
			out[n++] = (char)(hex(s.at[i + 1]) * 16 + hex(s.at[i + 2]));
			i += 2;
		} else {
			out[n++] = s.at[i] == '+' ? ' ' : s.at[i];
		}
	}
	return (struct span){out, n};
}

#define PAIRS_MAX 16

static void read_query(struct drive *d, struct span text)
{
	struct pair *list = arena_take(d->arena, sizeof(*list) * PAIRS_MAX);
	struct span one, key;

	d->req.query = list;
	while (text.len && d->req.query_count < PAIRS_MAX) {
		span_cut(&text, '&', &one);
		span_cut(&one, '=', &key);
		list[d->req.query_count++] =
			(struct pair){decoded(d->arena, key), decoded(d->arena, one)};
	}
}

static void read_header(struct drive *d, struct pair *list, struct span line)
{
	struct span name;
	char *lower;

	span_cut(&line, ':', &name);
	while (line.len && line.at[0] == ' ')
		line = span_skip(line, 1);
	lower = arena_strndup(d->arena, name.at, name.len);
	for (char *p = lower; *p; p++)
		*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
	if (strcmp(lower, "content-type") == 0)
		d->req.content_type = arena_strndup(d->arena, line.at, line.len);
	if (strcmp(lower, "content-encoding") == 0)
		d->req.content_coding = arena_strndup(d->arena, line.at, line.len);
	if (strcmp(lower, "upgrade") == 0) {
		d->req.upgrade = true;
		d->req.upgrade_to = arena_strndup(d->arena, line.at, line.len);
	}
	list[d->req.header_count++] = (struct pair){span_of(lower), line};
}

/* "Name: value"; anything else begins the body. */
static bool is_header(struct span line)
{
	struct span rest = line, name;

	if (!span_cut(&rest, ':', &name) || !rest.len || rest.at[0] != ' ' || !name.len)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (name.at[i] != '-' &&
		    !((name.at[i] | 0x20) >= 'a' && (name.at[i] | 0x20) <= 'z'))
			return false;
	return true;
}

static void read_request(struct drive *d, struct span text)
{
	struct pair *headers = arena_take(d->arena, sizeof(*headers) * PAIRS_MAX);
	struct span line, target, path;

	span_cut(&text, '\n', &line);
	span_cut(&line, ' ', &target);
	d->req.method = arena_strndup(d->arena, target.at, target.len);
	span_cut(&line, '?', &path);
	path = decoded(d->arena, path);
	d->req.path = arena_strndup(d->arena, path.at, path.len);
	read_query(d, line);
	d->req.headers = headers;
	d->req.content_type = "";
	d->req.content_coding = "";
	d->req.upgrade_to = "";
	while (text.len && d->req.header_count < PAIRS_MAX) {
		struct span before = text;

		span_cut(&text, '\n', &line);
		if (!line.len)
			break;
		if (!is_header(line)) {
			text = before;
			break;
		}
		read_header(d, headers, line);
	}
	d->req.body = text;
	d->req.has_body = text.len > 0;
	d->req.body_bytes = (int64_t)text.len;
	if (text.len && !*d->req.content_type)
		d->req.content_type = "application/json";
}

/* --- answers --- */

static const struct jv *by_id(const struct jv *table, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; table && table->kind == JV_OBJECT && i < table->count; i++) {
		const struct jv *doc = &table->members[i].value;
		const char *id = jv_str(doc, "Id", jv_str(doc, "ID", ""));
		const char *hex_id = strncmp(id, "sha256:", 7) == 0 ? id + 7 : id;

		if (len >= 4 && (strncmp(id, key, len) == 0 || strncmp(hex_id, key, len) == 0))
			return doc;
	}
	return NULL;
}

static const struct jv *find(const struct jv *world, const struct lookup *l)
{
	const struct jv *table = jv_get(world, l->table), *found;
	char latest[512];

	if (!*l->key)
		return table;
	snprintf(latest, sizeof(latest), "%s:latest", l->key);
	found = jv_get(table, l->key);
	if (!found && strcmp(l->table, "images") == 0)
		found = jv_get(table, latest);
	return found || l->kind != LOOKUP_GET ? found : by_id(table, l->key);
}

static void answer_one(const struct drive *d, struct lookup *l)
{
	const struct jv *doc = find(d->world, l);

	l->answered = true;
	if (d->unreachable) {
		l->status = 0;
	} else if (doc) {
		l->status = 200;
		l->body = *doc;
	} else {
		l->status = d->offline || l->kind != LOOKUP_GET ? 0 : 404;
	}
}

void drive_answer(struct drive *d)
{
	d->rounds++;
	for (size_t i = 0; i < d->call.lookup_count; i++) {
		if (d->call.lookups[i].answered)
			continue;
		answer_one(d, &d->call.lookups[i]);
		d->asked++;
	}
}

/* The body is a Dockerfile, which comes in an archive of its own, byte by byte. */
static bool drive_context(struct drive *d)
{
	struct tar_entry e = {
		.type = '0', .name = span_of("Dockerfile"), .mode = 0644, .size = d->req.body.len};
	enum intake got = INTAKE_MORE;
	struct buf in, out;

	buf_init(&in, 1u << 20);
	buf_init(&out, 1u << 20);
	tar_write_entry(&in, &e, false);
	buf_put(&in, d->req.body.at, d->req.body.len);
	tar_write_padding(&in, d->req.body.len);
	tar_write_end(&in);
	for (struct span rest = buf_span(&in); got && rest.len; rest = span_skip(rest, 1)) {
		struct span one = {rest.at, 1};

		got = d->be->ops->intake(d->be, &d->call, &one, false, &out);
	}
	if (got)
		got = d->be->ops->intake(d->be, &d->call, &(struct span){"", 0}, true, &out);
	if (got && got != INTAKE_KNOWN)
		fail_msg("a whole archive is not known");
	buf_fini(&in);
	buf_fini(&out);
	return got != INTAKE_REFUSED;
}

enum step drive_request(struct drive *d, const char *text)
{
	static const char *const protected_paths[] = {"/run/gate", "/var/run/docker.sock", NULL};
	static const char *const engine_names[] = {"/var/run/docker.sock", "/run/docker.sock",
						   "/run/gate/agents.sock", NULL};
	enum step step;

	read_request(d, span_of(text));
	d->call.arena = d->small ? d->small : d->arena;
	d->call.req = &d->req;
	d->call.owner = "alice";
	d->call.id = "0191-decision";
	d->call.protected_paths = protected_paths;
	d->call.engine_names = engine_names;
	d->call.seccomp = span_of(d->seccomp ? d->seccomp : "");
	d->call.own_socket = d->has_own_socket ? "/run/gate/own.sock" : "";
	d->call.sees_processes = !d->far;
	d->call.wants_attested = d->wants_attested;
	d->call.offline = d->offline;
	d->route_result = d->be->ops->route(d->be, &d->call);
	if (d->route_result < 0)
		return STEP_REFUSED;
	if (d->call.body == BODY_REWRITE && d->req.has_body && !drive_context(d))
		return STEP_REFUSED;
	while ((step = d->be->ops->step(d->be, &d->call)) == STEP_LOOKUP) {
		if (d->rounds == STEPS_MAX)
			fail_msg("%s: asks without end", text);
		drive_answer(d);
	}
	return step;
}

const char *drive_rendered(struct drive *d, const char **ret_body)
{
	struct outgoing out;
	struct err err = {0};
	const char *head;

	buf_init(&out.head, 65536);
	buf_init(&out.body, 1u << 20);
	if (d->be->ops->render(d->be, &d->call, &out, &err) < 0)
		fail_msg("render: %s", err.msg);
	head = arena_strndup(d->arena, buf_span(&out.head).at, buf_len(&out.head));
	if (ret_body)
		*ret_body = arena_strndup(d->arena, buf_span(&out.body).at, buf_len(&out.body));
	buf_fini(&out.head);
	buf_fini(&out.body);
	return head;
}

/* --- trees --- */

const struct jv *drive_at(const struct jv *tree, const char *path)
{
	while (tree && *path) {
		size_t len = strcspn(path, ".[");
		char *end;

		if (*path == '[') {
			size_t i = strtoul(path + 1, &end, 10);

			tree = tree->kind == JV_ARRAY && i < tree->count ? &tree->items[i] : NULL;
			path = end + 1;
		} else {
			tree = jv_get_span(tree, (struct span){path, len});
			path += len;
		}
		path += *path == '.';
	}
	return tree;
}

const char *drive_text(struct arena *a, const struct jv *v)
{
	struct buf b;
	const char *ret;

	if (!v)
		return "(absent)";
	buf_init(&b, 1u << 20);
	jv_write(&b, v);
	ret = arena_strndup(a, buf_span(&b).at, buf_len(&b));
	buf_fini(&b);
	return ret;
}
