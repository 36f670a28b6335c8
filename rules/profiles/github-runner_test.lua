-- What a GitHub Actions runner asks docker for, and what `options:` of a workflow must not bring.

defaults { profile = "github-runner", identity = { name = "me", owner = "me" }, world = "clients.json" }

for _, r in ipairs {
	{ "GET", "/v1.41/version" },
	{ "GET", "/v1.41/containers/json?all=1&filters=%7B%22label%22%3A%7B%22a1b2c3%22%3Atrue%7D%7D" },
	{ "POST", "/v1.41/networks/prune?filters=%7B%22label%22%3A%7B%22a1b2c3%22%3Atrue%7D%7D" },
	{ "POST", "/v1.41/networks/create", { Name = "github_network_0f", Driver = "bridge", Labels = { a1b2c3 = "" } } },
	{ "POST", "/v1.41/images/create?fromImage=nginx&tag=1.27" },
	{ "POST", "/v1.41/containers/mine/start" },
	{ "POST", "/v1.41/containers/mine/exec", { Cmd = { "sh", "-e", "/__w/_temp/x.sh" }, AttachStdin = true } },
	{ "GET", "/v1.41/containers/mine/logs?stdout=1&stderr=1" },
	{ "DELETE", "/v1.41/containers/mine?force=1&v=1" },
	{ "DELETE", "/v1.41/networks/mine_default" },
} do
	test("the runner asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end
local job = { "run", "-l", "a1b2c3", "--network", "mine_default", "-v", "/home/runner/_work:/__w",
	"-v", "/home/runner/externals:/__e:ro", "--entrypoint", "tail" }
local function with(...)
	local words = {}
	for _, word in ipairs(job) do table.insert(words, word) end
	for _, word in ipairs { ... } do table.insert(words, word) end
	table.insert(words, "alpine:3.20")
	return words
end
test "a job's container" { docker = with(), expect = "allow" }
test "options: --privileged" { docker = with("--privileged"), reason = "privileged" }
test "options: --pid=host" { docker = with("--pid=host"), reason = "namespace" }
test "options: -v /:/host" { docker = with("-v", "/:/host"), reason = "bind" }
test "options: --cap-add" { docker = with("--cap-add", "SYS_ADMIN"), reason = "capability" }
test "options: --device" { docker = with("--device", "/dev/kvm"), reason = "device" }
test "the tools of the runner, writable" { docker = { "run", "-v", "/home/runner/externals:/__e", "alpine:3.20" }, reason = "bind" }
test "another job's container" { request = { "POST", "/containers/hers/exec", { Cmd = { "sh" } } }, reason = "owner" }
