// Package jobspec describes one submission: what to run, how many times, with
// which files, for whom. The submitter signs it once; every peer that is asked
// to run a part of it checks the signature and runs exactly what it names, by
// digest (promise T1).
//
// It is the only thing that reservation, launch and the submitter's side must
// agree on about a job, so it holds data and no behaviour.
package jobspec
