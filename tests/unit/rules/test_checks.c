#include "tests/unit/rules/kit.h"

#include <stdio.h>
#include <stdlib.h>

/* Facts that differ from a fine create in one thing, and the reasons in the order they are given.
 */
struct row {
	const char *label, *change, *want;
};

#define W(x)             "{\"workload\":{" x "}}"
#define MOUNT(x)         W("\"mounts\":[{\"field\":\"m\"," x "}]")
#define HOST(kind, real) "\"host\":{\"kind\":\"" kind "\",\"real\":\"" real "\",\"links\":0}"
#define MOVABLE                                                                                    \
	",\"host\":{\"kind\":\"directory\",\"real\":\"/srv/ws/a\",\"links\":0,\"movable\":true}"
#define BIND(source, x)                                                                            \
	MOUNT("\"kind\":\"bind\",\"source\":\"" source "\",\"given\":\"" source                    \
	      "\",\"target\":\"/w\",\"read_only\":false,\"options\":[]" x)
#define VOLUME(x)                                                                                  \
	MOUNT("\"kind\":\"volume\",\"source\":\"v\",\"target\":\"/v\",\"options\":[],"             \
	      "\"driver_options\":false," x)
#define TMPFS(options, x) MOUNT("\"kind\":\"tmpfs\",\"target\":\"/t\",\"options\":[" options "]" x)

