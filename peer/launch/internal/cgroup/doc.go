// Package cgroup puts the processes of jobs into control groups of Linux, of
// version 2 or 1, which hold them to their memory, their share of the
// processors and their number.
//
//	<the peer's own group>/
//	    p2pmpi-<home>-peer/                the peer itself (version 2 only)
//	    p2pmpi-<home>-<job>/               memory, number and processors of a job
//	        <rank>.<replica>/              memory and number of a process
//
// Groups are made below the peer's own, so whatever the system allows the peer
// bounds its jobs too, and in version 2 somebody has to have delegated that group
// to the peer: with others in it, it cannot be divided. What cannot be had is said by
// Tree.Missing, for each controller with the reason.
//
// In version 2 a job also gets its weight of the disks, if somebody has delegated that controller.
//
// The processes of a job share one group of the processors' controller. In groups of
// their own, ranks that share a processor could not hand it to one another by yielding;
// and what one does not use of its share, another may.
//
// The supervisor of a process enters its group before it forks and goes back after, so
// that the program is born in it. Supervisors remove the groups when their peer is
// gone; Tree removes what even they left.
package cgroup
