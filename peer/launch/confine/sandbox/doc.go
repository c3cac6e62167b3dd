// Package sandbox restricts one program. It is called last before execve, in the process that is about to
// become the program.
//
//	protects     by                                   and as a second layer
//	file system  mount namespace, a root of its own   Landlock
//	network      seccomp: no socket is made,          network namespace, without devices; Landlock
//	             bound or connected
//	processes    PID namespace                        Landlock (signals), seccomp (ptrace, other processes' memory)
//
// A Plan states what the program may do; Enter applies the mechanisms in its Means. The program sees:
//
//	its working folder  at its path on the machine, the only one that it can write to; /tmp leads there
//	its executable      at its path on the machine, read-only
//	/usr /bin /lib ...  the machine's programs and libraries, read-only
//	/etc                files that those read, with a separate user in passwd and group
//	/dev                null, zero, full, random, urandom
//	/proc               its own processes, read-only; not the machine's boot parameters
//
// The program keeps the descriptors that it inherits. Connected sockets among them continue to work, since
// no mechanism checks where they lead. The program runs as an ordinary user without capabilities, and
// cannot gain any. The supervisor creates the user and PID namespaces (Outer), and is their first process.
// The stage that becomes the program creates the other namespaces (Inner).
//
// Not every system provides all mechanisms to a peer. Probe of package supervisor tries them. A Report
// lists those that work, and the reasons why others do not.
package sandbox
