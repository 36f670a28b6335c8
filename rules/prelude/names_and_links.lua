-- What a container is told about names of other hosts.

check "extra_hosts" {
	doc = "No host names, resolvers or search domains of the caller's own.",
	concerns = what_runs_or_builds,
	reasons = { "extra_hosts" },
	judge = function(req)
		for host in each(get(req.workload, "network.hosts")) do
			refuse("extra_hosts", { field = host.field, value = host.value })
		end
	end,
}

check "link" {
	doc = "No legacy links: they show another container's environment.",
	concerns = what_runs_or_builds,
	reasons = { "link" },
	judge = function(req)
		for link in each(get(req.workload, "network.links")) do
			refuse("link", { field = link.field, value = link.value })
		end
	end,
}
