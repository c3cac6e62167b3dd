package plan

// The sizes, in bytes. Reductions are of float64, so their sizes begin at 8.
var (
	pairSizes       = []int{1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	rateSizes       = []int{1, 8, 64, 512}
	bandwidthSizes  = []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	collectiveSizes = []int{1, 8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	overlapSizes    = []int{64 << 20}
)

// The sizes for a quick look.
var (
	quickSizes           = []int{1, 1 << 10, 1 << 20}
	quickRateSizes       = []int{1}
	quickBandwidthSizes  = []int{1 << 20}
	quickCollectiveSizes = []int{8, 64 << 10}
	quickOverlapSizes    = []int{16 << 20}
)

// blockLimit bounds the block of collectives whose buffers hold one block per rank.
const blockLimit = 16 << 20

// Of returns the items for a number of processes. With more than two processes, these are collectives, and the
// latency of several pairs at once.
func Of(processes int, quick bool) []Item {
	var items []Item
	add := func(test string, sizes, quickSizes []int) {
		if quick {
			sizes = quickSizes
		}
		for _, bytes := range sizes {
			if fits(test, bytes, processes) {
				items = append(items, Item{Test: test, Bytes: bytes, Count: count(test, bytes, quick)})
			}
		}
	}
	add(Latency, pairSizes, quickSizes)
	if processes == 2 {
		add(Rate, rateSizes, quickRateSizes)
		add(Bandwidth, bandwidthSizes, quickBandwidthSizes)
		add(Bidirectional, bandwidthSizes, quickBandwidthSizes)
		add(OverlapSend, overlapSizes, quickOverlapSizes)
		add(OverlapRecv, overlapSizes, quickOverlapSizes)
	}
	for _, test := range Collectives {
		add(test, collectiveSizes, quickCollectiveSizes)
	}
	if processes == 2 {
		for _, kernel := range Kernels {
			items = append(items, Item{Test: kernel, Count: 1})
		}
	}
	return items
}

// fits reports whether a test runs with messages of this length.
func fits(test string, bytes, processes int) bool {
	switch test {
	case Barrier:
		return bytes == 8 // the test has no message length, so it runs once
	case Reduce, Allreduce:
		return bytes%8 == 0
	case Allgather, Alltoall:
		return bytes <= blockLimit
	case Latency:
		return processes == 2 || bytes <= 4<<20
	}
	return true
}

// count returns the number of operations of an item. The number is the same for all contenders, so that none
// gets more time for warming up. It decreases with the bytes to move, so that the slowest contender ends in
// time.
func count(test string, bytes int, quick bool) int {
	volume, most := 32<<20, 2000
	if quick {
		volume, most = 16<<20, 200
	}
	switch test {
	case OverlapSend, OverlapRecv:
		return batches
	case Rate, Bandwidth, Bidirectional: // in windows
		return min(max(2*volume/(bytes*Window(bytes)), 3), most/10)
	case Latency:
		return min(max(volume/bytes, 4), most)
	}
	return min(max(volume/(4*bytes), 3), most/2)
}

// Window returns the number of messages of the windowed tests that are in transit before the
// receiver answers.
func Window(bytes int) int { return min(max((16<<20)/bytes, 2), 64) }
