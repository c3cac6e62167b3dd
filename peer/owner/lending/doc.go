// Package lending holds the settings of an owner who lends a machine to other users: how much of it, to which
// users, and when not.
//
//	Settings --> Policy (who may run what), Grant (limits of jobs), SuspendPolicy (when the owner comes first)
package lending
