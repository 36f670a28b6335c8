-- What a container would be: each row changes one thing of a request that is fine.

defaults {
	profile = "ref",
	identity = { name = "ann", owner = "ann", uid = 1000, gid = 1000 },
	facts = {
		operation = "container.create",
		workload = {
			image = {
				given = "reg.example/team/app:1",
				name = "reg.example/team/app",
				tag = "1",
				present = true,
				by_id = false,
				id = "sha256:aa",
				digests = { "reg.example/team/app@sha256:bb" },
			},
			command = { entrypoint_given = false, healthcheck = false },
			env = { "PATH", "HOME" },
			isolation = {
				level = "kernel",
				base = "kernel",
				runtime = "runsc",
				runtime_given = true,
				runtime_path = "/usr/bin/runsc",
				runtimes = {
					{ name = "runc", level = "process" },
					{ name = "runsc", level = "kernel" },
				},
				lowered = {},
			},
			privileged = false,
			capabilities = { add = {}, drop = { "ALL" }, drop_all = true },
			security = {},
			no_new_privileges = true,
			proc_paths = "default",
			user = { given = "1000", effective = "1000", root = false, groups = {} },
			read_only = false,
			init = false,
			namespaces = {},
			mounts = {
				{
					kind = "bind",
					source = "/srv/ws/a",
					given = "/srv/ws/a",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory", real = "/srv/ws/a", links = 0 },
					field = "HostConfig.Binds[0]",
				},
			},
			volumes_from = {},
			network = {
				mode = "agents",
				given = true,
				endpoints = {
					{
						name = "agents",
						settings = {},
						field = "NetworkingConfig.EndpointsConfig.agents",
					},
				},
				ports = {},
				publish_all = false,
				hosts = {},
				links = {},
			},
			devices = {},
			sysctls = {},
			limits = { memory = 1073741824, pids = 256, lifted = {} },
			restart = "no",
			auto_remove = true,
			log = { driver = "json-file", options = {} },
			annotations = {},
			storage_options = {},
			labels = {},
		},
	},
}

test "nothing wrong" { expect = "allow" }

test "nothing is known" { absent = { "workload" }, reason = "fact_unknown" }

test "one fact is not known" { absent = { "workload.devices" }, reason = "fact_unknown" }

test "the runtime's level is not known" { absent = { "workload.isolation.level" }, reason = "runtime" }

test "privileged" { facts = { workload = { privileged = true } }, reason = "privileged" }

test "a capability" {
	facts = { workload = { capabilities = { add = { { name = "SYS_ADMIN", field = "f" } } } } },
	reason = "capability",
}

test "all capabilities" {
	facts = { workload = { capabilities = { add = { { name = "ALL", field = "f" } } } } },
	reason = "capability",
}

test "a device" { facts = { workload = { devices = { { value = "/dev/sda", field = "f" } } } }, reason = "device" }

test "seccomp off" {
	facts = { workload = { security = { { name = "seccomp", value = "unconfined", field = "f" } } } },
	reason = "security_opt",
}

test "labels off" {
	facts = { workload = { security = { { name = "disable", value = "", field = "f" } } } },
	reason = "security_opt",
}

test "an option nobody knows" {
	facts = { workload = { security = { { name = "writable-cgroups", value = "", field = "f" } } } },
	reason = "security_opt",
}

test "the engine's own filter by name" {
	facts = { workload = { security = { { name = "seccomp", value = "builtin", field = "f" } } } },
	expect = "allow",
}

local tighter = '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}'
local everything = '{"defaultAction":"SCMP_ACT_ALLOW"}'

-- A filter of a request's own, as facts.
local function filter(text, more)
	local facts = { given = "own", profile = text, sha256 = "0", field = "f", machine = "amd64", available = true, applied = true }
	for name, value in pairs(more or {}) do facts[name] = value end
	return { workload = { seccomp = facts } }
end

