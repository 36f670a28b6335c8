-- Whoever builds images with the classic builder, and runs what was built; and whoever may use BuildKit.

local common = { "read", "container.run", "image.build", "image.remove", "network.use" }

return {
	profile "builders" {
		images = { "reg.example/team/*" },
		networks = { "default", "*" },
		users = "any",
		own_images = true,
		labels = { "com.docker.compose.*", "team.*" },
		limits = { memory = "1GiB" },
		harden = true,
		operations = common,
	},
	profile "tunnels" {
		images = { "reg.example/team/*" },
		networks = { "default" },
		users = "any",
		opaque = { "buildkit" },
		operations = { "read", "image.build", "system.session" },
	},
}