static const struct row create_rows[] = {
	{"nothing wrong", "", "allow"},

	{"nothing is known", "{\"workload\":null}", "fact_unknown"},
	{"one fact is not known", W("\"devices\":null"), "fact_unknown"},
	{"the runtime's level is not known", W("\"isolation\":{\"level\":null}"), "runtime"},

	{"privileged", W("\"privileged\":true"), "privileged"},
	{"a capability", W("\"capabilities\":{\"add\":[{\"name\":\"SYS_ADMIN\",\"field\":\"f\"}]}"),
	 "capability"},
	{"all capabilities", W("\"capabilities\":{\"add\":[{\"name\":\"ALL\",\"field\":\"f\"}]}"),
	 "capability"},
	{"a device", W("\"devices\":[{\"value\":\"/dev/sda\",\"field\":\"f\"}]"), "device"},

	{"seccomp off",
	 W("\"security\":[{\"name\":\"seccomp\",\"value\":\"unconfined\",\"field\":\"f\"}]"),
	 "security_opt"},
	{"labels off", W("\"security\":[{\"name\":\"disable\",\"value\":\"\",\"field\":\"f\"}]"),
	 "security_opt"},
	{"an option nobody knows",
	 W("\"security\":[{\"name\":\"writable-cgroups\",\"value\":\"\",\"field\":\"f\"}]"),
	 "security_opt"},
	{"the engine's own filter by name",
	 W("\"security\":[{\"name\":\"seccomp\",\"value\":\"builtin\",\"field\":\"f\"}]"), "allow"},
	{"proc uncovered", W("\"proc_paths\":\"changed\""), "masked_paths"},

	{"the host's processes",
	 W("\"namespaces\":[{\"name\":\"pid\",\"mode\":\"host\",\"field\":\"f\"}]"), "namespace"},
	{"a word nobody knows", W("\"namespaces\":[{\"name\":\"ipc\",\"mode\":\"odd\"}]"),
	 "namespace"},
	{"private is fine",
	 W("\"namespaces\":[{\"name\":\"ipc\",\"mode\":\"private\"},{\"name\":\"ipc\",\"mode\":"
	   "\"shareable\"}]"),
	 "allow"},
	{"another's container",
	 W("\"namespaces\":[{\"name\":\"pid\",\"mode\":\"container\",\"target\":\"db\",\"mine\":"
	   "false"
	   "}]"),
	 "namespace_join"},
	{"a container of unknown owner",
	 W("\"namespaces\":[{\"name\":\"pid\",\"mode\":\"container\",\"target\":\"db\"}]"),
	 "namespace_join"},
	{"an own container",
	 W("\"namespaces\":[{\"name\":\"pid\",\"mode\":\"container\",\"target\":\"a\",\"mine\":"
	   "true}]"),
	 "allow"},

	{"no network", W("\"network\":{\"mode\":\"none\",\"endpoints\":[]}"), "allow"},
	{"the default network", W("\"network\":{\"mode\":\"default\",\"endpoints\":[]}"),
	 "network"},
	{"another network", W("\"network\":{\"mode\":\"prod\",\"endpoints\":[]}"), "network"},
	{"a network whose name begins like a granted one",
	 W("\"network\":{\"mode\":\"agents2\",\"endpoints\":[]}"), "network"},
	{"a second end point",
	 W("\"network\":{\"endpoints\":[{\"name\":\"agents\",\"settings\":[]},{\"name\":\"prod\","
	   "\"settings\":[]}]}"),
	 "network"},
	{"settings of an end point, the mode left open",
	 W("\"network\":{\"mode\":\"default\",\"given\":false,\"endpoints\":[{\"name\":\"agents\","
	   "\"settings\":[\"IPAMConfig\",\"Aliases\"]}]}"),
	 "network_endpoint network"},

	{"an alias in an own network",
	 W("\"network\":{\"mode\":\"agents\",\"endpoints\":[{\"name\":\"agents\",\"mine\":true,"
	   "\"settings\":[\"Aliases\"]}]}"),
	 "allow"},
	{"an alias in somebody else's network",
	 W("\"network\":{\"mode\":\"agents\",\"endpoints\":[{\"name\":\"agents\",\"mine\":false,"
	   "\"settings\":[\"Aliases\"]}]}"),
	 "network_endpoint"},
	{"an address in an own network",
	 W("\"network\":{\"mode\":\"agents\",\"endpoints\":[{\"name\":\"agents\",\"mine\":true,"
	   "\"settings\":[\"IPAMConfig\",\"Aliases\"]}]}"),
	 "network_endpoint"},
	{"the host's network", W("\"network\":{\"mode\":\"host\",\"endpoints\":[]}"), "network"},
	{"another's network, without saying whose",
	 W("\"network\":{\"mode\":\"container\",\"endpoints\":[]}"), "network"},
	{"an own container's network",
	 W("\"network\":{\"mode\":\"container\",\"endpoints\":[]},\"namespaces\":[{\"name\":"
	   "\"network\","
	   "\"mode\":\"container\",\"target\":\"a\",\"mine\":true}]"),
	 "allow"},
	{"a port on all addresses",
	 W("\"network\":{\"ports\":[{\"port\":\"22/tcp\",\"address\":\"\",\"field\":\"f\"}]}"),
	 "port"},
	{"a port on 0.0.0.0",
	 W("\"network\":{\"ports\":[{\"port\":\"22/tcp\",\"address\":\"0.0.0.0\"}]}"), "port"},
	{"a port on ::", W("\"network\":{\"ports\":[{\"port\":\"22/tcp\",\"address\":\"::\"}]}"),
	 "port"},
	{"a port on a granted address",
	 W("\"network\":{\"ports\":[{\"port\":\"80/tcp\",\"address\":\"127.0.0.1\"}]}"), "allow"},
	{"all ports", W("\"network\":{\"publish_all\":true}"), "port"},
	{"a host name", W("\"network\":{\"hosts\":[{\"value\":\"h:1.2.3.4\",\"field\":\"f\"}]}"),
	 "extra_hosts"},
	{"a link", W("\"network\":{\"links\":[{\"value\":\"db:x\",\"field\":\"f\"}]}"), "link"},

	{"a log driver that dials out", W("\"log\":{\"driver\":\"syslog\"}"), "log_driver"},
	{"an option of a granted log driver", W("\"log\":{\"options\":[\"labels\"]}"),
	 "log_driver"},
	{"even a harmless one, in a request", W("\"log\":{\"options\":[\"max-size\"]}"),
	 "log_driver"},
	{"the engine's log driver", W("\"log\":null"), "allow"},

	{"the host's root", BIND("/", "," HOST("directory", "/")), "bind"},
	{"the host's root, which holds the socket",
	 BIND("/",
	      ",\"host\":{\"kind\":\"directory\",\"real\":\"/\",\"protected\":\"/run/x.sock\"}"),
	 "bind bind_protected"},
	{"a parent of the socket",
	 BIND("/run",
	      ",\"host\":{\"kind\":\"directory\",\"real\":\"/run\",\"protected\":\"/run/x.sock"
	      "\"}"),
	 "bind_protected bind"},
	{"read-only does not help",
	 MOUNT("\"kind\":\"bind\",\"source\":\"/srv/ws/"
	       "s\",\"read_only\":true,\"options\":[],\"host\":{"
	       "\"kind\":\"directory\",\"real\":\"/srv/ws/s\",\"protected\":\"/srv/ws/s/x.sock\"}"),
	 "bind_protected"},
	{"a sibling whose name begins alike",
	 BIND("/srv/ws-evil", "," HOST("directory", "/srv/ws-evil")), "bind"},
	{"dots in the path", BIND("/srv/ws/../../etc", "," HOST("directory", "/etc")), "bind"},
	{"the granted directory itself", BIND("/srv/ws", "," HOST("directory", "/srv/ws")),
	 "allow"},
	{"a file below it", BIND("/srv/ws/f", "," HOST("file", "/srv/ws/f")), "allow"},
	{"a link that leads out", BIND("/srv/ws/link", "," HOST("directory", "/etc")),
	 "bind_symlink"},
	{"a link that leads to the socket",
	 BIND("/srv/ws/link", ",\"host\":{\"kind\":\"socket\",\"real\":\"/run/"
			      "x.sock\",\"protected\":\"/run/x.sock\"}"),
	 "bind_symlink bind_protected"},
	{"a link that stays inside", BIND("/srv/ws/link", "," HOST("directory", "/srv/ws/b")),
	 "allow"},
	{"a place that others can put a link into", BIND("/srv/ws/a", MOVABLE), "bind_movable"},
	{"a path that nobody looked at", BIND("/srv/ws/a", ""), "bind_symlink"},
	{"a path that could not be looked at",
	 BIND("/srv/ws/a", ",\"host\":{\"kind\":\"unknown\"}"), "bind_symlink"},
	{"a path whose end is not known", BIND("/srv/ws/a", ",\"host\":{\"kind\":\"directory\"}"),
	 "bind_symlink"},
	{"a path that is not there",
	 BIND("/srv/ws/n", ",\"host\":{\"kind\":\"absent\",\"real\":\"/srv/ws/n\"}"), "bind"},
	{"a socket", BIND("/srv/ws/s", "," HOST("socket", "/srv/ws/s")), "bind"},
	{"a device node", BIND("/srv/ws/d", "," HOST("block", "/srv/ws/d")), "bind"},
	{"a fifo", BIND("/srv/ws/p", "," HOST("fifo", "/srv/ws/p")), "bind"},
	{"shared propagation",
	 MOUNT("\"kind\":\"bind\",\"source\":\"/srv/ws/a\",\"read_only\":false,\"options\":["
	       "\"rshared\"]," HOST("directory", "/srv/ws/a")),
	 "propagation"},
	{"relabelling",
	 MOUNT("\"kind\":\"bind\",\"source\":\"/srv/ws/"
	       "a\",\"read_only\":false,\"options\":[\"Z\"]," HOST("directory", "/srv/ws/a")),
	 "propagation"},
	{"the propagation that is there anyway",
	 MOUNT("\"kind\":\"bind\",\"source\":\"/srv/ws/a\",\"read_only\":false,\"options\":["
	       "\"rprivate\"]," HOST("directory", "/srv/ws/a")),
	 "allow"},

	{"an own volume", VOLUME("\"mine\":true"), "allow"},
	{"another's volume", VOLUME("\"mine\":false"), "volume_owner"},
	{"a volume without a name",
	 MOUNT("\"kind\":\"volume\",\"target\":\"/v\",\"options\":[],\"read_only\":false"),
	 "allow"},
	{"a volume without a name, by a driver",
	 MOUNT("\"kind\":\"volume\",\"target\":\"/v\",\"driver\":\"x\""), "volume_driver"},
	{"out of an image",
	 MOUNT("\"kind\":\"image\",\"source\":\"reg.example/team/data:1\",\"subpath\":\"../x\""),
	 "volume_subpath"},
	{"a volume of unknown owner", VOLUME("\"exists\":true"), "volume_owner"},
	{"another's volume, and out of it", VOLUME("\"mine\":false,\"subpath\":\"../x\""),
	 "volume_owner volume_subpath"},
	{"a plain sub-path", VOLUME("\"mine\":true,\"subpath\":\"a/b\""), "allow"},
	{"a driver", VOLUME("\"mine\":true,\"driver\":\"vieux/sshfs\""), "volume_driver"},
	{"the local driver", VOLUME("\"mine\":true,\"driver\":\"local\""), "allow"},
	{"driver options",
	 MOUNT("\"kind\":\"volume\",\"mine\":true,\"driver\":\"local\",\"driver_options\":true"),
	 "driver_opts"},
	{"mounts of another", W("\"volumes_from\":[{\"name\":\"traefik\",\"field\":\"f\"}]"),
	 "volumes_from"},

	{"a sized tmpfs", TMPFS("\"noexec\",\"mode=1777\"", ",\"tmpfs_bytes\":67108864"), "allow"},
	{"a tmpfs without a size", TMPFS("", ""), "tmpfs"},
	{"a tmpfs above the limit", TMPFS("", ",\"tmpfs_bytes\":536870912000"), "tmpfs"},
	{"exec on a tmpfs", TMPFS("\"exec\"", ",\"tmpfs_bytes\":1048576"), "tmpfs"},
	{"suid on a tmpfs", TMPFS("\"suid\"", ",\"tmpfs_bytes\":1048576"), "tmpfs"},
	{"dev on a tmpfs", TMPFS("\"dev\"", ",\"tmpfs_bytes\":1048576"), "tmpfs"},
	{"a granted image", MOUNT("\"kind\":\"image\",\"source\":\"reg.example/team/data:1\""),
	 "allow"},
	{"another image", MOUNT("\"kind\":\"image\",\"source\":\"evil.example/x:1\""), "image"},
	{"a kind of mount that nobody knows", MOUNT("\"kind\":\"hostfs\",\"source\":\"/\""),
	 "mount_type"},

	{"a weaker runtime", W("\"isolation\":{\"level\":\"process\",\"runtime\":\"runc\"}"),
	 "runtime"},
	{"a stronger runtime", W("\"isolation\":{\"level\":\"vm\"}"), "allow"},
	{"a kernel setting",
	 W("\"sysctls\":[{\"name\":\"net.ipv4.ip_forward\",\"field\":\"f\"}],\"cgroup_parent\":\"/"
	   "s\""),
	 "sysctl cgroup_parent"},
	{"another control group", W("\"cgroup_parent\":\"/system.slice\""), "cgroup_parent"},

	{"too much memory", W("\"limits\":{\"memory\":4294967296}"), "limits"},
	{"no limit of memory", W("\"limits\":{\"memory\":null}"), "limits"},
	{"no limit of processes", W("\"limits\":{\"pids\":null}"), "limits"},
	{"a limit that is none", W("\"limits\":{\"pids\":-1}"), "limits"},
	{"gain of privileges",
	 W("\"security\":[{\"name\":\"no-new-privileges\",\"value\":\"false\",\"field\":\"f\"}]"),
	 "security_opt"},
	{"endless swap", W("\"limits\":{\"swap\":-1}"), "limits"},
	{"swap as engines give it", W("\"limits\":{\"swap\":2147483648}"), "allow"},
	{"much shared memory", W("\"limits\":{\"shm\":8589934592}"), "limits"},
	{"a limit that is lifted",
	 W("\"limits\":{\"lifted\":[{\"field\":\"HostConfig.OomKillDisable\",\"value\":\"true\"}]"
	   "}"),
	 "limits"},
	{"an option of the storage driver", W("\"storage_options\":[\"size\"]"), "limits"},

	{"root", W("\"user\":{\"root\":true,\"effective\":\"0\"}"), "user"},
	{"a user of unknown number", W("\"user\":{\"root\":null,\"effective\":\"app\"}"), "user"},
	{"a group of the host", W("\"user\":{\"groups\":[{\"name\":\"docker\",\"field\":\"f\"}]}"),
	 "user"},
	{"root's group", W("\"user\":{\"groups\":[{\"name\":\"0\",\"field\":\"f\"}]}"), "user"},
	{"root's group with a sign", W("\"user\":{\"groups\":[{\"name\":\"+0\"}]}"), "user"},
	{"a group that wraps to root's", W("\"user\":{\"groups\":[{\"name\":\"4294967296\"}]}"),
	 "user"},
	{"a group in hexadecimal", W("\"user\":{\"groups\":[{\"name\":\"0x0\"}]}"), "user"},
	{"a group's name that reads as a number", W("\"user\":{\"groups\":[{\"name\":\"0x7d0\"}]}"),
	 "user"},
	{"a group's name with a space behind", W("\"user\":{\"groups\":[{\"name\":\"2000 \"}]}"),
	 "user"},
	{"a plain group", W("\"user\":{\"groups\":[{\"name\":\"2000\",\"field\":\"f\"}]}"),
	 "allow"},

	{"a label of another tool", W("\"labels\":[{\"name\":\"traefik.enable\",\"field\":\"f\"}]"),
	 "label"},
	{"a label of the gate", W("\"labels\":[{\"name\":\"sallyport.owner\",\"field\":\"f\"}]"),
	 "label"},
	{"a label of compose", W("\"labels\":[{\"name\":\"com.docker.compose.project\"}]"),
	 "allow"},
	{"restart always", W("\"restart\":\"always\""), "restart"},
	{"an annotation", W("\"annotations\":[\"run.oci.keep_original_groups\"]"), "annotation"},
	{"a health check", W("\"command\":{\"healthcheck\":true}"), "healthcheck"},

	{"another image", W("\"image\":{\"name\":\"docker.io/library/busybox\"}"), "image"},
	{"a registry that begins alike",
	 W("\"image\":{\"name\":\"reg.example.evil.test/team/app\"}"), "image"},
	{"another port of the registry", W("\"image\":{\"name\":\"reg.example:5000/team/app\"}"),
	 "image"},
	{"a folder that begins alike", W("\"image\":{\"name\":\"reg.example/team-x/app\"}"),
	 "image"},
	{"a folder further down", W("\"image\":{\"name\":\"reg.example/team/a/b\"}"), "image"},
	{"a granted image by digest",
	 W("\"image\":{\"name\":\"docker.io/library/"
	   "alpine\",\"tag\":null,\"digest\":\"sha256:ab\"}"),
	 "allow"},
	{"an id without names", W("\"image\":{\"by_id\":true,\"name\":null,\"names\":[]}"),
	 "image"},
	{"an id of another image",
	 W("\"image\":{\"by_id\":true,\"name\":null,\"names\":[\"evil.example/x:1\"]}"), "image"},
	{"an id of a granted image",
	 W("\"image\":{\"by_id\":true,\"name\":null,\"names\":[\"evil.example/x:1\",\"reg.example/"
	   "team/"
	   "app@sha256:ab\"]}"),
	 "allow"},

	{"everything at once is all reported",
	 W("\"privileged\":true,\"restart\":\"always\",\"cgroup_parent\":\"/x\""),
	 "privileged cgroup_parent restart"},
};

