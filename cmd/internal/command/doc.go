// Package command is what the three commands have in common on the outside:
// exit statuses, the form of errors and hints, help that fits a terminal, and
// the logger.
//
//	p2prun: error: found 5 of the 8 slots needed (-n 4 -r 2) within 10s
//	p2prun: hint: boot more peers with p2pboot, wait longer with -w, or lower -n or -r
//
// Standard output belongs to what a command is for; everything here goes to
// standard error, but help that was asked for.
package command
