// Package mpitest holds package mpj to what the MPI standard promises. It
// follows the structure of the public MPI test suites: one file for each
// chapter of the standard, one small test for each promise, named after it and
// with the section of MPI 4.0 beside it.
//
//	Suite() -> Test ... Test        Run(world, tests)
//	                                  | each test, at all ranks
//	                                  | a barrier, so that tests do not mix
//	                                  v the first error, named after its test
//
// The tests know mpj's interface alone. So the same ones run as goroutines over
// each kind of channel, in the tests of package mpj, and as processes under
// p2prun, from e2e/programs/conformance; with one replica and with several, and
// with some killed meanwhile.
package mpitest