test "an own filter that allows less than the engine's" { facts = filter(tighter), expect = "allow" }
test "one that allows everything" { facts = filter(everything), reason = "seccomp_more", field = "f" }
test "one that cannot be read" { facts = filter("{}"), reason = "seccomp_more" }
test "one on a processor that nobody knows" { facts = filter(tighter, { machine = "pdp11" }), reason = "seccomp_more" }
test "one that a runtime does not use is warned of" { facts = filter(tighter, { applied = false }), expect = "allow" }
test "less than a demanded one" { profile = "shell", facts = filter(tighter), expect = "allow" }
test "more than a demanded one" { profile = "shell", facts = filter(everything), reason = "seccomp_more" }
test "another one than the demanded, of which nothing is known" {
	profile = "shell", facts = { workload = { seccomp = { given = "own", sha256 = "0", available = true, field = "f" } } },
	reason = "seccomp_more",
}
test "a demanded one is not there" {
	profile = "shell", facts = { workload = { seccomp = { given = "default", available = true } } },
	reason = "seccomp_missing",
}
test "an engine that filters nothing" {
	profile = "shell", facts = filter(tighter, { available = false }), reason = "seccomp_missing",
}
test "a demanded AppArmor profile" {
	profile = "armoured",
	facts = { workload = { apparmor = { given = "strict", available = true },
		security = { { name = "apparmor", value = "strict", field = "f" } } } },
	expect = "allow",
}
test "another AppArmor profile" {
	profile = "armoured", facts = { workload = { apparmor = { given = "", available = true } } }, reason = "apparmor",
}
test "a host without AppArmor" {
	profile = "armoured", facts = { workload = { apparmor = { given = "strict", available = false } } },
	reason = "apparmor",
}

test "proc uncovered" { facts = { workload = { proc_paths = "changed" } }, reason = "masked_paths" }

test "the host's processes" {
	facts = { workload = { namespaces = { { name = "pid", mode = "host", field = "f" } } } },
	reason = "namespace",
}

test "a word nobody knows" {
	facts = { workload = { namespaces = { { name = "ipc", mode = "odd" } } } },
	reason = "namespace",
}

test "private is fine" {
	facts = {
		workload = {
			namespaces = {
				{ name = "ipc", mode = "private" },
				{ name = "ipc", mode = "shareable" },
			},
		},
	},
	expect = "allow",
}

test "another's container" {
	facts = {
		workload = {
			namespaces = { { name = "pid", mode = "container", target = "db", mine = false } },
		},
	},
	reason = "namespace_join",
}

test "a container of unknown owner" {
	facts = { workload = { namespaces = { { name = "pid", mode = "container", target = "db" } } } },
	reason = "namespace_join",
}

test "an own container" {
	facts = {
		workload = {
			namespaces = { { name = "pid", mode = "container", target = "a", mine = true } },
		},
	},
	expect = "allow",
}

test "no network" { facts = { workload = { network = { mode = "none", endpoints = {} } } }, expect = "allow" }

test "the default network" { facts = { workload = { network = { mode = "default", endpoints = {} } } }, reason = "network" }

test "a network of its own" { facts = { workload = { network = { mode = "prod", mine = true, endpoints = {} } } }, expect = "allow" }

test "another's that is called like those" { facts = { workload = { network = { mode = "{own}", mine = false, endpoints = {} } } }, reason = "network" }

test "another network" { facts = { workload = { network = { mode = "prod", endpoints = {} } } }, reason = "network" }

test "a network whose name begins like a granted one" { facts = { workload = { network = { mode = "agents2", endpoints = {} } } }, reason = "network" }

test "a second end point" {
	facts = {
		workload = {
			network = {
				endpoints = {
					{ name = "agents", settings = {} },
					{ name = "prod", settings = {} },
				},
			},
		},
	},
	reason = "network",
}

test "settings of an end point, the mode left open" {
	facts = {
		workload = {
			network = {
				mode = "default",
				given = false,
				endpoints = { { name = "agents", settings = { "IPAMConfig", "Aliases" } } },
			},
		},
	},
	reason = "network_endpoint",
}

