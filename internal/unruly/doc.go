// Package unruly implements, for tests, the behaviour of hostile programs: hiding memory and files and, on Linux,
// evading being stopped.
package unruly
