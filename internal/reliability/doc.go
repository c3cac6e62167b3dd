// Package reliability computes the effect of replication: the probability that a job fails if its processes fail
// independently, and the number of replicas that the job needs.
//
//	what peers have    expected        n ranks,
//	seen of themselves time            wanted success
//	     │               │                  │
//	     └► History ─► Fails ─► f ─► Replicas ─► r
//	                             JobFails: 1 − (1 − f^r)^n
package reliability