static void judge_rows(const char *base, const struct row *rows, size_t count)
{
	struct engine *eng = kit_open_ref();

	for (size_t i = 0; i < count; i++) {
		struct kit_answer ans;

		kit_judge(eng, "ref", base, rows[i].change, &ans);
		CHECK_STR(rows[i].label, "", ans.err.msg);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		CHECK_INT(rows[i].label,
			  strcmp(rows[i].want, "allow") == 0 ? VERDICT_ALLOW : VERDICT_DENY,
			  ans.decision.verdict);
		kit_drop(&ans);
	}
	engine_close(eng);
}

static void judges_what_is_created(void **state)
{
	(void)state;
	judge_rows(kit_create, create_rows, sizeof(create_rows) / sizeof(*create_rows));
}

#define OP(name, class)                                                                            \
	"\"operation\":{\"name\":\"" name "\",\"class\":\"" class "\",\"group\":\"\"}"

/* The same container, met again: what is not the caller's choice is not held against it. */
static void judges_what_is_started(void **state)
{
	static const struct row rows[] = {
		{"start", "{" OP("container.start", "lifecycle") "}", "allow"},
		{"start of something privileged",
		 "{" OP("container.start", "lifecycle") ",\"workload\":{\"privileged\":true}}",
		 "privileged"},
		{"restart",
		 "{" OP("container.restart", "lifecycle") ",\"workload\":{\"privileged\":true}}",
		 "privileged"},
		{"unpause",
		 "{" OP("container.unpause", "lifecycle") ",\"workload\":{\"privileged\":true}}",
		 "privileged"},
		{"labels were judged before",
		 "{" OP("container.start",
			"lifecycle") ",\"workload\":{\"labels\":[{\"name\":\"maintainer\"}]}}",
		 "allow"},
		{"rotation is the engine's own",
		 "{" OP("container.start",
			"lifecycle") ",\"workload\":{\"log\":{\"options\":[\"max-size\"]}}}",
		 "allow"},
		{"a container without facts",
		 "{" OP("container.start", "lifecycle") ",\"workload\":null}", "fact_unknown"},
		{"stopping needs no facts",
		 "{" OP("container.stop", "lifecycle") ",\"workload\":null}", "allow"},
		{"reading needs no facts", "{" OP("container.list", "read") ",\"workload\":null}",
		 "allow"},
	};

	(void)state;
	judge_rows(kit_create, rows, sizeof(rows) / sizeof(*rows));
}

