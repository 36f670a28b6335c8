-- tiers.lua - four profiles for code of four degrees of trust.
--
-- The question is who decides what the code does.  The less that is you, the
-- stronger the wall, and the narrower the way out.  Copy this file, put your
-- images in, and extend these profiles rather than changing them: a profile that
-- extends one of them can only be tighter.

-- Where team images come from; everything below starts with none but these.
local images = { "reg.example/team/**" }

return {
	-- Programs that your own people wrote and reviewed: linters, formatters, test
	-- runners.  What they may do wrong is a bug, not an attack, so the walls of an
	-- ordinary container will do, with everything switched off that is not needed.
	profile "predefined-tools" {
		doc = "Reviewed tools: ordinary containers, no privileges, no network but listed ones.",
		isolation = { min = "process" },
		images = images,
		operations = { "read", "container.run", "container.copy", "exec", "image.pull", "volume.use" },
		mounts = { { "/srv/agents/{identity.name}/work", "rw" } },
		networks = { "tools" },            -- made by you, with a way out to what tools need
		limits = { memory = "4GiB", cpus = 4, pids = 1024 },
		harden = true,
	},

	-- Reviewed programs that read what strangers wrote: mails, web pages, archives,
	-- documents.  A parser that is taken over runs the stranger's code, so the
	-- host's kernel must not be within reach: gVisor, at least.
	profile "external-data" {
		doc = "Reviewed tools on hostile input: a kernel of their own, one narrow way out.",
		isolation = { min = "kernel" },
		images = images,
		operations = { "read", "container.run", "container.copy", "exec", "image.pull" },
		mounts = { { "/srv/datasets", "ro" } },
		networks = { "fetch" },            -- made by you: it reaches the proxy that fetches, and nothing else
		limits = { memory = "2GiB", cpus = 2, pids = 512 },
		harden = { read_only = true },
	},

	-- Code that a model wrote.  Nobody has read it before it runs, and whoever can
	-- talk to the model can have it written.  Treat as hostile: a kernel of its own,
	-- seen to be one after the start, and no network at all.
	profile "model-code" {
		doc = "Code that a model wrote: a kernel of its own, no network, nothing of the host.",
		isolation = { min = "kernel", attested = true },
		images = images,
		operations = { "read", "container.run", "container.copy", "exec" },
		mounts = {},
		egress = {},
		limits = { memory = "1GiB", cpus = 1, pids = 256 },
		harden = { read_only = true },
	},

	-- Code that needs a graphics processor.  gVisor passes much of the device's
	-- driver interface on to the host's kernel driver, a large program that was not
	-- written to be attacked; that is less than a kernel of its own.  So: a virtual
	-- machine with the device handed over to it, or a hosted sandbox.  No backend of
	-- this version reaches that, and so every launch is refused, on purpose.
	profile "gpu-code" {
		doc = "Code on a graphics processor: virtual machines only, because gVisor is not enough.",
		isolation = { min = "vm" },
		images = images,
		operations = { "read", "container.run", "exec" },
		mounts = {},
		egress = {},
		limits = { memory = "16GiB", cpus = 8, pids = 1024 },
		harden = true,
	},
}
