-- Profiles that differ in what they have filled in.

return {
	profile "closed" {
		doc = "A root file system that cannot be written.",
		images = { "reg.example/team/*" }, operations = { "container.run" },
		harden = { read_only = true },
	},
	profile "small" {
		doc = "Little memory, so little room for /tmp.",
		images = { "reg.example/team/*" }, operations = { "container.run" },
		harden = { read_only = true }, limits = { memory = "32MiB" },
	},
	profile "socket" {
		doc = "As ref, with the gate's own socket where the engine's is asked for.",
		images = { "reg.example/team/*" }, operations = { "container.run" }, networks = { "agents" },
		own_socket = true,
	},
	profile "adding" {
		doc = "An init, removal and labels.",
		images = { "reg.example/team/*" }, operations = { "container.run" },
		labels = { "team" }, restart = { "always" },
		harden = { init = true, auto_remove = true, labels = { team = "blue", tier = "low" } },
	},
	profile "open" {
		doc = "The engine's own network.",
		images = { "reg.example/team/*" }, operations = { "container.run" },
		harden = true, networks = { "bridge" },
	},
}
