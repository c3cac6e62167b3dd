package mpj

// An Op combines two vectors of equal length element by element:
// inout[i] = in[i] op inout[i]. It must be associative. Whether it commutes
// does not matter and is said nowhere: in always holds the values of lower ranks
// than inout. It may be called on any parts of the vectors, several times or never
// for one of them; Items keeps elements together that belong together. Reductions take the predefined operations without
// instantiating them:
//
//	mpj.Allreduce(comm, send, recv, mpj.Sum)
type Op[T Element] func(in, inout []T)

// Each makes an Op of a function of two elements; a is that of the lower rank.
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

// Max takes the greater; a NaN wins over every number.
func Max[T Ordered](in, inout []T) {
	for i, v := range in {
		inout[i] = max(v, inout[i])
	}
}

// Min takes the lesser; a NaN wins over every number.
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

// Land is the logical and: 1 when both are not 0, else 0.
func Land[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] = truth[T](v != 0 && inout[i] != 0)
	}
}

// Lor is the logical or: 1 when one or both are not 0, else 0.
func Lor[T Integer](in, inout []T) {
	for i, v := range in {
		inout[i] = truth[T](v != 0 || inout[i] != 0)
	}
}

// Lxor is the logical exclusive or: 1 when just one is not 0, else 0.
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

// A Loc is a value and where it is, for MaxLoc and MinLoc: MPI's pairs of a
// value and an index.
type Loc[V Ordered] struct {
	Value V
	Index int64
}

// MaxLoc takes the greater value with its index, of equal ones that with the
// lower index. A NaN wins over every number.
func MaxLoc[V Ordered](in, inout []Loc[V]) {
	for i, a := range in {
		if b := inout[i]; a.Value > b.Value || goesFirst(a, b) {
			inout[i] = a
		}
	}
}

// MinLoc takes the lesser value with its index, of equal ones that with the
// lower index. A NaN wins over every number.
func MinLoc[V Ordered](in, inout []Loc[V]) {
	for i, a := range in {
		if b := inout[i]; a.Value < b.Value || goesFirst(a, b) {
			inout[i] = a
		}
	}
}

// goesFirst decides between values of which none is greater.
func goesFirst[V Ordered](a, b Loc[V]) bool {
	aNaN, bNaN := a.Value != a.Value, b.Value != b.Value
	return a.Index < b.Index && (a.Value == b.Value || aNaN && bNaN) || aNaN && !bNaN
}
