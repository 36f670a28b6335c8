/*
 * test_reach.c - who else reaches an engine: mounts, access control lists, what an engine
 * is told to listen on, as strict readers of text that others write.
 */
#include "gate/doctor.h"
#include "gate/reach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/unit/check.h"

static void mounts_of_the_file_itself(void **state)
{
	static const char text[] = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
				   "40 21 0:5 /docker.sock /run/docker.sock rw - tmpfs tmpfs rw\n"
				   "41 21 0:5 / /run/sp\\040ace/e.sock rw - tmpfs tmpfs rw\n"
				   "42 21 0:5 /e.sock /run/folder rw - tmpfs tmpfs rw\n";
	static const struct {
		const char *path;
		int want;
	} cases[] = {
		{"/run/docker.sock", 1}, {"/run/sp ace/e.sock", 1},
		{"/run/folder", 1},      {"/run/folder/e.sock", 0},
		{"/run/docker.soc", 0},  {"/run/docker.sock2", 0},
		{"/docker.sock", 0},     {"", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_INT(cases[i].path, cases[i].want,
			  reach_is_mount_point(span_of(text), cases[i].path));
	CHECK_INT("cut short", 0, reach_is_mount_point(span_of("40 21 0:5"), "/run/x"));
}

#define ACL(entries)        "\2\0\0\0" entries
#define ENTRY(tag, may, id) tag "\0" may "\0" id "\0\0\0"

static void lists_of_access(void **state)
{
	static const char named[] = ACL(ENTRY("\1", "\6", "\377") ENTRY("\2", "\6", "\7") ENTRY(
		"\2", "\4", "\11") ENTRY("\10", "\7", "\5") ENTRY("\20", "\6", "\377"));
	static const char masked[] = ACL(ENTRY("\2", "\6", "\7") ENTRY("\20", "\4", "\377"));
	static const struct {
		const char *label;
		struct span text;
		int rc, count;
	} cases[] = {
		{"named user and group", {named, sizeof(named) - 1}, 0, 2},
		{"a mask that takes it", {masked, sizeof(masked) - 1}, 0, 0},
		{"half an entry", {named, sizeof(named) - 3}, -1, 0},
		{"another version", {"\3\0\0\0", 4}, -1, 0},
		{"nothing", {"", 0}, -1, 0},
	};
	struct reach_acl list[2];
	size_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CHECK_INT(cases[i].label, cases[i].rc,
			  reach_acl_read(cases[i].text, list, 2, &count));
		CHECK_INT(cases[i].label, cases[i].count, (int)count);
	}
	CHECK_INT("two are named", 0, reach_acl_read(cases[0].text, list, 2, &count));
	CHECK_INT("the user", 7, (int)list[0].id);
	CHECK_INT("the group", 5, (int)list[1].id);
	CHECK_INT("the group is one", 1, list[1].group);
	CHECK_INT("no room", -1, reach_acl_read(cases[0].text, list, 1, &count));
}

/* So many that the list is longer than a page: who they are does not matter, that they may does. */
static void a_long_list_is_told_of(void **state)
{
	enum { USERS = 1000 };
	struct {
		uint32_t version;
		struct {
			uint16_t tag, may;
			uint32_t id;
		} list[USERS + 4];
	} acl = {.version = 2};
	char path[] = "/dev/shm/sallyport-test-XXXXXX";
	struct findings f = {.arena = arena_create(1 << 20)};
	int fd = mkstemp(path), rc;
	size_t n = 0;

	(void)state;
	CHECK_INT("file", 1, fd >= 0);
	acl.list[n].tag = 1;
	acl.list[n++].may = 6;
	for (uint32_t i = 0; i < USERS; i++, n++) {
		acl.list[n].tag = 2;
		acl.list[n].may = 6;
		acl.list[n].id = 70000 + i;
	}
	acl.list[n++].tag = 4;
	acl.list[n].tag = 16;
	acl.list[n++].may = 6;
	acl.list[n++].tag = 32;
	for (size_t i = 0; i < n; i++)
		if (acl.list[i].tag != 2)
			acl.list[i].id = UINT32_MAX;
	rc = fsetxattr(fd, "system.posix_acl_access", &acl, 4 + n * sizeof(*acl.list), 0);
	doctor_acl(&f, path);
	close(fd);
	unlink(path);
	arena_destroy(f.arena);
	if (rc < 0 && errno == ENOTSUP)
		skip(); /* a file system without */
	CHECK_INT("list", 0, rc);
	CHECK_INT("it is told of", 1, f.count > 0 && f.list[0].level == FINDING_WEAK);
}

static void what_an_engine_listens_on(void **state)
{
	static const char line[] = "dockerd\0-H\0tcp://0.0.0.0:2375\0--host=unix:///a\0-H=fd://\0"
				   "--data-root\0/x\0--host\0tcp://h:1\0-H";
	static const struct {
		const char *label;
		bool service;
		const char *texts[3], *want;
	} parts[] = {
		{"added", false, {"ListenStream=/a", " ListenStream = 1 "}, "/a\n1\n"},
		{"taken back",
		 false,
		 {"ListenStream=/a\nListenStream=2", "ListenStream=\nListenStream=3"},
		 "3\n"},
		{"no remark", false, {"; ListenStream=/a\n#ListenStream=2\\\nListenStream=3"}, ""},
		{"another key", false, {"ListenStreams=1\nXListenStream=2"}, ""},
		{"arguments",
		 true,
		 {"ExecStart=/usr/bin/dockerd -H fd:// --host=tcp://h:1"},
		 "fd://\ntcp://h:1\n"},
		{"over lines",
		 true,
		 {"ExecStart=/usr/bin/dockerd \\\n\t-H \\\n  tcp://h:2\nUser=x"},
		 "tcp://h:2\n"},
		{"in quotes", true, {"ExecStart=\"/my dockerd\" -H 'tcp://h:3'"}, "tcp://h:3\n"},
		{"replaced",
		 true,
		 {"ExecStart=/d -H tcp://h:4", "ExecStart=\nExecStart=/d -H tcp://h:5"},
		 "tcp://h:5\n"},
		{"another's", true, {"ExecStartPre=/d -H tcp://h:6"}, ""},
		{"nothing", true, {""}, ""},
	};
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	reach_hosts((struct span){line, sizeof(line)}, &out);
	buf_put(&out, "", 1);
	CHECK_STR("arguments", "tcp://0.0.0.0:2375\nunix:///a\nfd://\ntcp://h:1\n",
		  buf_span(&out).at);
	buf_clear(&out);
	reach_listen_streams(span_of("[Socket]\nListenStream=/run/"
				     "docker.sock\n#ListenStream=1\nListenStream=2375"),
			     &out);
	buf_put(&out, "", 1);
	CHECK_STR("unit", "/run/docker.sock\n2375\n", buf_span(&out).at);
	buf_clear(&out);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		for (const char *const *text = parts[i].texts; *text; text++)
			(parts[i].service ? reach_exec_hosts : reach_listen_streams)(span_of(*text),
										     &out);
		buf_put(&out, "", 1);
		CHECK_STR(parts[i].label, parts[i].want, buf_span(&out).at);
		buf_clear(&out);
	}
	buf_fini(&out);
}

