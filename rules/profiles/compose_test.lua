-- What docker compose asks for on the way up and down, and what a compose file must not ask for.

defaults { profile = "compose", identity = { name = "me", owner = "me" }, world = "clients.json" }

local project = { ["com.docker.compose.project"] = "mine", ["com.docker.compose.service"] = "web" }
local function service(more)
	local body = { Image = "nginx:1.27", Labels = project,
		HostConfig = { NetworkMode = "mine_default", RestartPolicy = { Name = "unless-stopped" } } }
	for name, value in pairs(more or {}) do body.HostConfig[name] = value end
	return { "POST", "/v1.41/containers/create?name=mine-web-1", body }
end

for _, r in ipairs {
	{ "HEAD", "/_ping" }, { "GET", "/v1.41/version" }, { "GET", "/v1.41/info" },
	{ "GET", "/v1.41/containers/json?all=1&filters=%7B%22label%22%3A%7B%22com.docker.compose.project%3Dmine%22%3Atrue%7D%7D" },
	{ "GET", "/v1.41/networks?filters=%7B%22label%22%3A%7B%22com.docker.compose.project%3Dmine%22%3Atrue%7D%7D" },
	{ "POST", "/v1.41/networks/create", { Name = "mine_web", Driver = "bridge", Labels = project } },
	{ "GET", "/v1.41/networks/mine_default" },
	{ "POST", "/v1.41/volumes/create", { Name = "mine_new", Labels = project } },
	{ "GET", "/v1.41/images/nginx:1.27/json" },
	{ "POST", "/v1.41/images/create?fromImage=nginx&tag=1.27" },
	service(),
	{ "POST", "/v1.41/containers/mine/start" },
	{ "POST", "/v1.41/containers/mine/rename?name=0123456789ab_mine" },
	{ "POST", "/v1.41/containers/mine/stop?t=10" },
	{ "DELETE", "/v1.41/containers/mine?force=1&v=1" },
	{ "GET", "/v1.41/containers/mine/logs?follow=1&stdout=1&stderr=1" },
	{ "GET", "/v1.41/events?filters=%7B%22label%22%3A%7B%22com.docker.compose.project%3Dmine%22%3Atrue%7D%7D" },
	{ "DELETE", "/v1.41/networks/mine_default" },
	{ "DELETE", "/v1.41/volumes/mine_data" },
} do
	test("compose asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

test "privileged: true" { request = service { Privileged = true }, reason = "privileged" }
test "volumes: /:/host" { request = service { Binds = { "/:/host" } }, reason = "bind" }
test "network_mode: host" { request = service { NetworkMode = "host" }, reason = "namespace" }
test "pid: host" { request = service { PidMode = "host" }, reason = "namespace" }
test "devices" {
	request = service { Devices = { { PathOnHost = "/dev/kvm", PathInContainer = "/dev/kvm", CgroupPermissions = "rwm" } } },
	reason = "device",
}
test "cap_add" { request = service { CapAdd = { "SYS_ADMIN" } }, reason = "capability" }
test "another one's project" { request = { "POST", "/containers/hers/stop" }, reason = "owner" }
test "to run in its network" { request = service { NetworkMode = "hers_default" }, reason = "network" }
test "to be on its network as well" {
	request = { "POST", "/networks/hers_default/connect", { Container = "mine" } }, reason = "network",
}
test "settings of plugins" { request = { "GET", "/plugins" }, reason = "operation" }
test "and its network" { request = { "DELETE", "/networks/hers_default" }, reason = "owner" }
