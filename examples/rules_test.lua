-- What rules.lua promises: sallyport test examples

defaults {
	profile = "team", identity = "ann", now = "2027-01-01",
	world = {
		images = {
			["reg.example/team/app"] = {
				Id = "sha256:aa", RepoTags = { "reg.example/team/app:latest" }, Config = { User = "1000" },
				RepoDigests = { "reg.example/team/app@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" },
			},
		},
	},
}

test "the team's image runs" { docker = { "run", "reg.example/team/app" }, expect = "allow" }
test "not with settings of production" {
	docker = { "run", "-e", "PROD_PASSWORD=x", "reg.example/team/app" }, rule = "no-production-settings", value = "PROD_PASSWORD",
}
test "but for the migration" {
	identity = "migration", docker = { "run", "-e", "PROD_PASSWORD=x", "reg.example/team/app" }, expect = "allow",
}
test "whose exception ends" {
	identity = "migration", now = "2027-04-01", docker = { "run", "-e", "PROD_PASSWORD=x", "reg.example/team/app" },
	rule = "no-production-settings",
}
test "as root a person is asked" {
	docker = { "run", "-u", "0", "reg.example/team/app" }, expect = "ask", rule = "root-by-hand",
}
test "a name without a digest is a warning, and no more" {
	docker = { "run", "reg.example/team/app" }, expect = "allow", warning = "the image is named without a digest",
}
