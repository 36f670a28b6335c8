-- Update tools: what takes the place of another container is judged beside it.
--
-- The comparison, fact by fact, is rules/update.def.  What the checks behind
-- this one find fault with was there before, when this one finds nothing, and
-- passes; see rules/update_priv.h.

check "update" {
	doc = "Under `update` a container becomes no more than the one that it replaces, and what could not be made again is not taken away.",
	concerns = {
		"container.create", "container.start", "container.restart", "container.unpause",
		"container.attach", "container.stop", "container.kill", "container.remove", "container.rename",
		"container.prune", "network.connect",
	},
	reasons = { "update_unknown", "update_looser", "update_would_not_return" },
	judge = function(_, granted)
		if granted.update then refuse_update() end
	end,
}
