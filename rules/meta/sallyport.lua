---@meta
-- What profiles are written in, for editors: `sallyport profile types` made this file.

---@alias OperationWord
---| "read"
---| "launch"
---| "exec"
---| "lifecycle"
---| "data-in"
---| "data-out"
---| "policy"
---| "host"
---| "container.run"
---| "container.copy"
---| "network.use"
---| "volume.use"
---| "system.ping" # Is the engine there, and which API does it speak.
---| "system.version" # The engine's version.
---| "system.info" # The engine's configuration and state.
---| "system.events" # Follow what happens to the caller's objects.
---| "system.df" # How much space images, containers and volumes take.
---| "system.auth" # Make the engine log in to a registry.
---| "system.debug" # The engine's debugging interface.
---| "system.session" # BuildKit's session and gRPC tunnels, whose content the gate cannot see.
---| "container.list" # List the caller's containers.
---| "container.inspect" # Show one container.
---| "container.top" # List the processes of a container.
---| "container.stats" # Follow the resource use of a container.
---| "container.changes" # List files that a container changed.
---| "container.create" # Make a container.
---| "container.start" # Start a container.
---| "container.stop" # Stop a container.
---| "container.restart" # Stop and start a container.
---| "container.kill" # Send a signal to a container.
---| "container.pause" # Freeze a container.
---| "container.unpause" # Let a frozen container go on.
---| "container.wait" # Wait until a container ends.
---| "container.resize" # Set the size of a container's terminal.
---| "container.rename" # Give a container another name.
---| "container.remove" # Delete a container.
---| "container.attach" # Talk to a container's main process.
---| "container.logs" # Read what a container wrote.
---| "container.archive.get" # Copy files out of a container.
---| "container.archive.put" # Copy files into a container.
---| "container.export" # Read a container's whole file system.
---| "container.update" # Change the limits of a container.
---| "container.commit" # Make an image of a container.
---| "container.checkpoint" # Freeze a container to disk, list or remove such images.
---| "container.prune" # Delete all stopped containers.
---| "exec.create" # Prepare a command in a running container.
---| "exec.start" # Run a prepared command.
---| "exec.resize" # Set the size of a command's terminal.
---| "exec.inspect" # Show a command's state.
---| "image.list" # List images.
---| "image.inspect" # Show one image.
---| "image.history" # Show how an image was made.
---| "image.pull" # Fetch an image from a registry.
---| "image.import" # Make an image of an uploaded file system or of a URL.
---| "image.load" # Load images from an uploaded archive.
---| "image.build" # Build an image, which runs programs.
---| "image.tag" # Give an image another name.
---| "image.push" # Send an image to a registry.
---| "image.save" # Read whole images.
---| "image.remove" # Delete an image.
---| "image.prune" # Delete unused images or build caches.
---| "registry.search" # Make the engine ask a registry.
---| "network.list" # List the caller's networks.
---| "network.inspect" # Show one network.
---| "network.create" # Make a network.
---| "network.remove" # Delete a network.
---| "network.connect" # Attach a container to a network.
---| "network.disconnect" # Detach a container from a network.
---| "network.prune" # Delete all unused networks.
---| "volume.list" # List the caller's volumes.
---| "volume.inspect" # Show one volume.
---| "volume.create" # Make a volume.
---| "volume.remove" # Delete a volume.
---| "volume.update" # Change a cluster volume.
---| "volume.prune" # Delete all unused volumes.
---| "plugin.read" # List or show engine plugins, with their settings.
---| "plugin.change" # Install or change engine plugins, which run as root on the host.
---| "swarm" # Swarm: nodes, services, tasks, secrets, configs.
---| "libpod" # Podman's own API, which this adapter does not read.

