-- What an owner has in sum: each row changes one quantity of a start that just fits.

defaults {
	profile = "quoted",
	identity = { name = "ann", owner = "ann", uid = 1000, gid = 1000 },
	facts = {
		operation = "container.start",
		object = { kind = "container", id = "ab", name = "web", mine = true },
		quota = {
			used = {
				containers = 2, memory = 1000000000, nano_cpus = 1500000000, pids = 60,
				volume_count = 1, volumes = 1000, images = 1000,
			},
			asked = {
				containers = 1, memory = 73741824, nano_cpus = 500000000, pids = 40,
				volume_count = 1, volumes = 1, images = 1,
			},
			by = { "web", "db" },
		},
		workload = {
			image = {
				given = "reg.example/team/app:1", name = "reg.example/team/app", tag = "1",
				present = true, by_id = false, id = "sha256:aa",
				digests = { "reg.example/team/app@sha256:bb" },
			},
			command = { entrypoint_given = false, healthcheck = false },
			env = {},
			isolation = {
				level = "process", base = "process", runtime = "runc", runtime_given = true,
				runtimes = { { name = "runc", level = "process" } }, lowered = {},
			},
			privileged = false,
			capabilities = { add = {}, drop = { "ALL" }, drop_all = true },
			security = {},
			no_new_privileges = true,
			proc_paths = "default",
			user = { given = "1000", effective = "1000", root = false, groups = {} },
			namespaces = {},
			mounts = {},
			volumes_from = {},
			network = {
				mode = "none", given = true, endpoints = {}, ports = {}, publish_all = false,
				hosts = {}, links = {},
			},
			devices = {},
			sysctls = {},
			limits = { memory = 73741824, nano_cpus = 500000000, pids = 40, lifted = {} },
			restart = "no",
			log = { options = {} },
			annotations = {},
			storage_options = {},
			labels = {},
		},
	},
}

test "the last that fits" { expect = "allow" }

test "too much: containers" {
	facts = { quota = { asked = { containers = 2 } } },
	reason = "quota_exceeded",
}

test "others have more by now: containers" {
	facts = { quota = { used = { containers = 1 << 40 } } },
	reason = "quota_exceeded",
}

test "there is too much, but nothing comes to it: containers" {
	facts = { quota = { used = { containers = 1 << 40 }, asked = { containers = 0 } } },
	expect = "allow",
}

test "not counted: containers" {
	absent = { "quota.used.containers" },
	reason = "fact_unknown",
}

test "not known what comes: containers" {
	absent = { "quota.asked.containers" },
	reason = "fact_unknown",
}

test "too much: memory" {
	facts = { quota = { asked = { memory = 73741825 } } },
	reason = "quota_exceeded",
}

test "others have more by now: memory" {
	facts = { quota = { used = { memory = 1 << 40 } } },
	reason = "quota_exceeded",
}

test "there is too much, but nothing comes to it: memory" {
	facts = { quota = { used = { memory = 1 << 40 }, asked = { memory = 0 } } },
	expect = "allow",
}

test "not counted: memory" {
	absent = { "quota.used.memory" },
	reason = "fact_unknown",
}

test "not known what comes: memory" {
	absent = { "quota.asked.memory" },
	reason = "fact_unknown",
}

test "too much: nano_cpus" {
	facts = { quota = { asked = { nano_cpus = 500000001 } } },
	reason = "quota_exceeded",
}

test "others have more by now: nano_cpus" {
	facts = { quota = { used = { nano_cpus = 1 << 40 } } },
	reason = "quota_exceeded",
}

test "there is too much, but nothing comes to it: nano_cpus" {
	facts = { quota = { used = { nano_cpus = 1 << 40 }, asked = { nano_cpus = 0 } } },
	expect = "allow",
}

test "not counted: nano_cpus" {
	absent = { "quota.used.nano_cpus" },
	reason = "fact_unknown",
}

test "not known what comes: nano_cpus" {
	absent = { "quota.asked.nano_cpus" },
	reason = "fact_unknown",
}

test "too much: pids" {
	facts = { quota = { asked = { pids = 41 } } },
	reason = "quota_exceeded",
}

test "others have more by now: pids" {
	facts = { quota = { used = { pids = 1 << 40 } } },
	reason = "quota_exceeded",
}

