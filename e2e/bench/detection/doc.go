// Detection measures how long a group needs to find out that a member has failed,
// what that costs, and how often it is wrong; at virtual time, with the detector
// that peers run.
//
//	go run ./e2e/bench/detection                     the groups of the seed, in minutes
//	go run ./e2e/bench/detection -large -out docs    all, into docs/failure-detection.md
//	go run ./e2e/bench/detection -only memberlist    hashicorp/memberlist, at real time
//
//	 faultdetect/sim: n detectors ──► times, doubts, messages ──► tables in Markdown
//	 memberlist: n members on loopback ──► times
//
// The same seed gives the same figures, but for memberlist's.
package main
