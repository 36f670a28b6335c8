-- Security options, and the parts of /proc and /sys that the engine covers up.
--
-- A list of what is safe, not of what is dangerous: an option that nobody here
-- has heard of is refused.  The engine's own filter, named, changes nothing.

local harmless = { ["seccomp"] = "builtin", ["apparmor"] = "docker-default" }

check "security_opt" {
	doc = "Confinement by seccomp, AppArmor and labels stays as the engine sets it.",
	concerns = what_runs_or_builds,
	reasons = { "security_opt" },
	judge = function(req)
		for option in each(get(req.workload, "security")) do
			local same = harmless[option.name]
			if not same or option.value ~= same then
				refuse("security_opt", { field = option.field,
					value = option.name .. "=" .. (option.value or "") })
			end
		end
	end,
}

check "masked_paths" {
	doc = "The protection of /proc and /sys stays as the engine sets it.",
	concerns = what_runs_or_builds,
	reasons = { "masked_paths" },
	judge = function(req)
		local paths = get(req.workload, "proc_paths")
		if paths ~= nil and paths ~= "default" then
			refuse("masked_paths", { field = "proc_paths", value = paths })
		end
	end,
}
