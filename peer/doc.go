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
// Package control serves the control socket and describes its requests. Type owned answers them.
//
// This is the only package that imports viper; the services get plain structs.
package peer
