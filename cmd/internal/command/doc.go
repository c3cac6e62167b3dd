// Package command contains what the three commands share: exit statuses, the form of errors and hints,
// help that fits a terminal, and the logger.
//
//	p2prun: error: found 5 of the 8 slots needed (-n 4 -r 2) within 10s
//	p2prun: hint: start more peers with p2pboot, wait longer with -w, or lower -n or -r
//
// Standard output is reserved for a command's result. Everything in this package goes to standard error,
// except for requested help.
package command
