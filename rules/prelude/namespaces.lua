-- Namespaces: what of the host, or of other containers, a container can see.

local private = { ["private"] = true, ["shareable"] = true, ["none"] = true,
	["default"] = true, [""] = true }

check "namespace" {
	doc = "No namespace of the host; namespaces of containers only if they are the caller's own.",
	concerns = what_runs_or_builds,
	reasons = { "namespace", "namespace_join" },
	judge = function(req)
		for ns in each(get(req.workload, "namespaces")) do
			local about = { field = ns.field, value = ns.mode }
			if ns.mode == "container" then
				about.value = ns.target
				about.unknown = ns.mine == nil
				if ns.mine ~= true then
					refuse("namespace_join", about)
				end
			elseif ns.mode == "host" then
				about.text = "the " .. ns.name .. " namespace would be the host's own"
				refuse("namespace", about)
			elseif ns.name ~= "network" and not private[ns.mode or ""] then
				-- For the network other words are names of networks: see network.lua.
				refuse("namespace", about)
			end
		end
	end,
}