test "an alias in an own network" {
	facts = {
		workload = {
			network = {
				mode = "agents",
				endpoints = { { name = "agents", mine = true, settings = { "Aliases" } } },
			},
		},
	},
	expect = "allow",
}

test "an alias in somebody else's network" {
	facts = {
		workload = {
			network = {
				mode = "agents",
				endpoints = { { name = "agents", mine = false, settings = { "Aliases" } } },
			},
		},
	},
	reason = "network_endpoint",
}

test "an address in an own network" {
	facts = {
		workload = {
			network = {
				mode = "agents",
				endpoints = {
					{
						name = "agents",
						mine = true,
						settings = { "IPAMConfig", "Aliases" },
					},
				},
			},
		},
	},
	reason = "network_endpoint",
}

test "the host's network" { facts = { workload = { network = { mode = "host", endpoints = {} } } }, reason = "network" }

test "another's network, without saying whose" { facts = { workload = { network = { mode = "container", endpoints = {} } } }, reason = "network" }

test "an own container's network" {
	facts = {
		workload = {
			network = { mode = "container", endpoints = {} },
			namespaces = { { name = "network", mode = "container", target = "a", mine = true } },
		},
	},
	expect = "allow",
}

test "a port on all addresses" {
	facts = { workload = { network = { ports = { { port = "22/tcp", address = "", field = "f" } } } } },
	reason = "port",
}

test "a port on 0.0.0.0" {
	facts = { workload = { network = { ports = { { port = "22/tcp", address = "0.0.0.0" } } } } },
	reason = "port",
}

test "a port on ::" {
	facts = { workload = { network = { ports = { { port = "22/tcp", address = "::" } } } } },
	reason = "port",
}

test "a port on a granted address" {
	facts = { workload = { network = { ports = { { port = "80/tcp", address = "127.0.0.1" } } } } },
	expect = "allow",
}

test "all ports" { facts = { workload = { network = { publish_all = true } } }, reason = "port" }

test "a host name" {
	facts = { workload = { network = { hosts = { { value = "h:1.2.3.4", field = "f" } } } } },
	reason = "extra_hosts",
}

test "a link" {
	facts = { workload = { network = { links = { { value = "db:x", field = "f" } } } } },
	reason = "link",
}

test "a log driver that dials out" { facts = { workload = { log = { driver = "syslog" } } }, reason = "log_driver" }

test "an option of a granted log driver" { facts = { workload = { log = { options = { "labels" } } } }, reason = "log_driver" }

test "even a harmless one, in a request" { facts = { workload = { log = { options = { "max-size" } } } }, reason = "log_driver" }

test "the engine's log driver" { absent = { "workload.log" }, expect = "allow" }

test "the host's root" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/",
					given = "/",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory", real = "/", links = 0 },
				},
			},
		},
	},
	reason = "bind",
}

test "the host's root, which holds the socket" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/",
					given = "/",
					target = "/w",
					read_only = false,
					options = {},
					host = {
						kind = "directory",
						real = "/",
						protected = "/run/x.sock",
					},
				},
			},
		},
	},
	reason = "bind",
}

test "a parent of the socket" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/run",
					given = "/run",
					target = "/w",
					read_only = false,
					options = {},
					host = {
						kind = "directory",
						real = "/run",
						protected = "/run/x.sock",
					},
				},
			},
		},
	},
	reason = "bind_protected",
}

test "read-only does not help" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/s",
					read_only = true,
					options = {},
					host = {
						kind = "directory",
						real = "/srv/ws/s",
						protected = "/srv/ws/s/x.sock",
					},
				},
			},
		},
	},
	reason = "bind_protected",
}

test "a sibling whose name begins alike" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws-evil",
					given = "/srv/ws-evil",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory", real = "/srv/ws-evil", links = 0 },
				},
			},
		},
	},
	reason = "bind",
}

test "dots in the path" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/../../etc",
					given = "/srv/ws/../../etc",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory", real = "/etc", links = 0 },
				},
			},
		},
	},
	reason = "bind",
}

