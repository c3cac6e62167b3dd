// Package join joins the job that this process was started for: it says hello to the
// peer over the inherited line, makes the engine, and waits until the whole job is
// there. Programs do it in mpj.Init; a host of WebAssembly modules for its module.
package join