test "there is too much, but nothing comes to it: pids" {
	facts = { quota = { used = { pids = 1 << 40 }, asked = { pids = 0 } } },
	expect = "allow",
}

test "not counted: pids" {
	absent = { "quota.used.pids" },
	reason = "fact_unknown",
}

test "not known what comes: pids" {
	absent = { "quota.asked.pids" },
	reason = "fact_unknown",
}

test "without a limit: memory" {
	facts = { quota = { asked = { memory = -1 } } },
	reason = "quota_exceeded",
}

test "another is without a limit: memory" {
	facts = { quota = { used = { memory = -1 } } },
	reason = "quota_exceeded",
}

test "without a limit: nano_cpus" {
	facts = { quota = { asked = { nano_cpus = -1 } } },
	reason = "quota_exceeded",
}

test "another is without a limit: nano_cpus" {
	facts = { quota = { used = { nano_cpus = -1 } } },
	reason = "quota_exceeded",
}

test "without a limit: pids" {
	facts = { quota = { asked = { pids = -1 } } },
	reason = "quota_exceeded",
}

test "another is without a limit: pids" {
	facts = { quota = { used = { pids = -1 } } },
	reason = "quota_exceeded",
}

test "container.create" {
	facts = { operation = "container.create", quota = { asked = { containers = 2 } } },
	reason = "quota_exceeded",
}

test "container.restart" {
	facts = { operation = "container.restart", quota = { asked = { containers = 2 } } },
	reason = "quota_exceeded",
}

test "container.update" {
	facts = { operation = "container.update", quota = { asked = { containers = 2 } } },
	reason = "quota_exceeded",
}

test "a stop makes room" {
	facts = { operation = "container.stop" },
	absent = { "quota" },
	expect = "allow",
}

test "nothing was counted" {
	absent = { "quota" },
	reason = "fact_unknown",
}

test "somebody else's container" {
	facts = { object = { mine = false } },
	absent = { "quota" },
	expect = "allow",
}

test "a create has no owner yet" {
	facts = { operation = "container.create", object = { mine = false } },
	absent = { "quota" },
	reason = "fact_unknown",
}

test "volumes are too large: no start" {
	facts = { quota = { used = { volumes = 1048576 } } },
	reason = "quota_exceeded",
}

test "nobody says how large" {
	absent = { "quota.used.volumes" },
	reason = "fact_unknown",
}

test "a create that makes volumes" {
	facts = { operation = "container.create", quota = { asked = { volume_count = 2 } } },
	reason = "quota_exceeded",
}

test "the last volume" {
	facts = { operation = "volume.create", workload = { volume = { options = {} } } },
	expect = "allow",
}

test "one volume too many" {
	facts = { operation = "volume.create", workload = { volume = { options = {} } }, quota = { used = { volume_count = 2 } } },
	reason = "quota_exceeded",
}

test "volumes are too large: no more" {
	facts = { operation = "volume.create", workload = { volume = { options = {} } }, quota = { used = { volumes = 2000000 } } },
	reason = "quota_exceeded",
}

test "a pull" {
	facts = { operation = "image.pull", workload = { pull = { name = "reg.example/team/app", tag = "1" } } },
	expect = "allow",
}

test "images are too large: image.pull" {
	facts = { operation = "image.pull", workload = { pull = { name = "reg.example/team/app", tag = "1" } }, quota = { used = { images = 1048576 } } },
	reason = "quota_exceeded",
}

test "images are too large: image.load" {
	facts = { operation = "image.load", workload = { pull = { name = "reg.example/team/app", tag = "1" } }, quota = { used = { images = 1048576 } } },
	reason = "quota_exceeded",
}

test "images are too large: image.import" {
	facts = { operation = "image.import", workload = { pull = { name = "reg.example/team/app", tag = "1" } }, quota = { used = { images = 1048576 } } },
	reason = "quota_exceeded",
}

test "images are too large: container.commit" {
	facts = { operation = "container.commit", workload = { pull = { name = "reg.example/team/app", tag = "1" } }, quota = { used = { images = 1048576 } } },
	reason = "quota_exceeded",
}

test "what runs is judged again: nothing comes to it" {
	facts = {
		operation = "container.restart",
		quota = { asked = { containers = 0, memory = 0, nano_cpus = 0, pids = 0, volumes = 0 } },
	},
	absent = { "quota.used" },
	expect = "allow",
}
