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

-- By its names if it is named by its id, else by the name that the request gives.
local function is_granted(granted, img)
	if granted.own_images and img.mine == true then return true end
	if img.by_id then return id_is_granted(granted, img.names) end
	return img.name ~= nil and image.match(granted.images, img.name, img.tag, img.digest)
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
		if not is_granted(granted, img) then
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

check "image_taken" {
	doc = "A build takes no name from an image that the caller did not build.",
	concerns = { "image.build" },
	also_closed = true,
	reasons = { "image_retag" },
	judge = function(req)
		for name in each(get(req.workload, "build.taken")) do
			refuse("image_retag", { field = "names", value = name,
				text = "an image that is not the caller's has this name",
				hint = "Use a name that is free." })
		end
	end,
}

check "build_images" {
	doc = "A build takes only images that the profile names: FROM, COPY --from, cache.",
	concerns = { "image.build" },
	reasons = { "image" },
	judge = function(req, granted)
		for img in each(get(req.workload, "build.images")) do
			if not is_granted(granted, img) then
				refuse("image", { field = img.field, value = img.given or img.name,
					hint = hint(granted) })
			end
		end
	end,
}

check "image_source" {
	doc = "Only images that the profile names get another name or are sent away, one tag at a time.",
	concerns = { "image.tag", "image.push" },
	reasons = { "image", "image_tag", "fact_unknown" },
	judge = function(req, granted)
		local img = get(req.workload, "image")
		if not img then
			refuse("fact_unknown", { field = "image", unknown = true,
				text = "nothing is known of the image" })
			return
		end
		if req.operation.name == "image.push" and not img.tag
			and img.name and image.named(granted.images, img.name) then
			refuse("image_tag", { field = "image.tag", value = img.name })
		elseif not is_granted(granted, img) then
			refuse("image", { field = "image.given", value = img.given or img.name,
				hint = hint(granted) })
		end
	end,
}

check "save" {
	doc = "Only images that the profile names may be read whole.",
	concerns = { "image.save" },
	reasons = { "export", "fact_unknown" },
	judge = function(req, granted)
		local images = get(req.workload, "images")
		if not images or #images == 0 then
			refuse("fact_unknown", { field = "images", unknown = true,
				text = "nothing is known of the images" })
			return
		end
		for img in each(images) do
			if not is_granted(granted, img) then
				refuse("export", { field = img.field, value = img.given,
					text = "this image is not on the profile's list", hint = hint(granted) })
			end
		end
	end,
}

check "commit" {
	doc = "Only the caller's own containers become images; a health check as at create.",
	concerns = { "container.commit" },
	reasons = { "owner", "healthcheck" },
	judge = function(req, granted)
		if get(req, "object.mine") ~= true then refuse("owner", { field = "query.container" }) end
		if get(req.workload, "command.healthcheck") ~= false and not granted.healthchecks then
			refuse("healthcheck", { field = "command.healthcheck", value = true })
		end
	end,
}

-- A registry is granted by the images that may come from it.
local function registry_is_granted(granted, host)
	for pattern in each(granted.images) do
		if str.starts(pattern, host .. "/") then return true end
	end
	return false
end

check "registry" {
	doc = "Only registries from which the profile names images are asked.",
	concerns = { "registry.search" },
	reasons = { "registry", "fact_unknown" },
	judge = function(req, granted)
		local registry = get(req.workload, "registry")
		if not registry or not registry.host then
			refuse("fact_unknown", { field = "registry.host", unknown = true,
				text = "nothing is known of the registry" })
		elseif not registry_is_granted(granted, registry.host) then
			refuse("registry", { field = "registry.host", value = registry.host,
				hint = hint(granted) })
		elseif registry.name and not image.named(granted.images, registry.name) then
			refuse("registry", { field = "registry.name", value = registry.name,
				hint = hint(granted) })
		end
	end,
}
