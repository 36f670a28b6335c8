-- tests/cases/seccomp.cases: what is asked for beside a filter of system calls that is demanded.

return profile "ref" {
	doc = "A shell without sockets.",
	isolation = { min = "process" },
	images = { "reg.example/team/*" },
	operations = { "container.run" },
	seccomp = "tight-shell",
	harden = true,
}
