// Detection measures how long a group needs to detect the failure of a member, what the detection
// costs, and how often it is wrong. It uses the detector that peers run, in virtual time and in
// real processes.
//
//	go -C e2e/bench run ./detection                           small groups, in minutes
//	go -C e2e/bench run ./detection -large -out ../../docs    all sizes, into docs/failure-detection.md
//	go -C e2e/bench run ./detection -only memberlist          hashicorp/memberlist, at real time
//	go -C e2e/bench run ./detection -only real                real processes, at real time; as root
//
//	 faultdetect/sim: n detectors ──► times, doubts, messages ──► tables in Markdown
//	 memberlist: n members on loopback ──► times
//	 inside a network namespace: n processes on loopback, killed, stopped, cut off ──► times
//
// At virtual time, the same seed produces the same figures.
package main
