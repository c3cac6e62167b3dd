// Package engine is what package mpj takes for the engine of its process, and all
// that it uses of one: the engine itself, or, in a WebAssembly module, the one of its
// host by way of host functions.
//
//	native process    mpj -> engine
//	module            mpj -> guest -- host functions --> hostcall -> engine
//
// Both have the same methods; the compiler sees to it.
package engine
