/* What the kernel shows of a started container beside what was judged: each difference is found. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

/* The container "full" of data/world.json: all capabilities dropped, a bind and a volume. */
#define FULL_ID "787a0701953e5ff869860b6a5875befc1875e159858768fb0d2c9423b642fac0"
#define START   "POST /v1.41/containers/full/start\n"

#define ROOT                                                                                       \
	"{\"id\":1,\"parent\":0,\"point\":\"/"                                                     \
	"\",\"type\":\"overlay\",\"host\":true,\"dev\":\"0:41\",\"ino\":5}"
#define PROC                                                                                       \
	"{\"id\":2,\"parent\":1,\"point\":\"/"                                                     \
	"proc\",\"type\":\"proc\",\"host\":false,\"dev\":\"0:42\",\"ino\":1}"
#define BIND                                                                                       \
	"{\"id\":3,\"parent\":1,\"point\":\"/w\",\"root\":\"/srv/"                                 \
	"ws\",\"type\":\"ext4\",\"ro\":true,\"host\":true,\"dev\":\"8:1\",\"ino\":77}"
#define VOLUME                                                                                     \
	"{\"id\":4,\"parent\":1,\"point\":\"/v\",\"root\":\"/"                                     \
	"v1\",\"type\":\"ext4\",\"ro\":false,\"host\":true,\"dev\":\"8:1\",\"ino\":88}"
#define HOSTS                                                                                      \
	"{\"id\":5,\"parent\":1,\"point\":\"/etc/hosts\",\"root\":\"/x/"                           \
	"hosts\",\"type\":\"ext4\",\"host\":true,\"dev\":\"8:1\",\"ino\":99}"
#define INIT                                                                                       \
	"{\"id\":6,\"parent\":1,\"point\":\"/sbin/docker-init\",\"root\":\"/usr/bin/"              \
	"docker-init\",\"type\":\"ext4\",\"ro\":true,\"host\":true,\"dev\":\"8:1\",\"ino\":98}"
#define EVIL(point)                                                                                \
	"{\"id\":9,\"parent\":1,\"point\":\"" point "\",\"root\":\"/"                              \
	"etc\",\"type\":\"ext4\",\"ro\":true,\"host\":true,\"dev\":\"8:1\",\"ino\":666}"
#define MOUNTS ROOT "," PROC "," VOLUME "," HOSTS "," INIT

#define NAMESPACES                                                                                 \
	"{\"user\":{\"ino\":1,\"host\":true},\"mnt\":{\"ino\":2,\"host\":false},"                  \
	"\"pid\":{\"ino\":3,\"host\":false},\"net\":{\"ino\":4,\"host\":false},"                   \
	"\"ipc\":{\"ino\":5,\"host\":false},\"uts\":{\"ino\":6,\"host\":false},"                   \
	"\"cgroup\":{\"ino\":7,\"host\":true}}"

static const char process[] =
	"{\"state\":\"seen\",\"pid\":4242,\"start\":5,\"uid\":1000,\"gid\":1000,\"depth\":2,"
	"\"seccomp\":2,\"filters\":1,\"no_new_privs\":true,"
	"\"caps\":{\"inh\":\"0\",\"prm\":\"0\",\"eff\":\"0\",\"bnd\":\"0\",\"amb\":\"0\"},"
	"\"namespaces\":" NAMESPACES ","
	"\"cgroup\":{\"path\":\"/docker/x\",\"memory\":536870912,\"pids\":100,"
	"\"cpu_quota\":150000,\"cpu_period\":100000},"
	"\"exe\":{\"path\":\"/bin/sleep\",\"dev\":\"0:41\",\"ino\":9,\"deleted\":false},"
	"\"belongs\":\"cgroup\",\"mounts_of\":\"process\",\"mounts\":[" MOUNTS "," BIND "],"
	"\"mounts_cut\":false,\"files\":["
	"{\"path\":\"/var/lib/docker/volumes/v1/_data\",\"dev\":\"8:1\",\"ino\":88},"
	"{\"path\":\"/var/lib/docker/containers/f/hosts\",\"dev\":\"8:1\",\"ino\":99}],"
	"\"unknown\":[]}";