static void mounts_that_show_it(void **state)
{
	static const struct {
		const char *source, *path;
		int want;
	} cases[] = {
		{"/run/docker.sock", "/run/docker.sock", 1},
		{"/run", "/run/docker.sock", 1},
		{"/run/", "/run/docker.sock", 1},
		{"/", "/run/docker.sock", 1},
		{"/run/docker", "/run/docker.sock", 0},
		{"/run/docker.sock/x", "/run/docker.sock", 0},
		{"/var", "/run/docker.sock", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_INT(cases[i].source, cases[i].want,
			  reach_shows(cases[i].source, cases[i].path));
}

static void put(const char *root, const char *path, const char *text, size_t len)
{
	char whole[300], *slash;
	FILE *out;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (slash = whole + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
	out = fopen(whole, "we");
	CHECK_INT(path, 1, out != NULL);
	fwrite(text, 1, len, out);
	fclose(out);
}

static bool says(const struct findings *f, const char *text)
{
	for (size_t i = 0; i < f->count; i++)
		if (strstr(f->list[i].what, text))
			return true;
	return false;
}

/* A root of its own: a process, a daemon.json, a unit of systemd. */
static void a_host_is_read(void **state)
{
	static const char arguments[] = "/usr/sbin/dockerd\0-H\0tcp://0.0.0.0:2375\0-H\0fd://";
	static const char other[] = "vim\0-H\0tcp://9.9.9.9:1";
	static const char json[] = "{\"hosts\":[\"unix:///x\",\"tcp://10.0.0.1:2376\"]}";
	static const char unit[] = "[Socket]\nListenStream=/run/docker.sock\nListenStream=4243\n";
	static const char service[] = "[Service]\nExecStart=/usr/bin/dockerd -H fd://\n";
	static const char old[] = "[Socket]\nListenStream=5555\n";
	static const char more[] = "[Socket]\nListenStream=\nListenStream=4244\n";
	static const char start[] =
		"[Service]\nExecStart=\nExecStart=/usr/bin/dockerd -H fd:// \\\n"
		"  -H tcp://0.0.0.0:2377\n";
	static const char mounts[] = "40 21 0:5 /e /run/e.sock rw - tmpfs tmpfs rw\n";
	static struct findings f;
	char root[] = "/tmp/test-reach-XXXXXX", command[100];

	(void)state;
	CHECK_INT("folder", 1, mkdtemp(root) != NULL);
	put(root, "/proc/77/comm", "dockerd\n", 8);
	put(root, "/proc/77/cmdline", arguments, sizeof(arguments));
	put(root, "/proc/78/comm", "vim\n", 4);
	put(root, "/proc/78/cmdline", other, sizeof(other));
	put(root, "/etc/docker/daemon.json", json, sizeof(json) - 1);
	put(root, "/etc/systemd/system/docker.socket", unit, sizeof(unit) - 1);
	put(root, "/proc/self/mountinfo", mounts, sizeof(mounts) - 1);
	f = (struct findings){.arena = arena_create(1 << 20), .root = root};
	doctor_reach(&f);
	CHECK_INT("all of them", 3, (int)f.count);
	CHECK_INT("arguments", 1,
		  says(&f, "listens on tcp://0.0.0.0:2375, too (arguments of process 77"));
	CHECK_INT("file", 1, says(&f, "tcp://10.0.0.1:2376, too (/etc/docker/daemon.json"));
	CHECK_INT("unit", 1, says(&f, "listens on 4243, too (/etc/systemd/system/docker.socket"));
	doctor_mounted_socket(&f, "/run/other.sock");
	CHECK_INT("no mount", 3, (int)f.count);
	doctor_mounted_socket(&f, "/run/e.sock");
	CHECK_INT("a mount", 1, says(&f, "/run/e.sock is a mount of the socket file itself"));
	/* Drop-ins: by name, of whatever folder; the first folder that has a name has it alone. */
	put(root, "/lib/systemd/system/docker.service", service, sizeof(service) - 1);
	put(root, "/run/systemd/system/docker.socket.d/10-old.conf", old, sizeof(old) - 1);
	put(root, "/etc/systemd/system/docker.socket.d/20-more.conf", more, sizeof(more) - 1);
	put(root, "/lib/systemd/system/docker.service.d/tcp.conf", start, sizeof(start) - 1);
	put(root, "/lib/systemd/system/docker.service.d/not.txt", old, sizeof(old) - 1);
	f.count = 0;
	doctor_reach(&f);
	CHECK_INT("all of them", 4, (int)f.count);
	CHECK_INT("a drop-in", 1,
		  says(&f, "listens on 4244, too (/etc/systemd/system/docker.socket with its "
			   "drop-ins, the last is 20-more.conf"));
	CHECK_INT("of the service", 1,
		  says(&f, "listens on tcp://0.0.0.0:2377, too (/lib/systemd/system/docker.service "
			   "with its drop-ins, the last is tcp.conf"));
	put(root, "/etc/systemd/system/docker.service.d/tcp.conf", service, sizeof(service) - 1);
	f.count = 0;
	doctor_reach(&f);
	CHECK_INT("hidden by another of its name", 3, (int)f.count);
	arena_destroy(f.arena);
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK_INT("removed", 0, system(command)); /* NOLINT(cert-env33-c): a folder of our own */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_of_the_file_itself),
		cmocka_unit_test(lists_of_access),
		cmocka_unit_test(a_long_list_is_told_of),
		cmocka_unit_test(what_an_engine_listens_on),
		cmocka_unit_test(mounts_that_show_it),
		cmocka_unit_test(a_host_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
