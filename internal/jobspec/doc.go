// Package jobspec defines the description of a submission: the program, the number of processes, the files and the
// submitter. The submitter signs it once. Every peer that is asked to run a part of the job verifies the signature
// and runs exactly the programs and inputs that the description names by digest (promise T1).
//
// The description of a job is all that reservation, launch and the submitter's side must agree on. It therefore
// contains only data.
package jobspec
