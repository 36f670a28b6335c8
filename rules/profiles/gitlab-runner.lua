-- gitlab-runner.lua - GitLab's runner with its docker executor.
--
-- The runner itself talks to the gate; its jobs have no socket.  Builds of images
-- inside of jobs (docker-in-docker) want privileged mode and are refused: use a
-- builder that needs none, or a machine that is thrown away.

return profile "gitlab-runner" {
	doc = "Build, service and helper containers of a GitLab runner (docker executor).",

	images = {
		"registry.gitlab.com/gitlab-org/gitlab-runner/gitlab-runner-helper",
		"docker.io/library/*",
	},

	operations = {
		"read", "container.run", "container.copy", "exec", "image.pull", "network.use",
		"volume.use",
	},

	-- Caches and the checked-out sources are volumes that the runner makes; it
	-- needs no path of the host.
	mounts = {},
	users = "any",                                -- the helper runs as root

	networks = { "default", "{own}" },            -- FF_NETWORK_PER_BUILD makes one a job
	healthchecks = true,
	labels = { "com.gitlab.gitlab-runner.**" },
	limits = { memory = "8GiB", pids = 4096 },
	harden = true,
}
