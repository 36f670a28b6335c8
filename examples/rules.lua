-- What settings cannot say, said by rules of one's own: a rule that refuses, one that asks a person, one that
-- only warns, and an exception.  `sallyport help facts` lists what `req` has, `help words` what can be called.
-- Its tests: rules_test.lua; `sallyport test examples && sallyport lint examples/rules.lua`.

return profile "team" {
	doc        = "The team's own images, with the team's own rules.",
	images     = { "reg.example/team/*" },
	operations = { "read", "container.run", "exec", "image.pull" },
	networks   = { "default" },
	users      = "any",
	isolation  = { min = "kernel" },
	limits     = { memory = "1GiB", pids = 256 },
	harden     = true,

	-- Concerns the making of containers, unless operations = { ... } says otherwise. A part of the facts may
	-- be absent: get() reads along a path, each() takes a list that may be none; a rule that breaks denies.
	rule("no-production-settings", {
		doc = "Settings of production have no place in a test container.",
		examples = { -- must hold, or the profile does not load
			match = { { workload = { env = { "PATH", "PROD_PASSWORD" } } } },
			not_match = { { workload = { env = { "PATH" } } } },
		},
	}, function(req)
		for name in each(get(req, "workload.env")) do
			if str.starts(name, "PROD_") then
				deny("settings of production are refused", { field = "Env", value = name, hint = "Use STAGE_." })
			end
		end
	end),

	-- A person answers: sallyport approvals watch, approvals allow ID. See ASKING A PERSON in sallyport(8).
	rule("root-by-hand", { doc = "A person looks at containers that run as root." }, function(req)
		if get(req, "workload.user.root") then
			ask("a container that runs as root", { field = "User", hint = "Say --user 1000." })
		end
	end),

	rule("pinned-images", { doc = "Tags move; digests do not.", operations = { "container.create", "image.pull" } }, function(req)
		if not get(req, "workload.image.digest") then warn("the image is named without a digest") end
	end),

	exception {
		rule = "no-production-settings", when = { ["identity.name"] = "migration" }, owner = "ann", ticket = "OPS-17",
		reason = "The migration reads the old database once.", expires = "2027-03-31",
	},
}
