// Package engine selects the engine that package mpj uses. In a native process, its types are those
// of package mpj/internal/engine. In a WebAssembly module, they call the host's engine through host
// functions.
//
//	native process    mpj -> engine
//	module            mpj -> guest -- host functions --> hostcall -> engine
//
// The compiler checks that both engines have the methods that package mpj calls.
package engine
