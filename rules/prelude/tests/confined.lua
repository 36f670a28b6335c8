-- Profiles that demand filters by name.

return {
	profile "shell" {
		doc = "A shell without sockets.",
		isolation = { min = "process" }, images = { "reg.example/team/*" }, operations = { "container.run" },
		mounts = { { "/srv/ws", "rw" } }, networks = { "agents" },
		seccomp = "tight-shell", harden = true,
	},
	profile "armoured" {
		doc = "An AppArmor profile that must be there.",
		isolation = { min = "process" }, images = { "reg.example/team/*" }, operations = { "container.run" },
		mounts = { { "/srv/ws", "rw" } }, networks = { "agents" },
		apparmor = "strict", harden = true,
	},
}
