/* What redact = { "env", "mounts" } hides of replies, and that it hides it everywhere. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

/* What crosses of a reply, or "(fails)"; sees as of drive_see(). */
static const char *crosses(struct drive *d, const char *request, int status, struct span body)
{
	const char *ret = "(fails)";
	struct err err = {0};
	struct buf out;

	CHECK_INT(request, STEP_READY, drive_request(d, request));
	if (d->call.reply == REPLY_STREAM)
		return arena_strndup(d->arena, body.at, body.len);
	buf_init(&out, 1u << 20);
	if (d->be->ops->filter(d->be, &d->call, status, body, &out, &err) == 0)
		ret = arena_strndup(d->arena, buf_span(&out).at, buf_len(&out));
	buf_fini(&out);
	return ret;
}

/*
 * Every kind of reply that names places on the host, as engines of all ages
 * give it: each such place begins with HOST, or is SECRET.  /in/... is in the
 * container.
 */
#define HOST   "/host-canary"
#define SECRET "secret-canary"

#define CONTAINER_ROW                                                                              \
	"{\"Id\":\"1\",\"Names\":[\"/web\"],\"Command\":\"/in/run\",\"Labels\":{\"a\":\"/in/b\","  \
	"\"com.docker.compose.project.working_dir\":\"" HOST "\","                                 \
	"\"com.docker.compose.project.config_files\":\"" HOST "/c.yml," HOST "/d.yml\"},"          \
	"\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"" HOST "\",\"Destination\":\"/in/d\"},"       \
	"{\"Type\":\"volume\",\"Name\":\"v\",\"Source\":\"" HOST "/v/_data\"}]}"
#define VOLUME                                                                                     \
	"{\"Name\":\"v\",\"Mountpoint\":\"" HOST "/v\",\"Options\":{\"type\":\"none\",\"device\":" \
	"\"" HOST "\"},\"Status\":{\"at\":\"" HOST "\"},\"Labels\":{"                              \
	"\"com.docker.compose.project.working_dir\":\"" HOST "\"}}"
#define STORAGE                                                                                    \
	"\"GraphDriver\":{\"Name\":\"overlay2\",\"Data\":{\"LowerDir\":\"" HOST "/a:" HOST "/b\"," \
	"\"MergedDir\":\"" HOST "\",\"Dataset\":\"" SECRET "\"}},"                                 \
	"\"Storage\":{\"RootFS\":{\"Snapshot\":{\"Name\":\"overlayfs\",\"At\":\"" HOST "\"}}}"
#define DF(type) "{\"" type "\":[" CONTAINER_ROW "]}"