---@alias Reason
---| "malformed" # the request is not well-formed HTTP
---| "tls_handshake" # the TLS handshake came to nothing
---| "client_certificate" # no client certificate was shown, or one that is not accepted
---| "framing" # the length of the request is given in a way that two readers could read differently
---| "header" # a header is malformed or comes twice
---| "method" # this method is not part of the API
---| "path" # the path is not in its one canonical form
---| "version" # this API version is not served
---| "query" # a query key is unknown to this route, malformed, or comes twice
---| "unknown_endpoint" # the gate does not know this endpoint, so it cannot judge it
---| "content_type" # this content type is not accepted here
---| "too_large" # the body is larger than the gate inspects
---| "timeout" # the request did not arrive completely in time
---| "upgrade" # this request needs a connection upgrade, or must not ask for one
---| "rate" # this is asked for more often than the profile allows
---| "busy" # the gate holds as many inspected bodies as it may
---| "engine_busy" # too many requests wait for this engine already
---| "json_empty" # there is no JSON object in the body
---| "json_syntax" # the body is not JSON
---| "json_encoding" # the body holds bytes that are not clean UTF-8 text
---| "json_duplicate" # a key comes twice in one object
---| "json_limit" # the body is nested too deeply or holds a number that does not fit
---| "json_trailing" # something stands behind the JSON document
---| "json_type" # a field has the wrong type
---| "json_key_case" # a key differs from a known one only by case
---| "json_unknown" # the gate does not know this field, so it cannot judge it
---| "flat_hostconfig" # a field of HostConfig stands at the top level, where old engines honour it
---| "privileged" # privileged mode gives the container the host
---| "capability" # this capability is not granted by the profile
---| "device" # host devices are not granted by the profile
---| "security_opt" # this security option switches confinement off or is unknown
---| "seccomp_invalid" # the profile of system calls cannot be read in exactly one way
---| "seccomp_more" # the profile of system calls allows more than the trust profile's
---| "seccomp_missing" # the container would not have the filter of system calls that the trust profile demands
---| "apparmor" # the container would not have the AppArmor profile that the trust profile demands
---| "masked_paths" # the protection of /proc and /sys must stay as the engine sets it
---| "namespace" # sharing this namespace with the host is not granted by the profile
---| "namespace_join" # joining the namespace of a container that is not the caller's own is refused
---| "network" # this network is not granted by the profile
---| "network_endpoint" # endpoint settings (addresses, aliases, driver options) are not granted by the profile
---| "port" # publishing this port is not granted by the profile
---| "extra_hosts" # setting host names or resolvers of the container is not granted by the profile
---| "log_driver" # this log driver or option makes the engine itself write or connect elsewhere
---| "runtime" # the isolation is weaker than the profile's minimum, or the runtime is not known
---| "sysctl" # kernel settings are not granted by the profile
---| "cgroup_parent" # placing the container in another control group is refused
---| "limits" # a limit is missing, lifted, or above what the profile allows
---| "quota_exceeded" # the caller would have more in sum than the profile's quota
---| "user" # the container would run as root, which the profile does not grant
---| "label" # this label is not one that the profile lists: tools on the host obey some
---| "link" # legacy links are refused
---| "name" # this name is not granted by the profile
---| "restart" # this restart policy outlives the session, which the profile does not grant
---| "annotation" # annotations can change the runtime's behaviour and are refused
---| "healthcheck" # a health check runs commands that no exec rule sees
---| "bind" # this host path may not be mounted
---| "bind_protected" # this host path holds, or leads to, a control socket or the gate's own files
---| "bind_movable" # somebody other than root can put a link in the place of this path before the engine mounts it
---| "bind_symlink" # this host path leads through a link to a place that may not be mounted, or cannot be looked at
---| "propagation" # this mount option is not granted by the profile
---| "driver_opts" # volume driver options can turn a volume into a host mount
---| "volume_driver" # this volume driver is not granted by the profile
---| "volumes_from" # borrowing the mounts of another container is refused
---| "volume_owner" # this volume is not the caller's
---| "volume_subpath" # a sub-path must stay inside its volume
---| "tmpfs" # these tmpfs options are not granted by the profile
---| "mount_type" # the gate does not know this kind of mount
---| "image" # this image is not on the profile's list
---| "host_tools_not_granted" # the profile does not let programs of the host be run
---| "image_local" # the profile grants this name for what its registry has; this image was made, loaded or named on this machine
---| "image_tag" # the image must be named with a tag or digest
---| "image_absent" # no such image
---| "import_url" # making the engine fetch a URL is refused
---| "image_retag" # giving a name on the profile's list to other content is refused
---| "registry" # making the engine ask this registry is not granted by the profile
---| "push" # pushing images is not granted by the profile
---| "archive_content" # the archive holds what is not copied into a container, or cannot be read in exactly one way
---| "build" # builds are not granted by the profile
---| "build_context" # the build context cannot be read in exactly one way
---| "build_file" # the Dockerfile says something that the gate cannot judge
---| "build_size" # more stands before the Dockerfile in the build context than the gate holds
---| "buildkit" # BuildKit's tunnels hide what they carry and are refused
---| "commit" # making images of containers is not granted by the profile
---| "export" # reading whole images or file systems is not granted by the profile
---| "archive" # copying files is not granted by the profile
---| "attach" # attaching is not granted by the profile
---| "top_args" # options for ps are refused, since some print environments
---| "exec_privileged" # a privileged exec gives the command the host
---| "exec_user" # the command would run as root, which the profile does not grant
---| "exec_env" # this environment variable can change what a command loads
---| "network_create" # making this network is not granted by the profile
---| "rename" # renaming is not granted by the profile
---| "start_body" # old engines take host settings at start; a body is refused
---| "owner" # no such object
---| "read_only" # this object is shown to you, but not yours to change
---| "gate_self" # the gate's own objects cannot be touched through it
---| "swarm" # swarm is closed
---| "plugin" # engine plugins are root on the host and closed
---| "secret" # secrets and configs are closed
---| "libpod" # the gate does not read this part of Podman's own API
---| "libpod_host" # this reaches the host itself: its files, its units of systemd, or YAML that launches anything
---| "operation" # the profile does not grant this operation
---| "rule" # a rule of the profile refused it
---| "update_unknown" # the profile grants containers only in the place of others, and the gate knows of none that this one would replace
---| "update_looser" # the container would be more than the one that it replaces
---| "update_would_not_return" # the profile would refuse to make this container again, so it is not taken away
---| "profile_not_stricter" # the profile that is asked for does not extend the caller's own
---| "identity_unknown" # the gate does not know who asks
---| "container_unknown" # the gate does not know which container the caller runs in
---| "container_unasked" # the gate could not find out which container the caller runs in
---| "profile_missing" # the profile of this caller is not loaded
---| "fact_unknown" # a fact that the profile needs is not known
---| "facts_too_large" # the request holds more facts than rules are given
---| "approval_pending" # a person must allow this, and nobody has yet
---| "approval_denied" # a person was asked for this and said no
---| "approval_withdrawn" # whoever asked hung up before a person had answered
---| "approvals_full" # a person must allow this, and too many such questions are open
---| "rule_error" # a rule failed, so nothing is allowed
---| "rule_limit" # a rule ran out of its limits, so nothing is allowed
---| "quarantined" # the operator has put this owner under quarantine
---| "quarantine_unknown" # it is not known yet, or cannot be read, who is under quarantine, so nothing is allowed
---| "audit_unavailable" # the audit log cannot be written, so nothing that changes state is forwarded
---| "audit_low" # the audit log runs out of room, so only what stops or removes something is forwarded
---| "engine_unreachable" # the engine cannot be reached
---| "engine_restarted" # the engine was started anew while this was judged, so it was not sent
---| "engine_timeout" # the engine did not answer in time
---| "engine_reply" # the engine's reply could not be understood
---| "not_as_judged" # what the engine made is not what was judged, so it was removed
---| "attestation_failed" # what the kernel says of the started container is not what was judged, so it was killed
---| "no_memory" # the request needs more memory than it may take
---| "internal" # a broken invariant ended the request

