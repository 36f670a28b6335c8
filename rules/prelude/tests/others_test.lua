-- Commands, images, volumes, networks and copies.

defaults { profile = "ref", identity = { name = "ann", owner = "ann" } }

test "a granted image" {
	facts = {
		operation = "image.pull",
		workload = { pull = { name = "reg.example/team/app", tag = "1" } },
	},
	expect = "allow",
}

test "by digest" {
	facts = {
		operation = "image.pull",
		workload = { pull = { name = "reg.example/team/app", tag = "sha256:ab" } },
	},
	expect = "allow",
}

test "all tags" {
	facts = { operation = "image.pull", workload = { pull = { name = "reg.example/team/app" } } },
	reason = "image_tag",
}

test "another registry" {
	facts = {
		operation = "image.pull",
		workload = { pull = { name = "reg.example.evil.test/team/app", tag = "1" } },
	},
	reason = "image",
}

test "another registry, all tags" {
	facts = { operation = "image.pull", workload = { pull = { name = "evil.example/x" } } },
	reason = "image",
}

test "nothing is known of it" { facts = { operation = "image.pull" }, reason = "fact_unknown" }

test "a tag over a granted name" {
	facts = { operation = "image.tag", workload = { names = { "reg.example/team/app:1" } } },
	reason = "image_retag",
}

test "a plain volume" {
	facts = { operation = "volume.create", workload = { volume = { options = {} } } },
	expect = "allow",
}

test "a bind in disguise" {
	facts = {
		operation = "volume.create",
		workload = { volume = { driver = "local", options = { "device", "o" } } },
	},
	reason = "driver_opts",
}

test "a driver" {
	facts = {
		operation = "volume.create",
		workload = { volume = { driver = "vieux/sshfs", options = { "sshcmd" } } },
	},
	reason = "volume_driver",
}

test "a volume with a foreign label" {
	facts = {
		operation = "volume.create",
		workload = { volume = { options = {} }, labels = { { name = "traefik.enable" } } },
	},
	reason = "label",
}

test "an internal bridge" {
	facts = {
		operation = "network.create",
		workload = { net = { driver = "bridge", internal = true, options = {} } },
	},
	expect = "allow",
}

test "a bridge with a way out" {
	facts = {
		operation = "network.create",
		workload = { net = { driver = "bridge", internal = false, options = {} } },
	},
	reason = "network_create",
}

test "a network on an interface of the host" {
	facts = {
		operation = "network.create",
		workload = { net = { driver = "macvlan", internal = true, options = { "parent" } } },
	},
	reason = "network_create",
}

test "nothing is known of it" { facts = { operation = "network.create" }, reason = "fact_unknown" }

test "connecting to another network" {
	facts = {
		operation = "network.connect",
		workload = { network = { endpoints = { { name = "prod", settings = { "Aliases" } } } } },
	},
	reason = "network",
}

test "connecting to a granted network" {
	facts = {
		operation = "network.connect",
		workload = { network = { endpoints = { { name = "agents", settings = {} } } } },
	},
	expect = "allow",
}

test "connecting to nobody knows what" {
	facts = { operation = "network.connect", workload = { network = { endpoints = {} } } },
	reason = "network",
}

test "renaming is closed" { facts = { operation = "container.rename" }, reason = "rename" }

test "export is closed" { facts = { operation = "container.export" }, reason = "export" }

-- Copies: what is written into a container lands in what it mounts, as root.

for _, case in ipairs({
	{ "a copy into a writable bind", "container.archive.put", false, "bind" },
	{ "a copy out of a writable bind", "container.archive.get", false, nil },
}) do
	test(case[1]) {
		facts = {
			operation = case[2],
			workload = { mounts = { {
				kind = "bind", source = "/srv/ws/a", read_only = case[3], options = {},
				host = { kind = "directory", real = "/srv/ws/a", links = 0 },
			} } },
		},
		expect = case[4] and "deny" or "allow",
		reason = case[4],
	}
end

test "a copy into nobody knows what" { facts = { operation = "container.archive.put" }, reason = "fact_unknown" }

-- Images by other names, sent away, saved, and made of containers.