static const char sandbox[] =
	"{\"state\":\"seen\",\"pid\":4242,\"start\":5,\"uid\":65534,\"gid\":65534,\"depth\":1,"
	"\"seccomp\":2,\"filters\":1,\"no_new_privs\":true,"
	"\"caps\":{\"inh\":\"240000\",\"prm\":\"240000\",\"eff\":\"240000\",\"bnd\":"
	"\"1ffffffffff\","
	"\"amb\":\"240000\"},"
	"\"namespaces\":{\"user\":{\"ino\":1,\"host\":false},\"mnt\":{\"ino\":2,\"host\":false},"
	"\"pid\":{\"ino\":3,\"host\":true},\"net\":{\"ino\":4,\"host\":false},"
	"\"ipc\":{\"ino\":5,\"host\":false},\"uts\":{\"ino\":6,\"host\":false}},"
	"\"cgroup\":{\"path\":\"/\",\"memory\":-1},"
	"\"exe\":{\"path\":\"/usr/bin/runsc\",\"dev\":\"8:1\",\"ino\":9,\"deleted\":false},"
	"\"runtime\":{\"same\":true,\"dev\":\"8:1\",\"ino\":9},\"belongs\":\"arguments\","
	"\"args\":[\"runsc-sandbox\",\"--root=/r\",\"--log-fd=3\",\"--network=none\","
	"\"--ignore-cgroups=true\",\"boot\"],"
	"\"mounts_of\":\"gofer\",\"mounts\":[" MOUNTS "," BIND "],"
	"\"mounts_cut\":false,\"files\":["
	"{\"path\":\"/var/lib/docker/volumes/v1/_data\",\"dev\":\"8:1\",\"ino\":88},"
	"{\"path\":\"/var/lib/docker/containers/f/hosts\",\"dev\":\"8:1\",\"ino\":99}],"
	"\"unknown\":[]}";

static struct backend *be;
static struct arena *arena;

/* Sets the value at a path; "" for what removes it. */
static void set_at(struct jv *doc, const char *path, const char *json)
{
	const char *dot = strrchr(path, '.');
	char parent[200];
	struct jv *at = doc;

	if (dot) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(dot - path), path);
		at = (struct jv *)drive_at(doc, parent);
	}
	if (!at)
		fail_msg("there is no %s", path);
	jv_set(arena, at, dot ? dot + 1 : path, *json ? drive_parse(arena, json) : jv_null());
}

/* The world with the container running under a runtime, and what the resolver would say. */
static struct jv world_with(const char *runtime, const char *answer)
{
	struct jv world = drive_json(arena, "world.json"), processes = jv_object();

	set_at(&world, "containers.full.HostConfig.Runtime", runtime);
	set_at(&world, "containers.full.State",
	       "{\"Status\":\"running\",\"Running\":true,\"Pid\":4242}");
	set_at(&world, "containers.full.HostsPath", "\"/var/lib/docker/containers/f/hosts\"");
	set_at(&world, "containers.full.Mounts",
	       "[{\"Type\":\"bind\",\"Source\":\"/srv/ws\",\"Destination\":\"/w\"},"
	       "{\"Type\":\"volume\",\"Name\":\"v1\",\"Destination\":\"/v\","
	       "\"Source\":\"/var/lib/docker/volumes/v1/_data\"}]");
	jv_set(arena, (struct jv *)jv_path(&world, "files"), "/srv/ws",
	       drive_parse(arena, "{\"kind\":\"directory\",\"real\":\"/srv/ws\",\"links\":0,"
				  "\"movable\":false,\"dev\":\"8:1\",\"ino\":77,\"chain\":[]}"));
	jv_set(arena, &processes, FULL_ID, drive_parse(arena, answer));
	jv_set(arena, &world, "processes", processes);
	return world;
}

static enum step started(struct drive *d, const struct jv *world)
{
	bool wants = d->wants_attested, far = d->far;
	enum step step;
	int rounds = 0;

	drive_start(d, be, world);
	d->wants_attested = wants;
	d->far = far;
	step = drive_request(d, START);
	if (step != STEP_READY)
		fail_msg("the start was not even judged: %s",
			 d->call.refused.count ? reason_name(d->call.refused.list[0].reason) : "");
	while ((step = be->ops->check(be, &d->call, span_of(""))) == STEP_LOOKUP) {
		if (++rounds > CHECK_STEPS_MAX)
			fail_msg("it asks without end");
		drive_answer(d);
	}
	return step;
}

static const char *first_of(const struct drive *d, const char *list)
{
	const struct jv *found = jv_get(&d->call.attestation, list);

	return found && found->count ? found->items[0].str.at : "";
}

