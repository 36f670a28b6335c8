-- Capabilities: pieces of root's power.  Those that are added must be granted one by one.

check "capability" {
	doc = "Only capabilities that the profile names may be added. ALL never can.",
	concerns = what_runs,
	reasons = { "capability" },
	judge = function(req, granted)
		for added in each(get(req.workload, "capabilities.add")) do
			if added.name == "ALL" or not glob(granted.capabilities, added.name) then
				refuse("capability", { field = added.field, value = added.name,
					hint = "Capabilities that may be added: "
						.. listed(granted.capabilities) .. "." })
			end
		end
	end,
}
