// Command p2phalt takes this machine back from its network: it ends the peer that p2pboot has started.
package main
