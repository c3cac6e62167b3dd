// Package suspend applies the owner's suspend rules to the jobs of other users.
//
//	presence.Machine --> Reading --> presence.Watch --> Service --> Jobs: suspend, hand over, resume
//	                                                       |
//	                                                       +--> Rule, Unread: admission, status
//
// While a rule applies, the peer accepts no jobs of other users and hands over the jobs that can be migrated.
// The owner's policy determines what happens to the others.
package suspend
