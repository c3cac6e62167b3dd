// Package display shows a job's events: the ranks' output on standard output and
// standard error, and what happens to the job on standard error.
//
//	job.Event -+- output --> Lines: whole lines only --> stdout, stderr
//	           |
//	           +- others --> State: phase, ranks ------> stderr: a live line on a
//	                                                     terminal, else sentences,
//	                                                     or JSON with --json
//
// Rules for the outside: standard output gets the ranks' standard output and
// nothing else. A line of one rank is never torn by one of another. The live line
// is taken away before anything else is written, and put back after it.
//
// Status shows a peer instead of a job.
package display
