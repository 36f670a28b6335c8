-- Labels.  Other tools on the host obey some (reverse proxies, updaters), and
-- the gate keeps the ownership of objects in its own.

check "label" {
	doc = "Only labels that the profile names; never the gate's own.",
	concerns = { "container.create", "container.commit", "image.build", "volume.create", "network.create" },
	reasons = { "label" },
	judge = function(req, granted)
		for label in each(get(req.workload, "labels")) do
			local name = label.name or ""
			local own = str.starts(str.lower(name), "sallyport.")
			if own or not glob(granted.labels, name) then
				refuse("label", { field = label.field, value = name,
					text = own and "this label is the gate's own" or nil,
					hint = "Labels that may be set: " .. listed(granted.labels) .. "." })
			end
		end
	end,
}