#define EXEC(x) "{" OP("exec.create", "exec") ",\"workload\":{\"exec\":{" x "}}}"
#define FINE    "\"privileged\":false,\"user\":\"\",\"root\":false,\"program\":\"sh\",\"env\":[\"A\"]"

static void judges_commands(void **state)
{
	static const struct row rows[] = {
		{"a command", EXEC(FINE), "allow"},
		{"nothing is known of it", "{" OP("exec.create", "exec") "}", "fact_unknown"},
		{"privileged", EXEC("\"privileged\":true,\"root\":false,\"env\":[]"),
		 "exec_privileged"},
		{"privileged is not known", EXEC("\"root\":false,\"env\":[]"), "exec_privileged"},
		{"as root", EXEC("\"privileged\":false,\"user\":\"0\",\"root\":true,\"env\":[]"),
		 "exec_user"},
		{"as nobody knows whom", EXEC("\"privileged\":false,\"user\":\"app\",\"env\":[]"),
		 "exec_user"},
		{"with a library before all others",
		 EXEC("\"privileged\":false,\"root\":false,\"env\":[\"LD_PRELOAD\"]"), "exec_env"},
		{"with a shell's start file",
		 EXEC("\"privileged\":false,\"root\":false,\"env\":[\"BASH_ENV\"]"), "exec_env"},
		{"all of it",
		 EXEC("\"privileged\":true,\"root\":true,\"user\":\"0\",\"env\":[\"LD_AUDIT\"]"),
		 "exec_privileged exec_user exec_env"},
		{"in a privileged container",
		 "{" OP("exec.start", "exec") ",\"workload\":{\"privileged\":true,\"exec\":{" FINE
					      "}}}",
		 "privileged"},
	};

	(void)state;
	judge_rows(kit_create, rows, sizeof(rows) / sizeof(*rows));
}

