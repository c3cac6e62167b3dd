// Package nemesis plans what is done to jobs, and to the machines and the network
// they run on, in TestNemesis of package e2e. A plan is a function of its seed, so
// that a job that went wrong can be had again; which peer a strike hits is known
// only when the job has been placed, so a Strike names a process, and who carries
// the plan out finds its machine. It also judges: what may become of a job, and of its
// processes, after what was done to them.
//
//	seed, round ──► Of ──► Round ──► jobs one after the other, on the same peers
//	                                   └── Strike: At 1.2s, unplug the machine of 1.0 for 5s
//	Ending ──► Judge ──► Verdict: right answer, hang, ...
//	Failures ──► Unprovoked: those that break V3
package nemesis
