-- What wrk sends when creates are measured.
wrk.method = "POST"
wrk.body = '{"Image":"reg.example/team/app:1","Cmd":["id"],"HostConfig":{}}'
wrk.headers["Content-Type"] = "application/json"