struct row {
	const char *path, *value; /* of the answer, or of the world behind "@" */
	const char *differs;      /* field; "" if nothing does */
	const char *unknown;      /* what could not be seen; "" if all was */
};

static void try_rows(const char *runtime, const char *answer, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct jv world = world_with(runtime, answer);
		struct jv *seen = (struct jv *)jv_get(jv_get(&world, "processes"), FULL_ID);
		const char *path = rows[i].path;
		struct drive d = {0};
		enum step step;

		if (*path == '@')
			set_at(&world, path + 1, rows[i].value);
		else if (*path)
			set_at(seen, path, rows[i].value);
		step = started(&d, &world);
		CHECK_STR(path, rows[i].differs, first_of(&d, "differs"));
		CHECK_STR(path, rows[i].unknown, first_of(&d, "unknown"));
		CHECK_INT(path, *rows[i].differs ? STEP_REFUSED : STEP_READY, step);
		if (*rows[i].differs)
			CHECK_STR(path, "attestation_failed",
				  reason_name(d.call.refused.list[0].reason));
		drive_end(&d);
		/* Where the profile asks to have seen all, what was not seen is as bad. */
		d = (struct drive){.wants_attested = true};
		step = started(&d, &world);
		CHECK_INT(path, *rows[i].differs || *rows[i].unknown ? STEP_REFUSED : STEP_READY,
			  step);
		drive_end(&d);
	}
}

static void ordinary_containers(void **state)
{
	static const struct row rows[] = {
		{"", "", "", ""},
		{"caps.bnd", "\"200000\"", "HostConfig.CapAdd", ""},
		{"caps.eff", "\"1\"", "HostConfig.CapAdd", ""},
		{"caps.amb", "\"8000000000000000\"", "HostConfig.CapAdd", ""},
		{"caps", "", "", "capabilities"},
		{"seccomp", "0", "HostConfig.SecurityOpt", ""},
		{"seccomp", "1", "HostConfig.SecurityOpt", ""},
		{"seccomp", "", "", "seccomp"},
		{"no_new_privs", "false", "HostConfig.SecurityOpt", ""},
		{"no_new_privs", "", "", "no_new_privs"},
		{"namespaces.pid.host", "true", "namespaces.pid", ""},
		{"namespaces.net.host", "true", "namespaces.net", ""},
		{"namespaces.mnt.host", "true", "namespaces.mnt", ""},
		{"namespaces.ipc.host", "true", "namespaces.ipc", ""},
		{"namespaces.uts.host", "true", "namespaces.uts", ""},
		{"namespaces.ipc", "", "", "namespaces.ipc"},
		{"cgroup.memory", "-1", "HostConfig.Memory", ""},
		{"cgroup.memory", "536870913", "HostConfig.Memory", ""},
		{"cgroup.memory", "1000", "", ""},
		{"cgroup.memory", "", "", "limits.memory"},
		{"cgroup.pids", "101", "HostConfig.PidsLimit", ""},
		{"cgroup.cpu_quota", "-1", "HostConfig.NanoCpus", ""},
		{"cgroup.cpu_quota", "300000", "HostConfig.NanoCpus", ""},
		{"cgroup.cpu_period", "0", "", "limits.nano_cpus"},
		{"belongs", "\"\"", "", "whether the process is the container's"},
		{"mounts_cut", "true", "", "mounts"},
		{"mounts", "", "", "HostConfig.Binds[0]"},
	};

	(void)state;
	try_rows("\"runc\"", process, rows, sizeof(rows) / sizeof(*rows));
}

/* A filter that is not there yet is waited for, and then not held against a runtime that still
 * runs. */
static void a_runtime_that_has_not_handed_over(void **state)
{
	struct jv world = world_with("\"runc\"", process);
	struct jv *seen = (struct jv *)jv_get(jv_get(&world, "processes"), FULL_ID);
	struct drive d = {0};

	(void)state;
	set_at(seen, "seccomp", "0");
	set_at(seen, "exe.dev", "\"8:1\"");
	CHECK_INT("not held against it", STEP_READY, started(&d, &world));
	CHECK_STR("but listed", "seccomp", first_of(&d, "unknown"));
	drive_end(&d);
}