---@class Profile
---@class Rule
---@class Exception

---@class VisibilityEntry
---@field label? string NAME, or NAME=VALUE with a glob for the value.
---@field name? string A glob over names.
---@field all? true
---@field access? "read"|"data"|"full"
---@field kinds? ("containers"|"volumes"|"networks"|"images")[]

---@class RuleOptions
---@field operations? OperationWord[] What the rule concerns; the class launch by default.
---@field mode? "enforce"|"warn"|"shadow"
---@field doc? string
---@field examples? { match?: Request[], not_match?: Request[] } Must hold, or nothing loads.

---@class ExceptionTerms
---@field rule string The rule or standard check whose violations pass.
---@field value? string
---@field field? string
---@field code? Reason
---@field when? table<string, any>|fun(req: Request): boolean
---@field owner string Who answers for it.
---@field ticket string
---@field reason string
---@field expires string The last day, as "2026-12-31", UTC.

---@class Saying
---@field field? string Where in the request.
---@field value? any What stood there.
---@field hint? string What would be accepted.
---@field reason? Reason

---@class ImageReference
---@field name string
---@field tag? string
---@field digest? string

---@class Settings
---@field doc? string What the profile is for, in a sentence.
---@field extends? string The profile that this one tightens.
---@field isolation? { min?: "none"|"process"|"kernel"|"vm", runtimes?: string[], attested?: boolean } { min = "none" | "process" (default) | "kernel" | "vm", runtimes = { names, in order of preference }, attested = true }; attested: what the host's kernel shows of a started container must have been seen and be as judged, or it is killed.
---@field host_tools? "none"|"confined"|"bare" Programs of this host may be run, on a backend of kind "local": "confined", in a sandbox that sees what the operator has named there, or "bare", also without any walls: that takes isolation = { min = "none" }, runtime "bare" in the request, bare = true of the backend, and networks with "default". "none" by default.
---@field images? string[] Images that may run and be pulled: globs over registry/repository[:tag][@digest]. What was made, loaded or only named on this machine is not meant, unless the entry gives its digest.
---@field local_images? string[] Images that may run whoever made, loaded or named them on this machine: globs as in images; none by default. Grant names that only the right people can give.
---@field own_images? boolean Images that the caller built through this gate may be used like those on the list; false by default.
---@field pin? boolean A container is made of exactly the image that was judged: its name is sent with its digest, or its id is; false by default.
---@field mounts? { [1]: string, [2]: "ro"|"rw" }[] Host paths that may be mounted: { path, "ro" | "rw" }; {identity.name}, {identity.owner}, {identity.container.name} and {identity.container.id} are filled in.
---@field movable_mounts? boolean Host paths may be mounted although a user other than root can put a link in their place, and so lead the engine to any path of the host; false by default.
---@field own_socket? boolean Where a container is to get the engine's socket it gets the gate's own instead, on which it is this very caller; the configuration says which: own_socket. False by default.
---@field egress? string[] {} means none: only the network 'none' is then granted. Names and ports cannot be enforced yet and do not load.
---@field networks? string[] Networks that may be used, by name (globs), or '{own}': those that the caller has made; 'none' always may.
---@field ports? string[] Host addresses on which ports may be published.
---@field capabilities? string[] Capabilities that may be added.
---@field users? "nonroot"|"any" "nonroot" (default) or "any".
---@field limits? { memory?: string|integer, cpus?: number, pids?: integer, container_pids?: integer, lifetime?: string } { memory = "2GiB", cpus = 2, pids = 256 }: the most a container may have. The steps of classic builds are bound by them as well, and cannot be by pids: where builds are granted say container_pids = 256 instead, which leaves steps of builds without that limit.
---@field quota? table<string, string|number> { containers = 5, memory = "6GiB", cpus = 4, pids = 1024, volume_count = 8, volumes = "50GiB", images = "20GiB" }: the most that one owner may have in sum on an engine. The first four are of what runs; a create is refused, too, where no start could follow. rules/quota.def says how each is counted.
---@field rate? table<OperationWord, string> { launch = "20/min", exec = "10/s" }: how often one caller may do what an operation, class or group of operations.def names; units are s, min, h and day. What the rules refuse does not count. All at once is fine; more gets 429 with Retry-After. Only under mode "enforce".
---@field seccomp? string "tight-python": the filter of system calls that containers get, by its name: one that comes with the program, or NAME.seccomp.json beside the profiles (rules/seccomp/README.md). A request's own may allow no more. "default" (default): the engine's own, and a request's may allow no more than that. Steps of builds have the engine's own. Runtimes with a kernel of their own do not use it.
---@field apparmor? string The AppArmor profile that containers get, by its name; it must be loaded on the engine's host. A profile that extends another keeps the other's.
---@field operations? OperationWord[] What may be asked for: operations, classes or groups of operations.def. image.build and system.session are granted by their names alone, not by their classes.
---@field opaque? string[] { "buildkit" }: exchanges whose content nobody sees may pass if their operations are granted (image.build, system.session): BuildKit then takes any image, runs as root and reaches the default network. Not with a minimum isolation above process, and not with egress.
---@field log_drivers? string[] Log drivers that may be named; json-file and local by default.
---@field restart? string[] Restart policies that may be used; 'no' always may.
---@field healthchecks? boolean A request may bring a health check, a command that the engine runs again and again; false by default.
---@field labels? string[] Globs over the names of labels that may be set; none by default but those of docker compose.
---@field harden? boolean|{ read_only?: boolean, init?: boolean, auto_remove?: boolean, labels?: table<string, string>, log_limits?: boolean } Fill in what is absent: runtime, network, capabilities, user, limits, and bounds on the file of the container's output (3 of 10 MB, where the driver is json-file). A table does so too, with options: read_only = true makes the root file system read-only, with a small /tmp and /run in memory; init = true adds an init process; auto_remove = true lets the engine remove what has ended and has no restart policy; labels = { team = "x" } sets labels that the request does not have; log_limits = false leaves output unbounded.
---@field running? "report"|"minimum"|"stop" What becomes of containers that run already and would not be started now; they are judged again when the gate starts, its rules change, or the engine starts something by itself. "minimum" (default): what is below the isolation that it was made with is stopped, what else the profile would refuse is reported. "stop": both are stopped, and what could not be judged too. "report": both are reported. Each finding is on record as rejudged.
---@field redact? string[] What replies do not show. "env": values of environment variables of containers and images. "mounts": paths on the host, of mounts and volumes and of where the engine keeps things. What a profile that is extended hides stays hidden.
---@field visibility? "own"|"all"|("own"|VisibilityEntry)[] Which objects the caller sees: "own" (default), "all", or a list of "own", { label = "NAME=VALUE" }, { name = "web-*" } and { all = true }, each with access = "read" (default; look at it), "data" (read logs and files, too) or "full" (all that operations grant), and kinds = { "containers", "volumes", "networks" } if not all three. "own" and "all" as words are full. What names the kind "images" limits which images are seen. A label is trusted to whoever can set it.
---@field update? boolean|{ within?: string, fresh?: boolean, privileged?: boolean, changes?: ("command"|"env"|"labels")[], moves?: { [1]: string, [2]: string }[] } For update tools (Watchtower, Portainer, compose). A container is judged against the one that it replaces: nothing may be looser than it was, whatever the lists of the profile grant, and what was there may stay, whether they grant it or not; the image must be on the list and of the same repository. Stop, kill, remove and rename are refused where the re-creation would be. The new one belongs to whom the old one belonged. { within = "10m" } says for how long after that a container may come again (default; at most 24h); fresh = true grants containers that replace none, by the lists alone; privileged = true lets stay what has the host (privileged mode, devices, control sockets, less than the minimum isolation); changes = { "command", "env", "labels" } what may differ from before; moves = { { "docker.io/old/app", "ghcr.io/new/*" } } which repositories may take the place of which. true takes the defaults; false is none. harden does not touch what replaces another.
---@field sandbox? { image?: string, lifetime?: string|integer, idle?: string|integer, disk?: string|integer, output?: string|integer, per_call?: boolean } { image = "...", lifetime = "30m", idle = "5m", disk = "256MiB", output = "4MiB", per_call = true }: of sandboxes made through a listener with `sandboxes`. image: what they are made of where the caller names none (it must be granted like any other). lifetime: the longest, and what holds where the caller says nothing; idle: they end so long after the last command. disk: of /work and of /tmp each, in memory; output: of one command. per_call: each command gets a sandbox of its own, which begins with what is in /work and ends with the command. Units of times: s, m, h, d.
---@field close_streams? boolean After a reload, streams (attached terminals, commands, logs, events) that the new rules would not let through end at once; false by default: they go on to their end.
---@field two_approvers? boolean What rules ask a person for (ask) needs two persons who allow it, of whom neither is who asks; false by default: one.
---@field denial? "full"|"code" What a refused caller is told: "full" (default), with field, value, rule and a way out, or "code", the reason codes alone; the record has it all.
---@field modes? table<string, "enforce"|"warn"|"shadow"> { image = "shadow" }: the mode of single standard checks; a rule has a mode of its own.
---@field mode? "enforce"|"warn"|"shadow" "enforce" (default), "warn" or "shadow"; softens rule violations only.
---@field [integer] Rule|Exception

