-- What the tests of quotas are judged by.

return profile "quoted" {
	doc = "Little of everything in sum.",
	isolation = { min = "process" },
	images = { "reg.example/team/*" },
	networks = { "agents" },
	operations = {
		"container.run", "container.update", "container.commit", "volume.use",
		"image.pull", "image.load", "image.import",
	},
	quota = {
		containers = 3, memory = "1GiB", cpus = 2, pids = 100,
		volume_count = 2, volumes = "1MiB", images = "1MiB",
	},
}
