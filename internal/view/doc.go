// Package view holds the two words that every part of a running job shares:
// the process, a (rank, replica) pair, and the view, the numbered list of a
// job's processes that says which of them are live and who is the master of
// each rank.
//
//	rank 0   0.0 live (master)   0.1 live
//	rank 1   1.0 failed          1.1 live (master)
//	rank 2   2.0 finished        2.1 live (master)
//	rank 3   3.0 live            3.1 live (master: it was ahead)
//
// A View is a value. The next one is made of it by changes that the job's peers have
// agreed on (peer/internal/viewgroup), by each for itself, and handed to the
// processes; nobody else invents one. The package decides nothing and does no I/O.
package view