---@class Request
---@field operation? Fact.operation
---@field identity? Fact.identity
---@field backend? string The service that would do it, as configured.
---@field object? Fact.object
---@field quota? Fact.quota
---@field replaces? Fact.replaces
---@field now? integer When it is judged: seconds since 1970.
---@field workload? Fact.workload

---@class Fact.operation
---@field name? string What is asked for, as 'container.create': see 'sallyport help operations'.
---@field class? string read, launch, exec, lifecycle, data-in, data-out, policy or host.
---@field group? string The group that a profile may name instead, as 'container.run'; '' if it is in none.

---@class Fact.identity
---@field name? string The caller as configured; '' for one that only the listener lets in.
---@field owner? string What its objects are labelled with.
---@field profile? string The trust profile that it is judged by.
---@field listener? string The socket where it came in.
---@field method? string By what it is known: token, cert, cert+token, container, peercred, or listener (by nothing of its own).
---@field address? string The address of a caller over TCP.
---@field cert? Fact.identity.cert
---@field uid? integer The user of the caller's process; absent over TCP.
---@field gid? integer Its group; absent over TCP.
---@field container? Fact.identity.container

---@class Fact.identity.cert
---@field subject? string The subject of its TLS client certificate, for people: compare the names below.
---@field sha256? string The SHA-256 of the certificate.
---@field spki? string The SHA-256 of its public key.
---@field cn? string Its one common name; absent without one, or with several.
---@field dns? string[] Its alternative names of hosts, without wildcards.
---@field uris? string[] Its alternative names that are URIs, such as SPIFFE ids.
---@field emails? string[] Its alternative names that are mail addresses.

---@class Fact.identity.container
---@field id? string The container that the caller runs in; this and what follows is absent for a process of the host, where it is not known, and on listeners that do not look.
---@field name? string Its name.
---@field image? string The reference that it was made from.
---@field image_id? string The id of its image.
---@field owner? string Who made it through the gate; absent if the operator did.
---@field labels? Fact.identity.container.labels[]

---@class Fact.identity.container.labels
---@field name? string A label that it was given, of those that the listener's caller_labels and its identities name.
---@field value? string Its value.

---@class Fact.object
---@field kind? string container, volume, network, image or exec: what it would be done to.
---@field id? string Its full id.
---@field name? string Its name.
---@field mine? boolean Whether it is the caller's own.

