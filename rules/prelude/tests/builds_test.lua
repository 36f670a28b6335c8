-- Builds: what a Dockerfile takes, fetches and is called, and BuildKit's tunnels.

local base = {
	given = "reg.example/team/app:1", name = "reg.example/team/app", tag = "1",
	digests = { "reg.example/team/app@sha256:bb" },
}

local function build(parts)
	local of = { runs = false, images = { base }, urls = {}, taken = {} }
	for key, value in pairs(parts or {}) do of[key] = value end
	return { operation = "image.build", workload = { build = of, names = { "reg.example/mine:1" } } }
end

-- What its steps would be: containers as the engine makes them, nothing added.
local step = {
	privileged = false, capabilities = { add = {} }, security = {}, proc_paths = "default",
	user = { root = false, groups = {} }, namespaces = {}, devices = {}, mounts = {}, volumes_from = {},
	network = { mode = "none", endpoints = {}, ports = {}, hosts = {}, links = {} },
	sysctls = {}, limits = { lifted = {} }, annotations = {}, storage_options = {}, restart = "no",
	isolation = { level = "process", base = "process", runtime = "runc" },
}

defaults { profile = "builder", identity = { name = "ann", uid = 1000 }, facts = { workload = step } }

test "from an image of the list" { facts = build(), expect = "allow" }
test "from another one" {
	facts = build { images = { base, { given = "evil", name = "docker.io/library/evil", tag = "latest" } } },
	reason = "image",
}
test "from one that was made here" {
	facts = build { images = { { given = "x", name = "reg.example/team/app", tag = "1", digests = {} } } },
	reason = "image_local",
}
test "one that fetches a URL" {
	facts = build { urls = { { value = "http://169.254.169.254/", field = "Dockerfile:3" } } },
	reason = "import_url", field = "Dockerfile:3",
}
test "one that takes the name of somebody's image" {
	facts = build { taken = { "reg.example/theirs:1" } }, reason = "image_retag",
}
test "one of which nobody knows what it fetches" {
	facts = build(), absent = { "workload.build.urls" }, reason = "fact_unknown",
}
test "an archive of images" {
	profile = "loader", facts = { operation = "image.load", workload = {} }, expect = "allow",
}
test "an archive, which could claim to be one's own" {
	profile = "loader-own", facts = { operation = "image.load", workload = {} }, reason = "image_retag",
}
test "BuildKit, where nobody takes what he cannot see" {
	facts = { operation = "image.build", workload = { opaque = "buildkit" } }, reason = "buildkit",
}
test "BuildKit, where the profile takes it" {
	profile = "opaque", facts = { operation = "system.session", workload = { opaque = "buildkit" } }, expect = "allow",
}
test "BuildKit, which would reach a network that is not granted" {
	profile = "opaque-closed", facts = { operation = "system.session", workload = { opaque = "buildkit" } },
	reason = "buildkit",
}

-- The classic builder cannot bound the processes of its steps.
test "steps without a limit of processes" {
	profile = "bounded", facts = build { runs = true }, reason = "limits", field = "limits.pids",
}
test "the same, where containers alone have one" {
	profile = "bounded-containers", facts = build { runs = true }, expect = "allow",
}
