-- What each tier lets through, and what only the one above it does.

defaults { identity = { name = "me", owner = "me" }, world = "clients.json" }

local app = "reg.example/team/app:1"
local function row(name, profile, words, want)
	local given = { profile = profile, docker = words }
	for key, value in pairs(want) do given[key] = value end
	test(profile .. ": " .. name)(given)
end

for _, profile in ipairs { "predefined-tools", "external-data", "model-code" } do
	row("runs the team's image", profile, { "run", "--runtime", profile == "predefined-tools" and "runc" or "runsc", app }, { expect = "allow" })
	row("no other image", profile, { "run", "nginx:1.27" }, { reason = "image" })
	row("no privileged mode", profile, { "run", "--privileged", app }, { reason = "privileged" })
	row("no root", profile, { "run", "-u", "0", app }, { reason = "user" })
	row("not the default network", profile, { "run", "--network", "bridge", app }, { reason = "network" })
	row("no ports", profile, { "run", "-p", "127.0.0.1:80:80", app }, { reason = "port" })
	row("not the engine's socket", profile, { "run", "-v", "/var/run/docker.sock:/s", app }, { reason = "bind" })
end

row("its work is written", "predefined-tools", { "run", "-v", "/srv/agents/me/work:/work", app }, { expect = "allow" })
row("not another one's", "predefined-tools", { "run", "-v", "/srv/agents/ann/work:/work", app }, { reason = "bind" })
row("the tools' network", "predefined-tools", { "run", "--network", "tools", app }, { expect = "allow" })

row("an ordinary container is too weak", "external-data", { "run", "--runtime", "runc", app }, { reason = "runtime" })
row("data sets are read", "external-data", { "run", "--runtime", "runsc", "-v", "/srv/datasets:/d:ro", app }, { expect = "allow" })
row("and not written", "external-data", { "run", "--runtime", "runsc", "-v", "/srv/datasets:/d", app }, { reason = "bind" })
row("the proxy's network", "external-data", { "run", "--runtime", "runsc", "--network", "fetch", app }, { expect = "allow" })

row("an ordinary container is too weak", "model-code", { "run", "--runtime", "runc", app }, { reason = "runtime" })
row("what is not said is gVisor", "model-code", { "run", app }, { expect = "allow" })
row("no network", "model-code", { "run", "--network", "fetch", app }, { reason = "network" })
row("no data sets", "model-code", { "run", "-v", "/srv/datasets:/d:ro", app }, { reason = "bind" })
row("nothing is fetched", "model-code", { "pull", app }, { reason = "operation" })
row("nothing lives on", "model-code", { "run", "--restart", "always", app }, { reason = "restart" })

row("gVisor is not enough", "gpu-code", { "run", "--runtime", "runsc", app }, { reason = "runtime" })
row("nor is an ordinary container", "gpu-code", { "run", app }, { reason = "runtime" })