test "the granted directory itself" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws",
					given = "/srv/ws",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory", real = "/srv/ws", links = 0 },
				},
			},
		},
	},
	expect = "allow",
}

test "a file below it" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/f",
					given = "/srv/ws/f",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "file", real = "/srv/ws/f", links = 0 },
				},
			},
		},
	},
	expect = "allow",
}

test "a link that leads out" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/link",
					given = "/srv/ws/link",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory", real = "/etc", links = 0 },
				},
			},
		},
	},
	reason = "bind_symlink",
}

test "a link that leads to the socket" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/link",
					given = "/srv/ws/link",
					target = "/w",
					read_only = false,
					options = {},
					host = {
						kind = "socket",
						real = "/run/x.sock",
						protected = "/run/x.sock",
					},
				},
			},
		},
	},
	reason = "bind_symlink",
}

test "a link that stays inside" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/link",
					given = "/srv/ws/link",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory", real = "/srv/ws/b", links = 0 },
				},
			},
		},
	},
	expect = "allow",
}

test "a place that others can put a link into" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/a",
					given = "/srv/ws/a",
					target = "/w",
					read_only = false,
					options = {},
					host = {
						kind = "directory",
						real = "/srv/ws/a",
						links = 0,
						movable = true,
					},
				},
			},
		},
	},
	reason = "bind_movable",
}

test "a path that nobody looked at" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/a",
					given = "/srv/ws/a",
					target = "/w",
					read_only = false,
					options = {},
				},
			},
		},
	},
	reason = "bind_symlink",
}

test "a path that could not be looked at" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/a",
					given = "/srv/ws/a",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "unknown" },
				},
			},
		},
	},
	reason = "bind_symlink",
}

test "a path whose end is not known" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/a",
					given = "/srv/ws/a",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "directory" },
				},
			},
		},
	},
	reason = "bind_symlink",
}

test "a path that is not there" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/n",
					given = "/srv/ws/n",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "absent", real = "/srv/ws/n" },
				},
			},
		},
	},
	reason = "bind",
}

test "a socket" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/s",
					given = "/srv/ws/s",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "socket", real = "/srv/ws/s", links = 0 },
				},
			},
		},
	},
	reason = "bind",
}

test "a device node" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/d",
					given = "/srv/ws/d",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "block", real = "/srv/ws/d", links = 0 },
				},
			},
		},
	},
	reason = "bind",
}

test "a fifo" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/p",
					given = "/srv/ws/p",
					target = "/w",
					read_only = false,
					options = {},
					host = { kind = "fifo", real = "/srv/ws/p", links = 0 },
				},
			},
		},
	},
	reason = "bind",
}

test "shared propagation" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/a",
					read_only = false,
					options = { "rshared" },
					host = { kind = "directory", real = "/srv/ws/a", links = 0 },
				},
			},
		},
	},
	reason = "propagation",
}

test "relabelling" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/a",
					read_only = false,
					options = { "Z" },
					host = { kind = "directory", real = "/srv/ws/a", links = 0 },
				},
			},
		},
	},
	reason = "propagation",
}

test "the propagation that is there anyway" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "bind",
					source = "/srv/ws/a",
					read_only = false,
					options = { "rprivate" },
					host = { kind = "directory", real = "/srv/ws/a", links = 0 },
				},
			},
		},
	},
	expect = "allow",
}

test "an own volume" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					source = "v",
					target = "/v",
					options = {},
					driver_options = false,
					mine = true,
				},
			},
		},
	},
	expect = "allow",
}

test "another's volume" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					source = "v",
					target = "/v",
					options = {},
					driver_options = false,
					mine = false,
				},
			},
		},
	},
	reason = "volume_owner",
}

test "a volume without a name" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					target = "/v",
					options = {},
					read_only = false,
				},
			},
		},
	},
	expect = "allow",
}

test "a volume without a name, by a driver" {
	facts = {
		workload = { mounts = { { field = "m", kind = "volume", target = "/v", driver = "x" } } },
	},
	reason = "volume_driver",
}