#define OTHER(name, class, x) "{" OP(name, class) ",\"workload\":{" x "}}"
#define NET(x)                OTHER("network.create", "host", "\"net\":{" x "}")
#define PULL(x)               OTHER("image.pull", "data-in", "\"pull\":{" x "}")
#define POINT(name, settings)                                                                      \
	"\"network\":{\"endpoints\":[{\"name\":\"" name "\",\"settings\":[" settings "]}]}"

static void judges_other_objects(void **state)
{
	static const struct row rows[] = {
		{"a granted image", PULL("\"name\":\"reg.example/team/app\",\"tag\":\"1\""),
		 "allow"},
		{"by digest", PULL("\"name\":\"reg.example/team/app\",\"tag\":\"sha256:ab\""),
		 "allow"},
		{"all tags", PULL("\"name\":\"reg.example/team/app\""), "image_tag"},
		{"another registry",
		 PULL("\"name\":\"reg.example.evil.test/team/app\",\"tag\":\"1\""), "image"},
		{"another registry, all tags", PULL("\"name\":\"evil.example/x\""), "image"},
		{"nothing is known of it", "{" OP("image.pull", "data-in") "}", "fact_unknown"},
		{"an URL is closed and says why",
		 OTHER("image.import", "data-in",
		       "\"pull\":{\"import\":true,\"url\":\"http://x/\"}"),
		 "import_url operation"},
		{"an import over a granted name",
		 OTHER("image.import", "data-in",
		       "\"pull\":{\"import\":true},\"names\":[\"reg.example/team/app:1\"]"),
		 "image_retag operation"},
		{"a tag over a granted name",
		 OTHER("image.tag", "policy", "\"names\":[\"reg.example/team/app:1\"]"),
		 "image_retag operation"},
		{"a tag that is not granted", OTHER("image.tag", "policy", "\"names\":[\"x:1\"]"),
		 "operation"},

		{"a plain volume", OTHER("volume.create", "host", "\"volume\":{\"options\":[]}"),
		 "allow"},
		{"a bind in disguise",
		 OTHER("volume.create", "host",
		       "\"volume\":{\"driver\":\"local\",\"options\":[\"device\",\"o\"]}"),
		 "driver_opts"},
		{"a driver",
		 OTHER("volume.create", "host",
		       "\"volume\":{\"driver\":\"vieux/sshfs\",\"options\":[\"sshcmd\"]}"),
		 "volume_driver driver_opts"},
		{"a volume with a foreign label",
		 OTHER("volume.create", "host",
		       "\"volume\":{\"options\":[]},\"labels\":[{\"name\":\"traefik.enable\"}]"),
		 "label"},

		{"an internal bridge",
		 NET("\"driver\":\"bridge\",\"internal\":true,\"options\":[]"), "allow"},
		{"a bridge with a way out",
		 NET("\"driver\":\"bridge\",\"internal\":false,\"options\":[]"), "network_create"},
		{"a network on an interface of the host",
		 NET("\"driver\":\"macvlan\",\"internal\":true,\"options\":[\"parent\"]"),
		 "network_create"},
		{"nothing is known of it", "{" OP("network.create", "host") "}", "fact_unknown"},
		{"connecting to another network",
		 OTHER("network.connect", "policy", POINT("prod", "\"Aliases\"")),
		 "network network_endpoint"},
		{"connecting to a granted network",
		 OTHER("network.connect", "policy", POINT("agents", "")), "allow"},
		{"connecting to nobody knows what",
		 OTHER("network.connect", "policy", "\"network\":{\"endpoints\":[]}"), "network"},

		{"renaming is closed", "{" OP("container.rename", "lifecycle") "}", "rename"},
		{"export is closed", "{" OP("container.export", "data-out") "}", "export"},
		{"an operation that does not exist", "{" OP("container.fly", "read") "}",
		 "operation"},
	};
	static const char base[] = "{\"identity\":{\"name\":\"ann\",\"owner\":\"ann\"}}";

	(void)state;
	judge_rows(base, rows, sizeof(rows) / sizeof(*rows));
}

#define SAVE(x)   OTHER("image.save", "data-out", "\"images\":[" x "]")
#define APP       "{\"name\":\"reg.example/team/app\",\"tag\":\"1\",\"by_id\":false,\"field\":\"f\"}"
#define EVIL      "{\"name\":\"evil.example/x\",\"tag\":\"1\",\"by_id\":false,\"field\":\"f\"}"
#define TAG(i, n) OTHER("image.tag", "policy", "\"image\":" i ",\"names\":[" n "]")
#define PUSH(i)   OTHER("image.push", "data-out", "\"image\":" i)
#define COMMIT(o, x)                                                                               \
	"{" OP("container.commit", "data-in") ",\"object\":{\"kind\":\"container\",\"mine\":" o    \
					      "},\"workload\":{" x "}}"
#define ASK(x) OTHER("registry.search", "data-out", "\"registry\":{" x "}")

