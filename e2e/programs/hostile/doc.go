// Hostile is a program that tries to get out of where it runs, in the ways of a group, or to use
// the machine up in one way. Of each attempt it says in a line whether it was stopped, and why, or
// what it got, or that it could not be made; a bomb says how far it came. It changes nothing that it
// gets hold of, since it also runs where nothing stops it: what it could write it only opens, whom it could
// signal it leaves alone, and its mounts have no file system.
//
//	hostile -home DIR -outside DIR -peer PID -victim PID -folder DIR -listener ADDR files|network|processes|kernel
//	hostile -only ATTEMPT -home DIR ... files|network|processes|kernel
//	hostile [-home DIR...] fork|memory|disk|mapped|undumpable|swap|woken|hop|descriptors|output|sleep|daemon|late
//	hostile marked & hostile spy: the second one looks for what the first one, and its own other ranks, have in memory
//
// It does so on Linux.
package main
