// Package wasm runs WebAssembly modules as processes of a job. Modules are WASI programs (wasip1), and may
// import the functions of package hostcall to communicate.
//
//	peer -- supervisor -- stage (confine) -- execve --> runner: the peer's executable
//	                                                      module (Engine)
//	                                                        | host functions
//	                                                      hostcall -> engine, control socket
//
// The runner is the peer's own executable under another name, which Main recognizes. The runner is sandboxed
// and killed like a native program. If the engine itself interrupted modules, they would run many times
// slower.
//
// # Engines
//
// An Engine compiles modules and runs them. Every peer has Wazero, which is pure Go. Another engine is a
// separate executable that uses Main and the rest of this package, such as p2pmpi-wasmtime, which owners
// may select. p2pboot thus needs no cgo, and a peer whose selected engine does not work in its sandbox
// (Config.Examine) still has Wazero. A Store keeps the compiled code of each engine separately.
//
// A module sees the same environment in all engines: the system interface (WASI) is always that of wazero
// (Host.Imports). Replicas in different engines therefore agree, and one engine can resume a checkpoint of
// another.
//
// # What a module sees
//
//   - Files: the process's scratch folder, as / and as the current folder. A module cannot create symbolic
//     links, so no path leads out of the folder. The runner ends a module whose files exceed Config.Disk.
//   - Arguments and environment as for a native program, except that HOME and TMPDIR are /.
//   - Standard input is empty; output is handled as for a native program.
//   - Memory: the part of Config.Memory that the runner does not need; memory.grow fails beyond that.
//   - Clock: the clock starts at the job's creation. It advances by a microsecond with each reading and by
//     the time that the module sleeps, and jumps ahead to each time that Wtime returns. Replicas read the
//     clock equally often, so it is the same at all of them. While a module with several goroutines waits
//     for its calls, the clock advances by the waiting time, so timeouts may fire at different moments at
//     each replica. A process that resumes from a checkpoint continues with the clock of the process that
//     made the checkpoint.
//   - Random numbers: the numbers follow from the job's ID and the rank. They are the same at all replicas,
//     and known to all participants of the job.
//   - No sockets, no other processes, no threads.
//
// # Garbage
//
// Wazero's machine code cannot be interrupted, so the runner collects its garbage only while the module is
// in a host call (collector). Otherwise a module that computes for a long time would block all other
// goroutines of its process, and the peer would consider the process hung.
//
// # Compiled once
//
// A peer compiles a module once, in a separate runner (Compile). If a malicious module keeps the compiler
// busy, the peer kills this runner like a process. A Store keeps the result together with the module in the
// peer's home, one file per digest. A job has a link to that file, which remains valid if the store evicts
// the file. Runners receive the file as their standard input and read it before the module starts. They
// need no access to the peer's home, and no module can change the code that another module runs.
package wasm
