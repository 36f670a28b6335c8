-- What somebody can see with docker ps, inspect, images, stats, top, info, system df; and no more.

defaults { profile = "docker-cli-read", identity = { name = "me", owner = "me" }, world = "clients.json" }

for _, r in ipairs {
	{ "HEAD", "/_ping" }, { "GET", "/v1.41/version" }, { "GET", "/v1.41/info" },
	{ "GET", "/v1.41/containers/json?all=1" }, { "GET", "/v1.41/containers/hers/json" },
	{ "GET", "/v1.41/containers/hers/top" }, { "GET", "/v1.41/containers/hers/stats?stream=0" },
	{ "GET", "/v1.41/images/json" }, { "GET", "/v1.41/images/nginx:1.27/json" },
	{ "GET", "/v1.41/images/nginx:1.27/history" }, { "GET", "/v1.41/system/df" },
	{ "GET", "/v1.41/networks" }, { "GET", "/v1.41/networks/hers_default" },
	{ "GET", "/v1.41/volumes" }, { "GET", "/v1.41/volumes/hers_data" }, { "GET", "/v1.41/events" },
} do
	test("looking: " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

for _, r in ipairs {
	{ "GET", "/containers/hers/logs?stdout=1" }, { "GET", "/containers/hers/archive?path=/" },
	{ "GET", "/containers/hers/export" }, { "GET", "/images/nginx:1.27/get" },
	{ "POST", "/containers/hers/exec", { Cmd = { "sh" } } }, { "DELETE", "/containers/hers" },
	{ "POST", "/containers/prune" }, { "GET", "/plugins" }, { "POST", "/volumes/create", { Name = "x" } },
} do
	test("no " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r }
end
test "no container" { docker = { "run", "alpine:3.20" }, reason = "operation" }
test "no image" { docker = { "pull", "alpine:3.20" }, reason = "operation" }
