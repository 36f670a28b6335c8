-- dozzle.lua - Dozzle, which shows the output of containers.
--
-- Output is the point here, so everybody who may open Dozzle reads whatever
-- programs print: addresses of users, tokens in URLs, stack traces.  Its buttons
-- (start, stop, restart) and its shell are not granted.

return profile "dozzle" {
	doc = "Dozzle: lists containers and follows their output; changes nothing.",

	operations = {
		"system.ping", "system.version", "system.info", "system.events",
		"container.list", "container.inspect", "container.stats",
		"container.logs",
	},

	-- "data" is what makes logs readable.  To leave containers out, give those
	-- that may be read a label and say { label = "dozzle=true", access = "data" }.
	visibility = { { all = true, access = "data", kinds = { "containers" } } },

	redact = { "env", "mounts" },
}