local granted = {
	given = "reg.example/team/app:1", name = "reg.example/team/app", tag = "1",
	digests = { "reg.example/team/app@sha256:bb" },
}
local other = { given = "reg.example/x:1", name = "reg.example/x", tag = "1" }

test "a granted image gets another name" {
	facts = { operation = "image.tag", workload = { image = granted, names = { "reg.example/mine:1" } } },
	expect = "allow",
}
test "a name on the list for other content" {
	facts = { operation = "image.tag", workload = { image = granted, names = { "reg.example/team/new:1" } } },
	reason = "image_retag",
}
test "a name for an image that is not on the list" {
	facts = { operation = "image.tag", workload = { image = other, names = { "reg.example/mine:1" } } },
	reason = "image",
}
test "pushing all tags of an image" {
	facts = { operation = "image.push", workload = { image = { name = "reg.example/team/app" } } },
	reason = "image_tag",
}
test "pushing one tag" { facts = { operation = "image.push", workload = { image = granted } }, expect = "allow" }
test "saving a granted image" {
	facts = { operation = "image.save", workload = { images = { granted } } }, expect = "allow",
}
test "saving another one with it" {
	facts = { operation = "image.save", workload = { images = { granted, other } } }, reason = "export",
}
test "saving nobody knows what" { facts = { operation = "image.save" }, reason = "fact_unknown" }

test "an own container becomes an image" {
	facts = {
		operation = "container.commit", object = { kind = "container", mine = true },
		workload = { names = { "reg.example/mine:1" }, command = { healthcheck = false } },
	},
	expect = "allow",
}
test "somebody else's does not" {
	facts = {
		operation = "container.commit", object = { kind = "container", mine = false },
		workload = { command = { healthcheck = false } },
	},
	reason = "owner",
}
test "nor does one with a health check that is not granted" {
	facts = {
		operation = "container.commit", object = { kind = "container", mine = true },
		workload = { command = { healthcheck = true } },
	},
	reason = "healthcheck",
}

test "a search in a registry of the list" {
	facts = { operation = "registry.search", workload = { registry = { host = "reg.example" } } },
	expect = "allow",
}
test "a search elsewhere" {
	facts = { operation = "registry.search", workload = { registry = { host = "evil.example" } } },
	reason = "registry",
}
test "a search nobody knows where" { facts = { operation = "registry.search" }, reason = "fact_unknown" }
test "a question about a repository that is not on the list" {
	facts = {
		operation = "registry.search",
		workload = { registry = { host = "reg.example", name = "reg.example/x" } },
	},
	reason = "registry", field = "registry.name",
}

-- Commands in a container: judged with what the container is.

local command = { privileged = false, user = "1000", root = false, env = {} }

for _, case in ipairs({
	{ "privileged", { privileged = true }, "exec_privileged" },
	{ "privileges that are not known", { privileged = "?" }, "exec_privileged" },
	{ "as root", { root = true, user = "0" }, "exec_user" },
	{ "with a loader's variable", { env = { "LANG", "LD_PRELOAD" } }, "exec_env" },
}) do
	local exec = {}
	for key, value in pairs(command) do exec[key] = value end
	for key, value in pairs(case[2]) do exec[key] = value end
	test("a command " .. case[1]) {
		facts = { operation = "exec.create", workload = { exec = exec } },
		reason = case[3],
	}
end

test "a command that nobody knows" { facts = { operation = "exec.create", workload = { env = {} } }, reason = "fact_unknown" }

-- Imports, which only an operator can want.

test "an import of an uploaded file" {
	facts = { operation = "image.import", workload = { names = { "reg.example/mine:1" } } }, expect = "allow",
}
test "an import of a URL" {
	facts = { operation = "image.import", workload = { pull = { url = "http://10.0.0.1/x" } } },
	reason = "import_url",
}
test "a pull of a URL" {
	facts = { operation = "image.pull", workload = { pull = { url = "http://10.0.0.1/x" } } },
	reason = "import_url",
}
test "a volume that nobody knows" { facts = { operation = "volume.create" }, reason = "fact_unknown" }
