-- Settings of the kernel, and the control group that holds the limits.

check "sysctl" {
	doc = "No kernel settings.",
	concerns = what_runs_or_builds,
	reasons = { "sysctl" },
	judge = function(req)
		for setting in each(get(req.workload, "sysctls")) do
			refuse("sysctl", { field = setting.field, value = setting.name })
		end
	end,
}

check "cgroup_parent" {
	doc = "Containers stay in the engine's own control group.",
	concerns = what_runs_or_builds,
	reasons = { "cgroup_parent" },
	judge = function(req)
		local parent = get(req.workload, "cgroup_parent")
		if parent ~= nil and parent ~= "" then
			refuse("cgroup_parent", { field = "cgroup_parent", value = parent })
		end
	end,
}
