// Package npb is the common part of the NAS Parallel Benchmarks in this directory: their command
// line, timing and reports, and NPB's random number generator. Each kernel's computation is in its
// own directory.
//
//	arguments --> Kernel.Main --> Run: world, class, clock
//	                                |
//	                  setup, Start, compute, Stop  (of the kernel)
//	                                |
//	                                v
//	                             Result --> report of rank 0, exit status
//
// The definitions, classes and verification values come from D. Bailey et al., "The NAS Parallel
// Benchmarks", RNR-94-007, and from NPB 3.4.
package npb
