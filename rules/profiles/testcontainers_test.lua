-- What Testcontainers and its helper Ryuk ask for, and what a test must not do.

defaults { profile = "testcontainers", identity = { name = "me", owner = "me" }, world = "clients.json" }

local filter = "filters=%7B%22label%22%3A%7B%22org.testcontainers.session-id%3D8d2c%22%3Atrue%7D%7D"

for _, r in ipairs {
	{ "GET", "/_ping" }, { "GET", "/v1.41/info" }, { "GET", "/v1.41/version" },
	{ "GET", "/v1.41/images/nginx:1.27/json" }, { "POST", "/v1.41/images/create?fromImage=nginx&tag=1.27" },
	{ "POST", "/v1.41/containers/mine/start" }, { "GET", "/v1.41/containers/mine/json" },
	{ "GET", "/v1.41/containers/mine/logs?follow=1&stdout=1&stderr=1" },
	{ "POST", "/v1.41/containers/mine/exec", { Cmd = { "true" }, AttachStdout = true } },
	{ "GET", "/v1.41/containers/json?all=1&" .. filter }, { "GET", "/v1.41/networks?" .. filter },
	{ "GET", "/v1.41/volumes?" .. filter },
	{ "DELETE", "/v1.41/containers/mine?force=1&v=1" }, { "DELETE", "/v1.41/networks/mine_default" },
	{ "DELETE", "/v1.41/volumes/mine_data?force=1" },
} do
	test("it asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

test "a container with ports of the host that are free" {
	request = [[
POST /v1.41/containers/create HTTP/1.1
Content-Type: application/json

{"Image":"nginx:1.27","Labels":{"org.testcontainers":"true","org.testcontainers.session-id":"8d2c"},"ExposedPorts":{"80/tcp":{}},
"HostConfig":{"PublishAllPorts":true,"PortBindings":{"80/tcp":[{"HostIp":"","HostPort":""}]}}}]],
	expect = "allow",
}

test "Ryuk does not get to other people's containers" { request = { "DELETE", "/containers/hers?force=1" }, reason = "owner" }
test "no privileged mode" { docker = { "run", "--privileged", "nginx:1.27" }, reason = "privileged" }
test "no path of the host" { docker = { "run", "-v", "/etc:/x", "nginx:1.27" }, reason = "bind" }
test "no other registry" { docker = { "run", "reg.example/miner" }, reason = "image" }
