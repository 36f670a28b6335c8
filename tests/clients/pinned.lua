-- As the other clients, with all that a profile can add to what they ask for.

return profile "pinned" {
	doc = "Whoever runs ordinary containers, which become more than was asked for.",
	extends = "clients",
	pin = true,
	harden = { init = true, labels = { ["team.kind"] = "pinned" } },
}
