// Package calls judges whether the ranks of a communicator make collective
// calls that fit each other. It is pure: who says what reaches it as values, and
// it sends nothing.
//
//	rank 0  Bcast(4 int, root 0) --+
//	rank 1  Bcast(4 int, root 0) --+-- Judge --> "rank 0 calls Bcast(4 int, root 0),
//	rank 2  Bcast(4 int, root 2) --+             rank 2 calls Bcast(4 int, root 2)"
//
// What is compared is what MPI asks for: the same call, with the same root,
// element type, operation and use in place; the same count where all give one;
// and, where each two ranks exchange something, that each gets as much as the
// other sends. Two operations are compared by the names of their functions: of two
// function literals nobody knows whether they do the same, so they count as
// alike.
package calls
