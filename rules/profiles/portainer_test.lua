-- What Portainer's administrators can do with a host, and how they do not become root on it.

defaults { profile = "portainer", identity = { name = "portainer", owner = "portainer" }, world = "clients.json" }

for _, r in ipairs {
	{ "GET", "/info" }, { "GET", "/containers/json?all=true" }, { "GET", "/containers/hers/json" },
	{ "POST", "/containers/hers/stop" }, { "POST", "/containers/hers/start" }, { "POST", "/containers/hers/restart" },
	{ "POST", "/containers/hers/kill" }, { "DELETE", "/containers/hers?force=true&v=1" },
	{ "POST", "/containers/hers/rename?name=old" },
	{ "GET", "/containers/hers/logs?stdout=1" }, { "POST", "/containers/hers/exec", { Cmd = { "sh" } } },
	{ "POST", "/images/create?fromImage=nginx&tag=1.27" }, { "DELETE", "/images/nginx:1.27" },
	{ "POST", "/networks/create", { Name = "x", Driver = "bridge" } }, { "POST", "/volumes/create", { Name = "x" } },
} do
	test("Portainer asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end
test "a container with a port and a restart policy" {
	docker = { "run", "-d", "--name", "site", "-p", "80:80", "--restart", "always", "nginx:1.27" }, expect = "allow",
}

test "no privileged mode" { docker = { "run", "--privileged", "nginx:1.27" }, reason = "privileged" }
test "not the host's files" { docker = { "run", "-v", "/:/host", "nginx:1.27" }, reason = "bind" }
test "not the engine's socket" { docker = { "run", "-v", "/var/run/docker.sock:/s", "nginx:1.27" }, reason = "bind" }
test "not the host's network" { docker = { "run", "--network", "host", "nginx:1.27" }, reason = "namespace" }
test "not the host's processes" { docker = { "run", "--pid", "host", "nginx:1.27" }, reason = "namespace" }
test "no capabilities" { docker = { "run", "--cap-add", "SYS_ADMIN", "nginx:1.27" }, reason = "capability" }
test "no volume that is a bind in disguise" {
	request = { "POST", "/volumes/create", { Name = "x", DriverOpts = { type = "none", o = "bind", device = "/" } } },
	reason = "driver_opts",
}
test "no other image" { docker = { "run", "reg.example/miner" }, reason = "image" }
test "no swarm" { request = { "POST", "/swarm/init", {} } }
test "no plugins" { request = { "POST", "/plugins/pull?remote=x" } }