static void sandboxes(void **state)
{
	static const struct row rows[] = {
		{"", "", "", ""},
		{"runtime.same", "false", "HostConfig.Runtime", ""},
		{"runtime", "", "", "runtime"},
		{"exe.deleted", "true", "", "runtime"},
		{"args", "[\"runsc-sandbox\",\"--network=none\",\"do\"]", "HostConfig.Runtime", ""},
		{"args", "[\"runsc-sandbox\",\"boot\"]", "", "limits.memory"},
		{"args", "", "HostConfig.Runtime", ""},
		{"args", "[\"x\",\"--network=host\",\"--ignore-cgroups\",\"boot\"]",
		 "HostConfig.Runtime", ""},
		{"args", "[\"x\",\"--host-uds=open\",\"--ignore-cgroups\",\"boot\"]",
		 "HostConfig.Runtime", ""},
		{"args", "[\"x\",\"--TESTONLY-unsafe-nonroot=true\",\"--ignore-cgroups\",\"boot\"]",
		 "HostConfig.Runtime", ""},
		{"args", "[\"x\",\"--of-tomorrow\",\"--ignore-cgroups\",\"boot\"]", "",
		 "flag --of-tomorrow"},
		{"seccomp", "0", "HostConfig.SecurityOpt", ""},
		{"namespaces.net.host", "true", "namespaces.net", ""},
		{"caps.eff", "\"1ffffffffff\"", "", ""}, /* of the sandbox, not of the workload */
		{"mounts", "", "", "HostConfig.Binds[0]"},
	};

	(void)state;
	try_rows("\"runsc\"", sandbox, rows, sizeof(rows) / sizeof(*rows));
}

static void mounts_of_both(void **state)
{
	static const struct row rows[] = {
		/* somewhere else, where the image has a link, but the very thing */
		{"mounts",
		 "[" MOUNTS
		 ",{\"id\":3,\"parent\":1,\"point\":\"/x/w\",\"root\":\"/srv/ws\",\"type\":"
		 "\"ext4\",\"ro\":true,\"host\":true,\"dev\":\"8:1\",\"ino\":77}]",
		 "", ""},
		{"mounts", "[" MOUNTS "," EVIL("/w") "]", "HostConfig.Binds[0]", ""},
		{"mounts", "[" MOUNTS "]", "HostConfig.Binds[0]", ""},
		/* the right thing is there, and another besides */
		{"mounts", "[" MOUNTS "," BIND "," EVIL("/x") "]", "mount /x", ""},
		{"mounts", "[" MOUNTS "," BIND "," EVIL("/sys/x") "]", "mount /sys/x", ""},
		{"mounts", "[" MOUNTS "," BIND "," EVIL("/etc/hosts") "]", "mount /etc/hosts", ""},
		/* what hangs below a source comes along with it */
		{"mounts",
		 "[" MOUNTS "," BIND
		 ",{\"id\":9,\"parent\":3,\"point\":\"/w/sub\",\"root\":\"/\",\"type\":\"xfs\","
		 "\"host\":true,\"dev\":\"8:9\",\"ino\":1}]",
		 "", ""},
		/* memory of its own is no piece of the host; memory of the host is */
		{"mounts",
		 "[" MOUNTS "," BIND
		 ",{\"id\":9,\"parent\":1,\"point\":\"/t\",\"root\":\"/\",\"type\":\"tmpfs\","
		 "\"host\":false,\"dev\":\"0:9\",\"ino\":1}]",
		 "", ""},
		{"mounts",
		 "[" MOUNTS "," BIND
		 ",{\"id\":9,\"parent\":1,\"point\":\"/t\",\"root\":\"/\",\"type\":\"tmpfs\","
		 "\"host\":true,\"dev\":\"0:9\",\"ino\":1}]",
		 "mount /t", ""},
		/* a mount that cannot be opened says nothing, as long as nobody could exchange it
		 */
		{"mounts",
		 "[" MOUNTS
		 ",{\"id\":3,\"parent\":1,\"point\":\"/w\",\"root\":\"/srv/ws\",\"type\":"
		 "\"tmpfs\",\"ro\":true,\"host\":false}]",
		 "", "HostConfig.Binds[0]"},
		{"@files./srv/ws.ino", "78", "HostConfig.Binds[0]", ""},
		{"@files./srv/ws.dev", "\"8:2\"", "HostConfig.Binds[0]", ""},
	};

	(void)state;
	try_rows("\"runc\"", process, rows, sizeof(rows) / sizeof(*rows));
	try_rows("\"runsc\"", sandbox, rows, sizeof(rows) / sizeof(*rows));
}

