-- portainer.lua - Portainer as people use it to run a host, within bounds.
--
-- Portainer's administrators are whoever knows its password; on the engine's own
-- socket each of them is root on the host.  Here they run containers of the
-- images below, without privileges, and without the host's files.  What is
-- older than the gate can be stopped and looked at, and be started again, run a
-- command, be talked to (container.attach) or be given files only if it keeps within
-- these bounds, too.

return profile "portainer" {
	doc = "Portainer, to run containers of listed images on a host, without becoming root on it.",

	images = {                                    -- yours, and those of people you trust
		"docker.io/library/*",
		"docker.io/portainer/*",
	},

	operations = {
		"system.ping", "system.version", "system.info", "system.events", "system.df",
		"container.list", "container.inspect", "container.stats", "container.top",
		"container.changes", "container.run", "container.rename", "container.copy",
		"exec", "exec.inspect",
		"image.list", "image.inspect", "image.history", "image.pull", "image.remove",
		"network.list", "network.inspect", "network.use",
		"volume.list", "volume.inspect", "volume.use",
	},

	visibility = "all",                           -- and with all of it, whose ever it is
	networks = { "*" },                           -- but never the host's own
	ports = { "*" },
	users = "any",                                -- most images of applications start as root
	restart = { "always", "unless-stopped", "on-failure" },
	healthchecks = true,
	labels = { "io.portainer.**", "org.opencontainers.**" }, -- and those of compose, for stacks
	limits = { memory = "8GiB", pids = 4096 },
	harden = true,
}
