// Is is the "integer sort" kernel of the NAS Parallel Benchmarks. It ranks integer keys with a
// bucket sort, ten times. Each ranking moves nearly all data through the network, in a few large
// messages.
//
//	p2prun --local 4 -n 4 ./examples/is -class S
//
// The classes are S, W, A and B; -times adds the time spent in messages. Any number of ranks up to
// 256 is allowed, while NPB requires a power of two. If the verification fails, the exit status is
// 1.
//
// # One ranking
//
//	keys of a rank --count--> sizes of its buckets
//	                              | Allreduce
//	                              v
//	                 sizes of all --> the run of buckets for each rank,
//	                              |   with about the same number of keys
//	keys, bucket by bucket        | Alltoall: the numbers of keys
//	        \_____________________| Alltoallv: the keys
//	                              v
//	              keys of a range --count--> number of smaller keys for each
package main
