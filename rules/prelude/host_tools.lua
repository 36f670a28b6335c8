-- Programs of the host itself, on a backend of kind "local".
--
-- There the image is no question: every sandbox sees the folders that the
-- operator has named, read-only, and its mounts, limits and network are judged
-- as those of any container.  What is asked here is whether this caller may run
-- the host's programs at all, and whether without walls: a program that is bare
-- can do whatever the keeper's user can.

local rank = { none = 0, confined = 1, bare = 2 }

check "host_tools" {
	doc = "Programs of the host only where the profile says so, and without walls only where it says that.",
	concerns = what_runs,
	reasons = { "host_tools_not_granted" },
	judge = function(req, granted)
		local tool = get(req.workload, "host_tools")
		if tool == nil or (rank[tool] or 3) <= rank[granted.host_tools] then return end
		local text, hint
		if tool == "bare" then
			text = "the program would run without any walls; the profile grants " .. granted.host_tools
			if granted.host_tools == "confined" then
				hint = "Leave HostConfig.Runtime out, or ask for confined."
			end
		elseif not rank[tool] then
			text = "a local backend has no runtime of this name"
			hint = "Leave HostConfig.Runtime out, or ask for confined."
		end
		refuse("host_tools_not_granted", { field = "host_tools", value = tool, text = text, hint = hint })
	end,
}
