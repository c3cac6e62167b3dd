// Package networks manages the private networks of a home, and admits a peer to its network.
//
//	Create, Join --> <home>/networks/NAME/token --> Enter --> Admission: Gate, network ID
//	Invite <-------- <home>/networks/NAME/owner
//
// A network is private if the home has an invitation to it, and open otherwise. Package membership defines
// invitations, and checks the tokens of other peers.
package networks
