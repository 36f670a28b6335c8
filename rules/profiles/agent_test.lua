-- What the profile "agent" promises.  Run it with: sallyport test rules/profiles
--
-- An image must be known, or its user is not: `world` says what the engine has.

defaults {
	profile = "agent", identity = { name = "ann", uid = 1000, gid = 1000 },
	world = {
		images = {
			["alpine"] = {
				Id = "sha256:aa", RepoTags = { "alpine:latest" }, Config = { User = "" },
				RepoDigests = { "alpine@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" }, -- so it came from Docker Hub
			},
		},
	},
}

test "an agent runs a command" { docker = { "run", "--rm", "alpine", "id" }, expect = "allow" }
test "and fetches the images that it may use" { docker = { "pull", "python:3.12" }, expect = "allow" }

test "no privileged mode" {
	docker = { "run", "--privileged", "alpine" }, reason = "privileged", field = "HostConfig.Privileged",
}
test "no capabilities" { docker = { "run", "--cap-add", "NET_ADMIN", "alpine" }, reason = "capability" }
test "not the host's files" { docker = { "run", "-v", "/:/host", "alpine" }, reason = "bind" }
test "not the engine's socket" {
	docker = { "run", "-v", "/var/run/docker.sock:/s", "alpine" }, reason = "bind",
}
test "not the host's processes" { docker = { "run", "--pid=host", "alpine" }, reason = "namespace" }
test "not the host's network" { docker = { "run", "--network=host", "alpine" }, reason = "namespace" }
test "no network at all" { docker = { "run", "--network=bridge", "alpine" }, reason = "network" }
test "no ports" { docker = { "run", "-p", "127.0.0.1:80:80", "alpine" }, reason = "port" }
test "no devices" { docker = { "run", "--device", "/dev/kvm", "alpine" }, reason = "device" }
test "no GPU" { docker = { "run", "--gpus", "all", "alpine" }, reason = "device" }
test "no root" { docker = { "run", "-u", "0", "alpine" }, reason = "user" }
test "no confinement switched off" {
	docker = { "run", "--security-opt", "seccomp=unconfined", "alpine" }, reason = "security_opt",
}
test "no more memory than granted" { docker = { "run", "-m", "2g", "alpine" }, reason = "limits" }
test "no restart that outlives the session" {
	docker = { "run", "--restart", "always", "alpine" }, reason = "restart",
}
test "no other image" { docker = { "run", "reg.example/miner" }, reason = "image" }
test "no other image is fetched, either" { docker = { "pull", "reg.example/miner" }, reason = "image" }
test "no pushing" { request = { "POST", "/images/alpine/push?tag=latest" }, reason = "push" }
test "no pruning" { request = { "POST", "/containers/prune" }, reason = "operation" }
