-- Profiles that build.

return {
	profile "builder" {
		doc = "Builds from the team's images.",
		images = { "reg.example/team/*" }, operations = { "image.build" },
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
