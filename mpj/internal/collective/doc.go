// Package collective has the algorithms of the collective operations. They move
// bytes among the ranks of a Team; package mpj puts types and checks around
// them.
//
//	mpj.Allreduce[T]      checks arguments, sees slices as bytes
//	      |
//	Team.Allreduce        choice.go: which algorithm for this size and n
//	      |
//	doublingAllreduce     who sends what to whom, step by step
//	      |
//	Team.send, exchange   named receives in one context of the engine
//
// # Results do not depend on timing
//
// Every receive names its source, and reductions combine along one tree,
// whatever the algorithm: a pair of neighbouring ranks first, then neighbouring
// pairs, and so on, the lower ranks always on the left.
//
//	0   1   2   3   4
//	 \ /     \ /    |
//	 01      23     4
//	   \    /       |
//	    0123        4
//	        \      /
//	         01234
//
// So a floating-point sum has the same bits in every run and at every replica,
// and also for every root, every algorithm and wherever the ranks run: they
// depend on n alone. And an operation needs to be associative only, never
// commutative. Scan and Exscan have a fixed order of their own.
//
// # Who is where
//
// With several machines, Levels has the ranks in groups: a machine, a cluster
// of near machines, all. Where that is worth it every operation but Scan crosses
// from group to group once each way, between one rank of each, instead of as often
// as ranks have something for each other (levels_test.go counts). In place of the
// tree above, ranks combine what of it lies within their group: so where they are
// changes no bit.
//
// # Failures
//
// A call that fails at one rank, mostly because ranks gave it different lengths,
// fails at those that wait for it as well: spoil.go. The context is of no use
// then.
package collective
