// Command p2pboot donates this machine to a network: it starts a peer, which runs processes of other
// people's jobs until p2phalt or a signal ends it. Its subcommands show a peer, as p2pboot status does,
// or control it, as p2pboot stop does.
package main
