-- traefik.lua - Traefik, which reads labels of containers and routes to them.
--
-- It asks for five things and changes nothing.  Whoever takes Traefik over, a
-- program that the whole internet talks to, learns from this socket what the engine
-- shows of the containers that it routes to (names, labels, addresses, commands,
-- settings, but neither environments nor mounts), when they start and end, and the
-- engine's version; of other containers nothing.

return profile "traefik" {
	doc = "Traefik's Docker provider: events, the list of containers, and each of them.",

	operations = {
		"system.ping", "system.version",           -- it agrees on the API version first
		"system.events",                           -- and then hears of what starts and ends
		"container.list", "container.inspect",     -- labels, networks and addresses
	},

	-- Only what says that it is to be routed to.  This is Traefik's setting
	-- exposedByDefault=false; where that is true, say { { all = true } } here.
	visibility = { { label = "traefik.enable=true" } },

	-- Passwords of the applications behind it are in their environments.
	redact = { "env", "mounts" },
}
