-- What Traefik asks for, in its order, and what it must not get.

defaults { profile = "traefik", identity = { name = "traefik", owner = "traefik" }, world = "clients.json" }

for _, r in ipairs {
	{ "HEAD", "/_ping" }, { "GET", "/version" }, { "GET", "/v1.41/version" },
	{ "GET", "/v1.41/containers/json?limit=0" },
	{ "GET", "/v1.41/containers/web/json" },
	{ "GET", "/v1.41/events?filters=%7B%22type%22%3A%7B%22container%22%3Atrue%7D%7D" },
} do
	test("Traefik asks " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r, expect = "allow" }
end

test "a container without the label is not there" {
	request = { "GET", "/v1.41/containers/hers/json" }, reason = "owner",
}
for _, r in ipairs {
	{ "POST", "/containers/web/stop" }, { "GET", "/containers/web/logs?stdout=1" },
	{ "GET", "/containers/web/archive?path=/etc" }, { "GET", "/images/json" },
	{ "DELETE", "/containers/web" }, { "GET", "/info" }, { "GET", "/secrets" },
} do
	test("no " .. r[1] .. " " .. r[2]:split("?")[1]:sub(1, 40)) { request = r }
end
test "no container" { docker = { "run", "alpine:3.20" }, reason = "operation" }
