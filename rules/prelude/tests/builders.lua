-- Profiles that build.

return {
	profile "builder" {
		doc = "Builds from the team's images.",
		images = { "reg.example/team/*" }, operations = { "image.build" },
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
