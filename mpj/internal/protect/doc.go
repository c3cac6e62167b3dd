// Package protect selects the protocol that protects a process's messages against failures of
// replicas. The protocol stands between engine and channels (package protection), and depends on
// the job.
//
//	join, for a program's process ---.
//	                                 +--> For --> protection.Protocol, or none
//	localworld, for a test ----------'
package protect
