// Package calls judges whether the ranks of a communicator make matching collective calls. It is
// pure: it gets the calls as values, and sends nothing.
//
//	rank 0  Bcast(4 int, root 0) --+
//	rank 1  Bcast(4 int, root 0) --+-- Judge --> "rank 0 calls Bcast(4 int, root 0),
//	rank 2  Bcast(4 int, root 2) --+             rank 2 calls Bcast(4 int, root 2)"
//
// It checks the requirements of MPI: the same call, with the same root, element type, operation and
// use of in-place buffers. In operations in which all ranks pass a count, the counts must be equal.
// Where two ranks exchange data, each must expect the amount that the other sends. Operations are
// compared by the names of their functions. Function literals cannot be compared, so they match any
// operation.
package calls
