// Package control gives the owner access to a peer. It contains the control socket and its client, the jobs that
// p2prun has handed to the peer, and the web server of the status page.
//
//	p2prun, p2phalt, curl: Client ---- HTTP over a Unix socket ----> Server --> Peer
//	                         |                                        |
//	                      listener <--- lines of events --- Jobs <--- submit.EventQueue <--- submit.Submitter
//
// Jobs runs the jobs that were submitted here. Each has a submit.EventQueue, which holds the events that no
// p2prun has acknowledged. A job therefore survives its p2prun for a limited time (handed.go), and another
// p2prun can attach to it. If the peer itself is killed, the listener waits for the next peer on the same home and
// follows the job there. Every record of output is shown once (R6).
//
// Only the user that runs the peer, and root, may connect to the socket (socket.go). The status page can
// only be read, and only with a password (page.go).
//
// # Control socket
//
// The control socket serves HTTP with JSON bodies over a Unix socket that only the owner can open. On Linux
// the peer also checks the user ID of the connecting process:
//
//	GET  /v1/status               status.Status
//	GET  /v1/symptoms             doctor.Facts; takes some seconds
//	GET  /v1/candidates           [submit.Candidate, ...], the peers found now;
//	                              filter=JSON: only those that match a discovery.Filter
//	GET  /v1/cache                status.Cache
//	POST /v1/cache/trim?to=BYTES  evicts files that no job uses: status.Trimmed
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
//	                              hands it over or ends it; now=true ends it at once: status.Stopped
//	POST /v1/slots?total=N        changes the number of slots: status.Slots
//	POST /v1/halt?mode=orderly    answers at once: status.Halting; the peer has ended when the lock
//	               drain|now      is free. Orderly and drain hand jobs over first; drain
//	                              also waits for jobs that cannot be handed over
//
// For instance: curl --unix-socket ~/.p2pmpi/control.sock http://p2pmpi/v1/status
package control
