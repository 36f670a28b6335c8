-- What the profile "watchtower" promises.  Run it with: sallyport test rules/profiles
--
-- The engine has four containers: one as any other, one that is privileged, one
-- of an image off the list, and one without the label.

local enabled = { ["com.centurylinklabs.watchtower.enable"] = "true" }

local function container(id, name, image, labels, host)
	host.NetworkMode = "default"
	host.CgroupnsMode = "private"
	host.IpcMode = "private"
	host.Runtime = "runc"
	host.ShmSize = 67108864
	return {
		Id = id, Name = "/" .. name, Image = image == "nginx:1" and "sha256:aa" or "sha256:bb",
		Config = { Image = image, Labels = labels, User = "", Env = { "PATH=/bin", "MODE=quick" }, Cmd = { "serve" } },
		HostConfig = host, Mounts = {},
		NetworkSettings = { Networks = { bridge = { NetworkID = "x" } } },
	}
end

local function image(id, tag, name, user)
	return {
		Id = id, RepoTags = { tag }, Config = { User = user },
		RepoDigests = { name .. "@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" },
	}
end

defaults {
	profile = "watchtower", identity = { name = "watchtower", uid = 1000, gid = 1000 },
	world = {
		containers = {
			web = container("1111111111111111111111111111111111111111111111111111111111111111", "web", "nginx:1", enabled,
				{ Binds = { "/srv/web:/data" }, CapAdd = { "NET_BIND_SERVICE" }, RestartPolicy = { Name = "always" },
				  PortBindings = { ["80/tcp"] = { { HostIp = "", HostPort = "80" } } } }),
			root = container("2222222222222222222222222222222222222222222222222222222222222222", "root", "nginx:1", enabled,
				{ Privileged = true }),
			other = container("3333333333333333333333333333333333333333333333333333333333333333", "other", "ghcr.io/acme/x:1", enabled, {}),
			hidden = container("4444444444444444444444444444444444444444444444444444444444444444", "hidden", "nginx:1",
				{ team = "x" }, {}),
		},
		images = {
			["nginx:1"] = image("sha256:aa", "nginx:1", "nginx", ""),
			["ghcr.io/acme/x:1"] = image("sha256:bb", "ghcr.io/acme/x:1", "ghcr.io/acme/x", ""),
		},
		files = { ["/srv"] = { kind = "directory" }, ["/srv/web"] = { kind = "directory" } },
	},
}

-- What Watchtower sends: what it was shown of the old one, without what is the image's.
local function again(change)
	local body = {
		Hostname = "111111111111", Image = "nginx:1", Env = { "MODE=quick" }, Labels = enabled,
		HostConfig = {
			Binds = { "/srv/web:/data" }, CapAdd = { "NET_BIND_SERVICE" }, RestartPolicy = { Name = "always" },
			PortBindings = { ["80/tcp"] = { { HostIp = "", HostPort = "80" } } },
			NetworkMode = "default", CgroupnsMode = "private", IpcMode = "private", Runtime = "runc", ShmSize = 67108864,
		},
	}
	for key, value in pairs(change or {}) do body[key] = value end
	return body
end

test "it looks around" { request = { "GET", "/containers/json" }, expect = "allow" }
test "it fetches a newer image" { docker = { "pull", "nginx:1" }, expect = "allow" }
test "of its list" { docker = { "pull", "ghcr.io/acme/x:1" }, reason = "image" }
test "it stops a container" { request = { "POST", "/containers/web/stop" }, expect = "allow" }
test "and removes it" { request = { "DELETE", "/containers/web?force=1" }, expect = "allow" }
test "and makes it again, with all that it had" {
	request = { "POST", "/containers/create?name=web", again() }, expect = "allow",
}
test "with nothing that it did not have" {
	request = { "POST", "/containers/create?name=web", again { HostConfig = { Privileged = true } } },
	reason = "update_looser", rule = "update", field = "HostConfig.Privileged",
}
test "with no other host path" {
	request = { "POST", "/containers/create?name=web", again { HostConfig = { Binds = { "/etc:/data" } } } },
	reason = "update_looser", field = "HostConfig.Binds[0]",
}
test "with no other command" {
	request = { "POST", "/containers/create?name=web", again { Cmd = { "sh", "-c", "id" } } },
	reason = "update_looser", field = "sealed.command[]",
}
test "from no other image" {
	request = { "POST", "/containers/create?name=web", again { Image = "ghcr.io/acme/x:1" } },
	reason = "image",
}
test "under no other name" {
	request = { "POST", "/containers/create?name=web2", again() }, reason = "update_unknown",
}
test "a privileged one is not stopped, since it could not come again" {
	request = { "POST", "/containers/root/stop" }, reason = "update_would_not_return",
	field = "HostConfig.Privileged",
}
test "nor removed" { request = { "DELETE", "/containers/root?force=1" }, reason = "update_would_not_return" }
test "nor one of an image that is not on the list" {
	request = { "POST", "/containers/other/kill" }, reason = "update_would_not_return",
}
test "one without the label does not exist" { request = { "POST", "/containers/hidden/stop" }, reason = "owner" }
test "no commands in containers" {
	request = { "POST", "/containers/web/exec", { Cmd = { "id" } } }, reason = "operation",
}
test "no logs" { request = { "GET", "/containers/web/logs?stdout=1" }, reason = "operation" }
