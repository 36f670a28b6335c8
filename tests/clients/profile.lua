-- A profile that grants what the clients of these tests need for their ordinary work.

return profile "clients" {
	doc = "Whoever runs ordinary containers with ordinary tools.",
	isolation = { min = "process" },
	images = { "reg.example/team/*" },
	local_images = { "reg.example/team/big" }, -- loaded by the tests
	mounts = { { "@SHARE@", "rw" } },
	networks = { "default", "*" },
	ports = { "*" },
	users = "any",
	labels = { "com.docker.compose.*", "org.testcontainers**", "team.*" },
	healthchecks = true,
	restart = { "on-failure", "unless-stopped" },
	limits = { memory = "4GiB" },
	harden = true,
	operations = {
		"read", "container.run", "container.copy", "container.rename", "container.update",
		"container.export", "exec", "image.pull", "image.load", "image.remove", "image.save",
		"image.build", "volume.use", "network.use", "registry.search", "system.auth",
	},
}
