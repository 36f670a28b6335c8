-- Profiles that build.

return {
	profile "builder" {
		doc = "Builds from the team's images.",
		images = { "reg.example/team/*" }, operations = { "image.build" },
	},
	profile "bounded" {
		doc = "Builds, and would bound the processes of their steps, which no builder does.",
		images = { "reg.example/team/*" }, operations = { "image.build" }, local_images = { "reg.example/team/*" },
		isolation = { min = "process" }, users = "any", limits = { pids = 100 },
	},
	profile "bounded-containers" {
		doc = "Bounds the processes of containers alone.",
		images = { "reg.example/team/*" }, operations = { "image.build", "container.run" },
		isolation = { min = "process" }, users = "any", limits = { container_pids = 100 },
	},
	profile "loader" {
		doc = "Loads images that others run.",
		images = { "reg.example/team/*" }, operations = { "image.load" },
	},
	profile "loader-own" {
		doc = "Would run what it loads as its own.",
		images = { "reg.example/team/*" }, operations = { "image.load" }, own_images = true,
	},
	profile "opaque" {
		doc = "Takes what BuildKit does unseen.",
		images = { "reg.example/team/*" }, operations = { "image.build", "system.session" },
		networks = { "bridge" }, opaque = { "buildkit" },
	},
	profile "opaque-closed" {
		doc = "Likewise, but has no network for it.",
		images = { "reg.example/team/*" }, operations = { "image.build", "system.session" },
		opaque = { "buildkit" },
	},
}
