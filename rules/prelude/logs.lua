-- Log drivers.  It is the engine, outside of any container, that opens the
-- connection or the file which a driver or its options name.

-- Bounds on the size of the files; engines add them to what they make.
local rotation = { ["max-size"] = true, ["max-file"] = true, ["compress"] = true }

check "log_driver" {
	doc = "Only log drivers that the profile names, without options.",
	concerns = what_runs,
	reasons = { "log_driver" },
	judge = function(req, granted)
		local log = get(req.workload, "log")
		if not log then return end
		local hint = "Log drivers that may be used: " .. listed(granted.log_drivers)
			.. ", without options."
		if log.driver ~= nil and not glob(granted.log_drivers, log.driver) then
			refuse("log_driver", { field = "log.driver", value = log.driver, hint = hint })
		end
		local made = req.operation.name ~= "container.create"
		for option in each(log.options) do
			if not (made and rotation[option]) then
				refuse("log_driver", { field = "log.options", value = option, hint = hint })
			end
		end
	end,
}
