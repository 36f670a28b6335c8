-- Networks, and what is set on them.
--
-- A network stands for all that can be reached through it, so each must be
-- named by the profile.  `none` reaches nothing and needs no grant.  The
-- engine's default network has a way out to everywhere; a profile grants it as
-- "default" or "bridge".  "{own}" grants those that the caller has made, whatever
-- they are called: names can be chosen to fit a pattern, and a pattern fits the
-- networks of others.  So it is no pattern itself, should a network be called that.

local function is_granted(granted, name, mine)
	if name == "none" then return true end
	if name == "host" then return false end -- not even by "*"
	if name == "default" or name == "bridge" then
		return glob(granted.networks, "default") or glob(granted.networks, "bridge")
	end
	if mine == true then
		for entry in each(granted.networks) do
			if entry == "{own}" then return true end
		end
	end
	if name == "{own}" then return false end
	return glob(granted.networks, name)
end

-- Whether the backend says which container's network is joined, so that it is judged there.
local function joins_a_container(workload)
	for ns in each(workload.namespaces) do
		if ns.name == "network" and ns.mode == "container" then return true end
	end
	return false
end

local function hint(granted)
	if #granted.networks == 0 then return "Networks that may be used: none." end
	return "Networks that may be used: none, " .. listed(granted.networks) .. "."
end

-- An alias is a name that others on the network hear: in a network of the
-- caller's own these are its own containers.

check "network" {
	doc = "Only networks that the profile names, and none; no settings on their end points.",
	concerns = {
		"container.create", "container.start", "container.restart", "container.unpause",
		"container.attach", "exec.create", "exec.start", "network.connect", "image.build",
	},
	reasons = { "network", "network_endpoint" },
	judge = function(req, granted)
		if get(req.workload, "opaque") then return end -- see build.lua
		local network = get(req.workload, "network")
		for point in each(get(network, "endpoints")) do
			if not is_granted(granted, point.name or "?", point.mine) then
				refuse("network", { field = point.field, value = point.name,
					hint = hint(granted) })
			end
			for setting in each(point.settings) do
				if not (setting == "Aliases" and point.mine == true) then
					refuse("network_endpoint", { field = point.field, value = setting })
				end
			end
		end
		if req.operation.name == "network.connect" then
			if #(get(network, "endpoints") or "") == 0 then
				refuse("network", { unknown = true, field = "network.endpoints",
					text = "the network that would be connected is not known" })
			end
			return
		end
		local mode = get(network, "mode")
		-- Whose container it is that is joined: see namespaces.lua.
		if mode == "container" and joins_a_container(req.workload) then return end
		if mode and not is_granted(granted, mode, get(network, "mine")) then
			refuse("network", { field = "network.mode", value = mode, hint = hint(granted) })
		end
	end,
}

check "network_create" {
	doc = "A caller's own networks are bridges without options and without a way out.",
	concerns = { "network.create" },
	reasons = { "network_create", "fact_unknown" },
	judge = function(req, granted)
		local net = get(req.workload, "net")
		if not net then
			refuse("fact_unknown", { field = "net", unknown = true,
				text = "nothing is known of the network" })
			return
		end
		if net.driver ~= nil and net.driver ~= "" and net.driver ~= "bridge" then
			refuse("network_create", { field = "net.driver", value = net.driver,
				text = "only bridges may be made" })
		end
		for option in each(net.options) do
			refuse("network_create", { field = "net.options", value = option,
				text = "options of networks reach the host and are refused" })
		end
		-- Who may use the default network has that way out already.
		local open = granted.egress == nil and is_granted(granted, "default")
		if net.internal ~= true and not open then
			refuse("network_create", { field = "net.internal", value = net.internal,
				text = "the network would have a way out, which the profile does not grant",
				hint = "Make it internal (docker network create --internal)." })
		end
	end,
}
