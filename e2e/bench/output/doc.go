// Output measures how fast the output of ranks passes through p2prun into a file, compared with
// cat.
//
//	go -C e2e/bench run ./output                              a quick look
//	go -C e2e/bench run ./output -rounds 7 -out ../../docs    on a quiet machine, into docs/benchmarks.md
//
// In each round, every method to write the file is measured once, in random order. The time with almost no
// output is subtracted, to exclude the start of a job. All peers share this machine.
package main
