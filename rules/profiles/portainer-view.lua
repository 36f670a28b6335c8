-- portainer-view.lua - Portainer as a window: everything is shown, nothing works.
--
-- Its buttons are all there; what they ask for is refused, and Portainer shows
-- the gate's reason.

return profile "portainer-view" {
	doc = "Portainer, to look at containers, images, networks and volumes, with their output.",

	operations = {
		"system.ping", "system.version", "system.info", "system.events", "system.df",
		"container.list", "container.inspect", "container.stats", "container.top",
		"container.logs",
		"image.list", "image.inspect", "image.history",
		"network.list", "network.inspect", "volume.list", "volume.inspect",
	},

	-- "data" lets output be read.  Leave it out if that is not wanted.
	visibility = { { all = true, access = "data" }, { all = true, kinds = { "images" } } },
	redact = { "env", "mounts" },
}
