// Output measures how fast what ranks print gets through p2prun into a file, beside cat.
//
//	go run ./e2e/bench/output                        a look
//	go run ./e2e/bench/output -rounds 7 -out docs    on a quiet machine, into docs/benchmarks.md
//
// In each round every way to a file is taken once, in random order. What is counted is the time
// that it takes longer than with almost no output, so the start of a job is left out. All peers
// share this machine.
package main
