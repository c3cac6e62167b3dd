// Package core is the implementation of MPI on which the interfaces for programs are built. It works on
// bytes and on the sizes of elements, and has no type parameters. Package mpj is the interface for Go
// programs: it adds element types and the names of its functions.
//
//	program     mpj.SendTyped(comm, column.At(matrix, 3, 1), dest, tag)
//	mpj         element types, names of calls, error handlers
//	core        Group, Buffer, Status, Error
//	layout      bytes and order of a datatype
//
// The errors of this package are of type *Error. They have the classes of the MPI standard, with its
// numbers. An interface adds the name of its function, and calls the error handler of the program.
//
// The package also runs within a WebAssembly module, so it does not import package engine.
package core
