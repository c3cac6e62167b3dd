// Package engine is the engine as package mpj sees it. It is package mpj/internal/engine in a
// native process. In a WebAssembly module, it calls the host's engine through host functions.
//
//	native process    mpj -> engine
//	module            mpj -> guest -- host functions --> hostcall -> engine
//
// The compiler ensures that both have the same methods.
package engine
