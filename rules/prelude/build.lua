-- Builds.
--
-- The classic builder gets a Dockerfile that the gate has read.  Each RUN is a
-- program in a container under the engine's default runtime, so what holds for
-- containers holds for it: isolation, network, limits, user (see those files).
-- What remains is what only a build can do.
--
-- BuildKit speaks with its client through a tunnel.  Nobody sees which images
-- it takes, what it runs as whom and what it fetches: such an exchange is
-- opaque, and a profile says by `opaque` that it takes that.

check "opaque" {
	doc = "Tunnels whose content nobody sees, only if the profile says so, and never around its egress.",
	concerns = { "image.build", "system.session" },
	also_closed = true,
	reasons = { "buildkit" },
	judge = function(req, granted)
		local kind = get(req.workload, "opaque")
		if kind == nil and req.operation.name == "image.build" then return end
		local name = kind or "buildkit"
		local open = false
		for one in each(granted.opaque) do
			if one == name then open = true end
		end
		if not open then
			refuse("buildkit", { field = "opaque", value = name })
		elseif granted.egress ~= nil
			or not (glob(granted.networks, "default") or glob(granted.networks, "bridge")) then
			-- Its steps reach whatever the engine's default network reaches, and the engine itself fetches.
			refuse("buildkit", { field = "opaque", value = name,
				text = "BuildKit's steps reach the engine's default network, which the profile does not grant" })
		end
	end,
}

check "build_facts" {
	doc = "A build of which the gate does not know what it does is refused.",
	concerns = { "image.build" },
	reasons = { "fact_unknown" },
	judge = function(req)
		if get(req.workload, "opaque") then return end
		for _, fact in ipairs({ "build.runs", "build.images", "build.urls", "build.taken" }) do
			if get(req.workload, fact) == nil then
				refuse("fact_unknown", { field = fact, unknown = true,
					text = "the backend does not say: " .. fact })
			end
		end
	end,
}

-- The engine would fetch it, from wherever the engine can reach: the metadata
-- service of a cloud, an administration port on the loopback interface.
check "build_urls" {
	doc = "ADD never makes the engine fetch a URL.",
	concerns = { "image.build" },
	reasons = { "import_url" },
	judge = function(req)
		for url in each(get(req.workload, "build.urls")) do
			refuse("import_url", { field = url.field, value = url.value,
				hint = "Fetch it yourself and COPY it." })
		end
	end,
}