---@class Fact.quota
---@field used? Fact.quota.used
---@field asked? Fact.quota.asked
---@field by? string[] Names of the owner's containers that run; not all, if there are many.

---@class Fact.quota.used
---@field containers? integer What the owner has: Containers that run. Made and not started they take nothing. -1: one of them has no limit.
---@field memory? integer What the owner has: Their limits of memory; a container without one does not start. -1: one of them has no limit.
---@field nano_cpus? integer What the owner has: Their limits of processors; a container without one does not start. -1: one of them has no limit.
---@field pids? integer What the owner has: Their limits of processes; a container without one does not start. -1: one of them has no limit.
---@field volume_count? integer What the owner has: Volumes. -1: one of them has no limit.
---@field volumes? integer What the owner has: What the caller's volumes take on disk. Once that much is there nothing starts and no volume is made. -1: one of them has no limit.
---@field images? integer What the owner has: What images take on disk, those aside that others built. Once that much is there none is pulled, loaded, imported, built or committed. -1: one of them has no limit.

---@class Fact.quota.asked
---@field containers? integer What would come to it; -1: without a limit; of sizes 1, since nobody knows.
---@field memory? integer What would come to it; -1: without a limit; of sizes 1, since nobody knows.
---@field nano_cpus? integer What would come to it; -1: without a limit; of sizes 1, since nobody knows.
---@field pids? integer What would come to it; -1: without a limit; of sizes 1, since nobody knows.
---@field volume_count? integer What would come to it; -1: without a limit; of sizes 1, since nobody knows.
---@field volumes? integer What would come to it; -1: without a limit; of sizes 1, since nobody knows.
---@field images? integer What would come to it; -1: without a limit; of sizes 1, since nobody knows.

---@class Fact.replaces
---@field id? string Under `update`: the container that is replaced, or taken away and would come again; its full id.
---@field name? string Its name.
---@field owner? string Whose it was, which the new one becomes; '' if nobody's.
---@field profile? string The profile that it was made under; absent if through no gate.
---@field isolation? string The isolation that it must not fall below; likewise.
---@field by? string name or label: how the request says that it replaces it.
---@field at? integer When it was taken away: seconds since 1970; absent if it is there.
---@field loses? string[] Places of volumes without a name that would be deleted with it.

---@class Fact.workload
---@field image? Fact.workload.image
---@field command? Fact.workload.command
---@field env? string[] Names of environment variables; values are never facts.
---@field isolation? Fact.workload.isolation
---@field host_tools? string On a backend of kind 'local', which runs programs of the host: confined, or bare.
---@field privileged? boolean Privileged mode.
---@field capabilities? Fact.workload.capabilities
---@field security? Fact.workload.security[]
---@field seccomp? Fact.workload.seccomp
---@field apparmor? Fact.workload.apparmor
---@field no_new_privileges? boolean Whether set-id programs gain nothing.
---@field proc_paths? string 'default', or 'changed' when the protection of /proc and /sys is altered.
---@field user? Fact.workload.user
---@field read_only? boolean A root file system that cannot be written.
---@field scratch? string In no request: a directory in memory that hardening adds, as path:bytes; it is then one of the mounts.
---@field init? boolean An init process that reaps children.
---@field init_given? boolean Whether the request says if there shall be one.
---@field namespaces? Fact.workload.namespaces[]
---@field mounts? Fact.workload.mounts[]
---@field volumes_from? Fact.workload.volumes_from[]
---@field network? Fact.workload.network
---@field devices? Fact.workload.devices[]
---@field sysctls? Fact.workload.sysctls[]
---@field cgroup_parent? string The control group it would be placed in.
---@field limits? Fact.workload.limits
---@field restart? string The restart policy: no, on-failure, always, unless-stopped.
---@field auto_remove? boolean Removed by the engine when it ends.
---@field log? Fact.workload.log
---@field annotations? string[] Names of runtime annotations.
---@field storage_options? string[] Names of storage options.
---@field name? string The name that it would have.
---@field hostname? string The host name inside.
---@field labels? Fact.workload.labels[]
---@field label? string In no request: a label that hardening adds, as name=value.
---@field sealed? Fact.workload.sealed
---@field exec? Fact.workload.exec
---@field pull? Fact.workload.pull
---@field images? Fact.workload.images[]
---@field registry? Fact.workload.registry
---@field names? string[] Names that would be written: tag, build, commit, import.
---@field opaque? string buildkit: the gate does not see what the exchange carries.
---@field build? Fact.workload.build
---@field volume? Fact.workload.volume
---@field net? Fact.workload.net

---@class Fact.workload.image
---@field given? string The image as the request names it.
---@field name? string Registry and repository, in full: docker.io/library/alpine.
---@field tag? string The tag; absent when only a digest is given.
---@field digest? string sha256:... if the reference pins one.
---@field id? string The id that the reference resolved to.
---@field present? boolean Whether the engine has the image.
---@field by_id? boolean The request names the image by its id, not by a name.
---@field mine? boolean Whether the caller built the image through this gate.
---@field names? string[] All names of the image that the id resolved to.
---@field digests? string[] registry/repository@digest, in full, for each repository that it was fetched from or sent to; empty if it was made, loaded or only named here; absent if the engine cannot tell.
---@field pinned? string In no request: the image by digest or id, as hardening sends it.

---@class Fact.workload.command
---@field entrypoint_given? boolean The request replaces the image's entry point.
---@field healthcheck? boolean The request brings a health check, which runs commands.

---@class Fact.workload.isolation
---@field level? string none, process, kernel or vm: what is left after all that lowers it.
---@field base? string The level of the runtime alone.
---@field runtime? string The runtime that would be used.
---@field runtime_given? boolean Whether the request named it.
---@field runtime_path? string The program behind the runtime, as the engine reports it.
---@field from? string What of the runtime its level is taken from: path, type, handler or options.BinaryName.
---@field program? string The program that this is, by its name in the gate's tables; absent if they do not know it.
---@field runtimes? Fact.workload.isolation.runtimes[]
---@field lowered? Fact.workload.isolation.lowered[]
---@field adds? string[] What holds it better without being a level of its own, as mapped user ids: it never raises the level.

