package mpj

// An Op combines two vectors of equal length element by element: inout[i] = in[i] op inout[i]. It
// must be associative, but need not be commutative: in always contains the values of lower ranks
// than inout. An Op may be called on any parts of the vectors, and several times or never for a
// given part, but never on empty parts. Items keeps groups of elements together, and OpOf makes
// operations on structs and arrays. Reductions accept the predefined operations without explicit
// instantiation:
//
//	mpj.Allreduce(comm, send, recv, mpj.Sum)
type Op[T Element] func(in, inout []T)

// Each returns the Op that applies f to each pair of elements, of which a comes from the lower rank.
func Each[T Element](f func(a, b T) T) Op[T] {
	return func(in, inout []T) {
		for i, v := range in {
			inout[i] = f(v, inout[i])
		}
	}
}

// Sum adds.
func Sum[T Number](in, inout []T) {
	for i, v := range in {
		inout[i] = v + inout[i]
	}
}

// Prod multiplies.
func Prod[T Number](in, inout []T) {
	for i, v := range in {
		inout[i] = v * inout[i]
	}
}

// Max takes the greater value; a NaN takes precedence over every number.
func Max[T Ordered](in, inout []T) {
	for i, v := range in {
		inout[i] = max(v, inout[i])
	}
}

// Min takes the lesser value; a NaN takes precedence over every number.
func Min[T Ordered](in, inout []T) {
	for i, v := range in {
		inout[i] = min(v, inout[i])
	}
}

// Band is the bitwise and.
func Band[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] &= v
	}
}

// Bor is the bitwise or.
func Bor[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] |= v
	}
}

// Bxor is the bitwise exclusive or.
func Bxor[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] ^= v
	}
}

// Land is the logical and: 1 if both elements are nonzero, and otherwise 0.
func Land[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] = truth[T](v != 0 && inout[i] != 0)
	}
}

// Lor is the logical or: 1 if at least one element is nonzero, and otherwise 0.
func Lor[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] = truth[T](v != 0 || inout[i] != 0)
	}
}

// Lxor is the logical exclusive or: 1 if exactly one element is nonzero, and otherwise 0.
func Lxor[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] = truth[T]((v != 0) != (inout[i] != 0))
	}
}

func truth[T Integer](b bool) T {
	if b {
		return 1
	}
	return 0
}

// A Loc is a value and its index, for MaxLoc and MinLoc, like MPI's pairs of a value and an index.
type Loc[V Ordered] struct {
	Value V
	Index int64
}

// MaxLoc takes the greater value with its index. Of equal values, it takes the value with the lower
// index. A NaN takes precedence over every number.
func MaxLoc[V Ordered](in, inout []Loc[V]) {
	for i, a := range in {
		if b := inout[i]; a.Value > b.Value || goesFirst(a, b) {
			inout[i] = a
		}
	}
}

// MinLoc takes the lesser value with its index. Of equal values, it takes the value with the lower
// index. A NaN takes precedence over every number.
func MinLoc[V Ordered](in, inout []Loc[V]) {
	for i, a := range in {
		if b := inout[i]; a.Value < b.Value || goesFirst(a, b) {
			inout[i] = a
		}
	}
}

// goesFirst reports whether a takes precedence over b if neither value is greater.
func goesFirst[V Ordered](a, b Loc[V]) bool {
	aNaN, bNaN := a.Value != a.Value, b.Value != b.Value
	return a.Index < b.Index && (a.Value == b.Value || aNaN && bNaN) || aNaN && !bNaN
}
