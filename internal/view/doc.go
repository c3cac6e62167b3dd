// Package view defines two terms that all parts of a running job share. A process is a (rank, replica)
// pair. The view is the numbered list of a job's processes, with the state of each and the master of each
// rank.
//
//	rank 0   0.0 live (master)   0.1 live
//	rank 1   1.0 failed          1.1 live (master)
//	rank 2   2.0 finished        2.1 live (master)
//	rank 3   3.0 live            3.1 live (master; was ahead of 3.0)
//
// A View is a value. Each of the job's peers computes the next view from changes that they have agreed on
// (peer/job/viewgroup), and passes it to its processes. There is no other source of views. The
// package decides nothing and does no I/O.
package view
