// Package lending holds the settings of an owner who lends a machine to other users: how much of it, to which
// users, and when not.
//
//	Settings --> Policy (submitters and programs), Grant (limits of jobs), SuspendPolicy (when jobs are suspended)
package lending
