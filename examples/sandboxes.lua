-- What sandboxes of examples/sandboxes.conf may be.  A caller can ask for a profile that extends its own.
return {
	profile "sandboxes" {
		doc        = "Sandboxes without a network, in ordinary containers.",
		images     = { "docker.io/library/python:3.12" },
		egress     = {},
		limits     = { memory = "1GiB", cpus = 2, pids = 256 },
		quota      = { containers = 16, memory = "8GiB" },
		operations = { "read", "container.run", "exec", "container.copy" },
		sandbox    = { image = "docker.io/library/python:3.12", lifetime = "30m", idle = "5m", disk = "128MiB" },
		harden     = true,
	},
	profile "sandboxes-kernel" {
		doc       = "The same with a kernel of their own (gVisor).",
		extends   = "sandboxes",
		isolation = { min = "kernel" },
	},
}
