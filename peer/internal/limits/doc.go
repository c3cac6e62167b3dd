// Package limits says what the processes of others may have of a machine, and
// judges whether one has had more. It is pure: who measures and who ends a
// process is package launch.
//
//	configuration ── Default, With ──> Grant ── Min with that of the submitter's class ──> Grant of a job
//	                                                                                        │
//	Usage, measured ────────────────────────────────────────────────────> Exceeded ──> Excess, said to the user
//
// A limit of a slot is for one process of a job and all that it starts; a limit of a job
// is for all its processes on this machine together. Memory, disk, processes, files
// and time end a process that exceeds them. CPU and upload cannot be exceeded: what
// would be too much is made to wait.
package limits
