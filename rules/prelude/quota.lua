-- How much a caller may have in sum, on one engine.
--
-- req.quota has what was counted for this decision: `used`, what the owner has;
-- `asked`, what would come to it, 0 if it is there already; `by`, whose
-- part of it is what.  -1 stands for something without a limit, which is more
-- than any quota.  What was not counted is absent, and not known.

local runs = { ["container.start"] = true, ["container.restart"] = true, ["container.update"] = true }

local quantities = {
	-- Nothing of it runs yet, but nobody is helped by a container that cannot be started.
	{ name = "containers", setting = "containers", noun = "running containers",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "memory", setting = "memory", noun = "bytes of memory", option = "--memory",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "nano_cpus", setting = "cpus", noun = "billionths of a processor", option = "--cpus",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "pids", setting = "pids", noun = "processes", option = "--pids-limit",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "volume_count", setting = "volume_count", noun = "volumes",
		of = { "volume.create", "container.create" } },
	-- How large something will be, nobody knows before: 1 is asked for, and let pass as long as there is room.
	{ name = "volumes", setting = "volumes", noun = "bytes in volumes", size = true,
		of = { "volume.create", "container.start", "container.restart" } },
	{ name = "images", setting = "images", noun = "bytes of images", size = true,
		of = { "image.pull", "image.load", "image.import", "image.build", "container.commit" } },
}

local function is_of(list, name)
	for _, one in ipairs(list) do
		if one == name then return true end
	end
	return false
end

local function hint_of(q, used)
	local by = listed(get(used, "by"))
	if q.size then return "Remove some that are not needed." end
	if by == "" then return "Wait for what is being started, or ask for less." end
	return "Stop or remove something of your own, or ask for less: " .. by .. "."
end

local function judge_one(q, top, counted)
	local used, asked = get(counted, "used." .. q.name), get(counted, "asked." .. q.name)
	local field = "quota." .. q.setting
	if asked == 0 then
		return -- whatever there is, nothing comes to it
	elseif used == nil or asked == nil then
		refuse("fact_unknown", { field = field, unknown = true,
			text = "how many " .. q.noun .. " the caller has is not known" })
	elseif asked == -1 then
		refuse("quota_exceeded", { field = field, value = "no limit",
			text = "the profile counts " .. q.noun .. " in sum, so each container needs a limit",
			hint = "Ask for one: " .. q.option .. "." })
	elseif q.size and asked > top - used then
		refuse("quota_exceeded", { field = field, value = used,
			text = "there are " .. used .. " " .. q.noun .. ", the profile allows " .. top,
			hint = hint_of(q, counted) })
	elseif used == -1 then
		refuse("quota_exceeded", { field = field, value = asked,
			text = "a container of the caller's runs without a limit, which is more than the quota of "
				.. top .. " " .. q.noun,
			hint = hint_of(q, counted) })
	elseif asked > top - used then
		refuse("quota_exceeded", { field = field, value = asked,
			text = "the caller has " .. used .. " " .. q.noun .. " and asks for " .. asked
				.. ", the profile allows " .. top,
			hint = hint_of(q, counted) })
	end
end

check "quota" {
	doc = "What an owner has in sum stays within the profile's quota.",
	concerns = {
		"container.create", "container.start", "container.restart", "container.update",
		"volume.create", "container.commit",
		"image.pull", "image.load", "image.import", "image.build",
	},
	reasons = { "quota_exceeded", "fact_unknown" },
	judge = function(req, granted)
		local name = req.operation.name
		-- Of somebody else's it takes nothing from the caller's quota.
		if runs[name] and get(req, "object.mine") == false then return end
		if name == "container.create" and req.replaces and req.replaces.owner ~= req.identity.owner then
			return
		end
		for _, q in ipairs(quantities) do
			local top = granted.quota[q.name]
			if top and is_of(q.of, name) then judge_one(q, top, req.quota) end
		end
	end,
}
