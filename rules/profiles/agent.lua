-- agent.lua - a first profile for an agent that runs code in containers.
--
-- It works on an engine as it comes (runc), so the isolation is that of
-- processes: namespaces, seccomp and dropped capabilities on the host's own
-- kernel.  For code that nobody has read use a profile with
-- isolation = { min = "kernel" } and an engine that offers gVisor.
--
-- What a profile does not name is not granted.  `sallyport explain` says for
-- any request what was understood, which check refused it, and what would pass.

return profile "agent" {
	doc = "An agent that runs commands in containers of its own, without network.",

	-- Globs over registry/repository[:tag][@digest].  Without a tag, every tag
	-- and digest of that name is granted.  `*` stays within one part of the
	-- name, `**` does not.  What is meant is what that registry has: images that
	-- are made or named on this machine are granted by local_images = { ... }.
	images = {
		"docker.io/library/busybox:latest",
		"docker.io/library/alpine",
		"docker.io/library/python",
	},

	-- Operations, classes or groups of them: looking around, running containers
	-- of its own, commands in them, copying files in and out, and fetching the
	-- images above.
	operations = { "read", "container.run", "exec", "container.copy", "image.pull", "volume.use" },

	isolation = { min = "process" },

	-- No way out: only the network "none".
	egress = {},

	-- A directory of the host for each caller could be granted like this:
	-- mounts = { { "/srv/agents/{identity.name}", "rw" } },

	-- The most that one container may have.
	limits = { memory = "1GiB", cpus = 2, pids = 256 },

	-- What a request leaves open is filled in: the network "none", no
	-- capabilities, no gain of privileges, a user other than root, the limits.
	harden = true,
}
