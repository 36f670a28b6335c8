-- github-runner.lua - a GitHub Actions runner whose jobs and actions run in containers.
--
-- The runner mounts the engine's socket into every job container.  It gets a
-- socket of the gate instead (own_socket), on which the job is the very same
-- caller; examples in testcontainers.lua show the two listeners that this needs.
-- What a workflow writes below `options:` is free text of whoever wrote the
-- workflow, and is judged like everything else.

return profile "github-runner" {
	doc = "Job, service and action containers of a GitHub Actions runner.",

	images = { "docker.io/library/*", "ghcr.io/actions/*" },

	operations = {
		"read", "container.run", "container.copy", "exec", "image.pull", "network.use",
		"network.prune", "container.prune", "volume.use",
	},

	-- The runner's own folders; jobs write there as root, so the file system of
	-- _work must be mounted nosuid and nodev.
	mounts = {
		{ "/home/runner/_work", "rw" },
		{ "/home/runner/externals", "ro" },
	},
	users = "any",
	own_socket = true,

	networks = { "default", "{own}" },            -- it makes one a job
	ports = { "127.0.0.1" },                      -- of service containers
	healthchecks = true,                          -- services come with one
	labels = { "??????" },                        -- the runner's own: six digits of a hash
	limits = { memory = "8GiB", pids = 4096 },
	harden = true,
}
