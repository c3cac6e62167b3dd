// Package supervisor starts the program of one process of a job and makes sure
// that it ends with its peer, also when the peer is killed with SIGKILL, with
// all processes that it has started, and that its scratch folder goes too.
//
//	peer ── life pipe: order, then held open ──> supervisor ── fork ──> exec stage ── execve ──> program
//	  ^                                            |  |                 (confine)                   |
//	  └─ report pipe: started, exited ─────────────┘  └── reaps it, and its orphans as subreaper ───┘
//	  └─ stdout, stderr, line ────────────────────────────────────────────────────────────────────────┘
//
// The supervisor is the peer's own executable, started again under another
// name: Main, called first thing in main, recognises it. It reads its order
// from the life pipe and then waits for one of two things.
//
//   - The program ends. The supervisor kills what the program has left behind, so
//     that its pipes reach their end and its files stay as they are. When all of it is
//     gone, or after most of a second, it reports how the program ended, and waits for
//     its peer to let go.
//   - The life pipe ends: the peer lets go, or is gone, however it died; the
//     kernel closes its pipes. The supervisor kills the program and
//     all its descendants, removes the scratch folder and exits.
//
// Meanwhile it answers its peer's questions whether it is there: a program may
// have stopped it, and then neither would be noticed. It also says whether the
// program is stopped, which is all that tells a program that will never join the
// job from one that takes its time to.
//
// And as the first process of a PID namespace it stops all others there at one moment, for a peer that
// is to measure what they have (Halt).
//
// On Linux the supervisor is a subreaper: a descendant that outlives its parent,
// in whatever session or process group it has put itself, becomes a child of the
// supervisor and so can be found and killed. A supervisor that was stopped is
// woken by the kernel when its peer dies. The program also asks the kernel to
// be killed when the supervisor dies (PDEATHSIG). Elsewhere the program's process
// group is killed, which a program can leave.
//
// Between fork and execve there is a stage, again the same executable. It runs
// as the process that the program will be, and puts the walls of package sandbox around
// itself. With namespaces among them the supervisor is the first process of a PID namespace:
// when it ends, however that is, the kernel ends all others there.
//
// The supervisor forks within the program's control groups, and under its limits of open
// files and of the size of files, so that there is no moment without them (limits.go).
//
// Where a session is for programs (Session), its leader is another such process: it forks the supervisors for the
// peer, and ends with it. A supervisor leaves the session once its program, which stays there, runs.
//
// The program gets no standard input but a file that it may be given, its pipes, its line to the peer as the
// descriptor that proclink.FDVariable names, and an environment that tells
// nothing about the owner.
package supervisor
