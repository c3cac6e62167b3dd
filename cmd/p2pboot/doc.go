// Command p2pboot donates this machine to a network: it starts a peer, which
// takes processes of other people's jobs until p2phalt or a signal ends it. Its subcommands show a peer, as p2pboot status
// does, or tell it something, as p2pboot stop.
package main
