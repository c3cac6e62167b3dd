// Package reservation records which job holds which slots of a peer, and finds slots for a job.
//
//	submitter                            peer
//	    |-- Hold(job, slots) ------------->|  owner's limits and lists decide
//	    |<-- key, slots, lease; or reason -|  held: ends with its lease (S2), or at
//	    |                                  |  once if the submitter has stopped waiting
//	    |-- Confirm(key, slots) ---------->|  confirmed: the surplus is free again
//	    |-- job, key (peer/launch) ------->|  Redeem(key): running, only once
//	    |                                  |  staging, processes
//	    |-- Release(job) ----------------->|  free, unless processes already run
//	    |                                  |  Release(key) when they have ended: free
//
// The peer's side is a [Ledger], a pure core, and a [Service] that serves it on the network. A slot in
// the ledger goes through these states:
//
//	        Hold           Confirm             Redeem
//	free ---------> held -----------> confirmed --------> running
//	  ^               |                   |                  |
//	  +-- lease over, or Release ---------+                  |
//	  +-- Release by the peer, when the processes have ended +
//
// The submitter's side is [Reserve]: one attempt, all or nothing, around a pure core that decides which
// peers to ask for how many slots. It asks in parallel and for more than it needs, because an offer is
// only a hint: a slot may be taken by the time it is requested. It replaces peers that refuse, or that
// take longer than most, by others. A [Strategy] then assigns the processes to the slots; see
// [Strategy.Assign] for how it separates the replicas of a rank and selects the master. A failed attempt
// releases everything at once, and the caller tries again after a [Pause].
//
// A job that waits is in the queue of every peer that it has asked. Queues are ordered by the time when
// jobs began to wait. A peer keeps slots that become free for the job in front, as many as the job asked
// for and its class of submitters may have ([Verdict]). It keeps them as long as the job asks again within
// 12 s. So a large job collects its slots one after the other without holding any. Two submitters that each
// have half of the slots do not starve each other, since the same job is in front at every peer.
//
// A job loses its seniority at a peer when it lets a lease expire, or after half an hour in which it held
// slots, or slots were kept for it, and it confirmed none. The submitter is penalized as well if the job let
// a lease expire, or held slots during that half hour for longer than an attempt takes. Then, for five
// minutes, the peer assumes that jobs of this submitter, and of others with the same address, began to wait
// no earlier than that moment. A job that could not run even if all answering peers were idle does not wait.
//
// The package keeps these promises: S1 (a slot is never given twice), S2 (a hold that is not confirmed
// expires) and S3 (the owner's limits and lists always win). Of S4, it promises that slots without
// running processes do not outlive their lease. Running processes keep their slots until the peer itself
// reports that they have ended. So a submitter cannot free slots that are in use, and need not be present
// to free the others. Among waiting jobs, the first comes first as far as clocks agree.
//
// When the submitter disappears, its leases expire. When the peer disappears, so do its ledger and its
// processes.
package reservation
