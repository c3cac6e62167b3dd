// Package wasm runs WebAssembly modules as processes of a job: WASI programs (wasip1),
// which may import the functions of package hostcall to communicate.
//
//	peer -- supervisor -- stage (confine) -- execve --> runner: the peer's executable
//	                                                      module (Engine)
//	                                                        | host functions
//	                                                      hostcall -> engine, line
//
// The runner is the peer's own executable under another name: Main recognises it. It
// is confined as a native program is, and killed as one; the engine's own way to
// interrupt a module would cost many times the speed.
//
// # Engines
//
// What compiles modules and runs them is an Engine: Wazero, which is pure Go and which every peer
// has, or another one, which is then an executable of its own, with Main and all else of this
// package: p2pmpi-wasmtime, for owners who name it. So p2pboot needs no cgo, and a peer whose engine does
// not work within its walls (Config.Examine) has Wazero all the same. A Store keeps what each has
// compiled apart.
//
// Everything that a module sees is the same in all engines: the system (WASI) is that of wazero in
// each (Host.Imports). So replicas in different engines agree, and a checkpoint of one is gone
// on with in another.
//
// # What a module sees
//
//   - Files: the process's scratch folder, as / and as the current folder. It can make no
//     symbolic links, so that no path leads out.
//   - Arguments and environment as a native program, but HOME and TMPDIR are /.
//   - Standard input is empty; output goes where a native program's does.
//   - Memory: what of Config.Memory the runner leaves, to use whole; memory.grow refuses more.
//   - The clock starts at the job's creation, goes on by a microsecond with each reading
//     and by what the module sleeps, and jumps ahead to each time that Wtime returns. So
//     it is the same at all replicas, which read it alike. While calls are made beside
//     the module, which has several goroutines then, it goes on as real time does:
//     timeouts fire, at each replica when they will. Who goes on from a checkpoint does so
//     with the clock of who has made it, who has read it while it did.
//   - Random numbers follow from the job's ID and the rank: they are the same at all
//     replicas, and known to everybody who takes part in the job.
//   - No sockets, no other processes, no threads.
//
// # Garbage
//
// Wazero's machine code cannot be interrupted, so the runner's garbage is collected while
// the module is in a call (collector). Else a module that computes for long would hold up
// everything else in its process, and its peer would take it for one that hangs.
//
// # Compiled once
//
// A peer compiles a module once, by a runner of its own (Compile): a module may be made
// to keep a compiler busy, which is then killed as a process. What comes of it is kept in
// the peer's home with the module, one file for each digest (Store). A job has a link to
// that file, which stays when the store forgets it. Runners have it as their standard
// input and read it before the module begins: they need not see the peer's home, and no
// module can change what another runs.
package wasm
