-- What Portainer asks for to draw its pages, and what its buttons ask for.

defaults { profile = "portainer-view", identity = { name = "portainer", owner = "portainer" }, world = "clients.json" }

for _, r in ipairs {
	{ "GET", "/_ping" }, { "GET", "/info" }, { "GET", "/version" }, { "GET", "/system/df" },
	{ "GET", "/containers/json?all=true" }, { "GET", "/containers/hers/json" },
	{ "GET", "/containers/hers/logs?stdout=1&stderr=1&tail=100" },
	{ "GET", "/containers/hers/stats?stream=false" }, { "GET", "/containers/hers/top" },
	{ "GET", "/images/json" }, { "GET", "/images/nginx:1.27/json" }, { "GET", "/images/nginx:1.27/history" },
	{ "GET", "/networks" }, { "GET", "/networks/hers_default" },
	{ "GET", "/volumes" }, { "GET", "/volumes/hers_data" }, { "GET", "/events?since=1&until=2" },
} do
	test("a page asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

for _, r in ipairs {
	{ "POST", "/containers/hers/start" }, { "POST", "/containers/hers/stop" },
	{ "POST", "/containers/hers/exec", { Cmd = { "sh" } } }, { "DELETE", "/containers/hers?force=true" },
	{ "DELETE", "/images/nginx:1.27" }, { "DELETE", "/volumes/hers_data" }, { "POST", "/networks/create", { Name = "x" } },
	{ "GET", "/secrets" }, { "GET", "/configs" }, { "GET", "/containers/hers/export" },
} do
	test("a button asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r }
end
