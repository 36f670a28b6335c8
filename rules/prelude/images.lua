-- Images: what may run, what may be fetched, and which names may be written.

local function hint(granted)
	return "Images that may be used: " .. listed(granted.images) .. "."
end

-- An image that is named by its id is judged by the names that the id has.
local function id_is_granted(granted, names)
	for name in each(names) do
		local ref = image.parse(name)
		if ref and image.match(granted.images, ref.name, ref.tag, ref.digest) then return true end
	end
	return false
end

check "image" {
	doc = "Only images that the profile names.",
	concerns = what_runs,
	reasons = { "image", "fact_unknown" },
	judge = function(req, granted)
		local img = get(req.workload, "image")
		if not img then
			refuse("fact_unknown", { field = "image", unknown = true,
				text = "nothing is known of the image" })
			return
		end
		local fine
		if img.by_id then
			fine = id_is_granted(granted, img.names)
		else
			fine = img.name ~= nil and image.match(granted.images, img.name, img.tag, img.digest)
		end
		if not fine then
			refuse("image", { field = "image.given", value = img.given or img.name,
				hint = hint(granted) })
		end
	end,
}

check "pull" {
	doc = "Only images that the profile names may be fetched, one tag at a time.",
	concerns = { "image.pull" },
	reasons = { "image", "image_tag", "import_url", "fact_unknown" },
	judge = function(req, granted)
		local pull = get(req.workload, "pull")
		if not pull then
			refuse("fact_unknown", { field = "pull", unknown = true,
				text = "nothing is known of what would be fetched" })
			return
		end
		if pull.url ~= nil then
			refuse("import_url", { field = "pull.url", value = pull.url })
		end
		local tag, digest = pull.tag, nil
		if tag and str.starts(tag, "sha256:") then
			tag, digest = nil, tag
		end
		if not pull.name or not image.named(granted.images, pull.name) then
			refuse("image", { field = "pull.name", value = pull.name, hint = hint(granted) })
		elseif not tag and not digest then
			refuse("image_tag", { field = "pull.tag", value = pull.name })
		elseif not image.match(granted.images, pull.name, tag, digest) then
			refuse("image", { field = "pull.tag", value = pull.name .. ":" .. (tag or digest),
				hint = hint(granted) })
		end
	end,
}

check "import" {
	doc = "The engine is never made to fetch a URL.",
	concerns = { "image.import" },
	also_closed = true,
	reasons = { "import_url" },
	judge = function(req)
		local url = get(req.workload, "pull.url")
		if url ~= nil then refuse("import_url", { field = "pull.url", value = url }) end
	end,
}

check "image_names" {
	doc = "A name on the profile's list is never given to other content.",
	concerns = { "image.tag", "image.build", "image.import", "image.load", "container.commit" },
	also_closed = true,
	reasons = { "image_retag" },
	judge = function(req, granted)
		for name in each(get(req.workload, "names")) do
			local ref = image.parse(name)
			if not ref or image.named(granted.images, ref.name) then
				refuse("image_retag", { field = "names", value = name })
			end
		end
	end,
}
