-- How much a container may take.
--
-- Where the profile sets a limit, a container must have one and not a higher
-- one: for an engine "not given" means "as much as there is".

-- A size as people write it: 4294967296 is 4GiB.
local function size(n)
	if n > 0 and n % 1073741824 == 0 then return n // 1073741824 .. "GiB" end
	if n > 0 and n % 1048576 == 0 then return n // 1048576 .. "MiB" end
	return n .. " bytes"
end

check "limits" {
	doc = "Limits that the profile sets are kept, and no setting lifts or escapes them.",
	concerns = {
		"container.create", "container.start", "container.restart", "container.unpause",
		"container.attach", "exec.create", "exec.start", "container.update", "image.build",
	},
	reasons = { "limits", "fact_unknown" },
	judge = function(req, granted)
		local limits = get(req.workload, "limits")
		local most = granted.limits
		if not limits then
			refuse("fact_unknown", { field = "limits", unknown = true,
				text = "nothing is known of the limits" })
			return
		end
		local idle = get(req.workload, "build.runs") == false or get(req.workload, "opaque") ~= nil
		local building = req.operation.name == "image.build"
		local function bound(name)
			local top, asked = most[name], limits[name]
			if name == "pids" and building then top = most.build_pids end
			if not top or (idle and asked == nil) then return end
			local most_here = top .. " processes"
			if name == "memory" then
				most_here = size(top)
			elseif name == "nano_cpus" then
				most_here = (top % 1000000000 == 0 and top // 1000000000 or top / 1000000000) .. " processors"
			end
			local hint = "Ask for at most " .. most_here .. "."
			if name == "pids" and building then
				hint = "The classic builder cannot limit them: build under a profile that says container_pids instead of pids."
			end
			if asked == nil then
				refuse("limits", { field = "limits." .. name, hint = hint,
					text = "there is no limit of " .. name .. ", the profile asks for one" })
			elseif asked <= 0 or asked > top then
				refuse("limits", { field = "limits." .. name, value = asked, hint = hint })
			end
		end
		bound("memory")
		bound("nano_cpus")
		bound("pids")
		-- Engines give twice the memory, swap included, when nothing is said.
		local swap, shm = limits.swap, limits.shm
		if most.memory and swap ~= nil and (swap < 0 or swap > 2 * most.memory) then
			refuse("limits", { field = "limits.swap", value = swap,
				hint = "Leave MemorySwap out, or ask for at most " .. size(2 * most.memory) .. "." })
		end
		if most.memory and shm ~= nil and shm > most.memory then
			refuse("limits", { field = "limits.shm", value = shm,
				hint = "Ask for at most " .. size(most.memory) .. "." })
		end
		for lifted in each(limits.lifted) do
			refuse("limits", { field = lifted.field, value = lifted.value,
				text = "this setting lifts or escapes a limit",
				hint = "Leave it out." })
		end
		for option in each(get(req.workload, "storage_options")) do
			refuse("limits", { field = "storage_options", value = option,
				text = "options of the storage driver are refused", hint = "Leave it out." })
		end
	end,
}
