// Package uptime records how long a peer has run, and how often it ended without handing its jobs over. The
// network estimates from it how likely the peer is to fail (package reliability).
//
//	Open --> History --> Save, periodically and at the end --> file in the home
package uptime
