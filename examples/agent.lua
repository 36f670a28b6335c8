-- What a coding agent may do with a Docker engine: run the team's images, its own containers only, without
-- network and without anything of the host. Everything that is not granted here is denied.

local function agent(name, isolation)
	return profile(name) {
		doc          = "An AI agent that runs code it wrote. Treat as hostile.",
		isolation    = isolation,
		images       = { "reg.example/team/*" },                       -- what that registry has
		local_images = { "quickstart/app" },                           -- made on this machine, here by examples/quickstart
		mounts       = {},
		egress       = {},                                            -- no network
		limits       = { memory = "1GiB", cpus = 1, pids = 256 },
		operations   = { "read", "container.run", "exec", "container.copy" },
		harden       = true,                                          -- fill in what a request leaves out
	}
end

return {
	agent("sandboxed-agent", { min = "kernel", runtimes = { "runsc" } }),  -- gVisor between it and the kernel
	agent("contained-agent", { min = "process" }),                         -- an ordinary container
}
