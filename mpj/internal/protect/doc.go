// Package protect chooses what keeps a process's messages while replicas fail: the protocol
// between engine and channels (package protection), by the job that the process is of.
//
//	join, of a program's process ----.
//	                                 +--> For --> protection.Protocol, or none
//	localworld, of one in a test ----'
package protect
