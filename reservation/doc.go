// Package reservation says whose slots are whose, and finds slots for a job.
//
//	submitter                            peer
//	    |-- Hold(job, slots) ------------->|  owner's limits and lists decide
//	    |<-- key, slots, lease; or reason -|  held: ends with its lease (S2), or at
//	    |                                  |  once if the submitter does not wait for it
//	    |-- Confirm(key, slots) ---------->|  confirmed: the surplus is free again
//	    |-- job, key (peer/launch) ------->|  Redeem(key): running, only once
//	    |                                  |  staging, processes
//	    |-- Release(job) ----------------->|  free, unless processes already run
//	    |                                  |  Release(key), once they are gone: free
//
// The peer's side is a [Ledger], a pure core, and a [Service] that puts it on
// the network. A slot in the ledger goes through these states:
//
//	        Hold           Confirm             Redeem
//	free ---------> held -----------> confirmed --------> running
//	  ^               |                   |                  |
//	  +-- lease over, or Release ---------+                  |
//	  +-- Release by the peer itself: the processes are gone +
//
// The submitter's side is [Reserve]: one attempt, all or nothing, around a pure
// core that decides whom to ask for how much. It asks in parallel and for more
// than it needs, because an offer is a hint: a slot may be gone by the time it
// is asked for. Others are asked in the place of those that refuse, and of those that take
// longer than most. A [Strategy] then says which processes go where: see [Strategy.Assign] for
// how replicas of a rank are kept apart, and who is master. An attempt
// that fails gives everything back at once and the caller tries again after a
// [Pause].
//
// A job that waits stands in the queue of every peer that it has asked, in the order in which
// jobs began to wait. A peer keeps the slots that become free for the job in front, as many as
// that asked for and its class of submitters may have ([Verdict]), as long as it asks again ([QueueLease]): so a large job finds its slots one
// after the other without holding any, and submitters who each have half do not starve
// each other, since the same job is in front everywhere. A job that has had
// slots for half an hour, kept for it or held, and has confirmed none begins to wait anew at that peer. So
// does one that lets a lease run out; there, and where it held slots meanwhile for longer than an attempt
// takes, the peer for five minutes believes its submitter, and others of its address, no earlier beginning.
// A job that could not run even if the peers that answer were idle does not wait.
//
// Promised are S1 (a slot is never given twice), S2 (a hold that is not
// confirmed expires), S3 (the owner's limits and lists always win) and, of S4,
// that what is not running does not outlive its lease. What runs keeps its
// slots until the peer itself says that the processes are gone: a submitter
// cannot free slots that are still being used, and need not be there to free
// those that are not. Of jobs that wait, the first comes first as far as clocks agree.
//
// When the submitter vanishes, its leases end. When the peer vanishes, so does
// its ledger, together with its processes.
package reservation