test "out of an image" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "image",
					source = "reg.example/team/data:1",
					subpath = "../x",
				},
			},
		},
	},
	reason = "volume_subpath",
}

test "a volume of unknown owner" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					source = "v",
					target = "/v",
					options = {},
					driver_options = false,
					exists = true,
				},
			},
		},
	},
	reason = "volume_owner",
}

test "another's volume, and out of it" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					source = "v",
					target = "/v",
					options = {},
					driver_options = false,
					mine = false,
					subpath = "../x",
				},
			},
		},
	},
	reason = "volume_owner",
}

test "a plain sub-path" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					source = "v",
					target = "/v",
					options = {},
					driver_options = false,
					mine = true,
					subpath = "a/b",
				},
			},
		},
	},
	expect = "allow",
}

test "a driver" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					source = "v",
					target = "/v",
					options = {},
					driver_options = false,
					mine = true,
					driver = "vieux/sshfs",
				},
			},
		},
	},
	reason = "volume_driver",
}

test "the local driver" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					source = "v",
					target = "/v",
					options = {},
					driver_options = false,
					mine = true,
					driver = "local",
				},
			},
		},
	},
	expect = "allow",
}

test "driver options" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "volume",
					mine = true,
					driver = "local",
					driver_options = true,
				},
			},
		},
	},
	reason = "driver_opts",
}

test "mounts of another" {
	facts = { workload = { volumes_from = { { name = "traefik", field = "f" } } } },
	reason = "volumes_from",
}

test "a sized tmpfs" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "tmpfs",
					target = "/t",
					options = { "noexec", "mode=1777" },
					tmpfs_bytes = 67108864,
				},
			},
		},
	},
	expect = "allow",
}

test "a tmpfs without a size" {
	facts = {
		workload = { mounts = { { field = "m", kind = "tmpfs", target = "/t", options = {} } } },
	},
	reason = "tmpfs",
}

test "a tmpfs above the limit" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "tmpfs",
					target = "/t",
					options = {},
					tmpfs_bytes = 536870912000,
				},
			},
		},
	},
	reason = "tmpfs",
}

test "exec on a tmpfs" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "tmpfs",
					target = "/t",
					options = { "exec" },
					tmpfs_bytes = 1048576,
				},
			},
		},
	},
	reason = "tmpfs",
}

test "suid on a tmpfs" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "tmpfs",
					target = "/t",
					options = { "suid" },
					tmpfs_bytes = 1048576,
				},
			},
		},
	},
	reason = "tmpfs",
}

test "dev on a tmpfs" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m",
					kind = "tmpfs",
					target = "/t",
					options = { "dev" },
					tmpfs_bytes = 1048576,
				},
			},
		},
	},
	reason = "tmpfs",
}

test "a granted image" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m", kind = "image", source = "reg.example/team/data:1",
					image = {
						name = "reg.example/team/data", tag = "1", by_id = false,
						digests = { "reg.example/team/data@sha256:dd" },
					},
				},
			},
		},
	},
	expect = "allow",
}

test "another image" {
	facts = {
		workload = { mounts = { { field = "m", kind = "image", source = "evil.example/x:1" } } },
	},
	reason = "image",
}

test "a kind of mount that nobody knows" {
	facts = { workload = { mounts = { { field = "m", kind = "hostfs", source = "/" } } } },
	reason = "mount_type",
}

test "a weaker runtime" {
	facts = { workload = { isolation = { level = "process", runtime = "runc" } } },
	reason = "runtime",
}

test "a stronger runtime" { facts = { workload = { isolation = { level = "vm" } } }, expect = "allow" }

test "a kernel setting" {
	facts = {
		workload = {
			sysctls = { { name = "net.ipv4.ip_forward", field = "f" } },
			cgroup_parent = "/s",
		},
	},
	reason = "sysctl",
}

test "another control group" { facts = { workload = { cgroup_parent = "/system.slice" } }, reason = "cgroup_parent" }

test "too much memory" { facts = { workload = { limits = { memory = 4294967296 } } }, reason = "limits" }

