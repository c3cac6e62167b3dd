// Package status defines the answers that a peer gives to its owner: the types behind p2pboot status, the
// status page, and the JSON of the control socket.
//
//	facts of the services --> package peer --> Status --> control socket, status page --> p2pboot status
//
// Package peer collects the facts, because it knows all services. This package only describes them.
package status
