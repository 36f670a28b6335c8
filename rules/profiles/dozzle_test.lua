-- What Dozzle asks for, and what it must not get.

defaults { profile = "dozzle", identity = { name = "dozzle", owner = "dozzle" }, world = "clients.json" }

for _, r in ipairs {
	{ "HEAD", "/_ping" }, { "GET", "/info" }, { "GET", "/v1.41/version" },
	{ "GET", "/v1.41/containers/json?all=1" }, { "GET", "/v1.41/events" },
	{ "GET", "/v1.41/containers/web/json" }, { "GET", "/v1.41/containers/web/stats?stream=1" },
	{ "GET", "/v1.41/containers/web/logs?follow=1&stdout=1&stderr=1&tail=300&timestamps=1" },
	{ "GET", "/v1.41/containers/hers/logs?stdout=1" },
} do
	test("Dozzle asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

for _, r in ipairs {
	{ "POST", "/containers/web/restart" }, { "POST", "/containers/web/stop" },
	{ "POST", "/containers/web/exec", { Cmd = { "sh" } } },
	{ "GET", "/containers/web/archive?path=/" }, { "GET", "/containers/web/export" },
} do
	test("no " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r }
end