test "no limit of memory" { absent = { "workload.limits.memory" }, reason = "limits" }

test "no limit of processes" { absent = { "workload.limits.pids" }, reason = "limits" }

test "a limit that is none" { facts = { workload = { limits = { pids = -1 } } }, reason = "limits" }

test "gain of privileges" {
	facts = {
		workload = { security = { { name = "no-new-privileges", value = "false", field = "f" } } },
	},
	reason = "security_opt",
}

test "endless swap" { facts = { workload = { limits = { swap = -1 } } }, reason = "limits" }

test "swap as engines give it" { facts = { workload = { limits = { swap = 2147483648 } } }, expect = "allow" }

test "much shared memory" { facts = { workload = { limits = { shm = 8589934592 } } }, reason = "limits" }

test "a limit that is lifted" {
	facts = {
		workload = {
			limits = { lifted = { { field = "HostConfig.OomKillDisable", value = "true" } } },
		},
	},
	reason = "limits",
}

test "an option of the storage driver" { facts = { workload = { storage_options = { "size" } } }, reason = "limits" }

test "root" { facts = { workload = { user = { root = true, effective = "0" } } }, reason = "user" }

test "a user of unknown number" {
	facts = { workload = { user = { effective = "app" } } },
	absent = { "workload.user.root" },
	reason = "user",
}

test "a group of the host" {
	facts = { workload = { user = { groups = { { name = "docker", field = "f" } } } } },
	reason = "user",
}

test "root's group" { facts = { workload = { user = { groups = { { name = "0", field = "f" } } } } }, reason = "user" }

test "root's group with a sign" { facts = { workload = { user = { groups = { { name = "+0" } } } } }, reason = "user" }

test "a group that wraps to root's" { facts = { workload = { user = { groups = { { name = "4294967296" } } } } }, reason = "user" }

test "a group in hexadecimal" { facts = { workload = { user = { groups = { { name = "0x0" } } } } }, reason = "user" }

test "a group's name that reads as a number" { facts = { workload = { user = { groups = { { name = "0x7d0" } } } } }, reason = "user" }

test "a group's name with a space behind" { facts = { workload = { user = { groups = { { name = "2000 " } } } } }, reason = "user" }

test "a plain group" {
	facts = { workload = { user = { groups = { { name = "2000", field = "f" } } } } },
	expect = "allow",
}

test "a label of another tool" {
	facts = { workload = { labels = { { name = "traefik.enable", field = "f" } } } },
	reason = "label",
}

test "a label of the gate" {
	facts = { workload = { labels = { { name = "sallyport.owner", field = "f" } } } },
	reason = "label",
}

test "a label of compose" {
	facts = { workload = { labels = { { name = "com.docker.compose.project" } } } },
	expect = "allow",
}

test "restart always" { facts = { workload = { restart = "always" } }, reason = "restart" }

test "an annotation" {
	facts = { workload = { annotations = { "run.oci.keep_original_groups" } } },
	reason = "annotation",
}

test "a health check" { facts = { workload = { command = { healthcheck = true } } }, reason = "healthcheck" }

test "another image" { facts = { workload = { image = { name = "docker.io/library/busybox" } } }, reason = "image" }

test "a registry that begins alike" {
	facts = { workload = { image = { name = "reg.example.evil.test/team/app" } } },
	reason = "image",
}

test "another port of the registry" { facts = { workload = { image = { name = "reg.example:5000/team/app" } } }, reason = "image" }

test "a folder that begins alike" { facts = { workload = { image = { name = "reg.example/team-x/app" } } }, reason = "image" }

test "a folder further down" { facts = { workload = { image = { name = "reg.example/team/a/b" } } }, reason = "image" }

test "made on this machine" { facts = { workload = { image = { digests = {} } } }, reason = "image_local" }

test "an engine that cannot tell where the image came from" {
	absent = { "workload.image.digests" },
	reason = "image_local",
}

