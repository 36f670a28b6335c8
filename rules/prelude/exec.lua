-- A command in a container that runs already.
--
-- The container itself is judged as well, by the same checks as when it was
-- made: it may be older than the profile.

-- Variables that make a program load or run something before its own first line.
local loaders = {
	"LD_*", "DYLD_*", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES",
	"RESOLV_HOST_CONF", "BASH_ENV", "ENV", "IFS", "PS4", "PROMPT_COMMAND", "BASH_FUNC_*",
	"PERL5LIB", "PERL5OPT", "PERL5DB", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP",
	"PYTHONINSPECT", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS",
	"_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "LUA_INIT*", "GIT_SSH*", "GIT_EXEC_PATH",
}

check "exec" {
	doc = "No privileged command, none as root unless users = \"any\", no loader variables.",
	concerns = { "exec.create", "exec.start" },
	reasons = { "exec_privileged", "exec_user", "exec_env", "fact_unknown" },
	judge = function(req, granted)
		local exec = get(req.workload, "exec")
		if not exec then
			refuse("fact_unknown", { field = "exec", unknown = true,
				text = "nothing is known of the command" })
			return
		end
		if exec.privileged ~= false then
			refuse("exec_privileged", { field = "exec.privileged",
				value = exec.privileged, unknown = exec.privileged == nil })
		end
		if granted.users ~= "any" and exec.root ~= false then
			refuse("exec_user", { field = "exec.user", value = exec.user,
				unknown = exec.root == nil,
				text = exec.root == nil and "the user that the command would run as may be root"
					or nil,
				hint = "Name a user by a number above 0, like 1000:1000." })
		end
		for name in each(exec.env) do
			if glob(loaders, name) then
				refuse("exec_env", { field = "exec.env", value = name })
			end
		end
	end,
}
