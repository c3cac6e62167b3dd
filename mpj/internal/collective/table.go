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

// table has the switch points; the first rule that fits counts. They come from
//
//	go test ./mpj/internal/collective -run '^$' -bench Algorithms
//
// between 2, 4 and 8 ranks of one process on two cores, where a message costs
// about a microsecond and memory is shared. On a network with a higher latency
// the many steps of ring and pairwise pay off later than that.
var table = [operations][]rule{
	Barrier: {{always, 0, Dissemination}},
	Bcast: {
		{32 << 10, 0, Binomial},
		{always, 16, ScatterAllgather},
		{256 << 10, 0, Binomial},
		{always, 3, Chain},
		{always, 0, Binomial},
	},
	Gather:  {{2 << 10, 4, Binomial}, {always, 0, Linear}},
	Scatter: {{2 << 10, 4, Binomial}, {always, 0, Linear}},
	Allgather: {
		{8 << 10, 0, RecursiveDoubling}, // Bruck when the size is no power of two
		{always, 0, Ring},
	},
	Alltoall: {{256, 8, Bruck}, {always, 0, Pairwise}},
	Reduce: {
		{64 << 10, 0, Binomial},
		{always, 0, Rabenseifner},
	},
	Allreduce: {
		{256, 0, Bruck},
		{8 << 10, 0, RecursiveDoubling}, // Binomial when the size is no power of two
		{always, 0, Rabenseifner},
	},
	ReduceScatter: {
		{4 << 10, 0, RecursiveHalving},
		{always, 0, Pairwise},
	},
}

// levelledUpTo has the bytes up to which a job on several machines goes by
// levels. Above, latency counts for less than having all links busy, which the
// algorithms for large messages do: as neighbouring ranks are mostly on one
// machine, their rings and chains cross between machines only once as well.
var levelledUpTo = [operations]int{
	Bcast: 256 << 10, Reduce: 64 << 10, Allreduce: 16 << 10, Allgather: 1 << 10,
	Gather: -1, Scatter: -1, Alltoall: -1, ReduceScatter: -1, Scan: -1,
}