test "a mount of what was made on this machine" {
	facts = {
		workload = {
			mounts = {
				{
					field = "m", kind = "image", source = "reg.example/team/data:1",
					image = { name = "reg.example/team/data", tag = "1", by_id = false, digests = {} },
				},
			},
		},
	},
	reason = "image_local",
}

test "a granted image by digest" {
	facts = { workload = { image = { digest = "sha256:bb" } } },
	absent = { "workload.image.tag" },
	expect = "allow",
}

test "an id without names" {
	facts = { workload = { image = { by_id = true, names = {} } } },
	absent = { "workload.image.name" },
	reason = "image",
}

test "an id of another image" {
	facts = { workload = { image = { by_id = true, names = { "evil.example/x:1" } } } },
	absent = { "workload.image.name" },
	reason = "image",
}

test "an id of a granted image" {
	facts = {
		workload = {
			image = {
				by_id = true,
				names = { "evil.example/x:1", "reg.example/team/app@sha256:ab" },
			},
		},
	},
	absent = { "workload.image.name" },
	expect = "allow",
}

test "everything at once is all reported" {
	facts = { workload = { privileged = true, restart = "always", cgroup_parent = "/x" } },
	reason = "privileged",
}

test "start" { facts = { operation = "container.start" }, expect = "allow" }

test "start of something privileged" {
	facts = { operation = "container.start", workload = { privileged = true } },
	reason = "privileged",
}

test "restart" {
	facts = { operation = "container.restart", workload = { privileged = true } },
	reason = "privileged",
}

test "unpause" {
	facts = { operation = "container.unpause", workload = { privileged = true } },
	reason = "privileged",
}

test "labels were judged before" {
	facts = { operation = "container.start", workload = { labels = { { name = "maintainer" } } } },
	expect = "allow",
}

test "rotation is the engine's own" {
	facts = { operation = "container.start", workload = { log = { options = { "max-size" } } } },
	expect = "allow",
}

test "a container without facts" { facts = { operation = "container.start" }, absent = { "workload" }, reason = "fact_unknown" }

test "stopping needs no facts" { facts = { operation = "container.stop" }, absent = { "workload" }, expect = "allow" }

test "reading needs no facts" { facts = { operation = "container.list" }, absent = { "workload" }, expect = "allow" }

test "a command" {
	facts = {
		operation = "exec.create",
		workload = {
			exec = {
				privileged = false,
				user = "",
				root = false,
				program = "sh",
				env = { "A" },
			},
		},
	},
	expect = "allow",
}

test "nothing is known of it" { facts = { operation = "exec.create" }, reason = "fact_unknown" }

test "privileged" {
	facts = {
		operation = "exec.create",
		workload = { exec = { privileged = true, root = false, env = {} } },
	},
	reason = "exec_privileged",
}

test "privileged is not known" {
	facts = { operation = "exec.create", workload = { exec = { root = false, env = {} } } },
	reason = "exec_privileged",
}

test "as root" {
	facts = {
		operation = "exec.create",
		workload = { exec = { privileged = false, user = "0", root = true, env = {} } },
	},
	reason = "exec_user",
}

test "as nobody knows whom" {
	facts = {
		operation = "exec.create",
		workload = { exec = { privileged = false, user = "app", env = {} } },
	},
	reason = "exec_user",
}

test "with a library before all others" {
	facts = {
		operation = "exec.create",
		workload = { exec = { privileged = false, root = false, env = { "LD_PRELOAD" } } },
	},
	reason = "exec_env",
}

test "with a shell's start file" {
	facts = {
		operation = "exec.create",
		workload = { exec = { privileged = false, root = false, env = { "BASH_ENV" } } },
	},
	reason = "exec_env",
}

test "all of it" {
	facts = {
		operation = "exec.create",
		workload = { exec = { privileged = true, root = true, user = "0", env = { "LD_AUDIT" } } },
	},
	reason = "exec_privileged",
}

test "in a privileged container" {
	facts = {
		operation = "exec.start",
		workload = {
			privileged = true,
			exec = {
				privileged = false,
				user = "",
				root = false,
				program = "sh",
				env = { "A" },
			},
		},
	},
	reason = "privileged",
}

