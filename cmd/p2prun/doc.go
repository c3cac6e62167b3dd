// Command p2prun runs a parallel program on the peers of a network.
package main
