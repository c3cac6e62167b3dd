// Package lead measures whether a replica is ahead of its master.
//
// One replica of a rank, the master, transmits and decides. If the machine of another replica is faster, the whole job
// waits for the master. So each replica measures the share of the time for which it is ahead of its master, and reports
// a large share. The authority that makes the views then makes that replica the master.
//
// Progress of a program is counted in steps: its sends and its nondeterministic calls, which are the same at all
// replicas. Each process records the times of its steps. A replica asks the master once per tick while the last answer
// shows the master at an earlier step:
//
//	replica   --- Pace 3 (third question) ------> master
//	          <-- PaceReply 3: step 4 at 4.100 s, --
//	              step 5 at 4.109 s, now it is 4.110 s
//
// Comparing the two step counts at the time of the answer would not be enough. Suppose that a machine is stopped for
// nine milliseconds of every ten. When it resumes, it takes all pending steps before it answers, and seems level. So the
// replica compares times, for which it estimates the offset between the clocks. As in NTP, it assumes that the master
// read its clock half a round trip before the fastest answer arrived. A late answer is not evidence of slowness by
// itself.
//
// In programs whose ranks wait for each other, a replica is soon ahead by one step, and stays there until the master
// takes that step. So the measure is the time for which the replica is ahead, by any number of steps, minus a fifth of
// all time, minus twice the time for which the master is ahead. Equal machines are ahead of each other in turn and
// hardly ever report a lead. A slow machine never gets ahead again. Each report doubles the lead that the next report
// needs.
//
// The package is a pure core. It reads no clock and sends nothing: its caller passes it the time of each step, tick and
// answer, and carries questions and answers. All times of a Meter are readings of the clock of its own process.
package lead
