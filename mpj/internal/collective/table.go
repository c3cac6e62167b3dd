package collective

import "math"

// A rule selects an algorithm for at most the given number of bytes and at least the given number of
// members. The bytes are the size of the vector for Bcast and reductions, and the size of one block
// for other operations.
type rule struct {
	bytes, size int
	use         Algorithm
}

const always = math.MaxInt

// table contains the switch points; the first matching rule applies. The switch points for four
// ranks were measured with jobs of four processes on two processors, forcing each algorithm in turn:
//
//	P2PMPI_COLL=alltoall=linear p2prun -n 4 -a concentrate --channels shm prog alltoall:4096:1000
//
// with prog from e2e/bench/prog. The switch points for two and eight ranks were measured with
//
//	go test ./mpj/internal/collective -run '^$' -bench Algorithms -benchtime 60x
//
// where ranks are goroutines of one process. In both cases all links share one memory. A step in
// which all ranks wait costs a context switch if there are more ranks than processors. Both effects
// favour few steps, and whole vectors over shares. Where each rank has its own link, chain,
// scatter-allgather and Rabenseifner pay off earlier.
var table = [operations][]rule{
	Barrier: {{always, 0, Dissemination}},
	Bcast: {
		{512 << 10, 0, Binomial},
		{always, 8, ScatterAllgather},
		{always, 0, Binomial},
	},
	Gather:  {{512, 8, Binomial}, {always, 0, Linear}},
	Scatter: {{512, 8, Binomial}, {always, 0, Linear}},
	Allgather: {
		{32 << 10, 0, RecursiveDoubling}, // Bruck if the size is not a power of two
		{always, 0, Ring},
	},
	Alltoall: {
		{4 << 10, 9, Bruck},
		{128, 4, Bruck},
		{16 << 10, 0, Linear}, // 4 ranks, 4 KiB: 19 µs; pairwise 23, Bruck 27
		{always, 0, Pairwise},
	},
	Reduce: {
		{256 << 10, 0, Binomial},
		{always, 8, Rabenseifner},
		{always, 0, Binomial},
	},
	Allreduce: {
		{16 << 10, 0, RecursiveDoubling}, // Bruck or Binomial if the size is not a power of two
		{64 << 10, 0, Rabenseifner},
		{512 << 10, 0, Ring}, // 4 ranks, 256 KiB: 0.37 ms; Rabenseifner 0.74
		{always, 0, Rabenseifner},
	},
	ReduceScatter: {
		{16 << 10, 0, RecursiveHalving},
		{always, 0, Pairwise},
	},
}

// levelledUpTo contains the number of bytes up to which a job on several machines uses levels.
//
// Gather and Scatter use levels at any length: longer blocks are then sent directly, and ranks make
// the same choice even if their lengths differ. Alltoall stores all data that leaves or enters a
// cluster at one rank, and forwards blocks up to four times. Alltoallv and Allgatherv do not use
// levels, because heads would need the lengths of n*n blocks, or buffers for the longest block.
//
// Above the bound, keeping all links busy matters more than latency, and the algorithms for large
// messages keep them busy. Because neighbouring ranks are mostly on one machine, their rings and
// chains also cross between machines only once.
var levelledUpTo = [operations]int{
	Bcast: 256 << 10, Reduce: 64 << 10, Allreduce: 16 << 10, Allgather: 1 << 10,
	Alltoall: 512, ReduceScatter: 64 << 10, Gather: always, Scatter: always, Scan: -1,
}
