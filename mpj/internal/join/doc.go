// Package join joins the job that this process was started for. It says hello to the peer over the
// inherited control socket, makes the engine, and waits until all processes of the job are ready.
// Programs call it in mpj.Init; a host of WebAssembly modules calls it for its module.
package join
