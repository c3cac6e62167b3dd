// Package supervisor starts the program of one process of a job. It ensures that the program and all its
// descendants end with their peer, even if the peer is killed with SIGKILL, and that the scratch folder is
// removed.
//
//	peer ── life pipe: order, then held open ──> supervisor ── fork ──> exec stage ── execve ──> program
//	  ^                                            |  |                 (confine)                   |
//	  └─ report pipe: started, exited ─────────────┘  └── reaps it, and its orphans as subreaper ───┘
//	  └─ stdout, stderr, control socket ────────────────────────────────────────────────────────────┘
//
// The supervisor is the peer's own executable, started again under another name. Main, called first in
// main, recognizes that name. The supervisor reads its order from the life pipe and then waits for one of
// two events.
//
//   - The program ends. The supervisor kills the remaining descendants, so that the pipes reach their end
//     and the files no longer change. When all descendants are gone, or after most of a second, it reports
//     how the program ended. It then waits for the peer to close the life pipe.
//   - The life pipe is closed, by the peer or, if the peer has died, by the kernel. The supervisor kills
//     the program and all its descendants, removes the scratch folder and exits.
//
// Meanwhile the supervisor answers the peer's questions about whether it is alive. If the program had stopped its
// supervisor, neither event would be noticed. The answer also states whether the program is stopped. Only that
// distinguishes a program that will never join the job from one that is slow to join. The peer can also
// suspend the program and all its descendants (Suspend).
//
// On Linux the supervisor is a subreaper. A descendant that outlives its parent becomes a child of the
// supervisor, whatever its session or process group, and can be found and killed. When the peer dies, the
// kernel resumes a supervisor that was stopped. The kernel also kills the program when its supervisor dies
// (PDEATHSIG). On other systems the supervisor kills the program's process group, which a program can
// leave.
//
// Between fork and execve, a stage runs, which is the same executable again. The stage runs as the process that
// becomes the program, and sandboxes itself (package sandbox). With namespaces, the supervisor is the first
// process of a PID namespace: when it ends, in whatever way, the kernel kills all other processes there.
//
// The supervisor forks within the program's control groups, and under its limits of open files and file
// size, so that the program never runs without them (limits.go).
//
// If programs run in a session of their own (Session), the session's leader is another process of the same
// executable. It forks the supervisors for the peer, and ends with the peer. A supervisor leaves the session
// once its program runs; the program stays in it.
//
// The program gets no standard input other than a file that it may be given. It has its output pipes, and
// its control socket as the descriptor named by proclink.FDVariable. Its environment reveals nothing about
// the owner.
package supervisor