-- The engine's socket, and the one that stands for it (own_socket).

local function socket(host)
	host.kind = host.kind or "socket"
	return { workload = { mounts = { {
		kind = "bind", source = "/var/run/docker.sock", given = "/var/run/docker.sock",
		target = "/var/run/docker.sock", read_only = false, options = {}, host = host, field = "m",
	} } } }
end

test "the engine's socket" { facts = socket { control = "engine" }, reason = "bind_protected" }
test "the gate's own, where it is not granted" { facts = socket { control = "own" }, reason = "bind_protected" }
test "the gate's own" { profile = "socket", facts = socket { control = "own" }, expect = "allow" }
test "the engine's all the same" { profile = "socket", facts = socket { control = "engine" }, reason = "bind_protected" }
test "something else in its place" {
	profile = "socket", facts = socket { control = "own", kind = "file" }, reason = "bind_protected",
}
test "one that others can move" {
	profile = "socket", facts = socket { control = "own", movable = true }, reason = "bind_movable",
}

-- Who attaches talks to what runs in a container: it is judged as for a command.

for _, case in ipairs {
	{ "attaching to a container as it was made", {} },
	{ "attaching to a privileged container", { privileged = true }, "privileged" },
	{ "attaching to one with the host's processes", { namespaces = { { name = "pid", mode = "host" } } }, "namespace" },
	{ "attaching to one that is weaker than the profile", { isolation = { level = "none" } }, "runtime" },
	{ "attaching to one of another image", { image = { given = "miner:1", name = "docker.io/library/miner", digests = {} } }, "image" },
	{ "attaching to one in another network", { network = { mode = "office" } }, "network" },
	{ "attaching to one with a device", { devices = { { value = "/dev/sda" } } }, "device" },
} do
	test(case[1]) {
		facts = { operation = "container.attach", workload = case[2] },
		expect = case[3] and "deny" or "allow",
		reason = case[3],
	}
end

-- Copies into a container, which then runs what it was given: it is judged as if it were to be started.

for _, case in ipairs {
	{ "a copy into a container with a read-only bind", { mounts = { {
		kind = "bind", source = "/srv/ws/a", read_only = true, options = {},
		host = { kind = "directory", real = "/srv/ws/a", links = 0 },
	} } } },
	{ "a copy into a privileged container", { mounts = {}, privileged = true }, "privileged" },
	{ "a copy into one with the host's processes", { mounts = {}, namespaces = { { name = "pid", mode = "host" } } }, "namespace" },
	{ "a copy into one with a device", { mounts = {}, devices = { { value = "/dev/sda" } } }, "device" },
} do
	test(case[1]) {
		facts = { operation = "container.archive.put", workload = case[2] },
		expect = case[3] and "deny" or "allow",
		reason = case[3],
	}
end

-- Programs of the host, on a backend of kind "local".

for _, case in ipairs {
	{ "a program of the host, not granted", "ref", "confined", "kernel", "host_tools_not_granted" },
	{ "a program of the host", "tools", "confined", "process" },
	{ "... without walls", "tools", "bare", "process", "host_tools_not_granted" },
	{ "... of a runtime nobody knows", "bare", "runsc", "kernel", "host_tools_not_granted" },
	{ "... without walls, where that is granted", "bare", "bare", "none" },
	{ "... confined, where more is granted", "bare", "confined", "process" },
	{ "... below the profile's minimum", "tools", "confined", "none", "runtime" },
} do
	test(case[1]) {
		profile = case[2],
		facts = { workload = { host_tools = case[3], isolation = { level = case[4] },
			image = { given = "host", name = "docker.io/library/host", tag = "latest", digests = {} } } },
		expect = case[5] and "deny" or "allow",
		reason = case[5],
	}
end

test "a profile that wants a kernel says what would reach it" {
	facts = { workload = { host_tools = "confined", isolation = { level = "process", base = "process",
		runtime = "confined", runtimes = { { name = "confined", level = "process" } } } } },
	reason = "runtime",
}
