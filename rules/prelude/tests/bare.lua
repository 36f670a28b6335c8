-- Beside tools.lua: also without walls.

return profile "bare" {
	doc = "Programs of the host, as they are.",
	isolation = { min = "none" },
	host_tools = "bare",
	mounts = { { "/srv/ws", "rw" } },
	networks = { "agents" },
	operations = { "read", "container.run", "exec" },
}
