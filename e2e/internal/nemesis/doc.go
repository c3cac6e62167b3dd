// Package nemesis plans the faults that TestNemesis of package e2e injects into jobs, and into their machines
// and network. A plan is a function of its seed, so that a failed job can be repeated. The peer that a strike
// hits is known only when the job has been placed. A Strike therefore names a process, and the test finds that
// process's machine. The package also judges the outcomes: it decides how a job and its processes may end after
// these faults.
//
//	seed, round ──► Of ──► Round ──► jobs one after the other, on the same peers
//	                                   └── Strike: At 1.2s, unplug the machine of 1.0 for 5s
//	Ending ──► Judge ──► Verdict: right answer, hang, ...
//	Failures ──► Unprovoked: those that break V3
package nemesis