---@class Fact.workload.isolation.runtimes
---@field name? string A runtime that the engine offers.
---@field level? string The level that it reaches.

---@class Fact.workload.isolation.lowered
---@field field? string What in the request or the runtime lowers the level.
---@field value? string Its value.
---@field to? string The level that it leaves.
---@field why? string The reason.

---@class Fact.workload.capabilities
---@field add? Fact.workload.capabilities.add[]
---@field drop? string[] Capabilities that are dropped; ALL for all.
---@field drop_all? boolean Whether all are dropped first.

---@class Fact.workload.capabilities.add
---@field name? string A capability that is added: upper case, without CAP_.
---@field field? string Its place in the request.

---@class Fact.workload.security
---@field name? string A security option: seccomp, apparmor, label, ...
---@field value? string Its value; long ones are cut.
---@field field? string Its place in the request.

---@class Fact.workload.seccomp
---@field given? string The filter of system calls that the request names: 'default' (the engine's, or none named), 'unconfined' or 'own'.
---@field profile? string One of its own, as JSON; absent where it is the very one that the trust profile demands.
---@field sha256? string The hash of one of its own, as the gate writes it.
---@field field? string Its place in the request.
---@field machine? string The processor of the engine's host, as amd64 or arm64; absent if not known.
---@field available? boolean Whether the engine filters system calls, and takes the filter that is sent: Podman reads it from a file of its host.
---@field applied? boolean Whether the runtime uses the filter: one with a kernel of its own does not.

---@class Fact.workload.apparmor
---@field given? string The AppArmor profile that the request names, or ''.
---@field available? boolean Whether the engine's host has AppArmor.

---@class Fact.workload.user
---@field given? string The user that the request names, or ''.
---@field effective? string With the image's default taken in; absent if not known.
---@field root? boolean Whether that is root; absent if not known.
---@field groups? Fact.workload.user.groups[]

---@class Fact.workload.user.groups
---@field name? string An additional group.
---@field field? string Its place in the request.

---@class Fact.workload.namespaces
---@field name? string pid, ipc, uts, user, cgroup or network.
---@field mode? string host, container, shareable, private or another word.
---@field target? string For container: full id of the one that is joined.
---@field mine? boolean For container: whether it is the caller's own.
---@field field? string Its place in the request.

---@class Fact.workload.mounts
---@field kind? string bind, volume, tmpfs or image.
---@field source? string Host path (cleaned), volume name or image; absent for an anonymous volume.
---@field given? string The source as the request writes it.
---@field target? string Where it appears inside.
---@field read_only? boolean Whether it can be written.
---@field options? string[] Options other than ro and rw.
---@field tmpfs_bytes? integer For tmpfs: its size; absent means no limit.
---@field driver? string For volume: a driver that the request names.
---@field driver_options? boolean For volume: the request or the existing volume has driver options.
---@field exists? boolean For volume: whether it exists.
---@field mine? boolean For volume: whether it is the caller's own, or would be made now.
---@field subpath? string For volume: the part that is mounted.
---@field image? Fact.workload.mounts.image
---@field host? Fact.workload.mounts.host
---@field helper? boolean For bind: it is the program that the gate itself puts into sandboxes.
---@field field? string Its place in the request.

---@class Fact.workload.mounts.image
---@field given? string For image: as the request names it; this and what follows is as with image.
---@field name? string Registry and repository, in full.
---@field tag? string The tag.
---@field digest? string sha256:... if the reference pins one.
---@field id? string The id that the reference resolved to.
---@field present? boolean Whether the engine has the image.
---@field by_id? boolean The request names the image by its id, not by a name.
---@field mine? boolean Whether the caller built the image through this gate.
---@field names? string[] All names of the image that the id resolved to.
---@field digests? string[] registry/repository@digest, in full, for each repository that it was fetched from or sent to.

---@class Fact.workload.mounts.host
---@field kind? string For bind: file, directory, socket, block, char, fifo, absent or unknown.
---@field real? string For bind: the path with all links followed.
---@field links? integer For bind: number of links met.
---@field movable? boolean For bind: whether a user other than root can put something else in its place.
---@field protected? string For bind: the protected path that it is, holds or lies in.
---@field control? string For bind: 'engine' if it is the engine's socket as callers name it, 'own' if it is the socket that stands for it.
---@field instead? string For bind of the engine's socket: the gate's socket that can be mounted in its place.

---@class Fact.workload.volumes_from
---@field name? string A container whose mounts are borrowed.
---@field field? string Its place in the request.

---@class Fact.workload.network
---@field mode? string none, default, host, container, or the network's name.
---@field mine? boolean True if that network is the caller's own; absent otherwise.
---@field given? boolean Whether the request named it.
---@field endpoints? Fact.workload.network.endpoints[]
---@field ports? Fact.workload.network.ports[]
---@field publish_all? boolean Publish all exposed ports.
---@field hosts? Fact.workload.network.hosts[]
---@field links? Fact.workload.network.links[]

---@class Fact.workload.network.endpoints
---@field name? string A network to be attached, by name or id.
---@field mine? boolean Whether that network is the caller's own.
---@field settings? string[] Settings that the request brings for it.
---@field field? string Its place in the request.

---@class Fact.workload.network.ports
---@field port? string A port that is published: 80/tcp.
---@field address? string The host address; '' means all.
---@field host_port? string The host port; '' means any.
---@field field? string Its place in the request.

---@class Fact.workload.network.hosts
---@field value? string A host name set for the container, or a resolver.
---@field field? string Its place in the request.

---@class Fact.workload.network.links
---@field value? string A legacy link.
---@field field? string Its place in the request.

---@class Fact.workload.devices
---@field value? string A device, device rule or device request.
---@field field? string Its place in the request.

---@class Fact.workload.sysctls
---@field name? string A kernel setting.
---@field field? string Its place in the request.

---@class Fact.workload.limits
---@field memory? integer Bytes; absent means no limit.
---@field swap? integer Memory and swap together, in bytes; -1 means no limit; absent means the engine's default.
---@field nano_cpus? integer Billionths of a processor; absent means no limit.
---@field pids? integer Processes; absent means no limit.
---@field shm? integer Bytes of /dev/shm; absent means the engine's default.
---@field lifted? Fact.workload.limits.lifted[]

---@class Fact.workload.limits.lifted
---@field field? string A setting that lifts or escapes a limit: OomKillDisable, Ulimits, ...
---@field value? string Its value.

---@class Fact.workload.log
---@field driver? string The log driver; absent means the engine's default.
---@field options? string[] Names of its options.
---@field default? string The log driver that the engine takes where none is named.
---@field limits? string In no request: bounds of the files, as hardening adds them: size:files.

---@class Fact.workload.labels
---@field name? string A label.
---@field field? string Its place in the request.

---@class Fact.workload.sealed
---@field command? string[] Of entry point, command, working directory, shell and health check, each that is given.
---@field env? string[] Of each environment variable with its value.
---@field labels? string[] Of each label with its value.
---@field settings? string[] Of what has a value beside its name: kernel settings, annotations, storage and log options, settings of end points.
---@field paths? string[] Of each path of /proc and /sys that is hidden, or cannot be written.

---@class Fact.workload.exec
---@field privileged? boolean The command would have all capabilities.
---@field user? string The user that the request names, or ''.
---@field root? boolean Whether the command would run as root; absent if not known.
---@field program? string The first word of the command.
---@field env? string[] Names of environment variables.
---@field workdir? string The directory it starts in.

---@class Fact.workload.pull
---@field name? string Registry and repository that would be fetched.
---@field tag? string Tag or digest; absent means all.
---@field import? boolean A file system is imported instead.
---@field url? string The engine would fetch this URL (without user and password, and with nothing behind the question mark of a query).

---@class Fact.workload.images
---@field given? string An image that would be read whole, as the request names it.
---@field name? string Registry and repository, in full.
---@field tag? string The tag.
---@field digest? string sha256:... if the reference pins one.
---@field id? string The id that the reference resolved to.
---@field present? boolean Whether the engine has the image.
---@field by_id? boolean The request names the image by its id, not by a name.
---@field mine? boolean Whether the caller built the image through this gate.
---@field names? string[] All names of the image that the id resolved to.
---@field digests? string[] registry/repository@digest, in full, for each repository that it was fetched from or sent to; empty if it was made, loaded or only named here; absent if the engine cannot tell.
---@field field? string Its place in the request.

---@class Fact.workload.registry
---@field host? string The registry that the engine would talk to.
---@field name? string The repository that it would be asked about, in full.

---@class Fact.workload.build
---@field dockerfile? string The Dockerfile's path in the build context.
---@field sha256? string The hash of the Dockerfile.
---@field runs? boolean Whether programs run (RUN, also in ONBUILD), in containers under the engine's default runtime.
---@field images? Fact.workload.build.images[]
---@field urls? Fact.workload.build.urls[]
---@field args? string[] Names of build-time variables; values are never facts.
---@field cache? string[] Images whose layers may be taken for results of steps.
---@field taken? string[] Names that would be written and are those of images that the caller did not build.

---@class Fact.workload.build.images
---@field given? string An image that it takes from, as it is named: FROM, COPY --from, cachefrom.
---@field name? string Registry and repository, in full.
---@field tag? string The tag.
---@field digest? string sha256:... if the reference pins one.
---@field id? string The id that the reference resolved to.
---@field present? boolean Whether the engine has the image.
---@field by_id? boolean The image is named by its id.
---@field mine? boolean Whether the caller built the image through this gate.
---@field names? string[] All names of the image that the id resolved to.
---@field digests? string[] registry/repository@digest, in full, for each repository that it was fetched from or sent to.
---@field copied? boolean Files are taken from it; it is not built upon.
---@field field? string Where: Dockerfile and line, or the query.

---@class Fact.workload.build.urls
---@field value? string A URL that the engine would fetch (without user and password, and with nothing behind the question mark of a query).
---@field field? string Where: Dockerfile and line.

---@class Fact.workload.volume
---@field driver? string The driver.
---@field options? string[] Names of driver options.

---@class Fact.workload.net
---@field driver? string The driver of a network that would be made.
---@field internal? boolean Whether it is without a way out.
---@field options? string[] Names of options, and other settings that reach the host.

---@alias Identity Fact.identity

---A trust profile: profile "name" { ... }, which the file returns, alone or in a list.
---@param name string
---@return fun(settings: Settings): Profile
function profile(name) end

---What settings cannot say. Options are { doc =, operations =, mode =, examples = { match = { ... }, not_match = { ... } } }; without operations it concerns the class launch. judge calls deny, ask or warn, or nothing.
---@param name string
---@param options? RuleOptions
---@param judge fun(req: Request)
---@return Rule
function rule(name, options, judge) end

---Lets pass what a rule or a standard check found, until a day: { rule =, value =, field =, code =, when =, owner =, ticket =, reason =, expires = }; when is { ["identity.name"] = "ann" } or a function.
---@param terms ExceptionTerms
---@return Exception
function exception(terms) end

---Refuses the request; more is { field =, value =, hint =, reason = }. The rule ends when its function does.
---@param text string
---@param more? Saying
function deny(text, more) end

---Refuses the request unless a person allows it.
---@param text string
---@param more? Saying
function ask(text, more) end

---Lets it pass, and says so to the caller and in the record.
---@param text string
---@param more? Saying
function warn(text, more) end

---The value; an error, which denies, if it is nil or false.
---@param value any
---@param message? string
---@return any
function assert(value, message) end

---Ends the judgement: the request is denied, since a rule has failed.
---@param message string
function error(message) end

---As text; of tables and functions only the kind is told.
---@param value any
---@return string
function tostring(value) end

---The number that a text is as a whole, or nil.
---@param text any
---@return number?
function tonumber(text) end

---nil, boolean, number, string, table or function; a fact with members is a table.
---@param value any
---@return string
function type(value) end

---The arguments from one on, or with '#' their number.
---@param which integer|string
---@param ... any
---@return any
function select(which, ...) end

---Reads along a path, as get(req, "workload.image.tag"); nil where something on it is absent.
---@param fact any
---@param path string
---@return any
function get(fact, path) end

---Goes through a list: for i, value in ipairs(list).
---@param list any
---@return fun(): integer, any
function ipairs(list) end

---Goes through a table in the order of its keys.
---@param table any
---@return fun(): any, any
function pairs(table) end

---Goes through the values of a list, which may be nil: for value in each(list).
---@param list any
---@return fun(): any
function each(list) end

---The entries with commas between, shortened; for texts that a person reads.
---@param list any
---@param empty? string
---@return string
function listed(list, empty) end

str = {}

---The number of bytes.
---@param s string
---@return integer
function str.len(s) end

---A part, counted from 1; negative numbers count from the end.
---@param s string
---@param from integer
---@param to? integer
---@return string
function str.sub(s, from, to) end

---The number of one byte.
---@param s string
---@param at? integer
---@return integer?
function str.byte(s, at) end

---A text of bytes by their numbers.
---@param ... integer
---@return string
function str.char(...) end

---A to Z in small letters; all else stays.
---@param s string
---@return string
function str.lower(s) end

---a to z in capital letters; all else stays.
---@param s string
---@return string
function str.upper(s) end

---Back to front, by bytes.
---@param s string
---@return string
function str.reverse(s) end

---Without white space at both ends.
---@param s string
---@return string
function str.trim(s) end

---Whether it begins so.
---@param s string
---@param with string
---@return boolean
function str.starts(s, with) end

---Whether it ends so.
---@param s string
---@param with string
---@return boolean
function str.ends(s, with) end

---Whether it holds the part, to the letter.
---@param s string
---@param part string
---@return boolean
function str.contains(s, part) end

---The parts between; empty ones, too.
---@param s string
---@param between string
---@return string[]
function str.split(s, between) end

---%s, %d and %% are known.
---@param form string
---@param ... any
---@return string
function str.format(form, ...) end

table = {}

---Adds a value at the end, or at a place.
---@param list table
---@param where any
---@param value? any
function table.insert(list, where, value) end

---Takes out the last value, or the one at a place.
---@param list table
---@param where? integer
---@return any
function table.remove(list, where) end

---Texts and numbers as one text.
---@param list any
---@param between? string
---@return string
function table.concat(list, between) end

---Sorts numbers or texts in place; texts by their bytes.
---@param list table
function table.sort(list) end

---The values of a list of at most 256.
---@param list any
---@return any
function table.unpack(list) end

math = {}

---The whole number below.
---@param x number
---@return integer
function math.floor(x) end

---The whole number above.
---@param x number
---@return integer
function math.ceil(x) end

---The smallest.
---@param x number
---@param ... number
---@return number
function math.min(x, ...) end

---The largest.
---@param x number
---@param ... number
---@return number
function math.max(x, ...) end

---Without its sign.
---@param x number
---@return number
function math.abs(x) end

---The same as a whole number, or nil if it is none.
---@param x any
---@return integer?
function math.tointeger(x) end

---'integer' or 'float'; nil for what is no number.
---@param x any
---@return string?
function math.type(x) end

---Whether one fits the whole text: ? is one byte but '/', * any without '/', ** any. A pattern of more than 256 bytes, or a text of more than 4096 that it might fit, is an error, which denies.
---@param patterns string|string[]
---@param s string
---@return boolean
function glob(patterns, s) end

---A size as a number: bytes("2GiB").
---@param size string|integer
---@return integer
function bytes(size) end

---A time in seconds: duration("30m"); units are s, m, min, h, d and day.
---@param time string|integer
---@return integer
function duration(time) end

image = {}

---The parts of an image reference, completed as Docker does, or nil if it is none.
---@param reference string
---@return ImageReference?
function image.parse(reference) end

---Whether one of the patterns, as in the setting images, grants it. What is no pattern is an error, which denies.
---@param patterns string[]
---@param name string
---@param tag? string
---@param digest? string
---@return boolean
function image.match(patterns, name, tag, digest) end

---Whether one of the patterns grants some image of that name.
---@param patterns string[]
---@param name string
---@return boolean
function image.named(patterns, name) end

path = {}

---Whether it is root or lies below it, by components; both absolute and cleaned.
---@param path string
---@param root string
---@return boolean
function path.within(path, root) end

---The path with the caller's name and owner filled in, or nil if they do not fit into a path.
---@param pattern string
---@param identity Identity
---@return string?
function path.fill(pattern, identity) end

host = {}

---Whether one fits a host name, whatever the case: as it is, or "*.example.org" for all names below, but not for itself. Never an address.
---@param patterns string|string[]
---@param name string
---@return boolean
function host.match(patterns, name) end

cidr = {}

---Whether one holds the address: "10.0.0.0/8", "fd00::/8", or one address. What is no address is in none.
---@param networks string|string[]
---@param address string
---@return boolean
function cidr.contains(networks, address) end

regex = {}

---Whether a PCRE2 pattern fits the whole text: say .* where anything may stand. A pattern that takes too many steps is an error, which denies; so is a text of more than 4096 bytes or with a NUL.
---@param pattern string
---@param s string
---@return boolean
function regex.match(pattern, s) end

string = str
