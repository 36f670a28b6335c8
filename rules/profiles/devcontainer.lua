-- devcontainer.lua - development containers, as editors start them by the dev container command line.
--
-- It runs docker itself: version, ps with a label, pull, run with the workspace
-- mounted, exec, events.  "Features" that ask for privileged mode or for
-- capabilities are refused; the refusal names the field, and
-- "runArgs" or the feature's "privileged" is what to change.

return profile "devcontainer" {
	doc = "Development containers of one's own, with the workspace mounted.",

	images = { "mcr.microsoft.com/devcontainers/*", "mcr.microsoft.com/vscode/**" },
	own_images = true,

	operations = {
		"read", "container.run", "container.copy", "exec", "image.pull", "image.build",
		"image.tag", "volume.use",
	},

	-- The workspace is written from inside, and these images start as root.  Root
	-- can leave set-user-id files there: keep /workspaces on a file system that is
	-- mounted nosuid and nodev, or the developer is root on the host.
	mounts = { { "/workspaces/{identity.name}", "rw" } },
	users = "any",

	networks = { "default" },
	ports = { "127.0.0.1" },
	labels = { "devcontainer.**", "vsch.**" },
	-- Of containers alone: the classic builder cannot limit the processes of a RUN, and
	-- under `pids` none would be built.  Without image.build above say pids = 4096.
	limits = { memory = "8GiB", container_pids = 4096 },
	harden = true,
}
