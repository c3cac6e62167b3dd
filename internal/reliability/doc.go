// Package reliability is the arithmetic of replication: how likely a job fails
// whose processes fail independently.
//
//	n ranks × r replicas     a process fails        the job fails when some rank
//	                         with probability f ──► has lost all its replicas
package reliability