/* One that is written to, where it was to be read, is seen for ordinary containers alone. */
static void a_mount_that_can_be_written(void **state)
{
	static const char mounts[] =
		"[" MOUNTS ",{\"id\":3,\"parent\":1,\"point\":\"/w\",\"root\":\"/srv/ws\","
		"\"type\":\"ext4\",\"ro\":false,\"host\":true,\"dev\":\"8:1\","
		"\"ino\":77}]";
	static const struct row rows[] = {{"mounts", mounts, "HostConfig.Binds[0]", ""}},
				gofer[] = {{"mounts", mounts, "", ""}};

	(void)state;
	try_rows("\"runc\"", process, rows, 1);
	try_rows("\"runsc\"", sandbox, gofer, 1);
}

/* Where others could put something else in the place, not to have seen it is too little. */
static void movable_sources_must_be_seen(void **state)
{
	struct jv world = world_with("\"runsc\"", sandbox);
	struct jv *seen = (struct jv *)jv_get(jv_get(&world, "processes"), FULL_ID);
	struct jv *source = (struct jv *)jv_get(jv_get(&world, "files"), "/srv/ws");
	struct drive d = {0};

	(void)state;
	set_at(source, "movable", "true");
	CHECK_INT("seen", STEP_READY, started(&d, &world));
	drive_end(&d);
	set_at(seen, "mounts", "");
	CHECK_INT("not seen", STEP_REFUSED, started(&d, &world));
	drive_end(&d);
	set_at(seen, "state", "\"unknown\"");
	CHECK_INT("nothing seen at all", STEP_REFUSED, started(&d, &world));
	drive_end(&d);
	set_at(seen, "state", "\"gone\"");
	CHECK_INT("gone each time", STEP_REFUSED, started(&d, &world));
	drive_end(&d);
}

static void what_has_ended_is_no_error(void **state)
{
	struct jv world = world_with("\"runsc\"", sandbox);
	struct drive d = {.wants_attested = true};

	(void)state;
	set_at(&world, "containers.full.State.Pid", "0");
	CHECK_INT("ended", STEP_READY, started(&d, &world));
	CHECK_STR("state", "ended", jv_str(&d.call.attestation, "state", ""));
	drive_end(&d);
}

/* The kernel knows of an end before the engine does: who asks at once hears the same again. */
static void an_end_that_the_engine_does_not_know_yet_is_waited_for(void **state)
{
	struct jv world = world_with("\"runc\"", process);
	struct drive d = {.wants_attested = true};
	size_t later = 0;
	enum step step;

	(void)state;
	set_at((struct jv *)jv_get(jv_get(&world, "processes"), FULL_ID), "state", "\"gone\"");
	drive_start(&d, be, &world);
	d.wants_attested = true;
	CHECK_INT("judged", STEP_READY, drive_request(&d, START));
	while ((step = be->ops->check(be, &d.call, span_of(""))) == STEP_LOOKUP) {
		later += d.call.lookups[0].later;
		if (later == 5)
			set_at(&world, "containers.full.State.Pid", "0");
		drive_answer(&d);
	}
	CHECK_INT("ended", STEP_READY, step);
	CHECK_STR("state", "ended", jv_str(&d.call.attestation, "state", ""));
	CHECK_INT("asked with pauses", 5, later);
	drive_end(&d);
}

/* A sandbox's gofer, in which its mounts are seen, goes before the sandbox does. */
static void what_ends_bit_by_bit_has_ended(void **state)
{
	struct jv world = world_with("\"runsc\"", sandbox);
	struct jv *seen = (struct jv *)jv_get(jv_get(&world, "processes"), FULL_ID);
	struct drive d = {.wants_attested = true};
	size_t looks = 0;
	enum step step;

	(void)state;
	set_at(seen, "mounts", "");
	drive_start(&d, be, &world);
	d.wants_attested = true;
	CHECK_INT("judged", STEP_READY, drive_request(&d, START));
	while ((step = be->ops->check(be, &d.call, span_of(""))) == STEP_LOOKUP) {
		if (d.call.lookups[0].kind == LOOKUP_PROCESS && ++looks == 4)
			set_at(seen, "state", "\"gone\"");
		if (looks == 4)
			set_at(&world, "containers.full.State.Pid", "0");
		drive_answer(&d);
	}
	CHECK_INT("ended", STEP_READY, step);
	CHECK_INT("nothing is held against it", 0, d.call.refused.count);
	CHECK_STR("state", "ended", jv_str(&d.call.attestation, "state", ""));
	drive_end(&d);
}

