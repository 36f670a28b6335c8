-- Tests that start containers by Testcontainers, with its helper Ryuk, which removes what they leave behind.
--
-- Ryuk wants the engine's socket. It gets one of the gate, on which it is the same caller as the tests, and so sees and
-- removes what they made and nothing else. The configuration needs:
--
--	identity "tests" { uid = "ci", profile = "testcontainers", own_socket = "ryuk" }
--	listener "tests" { socket = "/run/sallyport/tests.sock", group = "ci", identities = { "tests" } }
--	listener "ryuk"  { socket = "/run/sallyport/own/ryuk.sock", mode = "0666", as = "tests" }
--
-- and the folder of the second socket only root may enter. The tests run with DOCKER_HOST=unix:///run/sallyport/tests.sock
-- and TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1, and nothing else of their own.

return profile "testcontainers" {
	doc          = "Tests that start containers by Testcontainers, with Ryuk.",
	isolation    = { min = "process" },
	images       = { "docker.io/testcontainers/ryuk:*", "docker.io/library/*" },
	mounts       = {},
	own_socket   = true,
	networks     = { "default", "{own}" },  -- those that the tests make, and nobody else's
	ports        = { "*" },  -- any port of the host, on all its addresses
	users        = "any",
	labels       = { "org.testcontainers**" },
	healthchecks = true,
	limits       = { memory = "2GiB", pids = 1024 },
	operations   = { "read", "container.run", "container.copy", "exec", "image.pull", "network.use", "volume.use" },
	harden       = true,
}
