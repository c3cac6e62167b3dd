// Package control is the owner's way to a running peer: the control socket and its client, the jobs that
// p2prun has handed to the peer, and the web server of the status page.
//
//	p2prun, p2phalt, curl: Client ---- HTTP over a Unix socket ----> Server --> handlers of package peer
//	                         |                                        |
//	                      listener <------- lines of events ------- audience <--- Jobs <--- submit.Submitter
//
// Jobs runs the jobs that were submitted here. Each has an audience, which holds the events that no p2prun
// has acknowledged. So a job survives its p2prun for a limited time (handed.go), and another p2prun can
// attach to it. If the peer itself is killed, the listener waits for the next peer on the same home and
// follows the job there. Every record of output is shown once (R6).
//
// Only the user that runs the peer, and root, may connect to the socket (socket.go). The status page can
// only be read, and only with a password (page.go). Package peer describes the requests.
package control
