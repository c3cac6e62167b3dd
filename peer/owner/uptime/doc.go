// Package uptime keeps how long a peer has run, and how often it ended without handing its jobs over. The
// network estimates from it how likely the peer fails (package reliability).
//
//	Open --> History --> Save, now and then and at the end --> file in the home
package uptime
