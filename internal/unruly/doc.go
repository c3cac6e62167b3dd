// Package unruly does in tests what hostile programs do: it hides memory and files and, on Linux, evades
// being stopped.
package unruly
