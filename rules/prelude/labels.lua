-- Labels.  Other tools on the host obey some (reverse proxies, updaters), and
-- the gate keeps the ownership of objects in its own.

check "label" {
	doc = "Only labels that the profile names; never the gate's own.",
	concerns = { "container.create", "container.commit", "image.build", "volume.create", "network.create" },
	reasons = { "label" },
	judge = function(req, granted)
		for label in each(get(req.workload, "labels")) do
			local name = label.name or ""
			if str.starts(str.lower(name), "sallyport.") or not glob(granted.labels, name) then
				refuse("label", { field = label.field, value = name,
					hint = "Labels that may be set: " .. listed(granted.labels) .. "." })
			end
		end
	end,
}
