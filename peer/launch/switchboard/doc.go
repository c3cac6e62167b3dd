// Package switchboard decides which way two processes of a job reach each other, and hands them the
// descriptors of their channel.
//
// A process has no network rights. It asks its peer for a channel to another process and receives a
// descriptor. The channel has the first feasible kind that the user and both owners allow (choose.go):
//
//	shm     a ring of shared memory, if both processes run on this peer
//	tcp     a TCP connection, if one peer can connect to the other's entrance (package entrance); the
//	        processes speak TLS on it, with their keys from the membership table
//	stream  one end of a pipe; the other end goes to the other process if it runs on this peer too, and is
//	        otherwise bridged to a libp2p stream to its peer
//
//	asking peer (reach.go)             answering peer (Accept)
//	   |== stream: Open{from,to,token} =>|  in the view? of that peer?
//	   |<== Answer{addresses} ==========|  token expected at the entrance
//	   |-- TCP: token ----------------->|
//	   v  Channel + descriptor          v  Accept + descriptor
//	process <========= TLS =========> process
//
// Each peer checks the other against the job's membership table (Table). A peer therefore cannot impersonate a
// process that it does not run, and no peer connects to a process that has failed in the view (R5). A peer
// cannot break the channels that it has handed over entirely, which are rings and TCP connections. The
// process's engine does that when the view requires it, and the failed process's own peer kills it. A
// direct connection that cannot be made costs one second, once. The peers then bridge the channel, and try
// a direct connection again half a minute later.
//
// A channel uses the best path that was available when it was opened. While the job runs, the peer searches
// for a better one, at growing intervals (search.go). It searches at once when the connection between the
// peers has improved: a hole was punched, or a firewall opened. The processes then reopen their channels.
//
// A Board belongs to one job. The goroutine of that job calls its methods, except where a method states
// otherwise. A Board knows the membership table, the view, and a Port for each process of this peer. It knows
// nothing else of the job.
package switchboard
