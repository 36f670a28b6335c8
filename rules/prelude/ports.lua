-- Published ports: who can reach the container from outside.

check "port" {
	doc = "Ports are published only on host addresses that the profile names.",
	concerns = what_runs,
	reasons = { "port" },
	judge = function(req, granted)
		local network = get(req.workload, "network")
		local all = glob(granted.ports, "*")
		local hint = "Addresses on which ports may be published: " .. listed(granted.ports) .. "."
		for port in each(get(network, "ports")) do
			local address = port.address or ""
			if not all and (address == "" or not glob(granted.ports, address)) then
				local where = address == "" and "all addresses" or address
				refuse("port", { field = port.field, value = where .. " -> " .. (port.port or ""),
					hint = hint })
			end
		end
		if get(network, "publish_all") == true and not all then
			refuse("port", { field = "network.publish_all", value = true, hint = hint })
		end
	end,
}
