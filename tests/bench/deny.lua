-- What wrk sends when durable decisions are measured: each is refused, and told once it is on disk.
wrk.method = "POST"