/* How often it is looked at, before that what was not seen counts as such. */
static size_t looks_at(const char *path, const char *json)
{
	struct jv world = world_with("\"runsc\"", sandbox);
	struct jv *seen = (struct jv *)jv_get(jv_get(&world, "processes"), FULL_ID);
	struct drive d = {.wants_attested = true};
	size_t looks = 0;
	enum step step;

	set_at(seen, path, json);
	drive_start(&d, be, &world);
	d.wants_attested = true;
	CHECK_INT(path, STEP_READY, drive_request(&d, START));
	while ((step = be->ops->check(be, &d.call, span_of(""))) == STEP_LOOKUP) {
		looks += d.call.lookups[0].kind == LOOKUP_PROCESS;
		drive_answer(&d);
	}
	CHECK_INT(path, STEP_REFUSED, step);
	drive_end(&d);
	return looks;
}

/* A start is not held up for what time does not change. */
static void what_can_never_be_seen_is_looked_at_once(void **state)
{
	(void)state;
	CHECK_INT("an unknown flag", 1,
		  looks_at("args", "[\"x\",\"--of-tomorrow\",\"--ignore-cgroups\",\"boot\"]"));
	CHECK_INT("too many mounts", 1, looks_at("mounts_cut", "true"));
	CHECK_INT("what may be ending", true, looks_at("mounts", "") > 5);
}

static void far_engines_are_not_attested(void **state)
{
	struct jv world = world_with("\"runsc\"", sandbox);
	struct drive d = {.far = true};

	(void)state;
	CHECK_INT("passes", STEP_READY, started(&d, &world));
	CHECK_STR("by", "nobody", jv_str(&d.call.attestation, "by", ""));
	CHECK_STR("level", "unknown", jv_str(&d.call.attestation, "level", ""));
	drive_end(&d);
}

/* The question names what the engine named, and nothing that the caller wrote. */
static void the_question_is_the_engines(void **state)
{
	struct jv world = world_with("\"runsc\"", sandbox);
	struct drive d = {0};
	struct outgoing out;
	struct err err = {0};

	(void)state;
	started(&d, &world);
	CHECK_STR("attested", "kernel", jv_str(&d.call.attestation, "level", ""));
	CHECK_STR("question",
		  "pid 4242\nid " FULL_ID "\nruntime /usr/bin/runsc\n"
		  "file /var/lib/docker/containers/f/hosts\n"
		  "file /var/lib/docker/volumes/v1/_data\n",
		  d.call.lookups[0].kind == LOOKUP_PROCESS ? d.call.lookups[0].target : "none");
	buf_init(&out.head, 4096);
	buf_init(&out.body, 4096);
	CHECK_INT("undo", 0, be->ops->undo(be, &d.call, &out, &err));
	CHECK_INT("by a kill", 1,
		  span_starts(buf_span(&out.head), "POST /v1.41/containers/" FULL_ID "/kill "));
	buf_fini(&out.head);
	buf_fini(&out.body);
	drive_end(&d);
}

static int set_up(void **state)
{
	const struct backend_conf conf = {.name = "t"};
	struct err err = {0};

	(void)state;
	jv_init();
	be = backend_find("docker")->open(&conf, &err);
	arena = arena_create(256u << 20);
	return be && arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	arena_destroy(arena);
	be->ops->close(be);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_containers),
		cmocka_unit_test(a_runtime_that_has_not_handed_over),
		cmocka_unit_test(sandboxes),
		cmocka_unit_test(mounts_of_both),
		cmocka_unit_test(a_mount_that_can_be_written),
		cmocka_unit_test(movable_sources_must_be_seen),
		cmocka_unit_test(what_has_ended_is_no_error),
		cmocka_unit_test(an_end_that_the_engine_does_not_know_yet_is_waited_for),
		cmocka_unit_test(what_ends_bit_by_bit_has_ended),
		cmocka_unit_test(what_can_never_be_seen_is_looked_at_once),
		cmocka_unit_test(far_engines_are_not_attested),
		cmocka_unit_test(the_question_is_the_engines),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
