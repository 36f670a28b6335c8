-- What must be known before anything can be judged.
--
-- A backend says "none" with an empty list or with false; a fact that is absent
-- is one that it does not know.  The checks that follow look for what is wrong
-- in lists, so a list that is missing would look like one in which nothing is
-- wrong.  It is refused here, once, for all of them.

local needed = {
	"privileged", "capabilities.add", "security", "proc_paths", "user.groups", "namespaces",
	"devices", "mounts", "volumes_from", "network.mode", "network.endpoints", "network.ports",
	"network.hosts", "network.links", "sysctls", "limits.lifted", "annotations",
	"storage_options", "restart",
}

check "facts" {
	doc = "Nothing is allowed of which the gate does not know what it is.",
	concerns = what_runs_or_builds,
	reasons = { "fact_unknown" },
	judge = function(req)
		if not req.workload then
			refuse("fact_unknown", { field = "workload", unknown = true,
				text = "nothing is known of what would run" })
			return
		end
		for _, fact in ipairs(needed) do
			if get(req.workload, fact) == nil then
				refuse("fact_unknown", { field = fact, unknown = true,
					text = "the backend does not say: " .. fact })
			end
		end
	end,
}
