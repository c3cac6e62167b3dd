// Package core is the implementation of MPI on which the interfaces for programs are built. It works on
// bytes and on the sizes of elements, and has no type parameters. Package mpj is the interface for Go
// programs: it adds element types and the names of its functions.
//
//	program     mpj.SendTyped(comm, column.At(matrix, 3, 1), dest, tag)
//	mpj         element types, names of calls, error handlers
//	core        Comm, Group, Request, Buffer, Plan, Status, Error
//	engine      messages between processes; platform/engine chooses it
//
// Comm is a communicator. An interface contains a Comm by value in its own type of communicators, so
// that there is one object for each communicator. It sets the field Face, by which it finds its own
// communicator for the error handler of the program, and passes the memory for a new communicator to
// the functions that create one, such as Dup and Split.
//
// Calls on a communicator are functions, so that Comm stays small: its methods describe and check it.
// The functions that send and receive take bytes, or a Buffer: items of a datatype in memory. Those
// that return a Request take the name of the program's function, for the errors of the request.
//
// A collective is a Plan: its arguments, in bytes and element sizes. Run and Begin check the Plan once,
// compare it with the Plans of the other ranks if checks are on, and carry it out.
//
// The errors of this package are of type *Error. They have the classes of the MPI standard, with its
// numbers. An interface adds the name of its function.
//
// The package also runs within a WebAssembly module, so it does not import package engine.
package core
