// Package sandbox builds the walls around one program: it is called in the process
// that is about to become the program, last before execve.
//
//	wall         made of                              and behind it
//	file system  mount namespace, a root of its own   Landlock
//	network      seccomp: no socket is made,          network namespace, without devices; Landlock
//	             bound or connected
//	processes    PID namespace                        Landlock (signals), seccomp (ptrace, other processes' memory)
//
// A Plan says what the program may do; Enter builds what its Means name. The program sees:
//
//	its working folder  where it is on the machine, the only one that it can write to; /tmp leads there
//	its executable      likewise, read-only
//	/usr /bin /lib ...  the machine's programs and libraries, read-only
//	/etc                what those read, and a user of its own in passwd and group
//	/dev                null, zero, full, random, urandom
//	/proc               its own processes, read-only; not what the machine was booted with
//
// It has what descriptors it was born with: connected ones go on working, as no wall
// asks where they lead. It is an ordinary user without capabilities, and can get none.
// The supervisor makes the user and PID namespaces (Outer), of which it is the first
// process; the stage that becomes the program makes the others (Inner).
//
// Not every system lets a peer build all of that. Probe of package supervisor tries it, and
// a Report says which walls stand, and why others do not.
package sandbox
