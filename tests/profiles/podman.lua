-- podman.lua - ref.lua for Podman, which cannot tell where an image came from: names are granted as they stand.

return profile "ref" {
	doc = "Strict: kernel isolation, one network, binds below /srv/ws.",
	isolation = { min = "kernel", runtimes = { "runsc", "kata" } },
	images = { "reg.example/team/*", "docker.io/library/alpine" },
	local_images = { "reg.example/team/*", "docker.io/library/alpine" },
	mounts = { { "/srv/ws", "rw" } },
	networks = { "agents" },
	ports = { "127.0.0.1" },
	limits = { memory = "2GiB", pids = 512 },
	users = "nonroot",
	harden = true,
	operations = {
		"read", "container.run", "exec", "container.copy", "image.pull", "volume.use", "network.use",
	},
}
