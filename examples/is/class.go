package main

// A class is a problem size, with the ranks of five of its keys.
type class struct {
	keysLog, maxLog, bucketsLog int // logarithms to base 2

	tests [testCount]test
}

const (
	rankings  = 10 // number of timed rankings
	testCount = 5
	// maxRanks ensures that each rank has several buckets, and that rank 0 has the two keys that
	// change in every ranking.
	maxRanks = 256
)

// A test is the rank that NPB expects for a key: in the i-th ranking, rank + drift (i + offset).
type test struct {
	key           int // index of the key among all keys
	rank          int
	drift, offset int
}

// expected returns the rank of the key in the i-th ranking.
func (t test) expected(i int) int { return t.rank + t.drift*(i+t.offset) }

// In every ranking, a small key and a large key replace two other keys, so the ranks of the test
// keys drift. Those at the lower end drift upwards, and those at the upper end downwards.
var classes = map[string]class{
	"S": {16, 11, 9, [testCount]test{
		{48427, 0, 1, 0}, {17148, 18, 1, 0}, {23627, 346, 1, 0}, {62548, 64917, -1, 0}, {4431, 65463, -1, 0},
	}},
	"W": {20, 16, 10, [testCount]test{
		{357773, 1249, 1, -2}, {934767, 11698, 1, -2}, {875723, 1039987, -1, 0}, {898999, 1043896, -1, 0}, {404505, 1048018, -1, 0},
	}},
	"A": {23, 19, 10, [testCount]test{
		{2112377, 104, 1, -1}, {662041, 17523, 1, -1}, {5336171, 123928, 1, -1}, {3642833, 8288932, -1, -1}, {4250760, 8388264, -1, -1},
	}},
	"B": {25, 21, 10, [testCount]test{
		{41869, 33422937, -1, 0}, {812306, 10244, 1, 0}, {5102857, 59149, 1, 0}, {18232239, 33135281, -1, 0}, {26860214, 99, 1, 0},
	}},
}

// total returns the number of keys.
func (c class) total() int { return 1 << c.keysLog }

// maxKey returns the exclusive upper bound of the keys.
func (c class) maxKey() int { return 1 << c.maxLog }

// share returns the range of keys that a rank generates: from is included, and to is not.
func (c class) share(rank, ranks int) (from, to int) {
	return c.total() * rank / ranks, c.total() * (rank + 1) / ranks
}
