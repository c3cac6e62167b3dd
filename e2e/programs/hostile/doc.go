// Hostile is a program that attacks its machine. It tries to escape from its sandbox by the methods of one group,
// or to exhaust one resource. For each attempt it prints a line: that the attempt was stopped, and why; what the
// attempt got; or that the attempt could not be made. A bomb prints how far it got. Hostile changes nothing
// outside its sandbox, since it also runs where nothing stops it. It opens files without writing to them, does
// not signal the processes that it could signal, and mounts no real file system.
//
//	hostile -home DIR -outside DIR -peer PID -victim PID -folder DIR -listener ADDR files|network|processes|kernel
//	hostile -only ATTEMPT -home DIR ... files|network|processes|kernel
//	hostile [-home DIR...] fork|memory|disk|mapped|undumpable|swap|woken|hop|descriptors|output|sleep|daemon|late
//	hostile marked & hostile spy: the second one looks for what the first one, and its own other ranks, have in memory
//
// It works only on Linux.
package main
