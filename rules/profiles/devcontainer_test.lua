-- What the dev container command line asks docker for, and what features must not ask for.

defaults { profile = "devcontainer", identity = { name = "me", owner = "me" }, world = "clients.json" }

local base = "mcr.microsoft.com/devcontainers/base:ubuntu"
for _, words in ipairs {
	{ "pull", base },
	{ "run", "--mount", "type=bind,source=/workspaces/me,target=/workspaces/me", "-l", "devcontainer.local_folder=/workspaces/me",
		"--entrypoint", "/bin/sh", base, "-c", "sleep" },
	{ "run", "--init", "-p", "127.0.0.1:3000:3000", base },
	{ "exec", "-i", "-u", "1000", "dev", "/bin/sh" },
} do
	test("docker " .. table.concat(words, " "):sub(1, 50)) { docker = words, expect = "allow" }
end
for _, r in ipairs {
	{ "GET", "/v1.41/version" }, { "GET", "/v1.41/info" },
	{ "GET", "/v1.41/containers/json?all=1&filters=%7B%22label%22%3A%7B%22devcontainer.local_folder%3D%2Fworkspaces%2Fme%22%3Atrue%7D%7D" },
	{ "GET", "/v1.41/containers/mine/json" },
	{ "GET", "/v1.41/events?filters=%7B%22event%22%3A%7B%22start%22%3Atrue%7D%7D" },
} do
	test("it asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

test "no feature with privileged mode" { docker = { "run", "--privileged", base }, reason = "privileged" }
test "no feature with capabilities" { docker = { "run", "--cap-add", "SYS_PTRACE", base }, reason = "capability" }
test "no confinement switched off" { docker = { "run", "--security-opt", "seccomp=unconfined", base }, reason = "security_opt" }
test "no engine in it" { docker = { "run", "-v", "/var/run/docker.sock:/var/run/docker.sock", base }, reason = "bind" }
test "not another one's workspace" { docker = { "run", "-v", "/workspaces/ann:/w", base }, reason = "bind" }
