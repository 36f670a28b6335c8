-- What a developer can do, and how he does not get at the host or at other people's things.

defaults { profile = "docker-cli-dev", identity = { name = "me", owner = "me" }, world = "clients.json" }

for _, words in ipairs {
	{ "run", "--rm", "-it", "alpine:3.20", "sh" },
	{ "run", "-d", "-p", "127.0.0.1:8080:80", "nginx:1.27" },
	{ "run", "-v", "/home/me/src:/src:ro", "alpine:3.20" },
	{ "run", "-v", "cache:/cache", "alpine:3.20" },
	{ "pull", "nginx:1.27" },
	{ "exec", "mine", "sh" },
} do
	test("docker " .. table.concat(words, " "):sub(1, 50)) { docker = words, expect = "allow" }
end
for _, r in ipairs {
	{ "GET", "/containers/json" }, { "GET", "/containers/mine/logs?stdout=1" },
	{ "POST", "/containers/mine/stop" }, { "POST", "/containers/mine/wait" },
	{ "DELETE", "/containers/mine" }, { "GET", "/containers/mine/archive?path=/etc" },
	{ "POST", "/networks/create", { Name = "dev-web", Driver = "bridge" } },
	{ "POST", "/volumes/create", { Name = "cache" } },
} do
	test("asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

test "not with his sources writable" { docker = { "run", "-v", "/home/me/src:/src", "alpine:3.20" }, reason = "bind" }
test "not another one's home" { docker = { "run", "-v", "/home/ann/src:/src:ro", "alpine:3.20" }, reason = "bind" }
test "no port of the office's network" { docker = { "run", "-p", "80:80", "nginx:1.27" }, reason = "port" }
test "not another one's container" { request = { "GET", "/containers/hers/json" }, reason = "owner" }
test "nor a command in it" { docker = { "exec", "hers", "sh" }, reason = "owner" }
test "nor its volume" { docker = { "run", "-v", "hers_data:/x", "alpine:3.20" }, reason = "volume_owner" }
test "no privileged mode" { docker = { "run", "--privileged", "alpine:3.20" }, reason = "privileged" }
test "no other registry" { docker = { "run", "reg.example/miner" }, reason = "image" }
test "nothing that lives on" { docker = { "run", "--restart", "always", "nginx:1.27" }, reason = "restart" }
test "no pushing" { request = { "POST", "/images/nginx:1.27/push" } }
test "no more processes than one container may have" {
	docker = { "run", "--pids-limit", "4096", "alpine:3.20" }, reason = "limits", field = "HostConfig.PidsLimit",
}
