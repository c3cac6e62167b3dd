// Package mpitest tests package mpj against the MPI standard. It follows the structure of the public
// MPI test suites, with one file per chapter or topic of the standard and one small test per
// requirement. A test is named after its requirement; its file cites the section of MPI 4.0.
//
//	Suite() -> Test ... Test        Run(world, tests)
//	                                  | each test, at all ranks
//	                                  | a barrier, so that tests do not mix
//	                                  v the first error, named after its test
//
// The tests use only mpj's public interface, so the same tests run in several settings. In the tests
// of package mpj they run as goroutines over each kind of channel. From e2e/programs/conformance
// they run as processes under p2prun. They run with one or several replicas per rank, and while
// processes are killed.
package mpitest
