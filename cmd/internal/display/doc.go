// Package display shows a job's events: the ranks' output on standard output and standard error, and the
// progress of the job on standard error.
//
//	submit.Event -+- output --> lines: whole lines only --> stdout, stderr
//	              |
//	              +- others --> State: phase, ranks ------> stderr: a live line on a
//	                                                        terminal, else sentences,
//	                                                        or JSON with --json
//
// Standard output receives the ranks' standard output and nothing else. A line of one rank is never
// interrupted by one of another rank. The live line is erased before anything else is written, and drawn
// again afterwards.
//
// The package also formats what p2pboot and p2phalt print about a peer, for example its status.
package display
