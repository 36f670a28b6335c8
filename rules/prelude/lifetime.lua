-- How long a container lives, and what starts inside it unasked.

-- When the engine restarts a container by itself it mounts everything anew,
-- without asking the gate.

check "restart" {
	doc = "Restart policies outlive the session; the profile must name them.",
	concerns = {
		"container.create", "container.start", "container.restart", "container.unpause",
		"container.attach", "exec.create", "exec.start", "container.update",
	},
	reasons = { "restart" },
	judge = function(req, granted)
		local policy = get(req.workload, "restart")
		if policy == nil or policy == "" or policy == "no" then return end
		-- What the engine starts again by itself is not looked at, so it cannot be attested.
		if granted.isolation.attested then
			refuse("restart", { field = "restart", value = policy,
				hint = "This profile runs only what the kernel was asked about after its start; "
					.. "use no restart policy." })
		end
		if not glob(granted.restart, policy) then
			refuse("restart", { field = "restart", value = policy,
				hint = "Restart policies that may be used: "
					.. (#granted.restart > 0 and "no, " .. listed(granted.restart) or "no")
					.. "." })
		end
		for mount in each(get(req.workload, "mounts")) do
			if mount.kind == "bind" and get(mount, "host.movable") == true then
				refuse("restart", { field = mount.field, value = mount.given or mount.source,
					text = "the engine would mount this path again by itself and follow a "
						.. "link that somebody other than root may have put there",
					hint = "Use no restart policy with this path." })
			end
		end
	end,
}

check "annotation" {
	doc = "No annotations: runtimes take switches from them.",
	concerns = what_runs,
	reasons = { "annotation" },
	judge = function(req)
		for name in each(get(req.workload, "annotations")) do
			refuse("annotation", { field = "annotations", value = name })
		end
	end,
}

check "healthcheck" {
	doc = "No health check of the caller's, which no exec rule sees, unless healthchecks = true.",
	concerns = { "container.create", "image.build" },
	reasons = { "healthcheck" },
	judge = function(req, granted)
		if get(req.workload, "command.healthcheck") == true and not granted.healthchecks then
			refuse("healthcheck", { field = "command.healthcheck", value = true })
		end
	end,
}
