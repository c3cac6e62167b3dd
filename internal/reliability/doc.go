// Package reliability computes the effect of replication: how likely a job fails whose processes fail
// independently, and how many replicas it needs.
//
//	what peers have    expected        n ranks,
//	seen of themselves time            wanted success
//	     │               │                  │
//	     └► History ─► Fails ─► f ─► Replicas ─► r
//	                             JobFails: 1 − (1 − f^r)^n
package reliability
