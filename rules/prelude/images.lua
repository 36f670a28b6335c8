-- Images: what may run, what may be fetched, and which names may be written.

--
-- `images` grants names for what their registry has.  A name alone says little:
-- tag, load, import, commit and build give any name to any content.  So the
-- engine must say that it had the content from that repository, or the list
-- must give the digest, which says what the content is.  `local_images` grants
-- names whoever gave them, `own_images` what the caller built through the gate.

local function hint(granted)
	local text = "Images that may be used: " .. listed(granted.images)
	if #granted.local_images > 0 then
		text = text .. "; also if made on this machine: " .. listed(granted.local_images)
	end
	return text .. "."
end

local function came_from(repository, img)
	for known in each(img.digests) do
		if image.parse(known).name == repository then return true end
	end
	return false
end

local function says_digest(patterns, ref)
	for pattern in each(patterns) do
		if ref.digest and str.ends(pattern, "@" .. ref.digest)
			and image.match({ pattern }, ref.name, ref.tag, ref.digest) then return true end
	end
	return false
end

-- Why the image may not be used under this name; nil if it may.
local function trouble_with(granted, img, ref)
	if image.match(granted.local_images, ref.name, ref.tag, ref.digest) then return nil end
	if not image.match(granted.images, ref.name, ref.tag, ref.digest) then return "image" end
	if img.present == false or came_from(ref.name, img) or says_digest(granted.images, ref) then
		return nil
	end
	return "image_local"
end

-- An image that is named by its id is judged by the names that the id has.
local function trouble_with_names(granted, img)
	local worst = "image"
	for name in each(img.names) do
		local ref = image.parse(name)
		local why = ref and trouble_with(granted, img, ref) or not ref and worst
		if not why then return nil end
		if why == "image_local" then worst = why end
	end
	return worst
end

-- Refuses an image that is not granted; `reason` if there is a better word for it.
local function judge_image(granted, img, field, reason)
	local why
	if granted.own_images and img.mine == true then return end
	if img.by_id then
		why = trouble_with_names(granted, img)
	else
		why = img.name == nil and "image" or trouble_with(granted, img, img)
	end
	if why == "image_local" and img.digests == nil then
		refuse(why, { field = field, value = img.given or img.name, unknown = true,
			text = "the engine does not tell whether this image came from the registry of its name",
			hint = "The operator can list it with its digest, or grant it by local_images." })
	elseif why == "image_local" then
		refuse(why, { field = field, value = img.given or img.name })
	elseif why then
		refuse(reason or why, { field = field, value = img.given or img.name,
			text = "this image is not on the profile's list", hint = hint(granted) })
	end
end

-- What must be known before it can be judged; a sentence names it.
local function known(req, fact, what)
	local value = get(req.workload, fact)
	if value == nil then
		refuse("fact_unknown", { field = fact, unknown = true,
			text = "nothing is known of " .. what })
	end
	return value
end

check "image" {
	doc = "Only images that the profile names, and that came from the registry of their name.",
	concerns = what_runs,
	reasons = { "image", "image_local", "fact_unknown" },
	judge = function(req, granted)
		-- Of the host's own programs there is one image alone: see host_tools.lua.
		if get(req.workload, "host_tools") then return end
		local img = known(req, "image", "the image")
		if img then judge_image(granted, img, "image.given") end
	end,
}

check "image_mounts" {
	doc = "Images that are mounted are judged like the one that runs.",
	concerns = {
		"container.create", "container.start", "container.restart", "container.unpause",
		"container.attach", "exec.create", "exec.start", "container.archive.get", "container.archive.put",
	},
	reasons = { "image", "image_local" },
	judge = function(req, granted)
		for mount in each(get(req.workload, "mounts")) do
			if mount.kind == "image" then judge_image(granted, mount.image or {}, mount.field) end
		end
	end,
}

check "pull" {
	doc = "Only images that the profile names may be fetched, one tag at a time.",
	concerns = { "image.pull" },
	reasons = { "image", "image_tag", "import_url", "fact_unknown" },
	judge = function(req, granted)
		local pull = known(req, "pull", "what would be fetched")
		if not pull then return end
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
				refuse("image_retag", { field = "names", value = name,
					hint = "Use a name that the list does not cover: " .. listed(granted.images)
						.. ". A name without '/' is docker.io/library/NAME." })
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

-- By a label an image says who built it, and nobody looks into archives.  So one
-- that is loaded can claim to be the caller's own, with labels and a health
-- check that no build could have.
check "load" {
	doc = "Who may run own images loads none.",
	concerns = { "image.load" },
	reasons = { "image_retag" },
	judge = function(_, granted)
		if granted.own_images then
			refuse("image_retag", { field = "own_images", value = true,
				text = "an archive could claim to hold an image that the caller built",
				hint = "Load with a profile that has no own_images, and grant the names by local_images." })
		end
	end,
}

check "build_images" {
	doc = "A build takes only granted images: FROM, COPY --from, cache.",
	concerns = { "image.build" },
	reasons = { "image", "image_local" },
	judge = function(req, granted)
		for img in each(get(req.workload, "build.images")) do
			judge_image(granted, img, img.field)
		end
	end,
}

check "image_source" {
	doc = "Only granted images get another name or are sent away, one tag at a time.",
	concerns = { "image.tag", "image.push" },
	reasons = { "image", "image_local", "image_tag", "fact_unknown" },
	judge = function(req, granted)
		local img = known(req, "image", "the image")
		if not img then return end
		if req.operation.name == "image.push" and not img.tag
			and img.name and image.named(granted.images, img.name) then
			refuse("image_tag", { field = "image.tag", value = img.name })
		else
			judge_image(granted, img, "image.given")
		end
	end,
}

check "save" {
	doc = "Only granted images may be read whole.",
	concerns = { "image.save" },
	reasons = { "export", "image_local", "fact_unknown" },
	judge = function(req, granted)
		local images = known(req, "images", "the images")
		for img in each(images) do judge_image(granted, img, img.field, "export") end
		if images and #images == 0 then
			refuse("fact_unknown", { field = "images", unknown = true,
				text = "no image is named" })
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
		local registry = known(req, "registry.host", "the registry") and req.workload.registry
		if not registry then return end
		if not registry_is_granted(granted, registry.host) then
			refuse("registry", { field = "registry.host", value = registry.host,
				hint = hint(granted) })
		elseif registry.name and not image.named(granted.images, registry.name) then
			refuse("registry", { field = "registry.name", value = registry.name,
				hint = hint(granted) })
		end
	end,
}
