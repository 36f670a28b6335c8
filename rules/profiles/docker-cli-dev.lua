-- docker-cli-dev.lua - a developer with Docker's command line, on a machine that others use as well.
--
-- docker run, exec, logs, cp, pull, build (the classic builder), networks and
-- volumes: own ones only.  Other people's containers are not there.

return profile "docker-cli-dev" {
	doc = "A developer's own containers, with Docker's command line.",

	images = { "docker.io/library/*" },
	own_images = true,                            -- what was built here may run

	operations = {
		"read", "container.run", "container.copy", "container.rename", "container.update",
		"exec", "image.pull", "image.build", "network.use", "volume.use",
	},

	-- Sources are read from the home directory.  Not "rw": containers may run as
	-- root, and root's files with the set-user-id bit in a directory of the host
	-- are root on the host.  Where users = "nonroot" will do, "rw" is fine.
	mounts = { { "/home/{identity.name}/src", "ro" } },
	users = "any",

	networks = { "default", "{own}" },            -- and whatever docker network create made
	ports = { "127.0.0.1" },                      -- for the developer, not for the office
	healthchecks = true,
	labels = { "dev.**" },
	-- Of containers alone: the classic builder cannot limit the processes of a RUN, and
	-- under `pids` none would be built.  Without image.build above say pids = 2048.
	limits = { memory = "4GiB", cpus = 4, container_pids = 2048 },
	harden = true,
}
