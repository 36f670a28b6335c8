-- What GitLab's docker executor asks for, and what a job must not get.

defaults { profile = "gitlab-runner", identity = { name = "me", owner = "me" }, world = "clients.json" }

local job = { ["com.gitlab.gitlab-runner.job.id"] = "7", ["com.gitlab.gitlab-runner.managed"] = "true" }
local function build(image, host)
	local body = { Image = image, Labels = job, Cmd = { "sh" }, OpenStdin = true, AttachStdin = true,
		HostConfig = { NetworkMode = "mine_default", Binds = { "runner-cache-7:/cache", "runner-build-7:/builds" } } }
	for name, value in pairs(host or {}) do body.HostConfig[name] = value end
	return { "POST", "/v1.41/containers/create?name=runner-7-build", body }
end

for _, r in ipairs {
	{ "GET", "/v1.41/version" }, { "GET", "/v1.41/images/alpine:3.20/json" },
	{ "POST", "/v1.41/images/create?fromImage=alpine&tag=3.20" },
	{ "POST", "/v1.41/volumes/create", { Name = "runner-cache-7", Labels = job } },
	{ "POST", "/v1.41/networks/create", { Name = "runner-7", Driver = "bridge", Labels = job } },
	build("registry.gitlab.com/gitlab-org/gitlab-runner/gitlab-runner-helper:x86_64-v17"),
	build("alpine:3.20"),
	{ "POST", "/v1.41/containers/mine/start" },
	{ "POST", "/v1.41/containers/mine/wait?condition=not-running" },
	{ "POST", "/v1.41/containers/mine/kill?signal=SIGKILL" }, { "POST", "/v1.41/containers/mine/stop" },
	{ "GET", "/v1.41/containers/mine/json" },
	{ "DELETE", "/v1.41/containers/mine?force=1&v=1" }, { "DELETE", "/v1.41/volumes/mine_data?force=1" },
	{ "POST", "/v1.41/networks/mine_default/disconnect", { Container = "mine", Force = true } },
} do
	test("the executor asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end
test "it talks to the job's shell" {
	request = "POST /v1.41/containers/mine/attach?stdin=1&stdout=1&stderr=1&stream=1 HTTP/1.1\nConnection: Upgrade\nUpgrade: tcp\n\n",
	expect = "allow",
}

test "docker in docker" { request = build("alpine:3.20", { Privileged = true }), reason = "privileged" }
test "a path of the host" { request = build("alpine:3.20", { Binds = { "/var/run/docker.sock:/s" } }), reason = "bind" }
test "another job's cache" { request = build("alpine:3.20", { Binds = { "hers_data:/cache" } }), reason = "volume_owner" }
test "an image of somebody" { request = build("reg.example/miner"), reason = "image" }
test "loading images" { request = { "POST", "/images/load" } }
