// Package npb is what the NAS Parallel Benchmarks in this folder have in
// common: how they are started, timed and reported, and NPB's generator of
// random numbers. What they compute is in their own folders.
//
//	arguments --> Kernel.Main --> Run: world, class, clock
//	                                |
//	                  setup, Start, compute, Stop  (the kernel's own)
//	                                |
//	                                v
//	                             Result --> report of rank 0, exit status
//
// The definitions, classes and verification values are those of D. Bailey et
// al., "The NAS Parallel Benchmarks", RNR-94-007, and of NPB 3.4.
package npb
