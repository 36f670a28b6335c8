-- Who a container runs as.
--
-- Root in a container is root towards everything that is mounted into it, and
-- one kernel bug away from being root outside.  A name that is not a number
-- means whatever the image says, so only numbers are known not to be root.

-- Engines take "0x3e8" or "1000 " for a name, which the container's own files may give any number.
local function is_plain_group(name)
	local id = tonumber(name)
	return math.type(id) == "integer" and id .. "" == name and id >= 1000 and id < 4294967295
end

check "user" {
	doc = "Not root, unless users = \"any\"; no additional groups below 1000.",
	concerns = what_runs_or_builds,
	reasons = { "user" },
	judge = function(req, granted)
		if granted.users == "any" or not req.workload then return end
		-- A build that runs nothing, or one that nobody looks into: see build.lua.
		if get(req.workload, "build.runs") == false or get(req.workload, "opaque") then return end
		local user = req.workload.user or {}
		if user.root ~= false then
			local text
			if user.root == nil then
				text = "the user " .. (user.effective or user.given or "")
					.. " may be root: it is a name, or the image's user is not known"
			end
			refuse("user", { field = "user.given", value = user.effective or user.given,
				unknown = user.root == nil, text = text,
				hint = req.operation.name == "image.build"
					and "Set USER to a number above 0 before RUN, or use a profile with users = \"any\"."
					or "Name a user by a number above 0, like 1000:1000." })
		end
		for group in each(user.groups) do
			if not is_plain_group(group.name) then
				refuse("user", { field = group.field, value = group.name,
					text = "this group may be one of the host's own",
					hint = "Name groups by numbers from 1000 on." })
			end
		end
	end,
}
