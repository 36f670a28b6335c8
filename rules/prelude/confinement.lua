-- Security options, and the parts of /proc and /sys that the engine covers up.
--
-- A list of what is safe, not of what is dangerous: an option that nobody here
-- has heard of is refused.  The engine's own filter, named, changes nothing.

local harmless = { ["seccomp"] = "builtin", ["apparmor"] = "docker-default" }

-- A filter of the request's own, and an AppArmor profile that is demanded, have checks of their own.
local function judged_below(req, granted, option)
	if option.name == "seccomp" then return get(req.workload, "seccomp.given") == "own" end
	return option.name == "apparmor" and granted.apparmor ~= "" and option.value == granted.apparmor
end

check "security_opt" {
	doc = "Confinement by seccomp, AppArmor and labels stays as the engine sets it.",
	concerns = what_runs_or_builds,
	reasons = { "security_opt" },
	judge = function(req, granted)
		for option in each(get(req.workload, "security")) do
			local same = harmless[option.name]
			local fine = same and option.value == same
			if not fine and not judged_below(req, granted, option) then
				refuse("security_opt", { field = option.field,
					value = option.name .. "=" .. (option.value or "") })
			end
		end
	end,
}

-- The filter of system calls: the one that is demanded, or one that is shown to allow no more, call
-- by call and condition by condition.  Where none is demanded that is measured by the engine's own.

-- What the request's own allows beyond the one that is demanded: a list of texts.
local function beyond(w, demanded)
	local filter = w.seccomp
	if filter.sha256 == seccomp_sha256(demanded) then return {} end
	if not filter.profile then return { "something: it is another one than is demanded" } end
	return seccomp_more(filter.profile, demanded, filter.machine or "",
		get(w, "capabilities.add") or {}, get(w, "capabilities.drop_all") and { "ALL" }
		or get(w, "capabilities.drop") or {})
end

check "seccomp" {
	doc = "The filter of system calls is the one that the profile demands, or a tighter one.",
	concerns = what_runs,
	reasons = { "seccomp_more", "seccomp_missing" },
	judge = function(req, granted)
		local demanded = granted.seccomp
		local filter = get(req.workload, "seccomp")
		local given = filter and filter.given
		if demanded ~= "default" and get(filter, "available") ~= true then
			refuse("seccomp_missing", { field = "HostConfig.SecurityOpt",
				text = "this engine takes no filter of system calls, so not \"" .. demanded .. "\" either",
				hint = "Use a backend whose engine takes it, as Docker's does." })
		elseif demanded ~= "default" and given == "default" then
			refuse("seccomp_missing", { field = "HostConfig.SecurityOpt",
				text = "the container has not the filter of system calls \"" .. demanded .. "\"" })
		elseif given == "own" then
			for what in each(beyond(req.workload, demanded)) do
				refuse("seccomp_more", { field = filter.field, value = what,
					text = "the filter of system calls allows more than \"" .. demanded
						.. "\": " .. what })
			end
		end
		if given == "own" and filter.applied == false then
			warn("this runtime has a kernel of its own, which does not use the filter of system calls")
		end
	end,
}

check "apparmor" {
	doc = "The AppArmor profile is the one that the profile demands.",
	concerns = what_runs,
	reasons = { "apparmor" },
	judge = function(req, granted)
		if granted.apparmor == "" then return end
		local given = get(req.workload, "apparmor.given")
		if given ~= granted.apparmor then
			refuse("apparmor", { field = "HostConfig.SecurityOpt", value = given or "" })
		elseif get(req.workload, "apparmor.available") ~= true then
			refuse("apparmor", { field = "HostConfig.SecurityOpt", value = given,
				text = "the engine does not say that its host has AppArmor, and would leave it out" })
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
