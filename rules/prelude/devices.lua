-- Devices of the host, whatever way they come in: nodes, device rules, requests for a GPU.

check "device" {
	doc = "No devices of the host. No setting grants them.",
	concerns = what_runs,
	reasons = { "device" },
	judge = function(req)
		for device in each(get(req.workload, "devices")) do
			refuse("device", { field = device.field, value = device.value })
		end
	end,
}
