// Package peer is one machine's daemon: identity, configuration, libp2p host,
// the life of the services, and the control socket through which the owner and
// the owner's programs talk to it.
//
//	<home>/config.yaml, P2PMPI_..., flags          <home>/control.sock
//	               |                                  ^    |
//	               v                      p2prun, p2phalt, |
//	             Config                   curl, scripts ---+
//	               |                                       v
//	New:  lock -> identity -> host -> services -> control socket -> introduced
//	                           |         |
//	                           |         +-- discovery, reservation, filetransfer,
//	                           |             faultdetect, peer/launch, peer/job
//	                           +-- TCP, QUIC; TLS, Noise; hole punching; peer/internal/relay
//	Close:  the same, backwards, in bounded time
//
// A volunteer (Role Volunteer, what p2pboot starts) has a home, offers slots and
// runs other people's processes. A submit-only peer (Role SubmitOnly, what
// p2prun becomes when no peer runs on its machine) has neither: its identity
// and its cache last as long as it does, and it offers nothing. An Introducer is
// a submit-only peer that introduces others to each other for that long.
//
// # Home
//
//	config.yaml    options, read by p2pboot, p2prun and p2phalt
//	identity       Ed25519 private key, mode 0600; the peer ID follows from it
//	history        how long the peer has run, and how often it ended with no
//	               regard to jobs; docs/reliability.md says what for
//	speed          of one processor, as it was measured best
//	ports          that the peer listens on, where the system has chosen them
//	peers-NETWORK.json  the peers of a network that it has met
//	journal        which jobs have run here, whose, and what they had of the machine
//	lock           held while a peer runs; says which
//	control.sock   control socket, mode 0600, while a peer runs
//	http-password  of the status page (Config.HTTP), mode 0600
//	networks/NAME/ token: the invitation to a private network, mode 0600;
//	               owner: its owner's private key, where it was created
//	cache/         staged files by digest
//	scratch/       folders of running processes
//	modules/       WebAssembly modules, compiled, by digest
//	engine         copy of the engine of modules, where the owner has named one
//	jobs/          jobs that another process can go on with: see package peer/job
//	log            messages of a peer that was started with --detach
//
// The lock is the kernel's and ends with the process, however that ends, so
// neither a lock file nor a socket that a killed peer has left is in the way of
// the next. The lock's descriptor is not inherited by the processes of jobs.
//
// # Control socket
//
// HTTP with JSON bodies, over a Unix socket that only the owner can open; on Linux the kernel is
// also asked who has:
//
//	GET  /v1/status               Status
//	GET  /v1/symptoms             Symptoms, see Examine; takes some seconds
//	GET  /v1/candidates           [job.Candidate, ...], the peers found now;
//	                              filter=JSON: those that a discovery.Filter lets through
//	GET  /v1/cache                Cache
//	POST /v1/cache/trim?to=BYTES  evicts what no job uses: Trimmed
//	POST /v1/jobs                 job.Request -> lines of job.Event with a number,
//	                              the last of kind "result"; Location names the
//	                              job. Hanging up cancels it, unless it is kept:
//	                              then it waits for another to attach
//	POST /v1/jobs/ID/attach       -> what follows of a job to which nobody listens:
//	                              all that was not acknowledged; cancel=true ends it
//	POST /v1/jobs/ID/shown        number=N acknowledges all up to that line; the
//	                              job goes on when its output is
//	DELETE /v1/jobs/ID            cancels the job
//	DELETE /v1/hosted/ID          has a job be gone from here, by the beginning of its
//	                              ID: handed over, or ended; now=true ends it: Stopped
//	POST /v1/slots?total=N        how many slots there are from now on: Slots
//	POST /v1/halt?mode=orderly    answers at once: Halting; the peer is gone when the
//	               drain|now      lock is free. Orderly and drain hand jobs over first, and
//	                              drain waits for those that cannot be
//
// For instance: curl --unix-socket ~/.p2pmpi/control.sock http://p2pmpi/v1/status
//
// This is the only package that knows viper; the services get plain structs.
package peer
