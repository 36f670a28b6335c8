-- Beside ref.lua: the host's own programs, in a sandbox.

return profile "tools" {
	doc = "Programs of the host, confined.",
	host_tools = "confined",
	mounts = { { "/srv/ws", "rw" } },
	networks = { "agents" },
	operations = { "read", "container.run", "exec" },
}
