// Package engineapi defines the types that a process and its engine exchange about messages and calls.
// These types are not in package engine, because a WebAssembly module, whose engine runs in the host,
// also uses them and stays small without that package.
package engineapi