static const struct {
	const char *request, *body, *stays; /* stays: what is no secret, spaces between */
} replies[] = {
	{"GET /containers/run/json",
	 "{\"Path\":\"/in/run\",\"Args\":[\"/in/a\"],\"LogPath\":\"" HOST "/x-json.log\","
	 "\"ResolvConfPath\":\"" HOST "\",\"HostnamePath\":\"" HOST "\",\"HostsPath\":\"" HOST
	 "\",\"State\":{\"Error\":\"error mounting \\\"" HOST "/x\\\" to rootfs\"},"
	 "\"HostConfig\":{\"Binds\":[\"" HOST ":/in/d:ro\",\"vol:/in/v\"],\"ContainerIDFile\":"
	 "\"" SECRET ".cid\",\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"" HOST
	 "\",\"Target\":\"/in/t\"},{\"Type\":\"volume\",\"Source\":\"named\",\"VolumeOptions\":{"
	 "\"DriverConfig\":{\"Options\":{\"o\":\"bind\",\"device\":\"" HOST "\"}}}}],"
	 "\"Devices\":[{\"PathOnHost\":\"" HOST "\",\"PathInContainer\":\"/in/dev\"}],"
	 "\"BlkioWeightDevice\":[{\"Path\":\"" HOST "\",\"Weight\":5}],"
	 "\"BlkioDeviceReadBps\":[{\"Path\":\"" HOST "\"}],"
	 "\"BlkioDeviceWriteBps\":[{\"Path\":\"" HOST "\"}],"
	 "\"BlkioDeviceReadIOps\":[{\"Path\":\"" HOST "\"}],"
	 "\"BlkioDeviceWriteIOps\":[{\"Path\":\"" HOST "\"}],"
	 "\"Tmpfs\":{\"/in/tmp\":\"\"},\"LogConfig\":{\"Type\":\"syslog\",\"Config\":{"
	 "\"syslog-address\":\"unixgram://" HOST "\",\"tag\":\"kept\"}},"
	 "\"SecurityOpt\":[\"seccomp=" HOST "\",\"no-new-privileges\"]}," STORAGE ","
	 "\"Config\":{\"Env\":[\"TOKEN=" SECRET "\"],\"WorkingDir\":\"/in/w\",\"Labels\":{"
	 "\"com.docker.compose.project.environment_file\":\"" HOST
	 "\",\"rule\":\"/in/api\"}},\"NetworkSettings\":{\"SandboxKey\":\"" HOST "\"},"
	 "\"Mounts\":[{\"Source\":\"" HOST "\",\"Destination\":\"/in/m\",\"Name\":\"volname\"}]}",
	 "/in/run /in/a :/in/d:ro vol:/in/v /in/t named /in/dev /in/tmp kept no-new-privileges "
	 "overlay2 TOKEN= /in/w /in/api /in/m volname \"LowerDir\" rootfs"},
	{"GET /containers/json", "[" CONTAINER_ROW "," CONTAINER_ROW "]",
	 "/web /in/run /in/b /in/d \"v\""},
	{"GET /v1.41/system/df", DF("Containers"), "/web /in/run /in/d"},
	{"GET /v1.41/system/df", "{\"ContainerUsage\":{\"Items\":[" CONTAINER_ROW "]}}", "/in/d"},
	{"GET /v1.41/system/df", "{\"ContainersDiskUsage\":{\"Items\":[" CONTAINER_ROW "]}}",
	 "/in/d"},
	{"GET /v1.41/system/df", "{\"Volumes\":[" VOLUME "]}", "\"v\" none"},
	{"GET /v1.41/system/df", "{\"VolumeUsage\":{\"Items\":[" VOLUME "]}}", "\"v\" none"},
	{"GET /v1.41/system/df", "{\"VolumesDiskUsage\":{\"Items\":[" VOLUME "]}}", "\"v\" none"},
	{"GET /v1.41/volumes", "{\"Volumes\":[" VOLUME "],\"Warnings\":null}", "\"v\" none"},
	{"GET /v1.41/volumes/mine-data", VOLUME, "\"v\" none"},
	{"POST /v1.41/volumes/create\n\n{\"Name\":\"new\"}", VOLUME, "\"v\" none"},
	{"GET /images/busybox/json",
	 "{\"RepoTags\":[\"busybox:1\"]," STORAGE ",\"Config\":{\"Env\":[\"A=" SECRET "\"],"
	 "\"Cmd\":[\"/in/sh\"]},\"ContainerConfig\":{\"Env\":[\"B=" SECRET "\"]}}",
	 "busybox:1 overlay2 /in/sh A= B="},
	{"GET /info",
	 "{\"DockerRootDir\":\"" HOST "\",\"Runtimes\":{\"runsc\":{\"path\":\"" HOST
	 "\",\"runtimeArgs\":[\"--root=" HOST "\"]}},\"DriverStatus\":[[\"Backing\",\"extfs\"],"
	 "[\"Root\",\"" HOST "\"]],\"CDISpecDirs\":[\"" HOST "\"],\"Containerd\":{\"Address\":"
	 "\"" HOST "/c.sock\"},\"InitBinary\":\"docker-init\",\"SecurityOptions\":["
	 "\"name=seccomp,profile=" HOST "\"],\"IndexServerAddress\":\"https://index/v1/\","
	 "\"NCPU\":2}",
	 "runsc extfs docker-init https://index/v1/ \"NCPU\":2"},
	{"GET /plugins",
	 "[{\"Name\":\"p\",\"Settings\":{\"Mounts\":[{\"Source\":\"" HOST "\"}],\"Devices\":["
	 "{\"Path\":\"" HOST "\"}]}}]",
	 "\"p\""},
	{"GET /plugins/p/json",
	 "{\"Name\":\"p\",\"Config\":{\"Mounts\":[{\"Source\":\"" HOST "\"}]}}", "\"p\""},
};

static void check_stays(const char *label, const char *text, const char *words)
{
	char copy[300], *at = copy, *word;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((word = strsep(&at, " ")))
		if (!strstr(text, word))
			fail_msg("%s: %s is gone from %s", label, word, text);
}

