package collective

import "math"

// A rule says which algorithm is used up to so many bytes, by so many members
// or more. Bytes are those of the vector for Bcast and reductions, of one block
// for the others.
type rule struct {
	bytes, size int
	use         Algorithm
}

const always = math.MaxInt

// table has the switch points; the first rule that fits counts. Those for four
// ranks come from jobs of four processes on two processors, each algorithm
// forced in turn,
//
//	P2PMPI_COLL=alltoall=linear p2prun -n 4 -a concentrate --channels shm prog alltoall:4096:1000
//
// with prog from e2e/bench/prog; those for two and eight from
//
//	go test ./mpj/internal/collective -run '^$' -bench Algorithms -benchtime 60x
//
// where ranks are goroutines of one process. All links are one memory there, and a
// step in which everybody waits for somebody costs the handing over of a
// processor as soon as ranks outnumber them: both favour few steps, and whole
// vectors over shares. Where each rank has a link of its own, chain,
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
		{32 << 10, 0, RecursiveDoubling}, // Bruck when the size is no power of two
		{always, 0, Ring},
	},
	Alltoall: {
		{4 << 10, 9, Bruck},
		{128, 4, Bruck},
		{16 << 10, 0, Linear}, // 4 ranks, 4 KiB: 19 µs, pairwise 23, Bruck 27
		{always, 0, Pairwise},
	},
	Reduce: {
		{256 << 10, 0, Binomial},
		{always, 8, Rabenseifner},
		{always, 0, Binomial},
	},
	Allreduce: {
		{16 << 10, 0, RecursiveDoubling}, // Bruck or Binomial when the size is no power of two
		{64 << 10, 0, Rabenseifner},
		{512 << 10, 0, Ring}, // 4 ranks, 256 KiB: 0.37 ms, Rabenseifner 0.74
		{always, 0, Rabenseifner},
	},
	ReduceScatter: {
		{16 << 10, 0, RecursiveHalving},
		{always, 0, Pairwise},
	},
}

// levelledUpTo has the bytes up to which a job on several machines goes by
// levels. Gather and Scatter do at any length: longer blocks go directly then, and
// the ranks need not know each other's lengths to choose alike. Alltoall keeps all
// that leaves and enters a cluster at one rank, and passes blocks on four times.
// Alltoallv and Allgatherv go without levels: heads would have to be told the lengths
// of n*n blocks, or room for the longest. Above, latency counts for less than having all links busy, which the
// algorithms for large messages do: as neighbouring ranks are mostly on one
// machine, their rings and chains cross between machines only once as well.
var levelledUpTo = [operations]int{
	Bcast: 256 << 10, Reduce: 64 << 10, Allreduce: 16 << 10, Allgather: 1 << 10,
	Alltoall: 512, ReduceScatter: 64 << 10, Gather: always, Scatter: always, Scan: -1,
}
