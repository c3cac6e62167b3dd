// Package presence finds out when the owner needs the machine: at a seat, on battery, on a
// link that is paid for by the byte, or by work of the owner's own.
//
//	logind, NetworkManager, /sys, /proc --> Reading --> Watch.Step (pure) --> the rule that fires, or none
//
// A rule fires at once and holds until it has not been so for a while, so that a peer does
// not come and go with every pause of its owner. What cannot be read stays as it was for half an hour, and
// is told: a service on the bus that is restarted ends no pause. What never could be read fires nothing: a server
// has no battery and no seat, so that it never pauses.
package presence
