// Package peer implements the daemon of one machine: its identity, configuration, libp2p host and services,
// and the control socket through which the owner and the owner's programs talk to it.
//
//	<home>/config.yaml, P2PMPI_..., flags          <home>/control.sock
//	               |                                  ^    |
//	               v                      p2prun, p2phalt, |
//	             Config                   curl, scripts ---+
//	               |                                       v
//	New:  lock -> identity -> host -> services -> control socket -> introduced
//	                           |         |
//	                           |         +-- discovery, reservation, filetransfer,
//	                           |             faultdetect, peer/launch, peer/job/submit
//	                           +-- TCP, QUIC; TLS, Noise; hole punching; peer/net/relay
//	Close:  the same in reverse order, in bounded time
//
// A volunteer (Role Volunteer, started by p2pboot) has a home (see package homedir), offers slots and runs
// the processes of other users. A submit-only peer (Role SubmitOnly, started by p2prun if no peer runs on its
// machine) has no home and offers no slots. Its identity and cache last as long as its process. An Introducer
// is a submit-only peer that also serves as the supernode of other peers while it runs.
//
// # Control socket
//
// The control socket serves HTTP with JSON bodies over a Unix socket that only the owner can open. On Linux
// the peer also checks the user ID of the connecting process:
//
//	GET  /v1/status               Status
//	GET  /v1/symptoms             doctor.Facts, see Examine; takes some seconds
//	GET  /v1/candidates           [submit.Candidate, ...], the peers found now;
//	                              filter=JSON: only those that match a discovery.Filter
//	GET  /v1/cache                Cache
//	POST /v1/cache/trim?to=BYTES  evicts files that no job uses: Trimmed
//	POST /v1/jobs                 submit.Request -> numbered lines of submit.Event, the last
//	                              of kind "result"; the Location header identifies the job.
//	                              Closing the connection cancels the job, unless the job
//	                              is kept: then it waits for a client to attach
//	POST /v1/jobs/ID/attach       -> the unacknowledged and later events of a job that has
//	                              no listener; cancel=true ends the job
//	POST /v1/jobs/ID/shown        number=N acknowledges all lines up to N; output that is
//	                              not acknowledged blocks the job
//	DELETE /v1/jobs/ID            cancels the job
//	DELETE /v1/hosted/ID          removes the job whose ID begins with ID from this peer:
//	                              hands it over or ends it; now=true ends it at once: Stopped
//	POST /v1/slots?total=N        changes the number of slots: Slots
//	POST /v1/halt?mode=orderly    answers at once: Halting; the peer has ended when the lock
//	               drain|now      is free. Orderly and drain hand jobs over first; drain
//	                              also waits for jobs that cannot be handed over
//
// For instance: curl --unix-socket ~/.p2pmpi/control.sock http://p2pmpi/v1/status
//
// Package control serves the socket, and follows the jobs that were submitted through it.
//
// This is the only package that imports viper; the services get plain structs.
package peer
