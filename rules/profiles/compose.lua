-- compose.lua - docker compose, for a project of one's own.
--
-- Compose labels what it makes (com.docker.compose.*; the gate lets those labels
-- pass) and finds its things by them again, among the caller's own only: two
-- callers may have projects of the same name.

return profile "compose" {
	doc = "docker compose up, down, logs, exec and ps, for projects of the caller's own.",

	images = { "docker.io/library/*" },

	operations = {
		"read", "container.run", "container.rename", "container.copy", "exec", "image.pull",
		"network.use", "volume.use",
	},

	-- The networks that its projects make, whatever they are called: a pattern such
	-- as "*_*" would fit other people's projects, too.  Those of `external: true`
	-- are named here by you.  What it makes has a way out because "default" is
	-- granted; without it networks must say internal: true.
	networks = { "default", "{own}" },
	ports = { "127.0.0.1" },
	users = "any",
	restart = { "always", "unless-stopped", "on-failure" },
	healthchecks = true,
	limits = { memory = "4GiB", pids = 4096 },
	harden = true,
}
