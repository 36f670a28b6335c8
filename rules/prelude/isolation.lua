-- How well what runs is held: none < process < kernel < vm.
--
-- The level is a fact about the backend.  It starts from the runtime's program
-- and arguments and is lowered by whatever in the request lowers it.

local strength = { none = 0, process = 1, kernel = 2, vm = 3 }

local function why_lower(isolation)
	local parts = {}
	for low in each(isolation.lowered) do
		table.insert(parts, (low.field or "?") .. " (" .. (low.why or low.value or "?") .. ")")
	end
	return #parts > 0 and "; lowered by " .. listed(parts) or ""
end

local function good_enough(isolation, min)
	local names = {}
	for runtime in each(isolation.runtimes) do
		if (strength[runtime.level or "none"] or 0) >= strength[min] then
			table.insert(names, runtime.name)
		end
	end
	return names
end

-- Plainly, where nothing that this backend has would do.
local function what_it_has(isolation, min)
	local have = {}
	for runtime in each(isolation.runtimes) do
		table.insert(have, (runtime.name or "?") .. " is " .. (runtime.level or "none"))
	end
	if #have == 0 then
		return "Nothing that this backend offers is known to reach " .. min .. "."
	end
	return "No runtime of this backend reaches " .. min .. ": " .. listed(have)
		.. ". Only a backend that does can serve this profile; `sallyport doctor` goes through all of them."
end

check "runtime" {
	doc = "At least the isolation that the profile asks for.",
	concerns = { "container.create", "container.start", "container.restart", "container.unpause",
		"container.attach", "exec.create", "exec.start", "image.build", "system.session" },
	reasons = { "runtime" },
	judge = function(req, granted)
		if not req.workload then return end
		if get(req.workload, "build.runs") == false then return end -- nothing runs
		local isolation = req.workload.isolation or {}
		local min = granted.isolation.min
		local level = isolation.level
		if strength[level or ""] and strength[level] >= strength[min] then return end
		local text = "the isolation would be " .. (level or "unknown") .. ", the profile asks for "
			.. min .. why_lower(isolation)
		local good = good_enough(isolation, min)
		local hint = #good == 0 and what_it_has(isolation, min)
			or "Runtimes of this engine that reach it: " .. listed(good) .. "."
		if get(req.workload, "host_tools") and strength[min] > strength.process then
			hint = "This backend runs programs on the host's own kernel, so it reaches process at most:"
				.. " use one with gVisor or virtual machines."
		end
		for name in each(good) do
			-- Where this runtime would do, any other would be lowered just the same.
			if name == isolation.runtime then hint = "Leave out what lowers it." end
		end
		refuse("runtime", { field = "isolation.runtime", value = isolation.runtime,
			unknown = level == nil, text = text,
			hint = hint })
	end,
}
