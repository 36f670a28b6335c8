-- How much a caller may have in sum, on one engine.
--
-- req.quota has what was counted for this decision: `used`, what the owner has;
-- `asked`, what would come to it, 0 if it is there already; `by`, whose
-- part of it is what.  -1 stands for something without a limit, which is more
-- than any quota.  What was not counted is absent, and not known.

-- A size as people write it: 4294967296 is 4GiB.
local function size(n)
	if n > 0 and n % 1073741824 == 0 then return n // 1073741824 .. "GiB" end
	if n > 0 and n % 1048576 == 0 then return n // 1048576 .. "MiB" end
	return n .. " bytes"
end

local runs = { ["container.start"] = true, ["container.restart"] = true, ["container.update"] = true }

local quantities = {
	-- Nothing of it runs yet, but nobody is helped by a container that cannot be started.
	{ name = "containers", setting = "containers", noun = "running containers",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "memory", setting = "memory", noun = "memory", unit = "bytes", option = "--memory",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "nano_cpus", setting = "cpus", noun = "processors", unit = "cpus", option = "--cpus",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "pids", setting = "pids", noun = "processes", option = "--pids-limit",
		of = { "container.create", "container.start", "container.restart", "container.update" } },
	{ name = "volume_count", setting = "volume_count", noun = "volumes",
		of = { "volume.create", "container.create" } },
	-- How large something will be, nobody knows before: 1 is asked for, and let pass as long as there is room.
	{ name = "volumes", setting = "volumes", noun = "in volumes", unit = "bytes", size = true,
		of = { "volume.create", "container.start", "container.restart" } },
	{ name = "images", setting = "images", noun = "in images", unit = "bytes", size = true,
		of = { "image.pull", "image.load", "image.import", "image.build", "container.commit" } },
}

local function is_of(list, name)
	for _, one in ipairs(list) do
		if one == name then return true end
	end
	return false
end

-- So much of it, and what it is: "2GiB of memory", "3 volumes".
local function amount(q, n, bare)
	local text = n
	if q.unit == "bytes" then text = size(n) end
	if q.unit == "cpus" then text = n % 1000000000 == 0 and n // 1000000000 or n / 1000000000 end
	if bare then return text .. "" end
	return text .. (q.option == "--memory" and " of " or " ") .. q.noun
end

local function hint_of(q, top, counted)
	local by, asked = listed(get(counted, "by"), ""), get(counted, "asked." .. q.name)
	if q.size then return "Remove some that are not needed." end
	if asked and asked > top then return "Ask for less: the whole quota is " .. amount(q, top) .. "." end
	if by == "" then return "Wait for what is being started, or ask for less." end
	return "Ask for less, or stop something of your own: " .. by .. "."
end

local function judge_one(q, top, counted)
	local used, asked = get(counted, "used." .. q.name), get(counted, "asked." .. q.name)
	local field = "quota." .. q.setting
	if asked == 0 then
		return -- whatever there is, nothing comes to it
	elseif used == nil or asked == nil then
		refuse("fact_unknown", { field = field, unknown = true,
			text = "how much the caller has is not known: " .. q.noun })
	elseif asked == -1 then
		refuse("quota_exceeded", { field = field, value = "no limit",
			text = "the profile counts " .. q.noun .. " in sum, so each container needs a limit",
			hint = "Ask for one: " .. q.option .. "." })
	elseif q.size and asked > top - used then
		refuse("quota_exceeded", { field = field, value = used,
			text = "there are " .. amount(q, used) .. ", the profile allows " .. amount(q, top, true),
			hint = hint_of(q, top, counted) })
	elseif used == -1 then
		refuse("quota_exceeded", { field = field, value = asked,
			text = "a container of the caller's runs without a limit, which is more than the quota of "
				.. amount(q, top),
			hint = hint_of(q, top, counted) })
	elseif asked > top - used then
		refuse("quota_exceeded", { field = field, value = asked,
			text = "the caller has " .. amount(q, used) .. " and asks for " .. amount(q, asked, true)
				.. ", the profile allows " .. amount(q, top, true),
			hint = hint_of(q, top, counted) })
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
