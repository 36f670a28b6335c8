-- The profile that build.cases are judged by.

return profile "ref" {
	doc = "Whoever may build with the classic builder.",
	isolation = { min = "process" },
	images = { "reg.example/team/*", "docker.io/library/alpine" },
	networks = { "agents" },
	limits = { memory = "2GiB" },
	users = "nonroot",
	harden = true,
	operations = { "read", "image.build" },
}
