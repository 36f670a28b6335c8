#include "tests/unit/rules/rows.h"

#include <stdio.h>

#define VOLUME(x)                                                                                  \
	MOUNT("\"kind\":\"volume\",\"source\":\"v\",\"target\":\"/v\",\"options\":[],"             \
	      "\"driver_options\":false," x)
#define TMPFS(options, x) MOUNT("\"kind\":\"tmpfs\",\"target\":\"/t\",\"options\":[" options "]" x)

static const struct row create_rows[] = {
	{"nothing wrong", "", "allow"},

	{"a program of the host", W("\"host_tools\":\"confined\""), "host_tools_not_granted"},
	{"one without walls", W("\"host_tools\":\"bare\""), "host_tools_not_granted"},

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
	 "volume_subpath image"},
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

	{"everything at once is all reported",
	 W("\"privileged\":true,\"restart\":\"always\",\"cgroup_parent\":\"/x\""),
	 "privileged cgroup_parent restart"},
};

static void judges_what_is_created(void **state)
{
	(void)state;
	rows_judge_ref(kit_create, create_rows, sizeof(create_rows) / sizeof(*create_rows));
}

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
	rows_judge_ref(kit_create, rows, sizeof(rows) / sizeof(*rows));
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
	rows_judge_ref(kit_create, rows, sizeof(rows) / sizeof(*rows));
}

#define FILTER(x) W("\"seccomp\":{\"available\":true,\"machine\":\"amd64\"," x "}")
#define OWN(profile)                                                                               \
	FILTER("\"given\":\"own\",\"field\":\"f\",\"sha256\":\"0\",\"profile\":\"" profile "\"")

/* What a trust profile demands by name must be there, whoever made the container. */
static void demands_filters_by_name(void **state)
{
	static const char text[] =
		"local function p(name, more)\n"
		"  local t = { images = { \"**\" }, operations = { \"container.run\" }, mounts = { "
		"{ \"/srv/ws\", \"rw\" } },\n"
		"    isolation = { min = \"process\" }, networks = { \"*\" }, users = \"any\" }\n"
		"  for k, v in pairs(more) do t[k] = v end\n"
		"  return profile(name)(t)\n"
		"end\n"
		"return { p(\"plain\", {}), p(\"shell\", { seccomp = \"tight-shell\" }),\n"
		"  p(\"armour\", { apparmor = \"strict\" }) }\n";
	static const struct {
		const char *label, *profile, *change, *want;
	} rows[] = {
		{"nothing is demanded", "plain", FILTER("\"given\":\"default\""), "allow"},
		{"the demanded one is not there", "shell", FILTER("\"given\":\"default\""),
		 "seccomp_missing"},
		{"nothing is known of it", "shell", W("\"seccomp\":null"), "seccomp_missing"},
		{"the engine filters nothing", "shell",
		 W("\"seccomp\":{\"given\":\"own\",\"available\":false,\"profile\":\"{}\"}"),
		 "seccomp_missing"},
		{"another one than the demanded", "shell",
		 FILTER("\"given\":\"own\",\"sha256\":\"0\""), "seccomp_more"},
		{"a tighter one", "shell", OWN("{\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\"}"),
		 "allow"},
		{"a wider one", "shell", OWN("{\\\"defaultAction\\\":\\\"SCMP_ACT_ALLOW\\\"}"),
		 "seccomp_more"},
		{"one that cannot be read", "shell", OWN("{}"), "seccomp_more"},
		{"on a machine that is not known", "shell",
		 W("\"seccomp\":{\"given\":\"own\",\"available\":true,\"sha256\":\"0\",\"profile\":"
		   "\"{\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\"}\"}"),
		 "seccomp_more"},
		{"wider than the engine's own", "plain",
		 OWN("{\\\"defaultAction\\\":\\\"SCMP_ACT_ALLOW\\\"}"), "seccomp_more"},
		{"no AppArmor", "armour", W("\"apparmor\":{\"given\":\"\",\"available\":true}"),
		 "apparmor"},
		{"another AppArmor", "armour",
		 W("\"apparmor\":{\"given\":\"other\",\"available\":true}"), "apparmor"},
		{"a host without AppArmor", "armour",
		 W("\"apparmor\":{\"given\":\"strict\",\"available\":false}"), "apparmor"},
		{"the demanded AppArmor", "armour",
		 W("\"apparmor\":{\"given\":\"strict\",\"available\":true},\"security\":[{\"name\":"
		   "\"apparmor\",\"value\":\"strict\",\"field\":\"f\"}]"),
		 "allow"},
	};
	struct engine *eng = kit_open(text);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge(eng, rows[i].profile, kit_create, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* It passes, and does not count as protection. */
static void says_that_a_filter_is_not_used(void **state)
{
	static const char own[] = "\"given\":\"own\",\"field\":\"f\",\"sha256\":\"0\",\"profile\":"
				  "\"{\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\"}\"";
	static const struct {
		const char *applied;
		size_t warnings;
	} rows[] = {{"true", 0}, {"false", 1}};
	struct engine *eng = kit_open_ref();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;
		char change[400];

		snprintf(change, sizeof(change),
			 "{\"workload\":{\"seccomp\":{\"available\":true,\"machine\":\"amd64\",%s,"
			 "\"applied\":%s}}}",
			 own, rows[i].applied);
		kit_judge(eng, "ref", kit_create, change, &ans);
		CHECK_STR(rows[i].applied, "allow", kit_reasons(&ans));
		CHECK_INT(rows[i].applied, rows[i].warnings, ans.decision.warning_count);
		kit_drop(&ans);
	}
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_what_is_created),
		cmocka_unit_test(judges_what_is_started),
		cmocka_unit_test(judges_commands),
		cmocka_unit_test(demands_filters_by_name),
		cmocka_unit_test(says_that_a_filter_is_not_used),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
