// Package join joins the job for which this process was started. It exchanges hello messages with
// the peer over the inherited control socket, makes the engine, and waits until all processes of the
// job are ready. mpj.Init calls it in programs; the host of a WebAssembly module calls it for the
// module.
package join
