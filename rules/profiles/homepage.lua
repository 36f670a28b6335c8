-- homepage.lua - Homepage, a start page that shows what runs and how it does.

return profile "homepage" {
	doc = "Homepage's Docker widgets: the state and the use of containers.",

	operations = {
		"system.ping", "system.version",
		"container.list", "container.inspect",
		"container.stats",                         -- once, for memory and processor
	},

	-- What is to be shown is named in Homepage's own files or by labels
	-- homepage.*; only the latter: { { label = "homepage.name" } }.
	visibility = { { all = true, kinds = { "containers" } } },

	redact = { "env", "mounts" },
}
