// Package protect selects the protocol that protects a process's messages against failures of
// replicas (package protection). The choice depends on the job.
//
//	join, for a program's process ---.
//	                                 +--> For --> protection.Protocol, or nil
//	localworld, for a test ----------'
package protect
