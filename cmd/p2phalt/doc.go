// Command p2phalt reclaims this machine from its network: it ends the peer that p2pboot has started.
package main
