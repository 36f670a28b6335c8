-- tests/cases/quota.cases: the file of facts says that 2 containers run with 2 GiB and 2 processors,
-- that there are 3 volumes and 1 GiB of images, and nothing of processes.

local function quoted(quota)
	return profile "ref" {
		doc = "Little of everything in sum.",
		isolation = { min = "process" },
		images = { "reg.example/team/*" },
		operations = { "read", "container.run", "container.update", "volume.use", "image.pull" },
		harden = true,
		quota = quota,
	}
end

return quoted { containers = 3, memory = "3GiB", cpus = 3, volume_count = 4, images = "1GiB" }
