-- What is filled in, seen from the outside: command lines that say little pass
-- when the gate completes them, and what they say themselves is judged as it is.

defaults {
	profile = "ref", identity = { name = "ann", uid = 1000, gid = 1000 },
	world = {
		images = {
			["reg.example/team/app:1"] = {
				Id = "sha256:aa", RepoTags = { "reg.example/team/app:1" },
				RepoDigests = { "reg.example/team/app@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" }, Config = { User = "" },
			},
		},
		files = { ["/srv"] = { kind = "directory" }, ["/srv/ws"] = { kind = "directory" } },
	},
}

test "nothing said: runtime, network, user and limits are filled in" {
	docker = { "docker", "run", "--rm", "reg.example/team/app:1", "id" }, expect = "allow",
}
test "a weak runtime that is asked for is judged, not mended" {
	docker = { "run", "--runtime", "runc", "reg.example/team/app:1" }, reason = "runtime",
}
test "root that is asked for likewise" {
	docker = { "run", "--user=0", "reg.example/team/app:1" }, reason = "user", field = "User",
}
test "a network that is asked for likewise" {
	docker = { "run", "--network", "prod", "reg.example/team/app:1" }, reason = "network",
}
test "more memory than the profile has" {
	docker = { "run", "-m", "3g", "reg.example/team/app:1" }, reason = "limits",
}
test "less of it" {
	docker = { "run", "-m", "512m", "--pids-limit=64", "reg.example/team/app:1" }, expect = "allow",
}
test "no-new-privileges switched off" {
	docker = { "run", "--security-opt", "no-new-privileges=false", "reg.example/team/app:1" },
	reason = "security_opt",
}
test "a bind below the profile's folder" {
	docker = { "run", "-v", "/srv/ws:/w:ro", "reg.example/team/app:1" }, expect = "allow",
}
test "the same as a mount" {
	docker = { "run", "--mount", "type=bind,src=/srv/ws,dst=/w,readonly", "reg.example/team/app:1" },
	expect = "allow",
}
test "the host" { docker = { "run", "-v", "/:/host", "reg.example/team/app:1" }, reason = "bind" }
test "a closed root file system makes room in memory" {
	profile = "closed", docker = { "run", "reg.example/team/app:1" }, expect = "allow",
}
test "also beside a tmpfs of the request's own" {
	profile = "closed", docker = { "run", "--tmpfs", "/tmp:size=8m,noexec,nosuid,nodev", "reg.example/team/app:1" },
	expect = "allow",
}
test "a profile with little memory makes little room" {
	profile = "small", docker = { "run", "reg.example/team/app:1" }, expect = "allow",
}
test "a demanded filter of system calls is added" {
	profile = "shell", docker = { "run", "reg.example/team/app:1" }, expect = "allow",
}
test "also where the engine's own is named" {
	profile = "shell", docker = { "run", "--security-opt", "seccomp=builtin", "reg.example/team/app:1" },
	expect = "allow",
}
test "not where filters are off" {
	profile = "shell", docker = { "run", "--security-opt", "seccomp=unconfined", "reg.example/team/app:1" },
	reason = "security_opt",
}
test "a demanded AppArmor profile is added" {
	profile = "armoured", docker = { "run", "reg.example/team/app:1" }, expect = "allow",
}
test "not where another one is named" {
	profile = "armoured", docker = { "run", "--security-opt", "apparmor=other", "reg.example/team/app:1" },
	reason = "security_opt",
}
test "log files get bounds that nobody asked for" {
	docker = { "run", "--log-driver", "json-file", "reg.example/team/app:1" }, expect = "allow",
}
test "bounds that are asked for are judged" {
	docker = { "run", "--log-driver", "json-file", "--log-opt", "max-size=900g", "reg.example/team/app:1" },
	reason = "log_driver",
}
test "what the profile adds needs no grant" {
	profile = "adding", docker = { "run", "reg.example/team/app:1" }, expect = "allow",
}
test "a label of that name does, if the request has it" {
	profile = "adding", docker = { "run", "--label", "tier=high", "reg.example/team/app:1" }, reason = "label",
}
test "and stays, where it is granted" {
	profile = "adding", docker = { "run", "--label", "team=mine", "reg.example/team/app:1" }, expect = "allow",
}
test "a restart policy is not made removal" {
	profile = "adding", docker = { "run", "--restart", "always", "reg.example/team/app:1" }, expect = "allow",
}
test "the default network stays where it is granted" {
	profile = "open", docker = { "run", "reg.example/team/app:1" }, expect = "allow",
}
