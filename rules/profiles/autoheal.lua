-- autoheal.lua - autoheal (and Homarr), which restarts containers that are not healthy.
--
-- A restart starts a container anew, with all its mounts, and so it is judged
-- like one: what may be restarted is what keeps within the lines below.  A
-- privileged container, or one with paths of the host that are not listed, is
-- refused, with the reason on record: it is for a person to restart.

return profile "autoheal" {
	doc = "Restarts containers that carry the label autoheal=true; makes and removes none.",

	operations = {
		"system.ping", "system.version",
		"container.list", "container.inspect",
		"container.restart",
	},

	-- "full", since it changes what it sees.  Who may set this label decides what
	-- is restarted.
	visibility = { { label = "autoheal=true", access = "full", kinds = { "containers" } } },

	images = { "docker.io/library/*" },           -- of the containers that may be restarted
	networks = { "default", "*_default" },
	ports = { "*" },
	users = "any",
	restart = { "always", "unless-stopped", "on-failure" },
	redact = { "env", "mounts" },
}