/* What only some profiles grant. */
static void judges_publishing(void **state)
{
	static const struct row rows[] = {
		{"a granted image is read", SAVE(APP), "allow"},
		{"two of them", SAVE(APP "," APP), "allow"},
		{"another one is not", SAVE(EVIL), "export"},
		{"nor beside a granted one", SAVE(APP "," EVIL), "export"},
		{"by an id that has a granted name",
		 SAVE("{\"by_id\":true,\"names\":[\"evil.example/x:1\",\"reg.example/team/"
		      "app:1\"]}"),
		 "allow"},
		{"by an id that has none",
		 SAVE("{\"by_id\":true,\"names\":[\"evil.example/x:1\"]}"), "export"},
		{"by an id of which nothing is known", SAVE("{\"by_id\":true}"), "export"},
		{"none", SAVE(""), "fact_unknown"},
		{"nothing is known of them", "{" OP("image.save", "data-out") "}", "fact_unknown"},

		{"another name for a granted image", TAG(APP, "\"mine/x:1\""), "allow"},
		{"a granted name for a granted image", TAG(APP, "\"reg.example/team/b:1\""),
		 "image_retag"},
		{"a granted name for another one", TAG(EVIL, "\"reg.example/team/b:1\""),
		 "image_retag image"},
		{"another name for another one", TAG(EVIL, "\"mine/x:1\""), "image"},
		{"a name for nobody knows what",
		 OTHER("image.tag", "policy", "\"names\":[\"x:1\"]"), "fact_unknown"},

		{"a granted image is sent", PUSH(APP), "allow"},
		{"another one is not", PUSH(EVIL), "image"},
		{"nor all tags at once",
		 PUSH("{\"name\":\"reg.example/team/app\",\"by_id\":false}"), "image_tag"},

		{"an own container becomes an image",
		 COMMIT("true", "\"names\":[\"mine/"
				"x:1\"],\"labels\":[],\"command\":{\"healthcheck\":false}"),
		 "allow"},
		{"with a granted name",
		 COMMIT("true", "\"names\":[\"reg.example/team/"
				"app:1\"],\"command\":{\"healthcheck\":false}"),
		 "image_retag"},
		{"not one's own", COMMIT("false", "\"command\":{\"healthcheck\":false}"), "owner"},
		{"with a health check", COMMIT("true", "\"command\":{\"healthcheck\":true}"),
		 "healthcheck"},
		{"with the gate's label",
		 COMMIT("true", "\"labels\":[{\"name\":\"sallyport.owner\",\"field\":\"f\"}],"
				"\"command\":{\"healthcheck\":false}"),
		 "label"},

		{"a granted registry is asked", ASK("\"host\":\"reg.example\""), "allow"},
		{"another one is not", ASK("\"host\":\"10.0.0.5:5000\""), "registry"},
		{"nor one that begins alike", ASK("\"host\":\"reg.exam\""), "registry"},
		{"about a granted image",
		 ASK("\"host\":\"reg.example\",\"name\":\"reg.example/team/app\""), "allow"},
		{"about another one", ASK("\"host\":\"reg.example\",\"name\":\"reg.example/x\""),
		 "registry"},
		{"nobody knows which", OTHER("registry.search", "data-out", "\"name\":\"x\""),
		 "fact_unknown"},

		{"pruning is granted as it stands", "{" OP("container.prune", "host") "}", "allow"},
	};
	static const char base[] = "{\"identity\":{\"name\":\"ann\",\"owner\":\"ann\"}}";
	struct engine *eng = kit_open(
		"return profile \"p\" { images = { \"reg.example/team/*\" }, operations = { "
		"\"image.save\", \"image.tag\", \"image.push\", \"container.commit\", "
		"\"registry.search\", \"container.prune\" } }");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge(eng, "p", base, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* Limits of a container that runs; the profile grants the change of them. */
static void judges_updates(void **state)
{
	static const struct row rows[] = {
		{"within",
		 "\"limits\":{\"memory\":1073741824,\"pids\":100,\"lifted\":[]},\"restart\":\"no\"",
		 "allow"},
		{"lifted", "\"limits\":{\"swap\":-1,\"lifted\":[]},\"restart\":\"always\"",
		 "limits restart"},
		{"nothing is known", "\"name\":\"x\"", "fact_unknown"},
	};
	struct engine *eng =
		kit_open("return profile \"p\" { operations = { \"container.update\" }, "
			 "limits = { memory = \"2GiB\", pids = 512 } }");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;
		char facts[512];

		snprintf(facts, sizeof(facts),
			 "{" OP("container.update", "policy") ",\"workload\":{%s}}",
			 rows[i].change);
		kit_judge(eng, "p", facts, "", &ans);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
	}
	engine_close(eng);
}

#define OWN(control, kind, movable)                                                                \
	BIND("/run/g/own.sock",                                                                    \
	     ",\"host\":{\"control\":\"" control "\",\"kind\":\"" kind "\",\"movable\":" movable   \
	     ",\"real\":\"/run/g/own.sock\",\"protected\":\"/run/g/own.sock\"}")

/* Settings that grant more than the reference policy does. */
static void grants_what_settings_say(void **state)
{
	static const struct row rows[] = {
		{"capabilities = { \"cap_net_raw\" }",
		 W("\"capabilities\":{\"add\":[{\"name\":\"NET_RAW\"}]}"), "allow"},
		{"capabilities = { \"NET_RAW\" }",
		 W("\"capabilities\":{\"add\":[{\"name\":\"NET_ADMIN\"}]}"), "capability"},
		{"users = \"any\"",
		 W("\"user\":{\"root\":true,\"groups\":[{\"name\":\"docker\",\"field\":\"f\"}]}"),
		 "allow"},
		{"healthchecks = true", W("\"command\":{\"healthcheck\":true}"), "allow"},
		{"healthchecks = false", W("\"command\":{\"healthcheck\":true}"), "healthcheck"},
		{"restart = { \"always\" }", W("\"restart\":\"always\""), "allow"},
		{"restart = { \"always\" }", W("\"restart\":\"on-failure\""), "restart"},
		{"labels = { \"org.example.*\" }",
		 W("\"labels\":[{\"name\":\"org.example.team\"}]"), "allow"},
		{"labels = { \"**\" }", W("\"labels\":[{\"name\":\"Sallyport.owner\"}]"), "label"},
		{"log_drivers = { \"syslog\" }", W("\"log\":{\"driver\":\"syslog\"}"), "allow"},
		{"log_drivers = { \"syslog\" }", W("\"log\":{\"driver\":\"json-file\"}"),
		 "log_driver"},
		{"ports = { \"*\" }",
		 W("\"network\":{\"publish_all\":true,\"ports\":[{\"port\":\"1/"
		   "tcp\",\"address\":\"\"}]}"),
		 "allow"},
		{"networks = { \"agents\", \"bridge\" }",
		 W("\"network\":{\"mode\":\"default\",\"endpoints\":[]}"), "allow"},
		{"networks = { \"team-*\" }",
		 W("\"network\":{\"mode\":\"team-a\",\"endpoints\":[]}"), "allow"},
		{"networks = { \"*\" }",
		 W("\"network\":{\"mode\":\"agents\",\"endpoints\":[{\"name\":\"host\","
		   "\"settings\":[]}]}"),
		 "network"},
		{"egress = {}", W("\"network\":{\"mode\":\"agents\",\"endpoints\":[]}"), "network"},
		{"egress = {}", W("\"network\":{\"mode\":\"none\",\"endpoints\":[]}"), "allow"},
		{"mounts = { { \"/srv/ws\" } }", "", "bind"},
		{"movable_mounts = true", BIND("/srv/ws/a", MOVABLE), "allow"},
		{"own_socket = false", OWN("own", "socket", "false"), "bind_protected"},
		{"own_socket = true", OWN("own", "socket", "false"), "allow"},
		{"own_socket = true", OWN("own", "socket", "true"), "bind_movable"},
		{"own_socket, t.movable_mounts = true, true", OWN("own", "socket", "true"),
		 "allow"},
		{"own_socket = true", OWN("own", "directory", "false"), "bind_protected"},
		{"own_socket = true", OWN("own", "unknown", "false"), "bind_protected"},
		{"own_socket = true", OWN("engine", "socket", "false"), "bind_protected"},
		{"own_socket, t.mounts = true, { { \"/run\", \"rw\" } }",
		 OWN("engine", "socket", "false"), "bind_protected"},
		{"own_socket = true",
		 BIND("/run", ",\"host\":{\"kind\":\"directory\",\"real\":\"/run\","
			      "\"protected\":\"/run/g/own.sock\"}"),
		 "bind_protected bind"},
		{"own_socket = true", BIND("/srv/ws/s", "," HOST("socket", "/srv/ws/s")), "bind"},
		{"own_socket = true",
		 MOUNT("\"kind\":\"bind\",\"source\":\"/run/g/own.sock\",\"read_only\":false,"
		       "\"options\":[\"Z\"],\"host\":{\"control\":\"own\",\"kind\":\"socket\"}"),
		 "propagation"},
		{"restart, t.movable_mounts = { \"always\" }, true",
		 "{\"workload\":{\"restart\":\"always\",\"mounts\":[{\"kind\":\"bind\",\"source\":"
		 "\"/srv/ws/"
		 "a\",\"read_only\":false,\"options\":[]" MOVABLE "}]}}",
		 "restart"},
		{"mounts = { { \"/srv/ws\" } }",
		 MOUNT("\"kind\":\"bind\",\"source\":\"/srv/ws/"
		       "a\",\"read_only\":true,\"options\":[]," HOST("directory", "/srv/ws/a")),
		 "allow"},
		{"mounts = { { \"/srv/ws\" }, { \"/srv/ws/{identity.name}\", \"rw\" } }",
		 BIND("/srv/ws/ann/x", "," HOST("directory", "/srv/ws/ann/x")), "allow"},
		{"mounts = { { \"/srv/ws\" }, { \"/srv/ws/{identity.name}\", \"rw\" } }",
		 BIND("/srv/ws/bob", "," HOST("directory", "/srv/ws/bob")), "bind"},
		{"mounts = { { \"/srv/ws/{identity.name}\", \"rw\" } }",
		 "{\"identity\":{\"name\":\"\"}}", "bind"},
		{"mounts = { { \"/srv/{identity.name}\", \"rw\" } }",
		 "{\"identity\":{\"name\":\"..\"}}", "bind"},
		{"mounts = { { \"/srv/{identity.name}\", \"rw\" } }",
		 "{\"identity\":{\"name\":\"ws/a\"}}", "bind"},
		{"mounts = { { \"/srv/{identity.name}\", \"rw\" } }", "{\"identity\":null}",
		 "bind"},
		{"images = { \"reg.example/team/app:2\" }", "", "image"},
		{"images = { \"reg.example/team/app:1\" }", "", "allow"},
		{"images = { \"reg.example/team/app:1\" }",
		 W("\"image\":{\"digest\":\"sha256:ab\"}"), "image"},
		{"images = { \"reg.example/**@sha256:*\" }", "", "image"},
		{"images = { \"reg.example/**@sha256:*\" }",
		 W("\"image\":{\"digest\":\"sha256:ab\"}"), "allow"},
		{"isolation = { min = \"vm\" }", "", "runtime"},
		{"isolation = { min = \"process\" }", W("\"isolation\":{\"level\":\"process\"}"),
		 "allow"},
		{"isolation = nil", W("\"isolation\":{\"level\":\"none\"}"), "runtime"},
		{"limits = nil", W("\"limits\":{\"memory\":null,\"pids\":null}"), "allow"},
		{"limits = { cpus = 1.5 }", W("\"limits\":{\"nano_cpus\":1500000000}"), "allow"},
		{"limits = { cpus = 1.5 }", W("\"limits\":{\"nano_cpus\":1500000001}"), "limits"},
		{"limits = { cpus = 1.5 }", "", "limits"},
		{"images = nil", "", "image"},
		{"networks = nil", "", "network"},
		{"mounts = nil", "", "bind"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct engine *eng;
		struct kit_answer ans;
		char text[1024];

		snprintf(
			text, sizeof(text),
			"local settings = { images = { \"reg.example/team/*\" }, mounts = { { "
			"\"/srv/ws\", \"rw\" } }, networks = { \"agents\" } }\n"
			"local t = { operations = { \"container.run\" }, images = settings.images, "
			"mounts = settings.mounts, networks = settings.networks }\n"
			"%s t.%s\nreturn profile \"p\" (t)",
			strncmp(rows[i].label, "egress", 6) == 0 ? "t.networks = nil" : "",
			rows[i].label);
		eng = kit_open(text);
		kit_judge(eng, "p", kit_create, rows[i].change, &ans);
		CHECK_STR(rows[i].label, "", ans.err.msg);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
		engine_close(eng);
	}
}

/* A denial says where, what, why, and what would have been accepted. */
static void says_what_would_pass(void **state)
{
	static const struct {
		const char *label, *change, *field, *value, *hint;
	} rows[] = {
		{"bind", BIND("/etc", "," HOST("directory", "/etc")), "m", "/etc",
		 "Host paths that may be mounted: /srv/ws (rw)."},
		{"image", W("\"image\":{\"name\":\"evil/x\",\"given\":\"evil/x:1\"}"),
		 "image.given", "evil/x:1",
		 "Images that may be used: reg.example/team/*, docker.io/library/alpine."},
		{"network", W("\"network\":{\"mode\":\"prod\",\"endpoints\":[]}"), "network.mode",
		 "prod", "Networks that may be used: none, agents."},
		{"port",
		 W("\"network\":{\"ports\":[{\"port\":\"22/"
		   "tcp\",\"address\":\"\",\"field\":\"f\"}]}"),
		 "f", "all addresses -> 22/tcp",
		 "Addresses on which ports may be published: 127.0.0.1."},
		{"limits", W("\"limits\":{\"memory\":4294967296}"), "limits.memory", "4294967296",
		 "Ask for at most 2147483648 bytes."},
		{"privileged", W("\"privileged\":true"), "privileged", "true", ""},
		{"capability", W("\"capabilities\":{\"add\":[{\"name\":\"ALL\",\"field\":\"f\"}]}"),
		 "f", "ALL", "Capabilities that may be added: none."},
		{"runtime", W("\"isolation\":{\"level\":\"process\",\"runtime\":\"runc\"}"),
		 "isolation.runtime", "runc", "Runtimes of this engine that reach it: runsc."},
	};
	struct engine *eng = kit_open_ref();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;
		const struct violation *v = &ans.decision.violations.list[0];

		kit_judge(eng, "ref", kit_create, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].label, reason_name(v->reason));
		CHECK_STR(rows[i].label, rows[i].field, v->field);
		CHECK_STR(rows[i].label, rows[i].value, v->value);
		CHECK_STR(rows[i].label, rows[i].hint, v->hint);
		CHECK_STR(rows[i].label, v->rule, ans.decision.rule);
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* What lowers the isolation is named. */
static void names_what_lowers(void **state)
{
	struct engine *eng = kit_open_ref();
	struct kit_answer ans;

	(void)state;
	kit_judge(eng, "ref", kit_create,
		  W("\"isolation\":{\"level\":\"none\",\"lowered\":[{\"field\":\"HostConfig."
		    "PidMode\","
		    "\"value\":\"host\",\"to\":\"none\",\"why\":\"sees the host\"}]}"),
		  &ans);
	CHECK_STR("text",
		  "the isolation would be none, the profile asks for kernel; lowered by "
		  "HostConfig.PidMode (sees the host)",
		  ans.decision.violations.list[0].text);
	kit_drop(&ans);
	engine_close(eng);
}

/* The shipped profile does what it is for, and not more. */
static void the_agent_profile_lets_agents_work(void **state)
{
	static const struct row rows[] = {
		{"busybox", W("\"name\":\"x\""), "allow"},
		{"another tag of busybox", W("\"image\":{\"tag\":\"1.36\"}"), "image"},
		{"any tag of python",
		 W("\"image\":{\"name\":\"docker.io/library/python\",\"tag\":\"3.12-slim\"}"),
		 "allow"},
		{"a network", W("\"network\":{\"mode\":\"default\"}"), "network"},
		{"a directory of the host",
		 BIND("/srv/agents/ann", "," HOST("directory", "/srv/agents/ann")), "bind"},
		{"more memory", W("\"limits\":{\"memory\":2147483648}"), "limits"},
		{"the engine's socket",
		 BIND("/run/docker.sock", ",\"host\":{\"kind\":\"socket\",\"real\":\"/run/"
					  "docker.sock\",\"protected\":\"/run/"
					  "docker.sock\"}"),
		 "bind_protected bind"},
	};
	static const char base[] =
		W("\"image\":{\"name\":\"docker.io/library/busybox\",\"tag\":\"latest\"},"
		  "\"isolation\":{\"level\":\"process\"},\"mounts\":[],\"network\":{\"mode\":"
		  "\"none\",\"endpoints\":[]},\"limits\":{\"memory\":268435456,\"nano_cpus\":"
		  "1000000000,\"pids\":64}");
	char *text = kit_read("rules/profiles/agent.lua");
	struct engine *eng = kit_open(text);
	struct arena *a = arena_create(1 << 20);
	struct buf out;
	struct jv facts = kit_merged(a, kit_create, base);

	(void)state;
	buf_init(&out, 1 << 16);
	jv_write(&out, &facts);
	buf_put(&out, "", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge(eng, "agent", buf_span(&out).at, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
	}
	buf_fini(&out);
	arena_destroy(a);
	engine_close(eng);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_what_is_created),
		cmocka_unit_test(judges_what_is_started),
		cmocka_unit_test(judges_commands),
		cmocka_unit_test(judges_other_objects),
		cmocka_unit_test(judges_publishing),
		cmocka_unit_test(judges_updates),
		cmocka_unit_test(grants_what_settings_say),
		cmocka_unit_test(the_agent_profile_lets_agents_work),
		cmocka_unit_test(says_what_would_pass),
		cmocka_unit_test(names_what_lowers),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
