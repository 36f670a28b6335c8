-- What autoheal asks for, and what it must not get.

defaults { profile = "autoheal", identity = { name = "autoheal", owner = "autoheal" }, world = "clients.json" }

for _, r in ipairs {
	{ "GET", "/containers/json?filters=%7B%22health%22%3A%5B%22unhealthy%22%5D%2C%22label%22%3A%5B%22autoheal%3Dtrue%22%5D%7D" },
	{ "GET", "/containers/web/json" },
	{ "POST", "/containers/web/restart?t=10" },
} do
	test("autoheal asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

test "what has no such label is not there" { request = { "POST", "/containers/hers/restart" }, reason = "owner" }
for _, r in ipairs {
	{ "POST", "/containers/web/stop" }, { "DELETE", "/containers/web" },
	{ "POST", "/containers/web/exec", { Cmd = { "sh" } } }, { "GET", "/containers/web/logs?stdout=1" },
} do
	test("no " .. r[1] .. " " .. r[2]:split("?")[1]) { request = r }
end
test "no container" { docker = { "run", "nginx:1.27" }, reason = "operation" }
