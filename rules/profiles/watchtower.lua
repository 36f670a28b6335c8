-- watchtower.lua - a profile for Watchtower, which looks for newer images and
-- makes the containers again from them: stop, remove, create, start.
--
-- Without `update` a profile for that would have to grant whatever any container
-- on the host has: its mounts, its ports, its capabilities.  With it the profile
-- grants nothing of that, and each container gets what the one before it had.
-- What the profile would not let come back is not stopped either.
--
-- Other tools that work alike (Portainer's "recreate", Diun with a script) can
-- extend this one.  `sallyport help settings` has every word of `update`.

return profile "watchtower" {
	doc = "Watchtower: makes containers again from newer images of the same repositories, as they were.",

	-- What it asks for.  Nothing here reads logs, copies files or runs commands
	-- in containers: its lifecycle hooks would need "exec".
	operations = {
		"system.ping", "system.version", "system.info", "system.events",
		"container.list", "container.inspect", "container.wait",
		"image.list", "image.inspect",
		"image.pull",                                            -- the newer image
		"container.stop", "container.kill", "container.remove",  -- the old container
		"container.rename",                                      -- its own, when it updates itself
		"container.create", "container.start",                   -- the new one
		"network.inspect", "network.disconnect", "network.connect", -- whose networks it joins one by one
		"image.remove",                                          -- --cleanup
	},

	-- The images that may be fetched and run.  Name your own; a repository that
	-- is not here is not updated, and its containers are not stopped.
	images = { "docker.io/library/*" },

	-- The containers that it sees, and may do all of the above with.  With
	-- WATCHTOWER_LABEL_ENABLE=true it looks for this very label.  The new
	-- container has the labels of the old one, so it is seen as well.
	visibility = { { label = "com.centurylinklabs.watchtower.enable=true", access = "full" } },

	-- How a container is made again:
	-- within: a container that was removed may come again for so long.
	-- fresh = true would grant containers that replace none; it makes none.
	-- privileged = true would let privileged containers, those with devices, and
	-- those with the engine's socket (Traefik, Portainer, Watchtower itself) come
	-- again as they were.  Whoever controls this tool then has the host.
	update = { within = "10m" },

	-- What a container is isolated by must not be less than this.  Without
	-- `privileged` it is what keeps such containers from being touched.
	isolation = { min = "process" },
}
