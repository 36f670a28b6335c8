-- Hardening: what is filled in when a profile has harden = true, exchanged with
-- own_socket = true, pinned with pin = true, and demanded with seccomp and apparmor.
--
-- Only what the request leaves open; what it asks for is judged as it stands.
-- The facts are then made anew, and the checks judge the result.

local strength = { none = 0, process = 1, kernel = 2, vm = 3 }

-- An option of harden = { ... }; `usual` is what holds where the table does not say it, and
-- with harden = true.
local function option(granted, name, usual)
	if granted.harden == true then return usual end
	local value = get(granted, "harden." .. name)
	if value == nil then return usual end
	return value
end

-- The runtimes that the profile prefers, else all of the engine's in order of name.
local function candidates(isolation, preferred)
	if #preferred > 0 then return preferred end
	local names = {}
	for runtime in each(isolation.runtimes) do table.insert(names, runtime.name) end
	table.sort(names)
	return names
end

local function level_of(isolation, name)
	for runtime in each(isolation.runtimes) do
		if runtime.name == name then return strength[runtime.level or "none"] or 0 end
	end
	return 0
end

local function fill_runtime(w, granted)
	local isolation = w.isolation
	local min = strength[granted.isolation.min]
	if not isolation or isolation.runtime_given ~= false then return end
	if (strength[isolation.base or "none"] or 0) >= min
		and level_of(isolation, isolation.runtime) >= min then return end
	for name in each(candidates(isolation, granted.isolation.runtimes)) do
		if level_of(isolation, name) >= min then
			change("isolation.runtime", name)
			return
		end
	end
end

local function fill_network(w, granted)
	local network = w.network
	-- Who grants the engine's default means requests that say nothing.
	if glob(granted.networks, "default") or glob(granted.networks, "bridge") then return end
	if network and network.given == false and #(network.endpoints or "") == 0 then
		change("network.mode", "none")
	end
end

-- Whether the request says something of it, even if that is "off".
local function asks_for(w, option)
	for given in each(w.security) do
		if given.name == option then return true end
	end
	return false
end

local function fill_privileges(w, granted)
	if not get(w, "capabilities.drop_all") then change("capabilities.drop_all", true) end
	if w.no_new_privileges == false and not asks_for(w, "no-new-privileges") then
		change("no_new_privileges", true)
	end
	local user = w.user or {}
	if granted.users == "nonroot" and user.root ~= false and (user.given or "") == "" then
		change("user.given", "65534:65534")
	end
end

local function fill_limits(w, granted)
	local limits, most = w.limits or {}, granted.limits
	for _, name in ipairs({ "memory", "nano_cpus", "pids" }) do
		if most[name] and limits[name] == nil then change("limits." .. name, most[name]) end
	end
end

local function fill_build_limits(w, granted)
	for _, name in ipairs({ "memory", "nano_cpus" }) do
		if granted.limits[name] and get(w, "limits." .. name) == nil then
			change("limits." .. name, granted.limits[name])
		end
	end
end

local scratch_bytes = 64 * 1024 * 1024

-- Whether something is mounted there, however the path is written.
local function is_mounted(w, place)
	for mount in each(w.mounts) do
		local target = mount.target or ""
		if target == place or target == place .. "/" then return true end
	end
	return false
end

-- What the gate closes needs room for what programs write; who asks for it himself makes his own.
local function fill_read_only(w, granted)
	if not option(granted, "read_only", false) then return end
	if w.read_only ~= false then return end
	local bytes = scratch_bytes
	if granted.limits.memory and granted.limits.memory < bytes then bytes = granted.limits.memory end
	change("read_only", true)
	for _, place in ipairs({ "/tmp", "/run" }) do
		if not is_mounted(w, place) then change("scratch", place .. ":" .. bytes) end
	end
end

-- What a container writes to its output goes into a file on the host, and json-file alone
-- keeps all of it. Where the engine's default is another driver, that is the operator's choice.
local function bound_log(w, granted)
	if not option(granted, "log_limits", true) then return end
	local log = w.log or {}
	if (log.driver or log.default) ~= "json-file" or #(log.options or "") > 0 then return end
	if glob(granted.log_drivers, "json-file") then change("log.limits", "10m:3") end
end

-- An init of the engine's makes the program process 2; images with an init of their own
-- (s6-overlay, systemd) do not start so. Hence only where the profile asks for it.
local function add_init(w, granted)
	if option(granted, "init", false) and w.init == false and w.init_given == false then
		change("init", true)
	end
end

-- The engine refuses to remove what it is to restart. Clients say false where nothing is said.
local function add_auto_remove(w, granted)
	if option(granted, "auto_remove", false) and w.auto_remove == false and w.restart == "no" then
		change("auto_remove", true)
	end
end

-- A label of that name in the request stays: it is judged as any label.
local function add_labels(w, granted)
	for label in each(option(granted, "labels", nil)) do
		local given = false
		for own in each(w.labels) do given = given or str.starts(label, (own.name or "") .. "=") end
		if not given then change("label", label) end
	end
end

-- The engine's socket is exchanged for the gate's own, on which a container is its maker.
local function fill_own_socket(w)
	for mount in each(w.mounts) do
		local instead = mount.kind == "bind" and get(mount, "host.instead")
		if instead then
			change("own_socket", instead)
			return
		end
	end
end

-- The name stays in what is sent, so that people read it; the digest decides.
local function pin_image(img)
	if not img or img.present ~= true or img.by_id or img.digest then return end
	for known in each(img.digests) do
		local ref = image.parse(known)
		if ref.name == img.name then
			change("image.pinned", img.given .. "@" .. ref.digest)
			return
		end
	end
	if img.id then change("image.pinned", img.id) end
end

-- What a profile demands by name is added whether it hardens or not.
local function add_confinement(w, granted)
	local filter = w.seccomp
	if granted.seccomp ~= "default" and get(filter, "available") == true and filter.given == "default" then
		change("seccomp.profile", granted.seccomp .. "@sha256:" .. seccomp_sha256(granted.seccomp))
	end
	if granted.apparmor ~= "" and not asks_for(w, "apparmor") then
		change("apparmor.given", granted.apparmor)
	end
end

harden(function(req, granted)
	local w = req.workload
	if not w then return end
	local builds = req.operation.name == "image.build"
	if granted.own_socket and not builds then fill_own_socket(w) end
	if granted.pin and not builds then pin_image(w.image) end
	if not builds then add_confinement(w, granted) end
	if not granted.harden then return end
	-- The classic builder takes a network and limits; the rest is the engine's.
	if req.operation.name == "image.build" then
		if get(w, "build.runs") == true then
			fill_network(w, granted)
			fill_build_limits(w, granted)
		end
		return
	end
	fill_runtime(w, granted)
	fill_network(w, granted)
	fill_privileges(w, granted)
	fill_limits(w, granted)
	fill_read_only(w, granted)
	bound_log(w, granted)
	add_init(w, granted)
	add_auto_remove(w, granted)
	add_labels(w, granted)
end)
