// Package reunion keeps this peer connected with those it has jobs with, when a link is
// cut for a while and when a machine gets another address.
//
//	Service --- every second: connections, own addresses, answers --> watch
//	   ^                                                                |
//	   '--- ask on a connection, drop it, dial a peer <-----------------'
//
// Neither end of a TCP connection is told that the link below is cut, or that the other end
// has another address now: what is sent waits, for ever longer, and after the link is back
// for about as long again as it was cut. So a connection on which nothing arrives after a probe is dropped. An
// answer may wait behind a file, so other bytes count as well, and so do bytes that are acknowledged. A probe
// on a circuit may wait behind other circuits of its relay: until the probe has reached the relay, the relay's
// signs of life count. Also dropped is a connection that is, or may be, from an address that this machine does
// not have any more. The peer is dialled until it answers, or no job needs it any more. A peer that is dialled
// while it has an older connection with the dialler checks whether that one still works.
//
// Processes have connections of their own, between the same two addresses. So whenever one
// between their peers has gone, even if another has stayed, Config.Back is told.
//
// What was under way on a dropped connection is the business of whose it was: streams are
// opened anew, and what may be lost is said again. That a peer does not answer says nothing
// about whether it has failed: that is for the fault detector to say.
package reunion
