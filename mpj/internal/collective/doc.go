// Package collective implements the algorithms of the collective operations. They move bytes among
// the ranks of a Team; package mpj adds types and checks.
//
//	mpj.Allreduce[T]      checks arguments, views slices as bytes
//	      |
//	Team.Allreduce        carries out the call, or tells the others that it fails (failure.go)
//	      |
//	allreduce             chooses the algorithm for this size and n (choice.go, table.go)
//	      |
//	doublingAllreduce     sends and receives, step by step
//	      |
//	Team.send, exchange   receives with a named source, in one context of the engine
//
// # Results do not depend on timing
//
// Every receive names its source, and all algorithms combine reductions along the same tree. They
// combine first pairs of neighbouring ranks, then neighbouring pairs, and so on, always with the
// lower ranks on the left.
//
//	0   1   2   3   4
//	 \ /     \ /    |
//	 01      23     4
//	   \    /       |
//	    0123        4
//	        \      /
//	         01234
//
// A floating-point sum therefore has the same bits in every run and at every replica, for every
// root, algorithm and placement of ranks. The bits depend only on n. An operation must be
// associative, but need not be commutative. Scan and Exscan have their own fixed order.
//
// # Levels
//
// With several machines, Levels groups the ranks: by machine, by cluster of nearby machines, and
// all. Where this pays off, every operation except Scan sends at most one message in each direction
// between two groups, from one rank of each group. Without levels, it would send one message for
// each pair of ranks that have data for each other (levels_test.go counts them). Within a group,
// ranks combine only subtrees of the tree above, so the placement of ranks does not change the
// result.
//
// # Failures
//
// A call that fails at one rank, usually because ranks passed different lengths, also fails at the
// ranks that wait for it; see failure.go. The context is then unusable.
package collective
