-- Trusted tools of this host (compilers, linters, git), for agents that need no image.
--
-- They run on a backend of kind "local": each in a sandbox that the gate's own keeper makes, which
-- sees the folders named there, read-only, and nothing else of the host: no network, no other
-- process, no files. That is the level "process": the host's kernel is what holds. For code that
-- nobody has read take a backend with gVisor or a virtual machine.
--
-- /etc/sallyport/gate.conf:
--
--	log { dir = "/var/log/sallyport" }
--	backend "host" {
--		kind = "local", address = "unix:///run/sallyport/keeper.sock",
--		state = "/var/lib/sallyport-keeper", files = "same_host",
--		read_only = { "/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache" },
--	}
--	listener "agents" { socket = "/run/sallyport/agents.sock", group = "agents", otherwise = "local-tools" }
--	profiles { "/etc/sallyport/profiles" }
--
-- Then: docker -H unix:///run/sallyport/agents.sock run --rm -i host wc -l < file

return profile "local-tools" {
	doc        = "Tools of this host, each in a sandbox of the gate's own.",
	isolation  = { min = "process", attested = true }, -- what runs must have been seen to be held
	host_tools = "confined",
	mounts     = { { "/srv/work/{identity.name}", "rw" } }, -- writable by the keeper's user
	limits     = { memory = "1GiB", cpus = 1, pids = 128 },
	quota      = { containers = 4 },
	rate       = { launch = "30/min" },
	harden     = true, -- no network, no capabilities, limits, where nothing is said
	operations = { "read", "container.run", "exec", "container.copy" },
}
