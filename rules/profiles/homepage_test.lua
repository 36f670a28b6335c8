-- What Homepage asks for, and what it must not get.

defaults { profile = "homepage", identity = { name = "homepage", owner = "homepage" }, world = "clients.json" }

for _, r in ipairs {
	{ "GET", "/containers/json?all=true" }, { "GET", "/containers/web/json" },
	{ "GET", "/containers/web/stats?stream=false" }, { "GET", "/containers/hers/json" },
} do
	test("Homepage asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

for _, r in ipairs {
	{ "GET", "/containers/web/logs?stdout=1" }, { "POST", "/containers/web/start" },
	{ "GET", "/networks/mine_default" }, { "GET", "/services" }, { "GET", "/info" },
} do
	test("no " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r }
end
