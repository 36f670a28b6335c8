-- Mounts: what of the host, of volumes and of images appears inside.

-- Whenever the engine mounts: also for a copy, which needs no running container.
local mounting = {
	"container.create", "container.start", "container.restart", "container.unpause",
	"container.attach", "exec.create", "exec.start", "container.archive.get", "container.archive.put",
}

-- What the profile grants for a host path: nothing (nil), "ro" or "rw".
local function grant_for(req, granted, where)
	local best
	for mount in each(granted.mounts) do
		local root = path.fill(mount.path, req.identity)
		if root and path.within(where, root) then
			best = best ~= "rw" and mount.mode or best
		end
	end
	return best
end

local function mounts_hint(req, granted)
	local roots, unnamed = {}, nil
	for mount in each(granted.mounts) do
		local root = path.fill(mount.path, req.identity)
		if root then
			table.insert(roots, root .. " (" .. mount.mode .. ")")
		else
			unnamed = mount.path
		end
	end
	local hint = "Host paths that may be mounted: " .. listed(roots) .. "."
	if unnamed then
		hint = hint .. " The profile's " .. unnamed .. " is for callers of whom that is known: ask the operator for an identity."
	end
	return hint
end

-- Binds.
--
-- A bind must be granted twice: as it is written, and as what it really is
-- once every link has been followed.  Whoever asks can often write into what
-- it may mount, so it can put a link there.  A path that cannot be looked at
-- could be such a link.
--
-- Between this look and the engine's own somebody may put a link there, if the
-- place is not in directories that only root can write.  Such races are won one
-- time in three, so such places are refused; `movable_mounts` takes the risk.
--
-- A protected path (control sockets, the gate's own files) is never mounted,
-- nor what it lies in, nor what lies in it.  Read-only does not help: a socket
-- can be spoken to all the same.

--
-- The engine's socket alone can be had in another form: the gate's own socket,
-- on which the container is the caller who made it (`own_socket`).

local mountable = { file = true, directory = true }

-- What an operator would have to write.
local function socket_hint(granted, host)
	local profile = not granted.own_socket and "own_socket = true in the profile"
	local identity = host.control == "engine" and not host.instead
		and "own_socket = \"LISTENER\" for the identity, which is a listener with as = \"IDENTITY\""
	if not profile and not identity then return "Make the container through the gate." end
	return "The gate's own socket can be mounted in its place; that takes "
		.. (profile or "") .. (profile and identity and ", and " or "") .. (identity or "") .. "."
end

local function check_control(granted, mount, host)
	local function no(reason, text, hint, unknown)
		refuse(reason, { field = mount.field, value = mount.given or mount.source, text = text,
			unknown = unknown, hint = hint })
	end
	if host.control ~= "own" or not granted.own_socket then
		no("bind_protected", "this is " .. (host.control == "own" and "a socket of the gate" or
			"the engine's socket") .. ", which no container may reach; read-only does not help",
			socket_hint(granted, host))
	elseif host.kind ~= "socket" then
		no("bind_protected", "what is at " .. mount.source .. " is no socket",
			"The gate's listener must be there.", host.kind == nil or host.kind == "unknown")
	elseif host.movable == true and not granted.movable_mounts then
		no("bind_movable", "a user other than root can put something else in the place of "
			.. mount.source, "The operator must put it into a folder that only root can write.")
	end
end

local function check_bind(req, granted, mount)
	local host = mount.host
	if host and host.control ~= nil then
		check_control(granted, mount, host)
		return
	end
	local function no(reason, text, unknown)
		refuse(reason, { field = mount.field, value = mount.given or mount.source, text = text,
			unknown = unknown, hint = mounts_hint(req, granted) })
	end
	local function protected()
		if host and host.protected ~= nil then
			no("bind_protected", "this is, holds or lies in " .. host.protected
				.. ", which no container may reach; read-only does not help")
		end
	end

	-- The gate's own program in a sandbox: a plain file where nobody but root can put another.
	if mount.helper == true and mount.read_only == true and host and host.kind == "file"
		and host.real == mount.source and host.movable ~= true and host.protected == nil then
		return
	end

	local written = mount.source and grant_for(req, granted, mount.source)
	if not written then
		-- The whole host holds every protected path, so that would say little.
		local whole = mount.source == "/"
		if not whole then protected() end
		no("bind", (mount.source or "?") .. " is not below a path that the profile names")
		if whole then protected() end
		return
	end
	if not host or host.kind == nil or host.kind == "unknown" then
		no("bind_symlink", "what this path really is cannot be looked at", true)
		protected()
		return
	end
	if host.kind == "absent" then
		protected()
		no("bind", "there is nothing at this path, and the engine would make it as root")
		return
	end
	local real = host.real and grant_for(req, granted, host.real)
	if not real then
		no("bind_symlink", host.real and "it leads to " .. host.real
			.. ", which is not below a path that the profile names"
			or "what this path really is cannot be looked at", host.real == nil)
		protected()
		return
	end
	protected()
	if host.movable == true and not granted.movable_mounts then
		refuse("bind_movable", { field = mount.field, value = mount.given or mount.source,
			hint = "Mount a path whose parents only root can write, such as the very path that the"
				.. " profile names, or have the profile say movable_mounts = true. "
				.. mounts_hint(req, granted) })
	end
	if not mountable[host.kind] then
		no("bind", "a " .. host.kind .. " of the host may not be mounted, only files and directories")
	end
	if mount.read_only ~= true and (written ~= "rw" or real ~= "rw") then
		no("bind", "the profile grants this path read-only; mount it with :ro")
	end
end

-- Options that change nothing about who sees what.
local harmless = {
	bind = { "private", "rprivate" },
	volume = { "nocopy" },
	tmpfs = { "noexec", "nosuid", "nodev", "size=*", "mode=*", "uid=*", "gid=*", "nr_inodes=*" },
	image = {},
}

local function check_subpath(mount)
	local sub = mount.subpath
	if sub ~= nil and sub ~= "" and not path.within("/" .. sub, "/") then
		refuse("volume_subpath", { field = mount.field, value = sub })
	end
end

-- Volumes.  With driver options a volume can be a bind in disguise.

local function check_volume(mount)
	local function no(reason, value, unknown)
		refuse(reason, { field = mount.field, value = value, unknown = unknown })
	end
	if mount.driver ~= nil and mount.driver ~= "" and mount.driver ~= "local" then
		no("volume_driver", mount.driver)
	end
	if mount.driver_options ~= false and mount.driver_options ~= nil then
		no("driver_opts", mount.source)
	end
	-- One without a name is made now, for this container.
	if mount.mine == false or (mount.mine == nil and mount.source ~= nil) then
		no("volume_owner", mount.source, mount.mine == nil)
	end
	check_subpath(mount)
end

-- Memory that looks like a file system.

local function check_tmpfs(granted, mount)
	local most = granted.limits.memory
	local bytes = mount.tmpfs_bytes
	local function no(value, text)
		refuse("tmpfs", { field = mount.field, value = value, text = text,
			hint = "Give it a size" .. (most and " of at most " .. most .. " bytes" or "")
				.. ", like size=64m, and neither exec nor suid nor dev." })
	end
	for option in each(mount.options) do
		if not glob(harmless.tmpfs, option) then
			no(option, "the option " .. option .. " is not granted")
		end
	end
	if bytes == nil then
		no(mount.target, "without a size it may fill the host's memory")
	elseif bytes <= 0 or (most and bytes > most) then
		no(bytes, "it is larger than the profile's limit of memory")
	end
end

check "volumes_from" {
	doc = "No mounts borrowed from other containers, whose binds would come along.",
	concerns = mounting,
	reasons = { "volumes_from" },
	judge = function(req)
		for other in each(get(req.workload, "volumes_from")) do
			refuse("volumes_from", { field = other.field, value = other.name })
		end
	end,
}

check "mounts" {
	doc = "Host paths that the profile names, the caller's own volumes, sized tmpfs.",
	concerns = mounting,
	reasons = {
		"bind", "bind_protected", "bind_symlink", "bind_movable", "propagation", "volume_driver", "driver_opts",
		"volume_owner", "volume_subpath", "tmpfs", "mount_type",
	},
	judge = function(req, granted)
		for mount in each(get(req.workload, "mounts")) do
			if mount.kind == "bind" then
				check_bind(req, granted, mount)
			elseif mount.kind == "volume" then
				check_volume(mount)
			elseif mount.kind == "tmpfs" then
				check_tmpfs(granted, mount)
			elseif mount.kind == "image" then
				check_subpath(mount) -- images.lua judges the image
			else
				refuse("mount_type", { field = mount.field, value = mount.kind,
					unknown = mount.kind == nil })
			end
			for option in each(mount.kind ~= "tmpfs" and mount.options or nil) do
				if not glob(harmless[mount.kind or ""] or {}, option) then
					refuse("propagation", { field = mount.field, value = option })
				end
			end
		end
	end,
}

check "volume_create" {
	doc = "A caller's own volumes are plain: the local driver, without options.",
	concerns = { "volume.create" },
	reasons = { "volume_driver", "driver_opts", "fact_unknown" },
	judge = function(req)
		local volume = get(req.workload, "volume")
		if not volume then
			refuse("fact_unknown", { field = "volume", unknown = true,
				text = "nothing is known of the volume" })
			return
		end
		if volume.driver ~= nil and volume.driver ~= "" and volume.driver ~= "local" then
			refuse("volume_driver", { field = "volume.driver", value = volume.driver })
		end
		for option in each(volume.options) do
			refuse("driver_opts", { field = "volume.options", value = option })
		end
	end,
}

-- Copies.
--
-- What is copied into a container is written by the engine, as root and with
-- the owners, set-user-id bits and device nodes of the archive, whoever the
-- container runs as.  In a directory of the host such a file is root's power
-- for whoever can start it there.

check "copy" {
	doc = "Nothing is copied into a container that can write to the host, unless users = \"any\".",
	concerns = { "container.archive.get", "container.archive.put" },
	reasons = { "bind", "fact_unknown" },
	judge = function(req, granted)
		local mounts = get(req.workload, "mounts")
		if not mounts then
			refuse("fact_unknown", { field = "mounts", unknown = true,
				text = "nothing is known of the container's mounts" })
			return
		end
		if req.operation.name ~= "container.archive.put" or granted.users == "any" then return end
		for mount in each(mounts) do
			-- Nothing can be written to a socket, nor put in the place of one that is mounted.
			local socket = get(mount, "host.control") == "own" and get(mount, "host.kind") == "socket"
			if mount.kind == "bind" and mount.read_only ~= true and not socket then
				refuse("bind", { field = mount.field, value = mount.given or mount.source,
					text = "the engine writes copies as root, and this path of the host is "
						.. "writable in the container",
					hint = "Write into the directory itself, or mount it with :ro." })
			end
		end
	end,
}
