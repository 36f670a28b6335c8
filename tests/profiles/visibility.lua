-- visibility.lua - the policy that tests/cases/visibility.cases is written against: its name is that of ref.lua.

return profile "ref" {
	doc = "Shows objects of others: some to be looked at, some to be read, some to be changed.",
	images = { "reg.example/team/*", "docker.io/library/alpine" },
	visibility = {
		"own",
		{ name = "traefik" },
		{ name = "db", access = "data" },
		{ label = "sandbox=shared", access = "full" },
		{ name = "gate", access = "full" },
		{ name = "prod-*", kinds = { "networks" } },
		{ name = "reg.example/team/*", kinds = { "images" } },
	},
	operations = { "read", "container.run", "exec", "container.copy", "container.export",
		"container.update", "container.rename", "image.remove", "image.save", "volume.use",
		"network.use", "container.prune", "volume.prune" },
	users = "any",
	harden = true,
}