static void hides_every_host_path(void **state)
{
	static const char *const sees[] = {"\"own\"", "\"all\"", "[\"own\",{\"all\":true}]"};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(replies) / sizeof(*replies); i++) {
		const char *label = replies[i / 3].request, *text;
		struct drive d;

		drive_start(&d, be, &world);
		drive_see(&d, sees[i % 3]);
		d.call.hides = HIDE_ENV | HIDE_MOUNTS;
		text = crosses(&d, label, 200, span_of(replies[i / 3].body));
		if (strstr(text, HOST) || strstr(text, SECRET))
			fail_msg("%s shows %s", label, text);
		if (i % 3) /* own rows alone are left of lists else */
			check_stays(label, text, replies[i / 3].stays);
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* Each of them alone, and nothing where nothing is said. */
static void hides_only_what_is_said(void **state)
{
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		for (unsigned hides = 0; hides < 3; hides++) {
			const char *label = replies[i].request, *text;
			struct drive d;

			drive_start(&d, be, &world);
			drive_see(&d, "\"all\"");
			d.call.hides = hides;
			text = crosses(&d, label, 200, span_of(replies[i].body));
			CHECK_INT(label, hides != HIDE_MOUNTS, strstr(text, HOST) != NULL);
			if (strstr(replies[i].body, "=" SECRET))
				CHECK_INT(label, hides != HIDE_ENV,
					  strstr(text, "=" SECRET) != NULL);
			drive_end(&d);
		}
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* Nothing of what a real engine said of real containers, images and volumes. */
static void hides_paths_of_the_engine(void **state)
{
	static const struct {
		const char *table, *request;
	} tables[] = {
		{"containers", "GET /containers/run/json"},
		{"images", "GET /images/busybox/json"},
		{"volumes", "GET /volumes/mine-data"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	size_t shown = 0;

	(void)state;
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		const struct jv *table = jv_get(&world, tables[t].table);

		for (size_t i = 0; i < table->count; i++) {
			const char *body = drive_text(a, &table->members[i].value), *text;
			struct drive d;

			drive_start(&d, be, &world);
			d.call.hides = HIDE_MOUNTS;
			text = crosses(&d, tables[t].request, 200, span_of(body));
			shown += strstr(body, "/var/lib/docker") || strstr(body, "/srv/ws");
			if (strstr(text, "/var/lib/") || strstr(text, "/srv/") ||
			    strstr(text, "\"Source\":\"/"))
				fail_msg("%s shows %s", table->members[i].key.at, text);
			drive_end(&d);
		}
	}
	CHECK_INT("some would have shown", 1, shown > 3);
	arena_destroy(a);
	be->ops->close(be);
}

static void hides_paths_in_sentences(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"no such image", "no such image"},
		{"open /srv/a/b: no such file", "open [redacted]: no such file"},
		{"mount /srv/a:/in/b:ro", "mount [redacted]:[redacted]:ro"},
		{"error mounting '/srv'", "error mounting '[redacted]'"},
		{"Conflict. The container name \"/web\" is in use",
		 "Conflict. The container name \"/web\" is in use"},
		{"The container name \"/srv/x\" is bad",
		 "The container name \"[redacted]\" is bad"},
		{"Get https://reg.example/v2/: refused", "Get https://reg.example/v2/: refused"},
		{"dial unix:///run/x.sock", "dial unix://[redacted]"},
		{"and/or 1/2 a/b:c", "and/or 1/2 a/b:c"},
		{"dir=/srv", "dir=[redacted]"},
		{"/", "[redacted]"},
		{"", ""},
		{"://", "://"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct jv doc = jv_object(), got;
		struct drive d;

		drive_start(&d, be, &world);
		d.call.hides = HIDE_MOUNTS;
		jv_set(a, &doc, "message", jv_string(rows[i].text));
		got = drive_parse(a, crosses(&d, "GET /info", 500, span_of(drive_text(a, &doc))));
		CHECK_STR(rows[i].text, rows[i].want, jv_str(&got, "message", "(none)"));
		drive_end(&d);
		drive_start(&d, be, &world);
		d.call.hides = HIDE_ENV;
		got = drive_parse(a, crosses(&d, "GET /info", 500, span_of(drive_text(a, &doc))));
		CHECK_STR(rows[i].text, rows[i].text, jv_str(&got, "message", "(none)"));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* What does not have the shape that engines give it. */
static void hides_what_has_another_shape(void **state)
{
	static const struct {
		const char *body, *want;
	} rows[] = {
		{"{\"Mounts\":null,\"LogPath\":\"\"}", "{\"Mounts\":null,\"LogPath\":\"\"}\n"},
		{"{\"Mounts\":\"x\"}", "{\"Mounts\":\"[redacted]\"}\n"},
		{"{\"Mounts\":{\"Source\":\"x\"}}", "{\"Mounts\":\"[redacted]\"}\n"},
		{"{\"Mounts\":[\"x\",{}]}", "{\"Mounts\":[\"[redacted]\",{}]}\n"},
		{"{\"LogPath\":{\"a\":1}}", "{\"LogPath\":\"[redacted]\"}\n"},
		{"{\"HostConfig\":{\"Binds\":null,\"Mounts\":[]}}",
		 "{\"HostConfig\":{\"Binds\":null,\"Mounts\":[]}}\n"},
		{"{\"HostConfig\":{\"Binds\":[\"/a\",\"v:/b\",\"\"]}}",
		 "{\"HostConfig\":{\"Binds\":[\"[redacted]\",\"v:/b\",\"\"]}}\n"},
		{"{\"GraphDriver\":{\"Data\":null,\"Name\":\"vfs\"}}",
		 "{\"GraphDriver\":{\"Data\":null,\"Name\":\"vfs\"}}\n"},
		{"{\"GraphDriver\":{\"Data\":{\"a\":5,\"b\":null}}}",
		 "{\"GraphDriver\":{\"Data\":{\"a\":\"[redacted]\",\"b\":null}}}\n"},
		{"\"x\"", "\"[redacted]\"\n"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct drive d;

		drive_start(&d, be, &world);
		d.call.hides = HIDE_MOUNTS;
		CHECK_STR(rows[i].body, rows[i].want,
			  crosses(&d, "GET /containers/run/json", 200, span_of(rows[i].body)));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

static void hides_paths_in_events(void **state)
{
	static const char row[] =
		"{\"status\":\"start\",\"Type\":\"container\",\"Actor\":{\"ID\":\"77\","
		"\"Attributes\":{\"name\":\"web\",\"rule\":\"/in/api\","
		"\"com.docker.compose.project.working_dir\":\"" HOST "\"}},"
		"\"timeNano\":1795960772000000001}";
	static const char hidden[] =
		"{\"status\":\"start\",\"Type\":\"container\",\"Actor\":{\"ID\":\"77\","
		"\"Attributes\":{\"name\":\"web\",\"rule\":\"/in/api\","
		"\"com.docker.compose.project.working_dir\":\"[redacted]\"}},"
		"\"timeNano\":1795960772000000001}";
	static const char daemon_row[] = "{\"Type\":\"daemon\",\"Actor\":{\"ID\":\"d\"}}";
	static const struct {
		const char *sees, *row, *want;
		unsigned hides;
		enum reply_kind reply;
	} rows[] = {
		{"\"all\"", row, row, 0, REPLY_STREAM},
		{"\"all\"", row, row, HIDE_ENV, REPLY_STREAM},
		{"\"all\"", row, hidden, HIDE_MOUNTS, REPLY_ROWS},
		{"[{\"name\":\"web\"}]", row, hidden, HIDE_MOUNTS, REPLY_ROWS},
		{"[{\"name\":\"web\"}]", row, row, HIDE_ENV, REPLY_ROWS},
		{"[{\"name\":\"db\"}]", row, NULL, HIDE_MOUNTS, REPLY_ROWS},
		{"\"all\"", daemon_row, daemon_row, HIDE_MOUNTS, REPLY_ROWS},
		{"\"all\"", "{", NULL, HIDE_MOUNTS, REPLY_ROWS},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct span shown = {"", 0};
		struct drive d;
		bool yes;

		drive_start(&d, be, &world);
		drive_see(&d, rows[i].sees);
		d.call.hides = rows[i].hides;
		CHECK_INT(rows[i].sees, STEP_READY, drive_request(&d, "GET /events"));
		CHECK_INT(rows[i].sees, rows[i].reply, d.call.reply);
		yes = be->ops->row(be, &d.call, span_of(rows[i].row), a, &shown);
		CHECK_STR(rows[i].sees, rows[i].want ? rows[i].want : "(not shown)",
			  yes ? arena_strndup(a, shown.at, shown.len) : "(not shown)");
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hides_every_host_path),
		cmocka_unit_test(hides_only_what_is_said),
		cmocka_unit_test(hides_paths_of_the_engine),
		cmocka_unit_test(hides_paths_in_sentences),
		cmocka_unit_test(hides_what_has_another_shape),
		cmocka_unit_test(hides_paths_in_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
