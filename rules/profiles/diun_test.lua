-- What Diun asks for, in its order, and what it must not get.

defaults { profile = "diun", identity = { name = "diun", owner = "diun" }, world = "clients.json" }

for _, r in ipairs {
	{ "GET", "/_ping" }, { "GET", "/v1.41/version" },
	{ "GET", "/v1.41/containers/json?all=1" }, { "GET", "/v1.41/containers/web/json" },
	{ "GET", "/v1.41/images/nginx:1.27/json" },
} do
	test("Diun asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

for _, r in ipairs {
	{ "POST", "/images/create?fromImage=nginx&tag=1.27" }, { "DELETE", "/images/nginx:1.27" },
	{ "POST", "/containers/web/restart" }, { "GET", "/containers/web/logs?stdout=1" },
	{ "GET", "/images/nginx:1.27/get" }, { "GET", "/volumes" },
} do
	test("no " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r }
end
