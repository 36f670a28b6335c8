-- docker-cli-read.lua - a person or a script that looks, with Docker's command line.
--
-- docker ps, inspect, images, stats, top, events, info, system df, network ls,
-- volume ls.  Not: logs, cp, export, save, diff of other people's containers.

return profile "docker-cli-read" {
	doc = "Looking around with Docker's command line; nothing can be changed or read out.",

	-- By name, and not the class "read": that holds container.changes as well, and
	-- whatever a later version adds to it.
	operations = {
		"system.ping", "system.version", "system.info", "system.events", "system.df",
		"container.list", "container.inspect", "container.stats", "container.top",
		"image.list", "image.inspect", "image.history",
		"network.list", "network.inspect", "volume.list", "volume.inspect",
	},

	visibility = { { all = true } },               -- everything, to be looked at
	redact = { "env", "mounts" },
}
