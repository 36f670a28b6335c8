-- Privileged mode: all capabilities, all devices, no confinement.  The container is the host.

check "privileged" {
	doc = "No privileged mode. No setting grants it.",
	concerns = what_runs,
	reasons = { "privileged" },
	judge = function(req)
		if get(req.workload, "privileged") == true then
			refuse("privileged", { field = "privileged", value = true })
		end
	end,
}
