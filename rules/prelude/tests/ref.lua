-- What the tests of the standard checks are judged by: a strict profile, so
-- that each check has something to refuse.  It is no profile to start from;
-- rules/profiles has those.

return profile "ref" {
	doc = "Strict: kernel isolation, one network beside its own, binds below /srv/ws.",
	isolation = { min = "kernel", runtimes = { "runsc", "kata" } },
	images = { "reg.example/team/*", "docker.io/library/alpine" },
	mounts = { { "/srv/ws", "rw" } },
	networks = { "agents", "{own}" },
	ports = { "127.0.0.1" },
	limits = { memory = "2GiB", pids = 512 },
	users = "nonroot",
	harden = true,
	operations = {
		"read", "container.run", "exec", "container.copy", "image.pull", "image.push",
		"image.tag", "image.save", "container.commit", "registry.search", "image.import",
		"volume.use", "network.use",
	},
}
