// Package cgroup puts the processes of jobs into Linux control groups, of version 2 or 1. The groups limit
// memory, processor time, and the number of processes.
//
//	<the peer's own group>/
//	    p2pmpi-<home>-peer/                the peer itself (version 2 only)
//	    p2pmpi-<home>-<job>/               memory, number and processors of a job
//	        <rank>.<replica>/              memory and number of a process
//
// Groups are created below the peer's own group, so limits of the peer also bound its jobs. In version 2,
// that group must be delegated to the peer: a group that contains other processes cannot be divided.
// Tree.Missing returns, for each controller that cannot be used, the reason.
//
// In version 2 a job also gets a weight at the disks, if the io controller is delegated.
//
// The processes of a job share one group of the cpu controller. In separate groups, ranks that share a
// processor could not hand it to one another by yielding. Also, one rank may use what another leaves of its
// share.
//
// The supervisor of a process enters the process's group before it forks and leaves it afterwards, so that
// the program starts in the group. Supervisors remove the groups when their peer is gone. The next Open
// removes groups that remain even then.
package cgroup
