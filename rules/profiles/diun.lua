-- diun.lua - Diun, which says when an image has a newer version.
--
-- It compares the digests of images with those of their registries, which it
-- asks itself.

return profile "diun" {
	doc = "Diun's Docker provider: which containers run which images.",

	operations = {
		"system.ping", "system.version", "system.info",
		"container.list", "container.inspect",
		"image.list", "image.inspect",             -- the digest that is here
	},

	-- All containers, to be looked at; with DIUN_PROVIDERS_DOCKER_WATCHBYDEFAULT=false
	-- { { label = "diun.enable=true" }, { all = true, kinds = { "images" } } } is enough.
	visibility = { { all = true, kinds = { "containers", "images" } } },

	redact = { "env", "mounts" },
}
