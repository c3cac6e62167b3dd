package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowed lists the system calls of ordinary programs: files, memory, threads, children, signals, time, and
// existing descriptors. All other calls fail with EPERM. Among them are calls that create, bind or connect
// sockets, mount, trace, read other processes' memory, create namespaces, load code into the kernel, or set
// the clock.
const allowed = `
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek _llseek
open openat openat2 creat close dup dup2 dup3 pipe pipe2
stat fstat lstat stat64 fstat64 lstat64 newfstatat fstatat64 statx statfs fstatfs statfs64 fstatfs64 ustat
access faccessat faccessat2 readlink readlinkat getdents getdents64 getcwd chdir fchdir
mkdir mkdirat mknod mknodat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat
chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat chown32 fchown32 lchown32 umask
utime utimes utimensat utimensat_time64 futimesat truncate ftruncate truncate64 ftruncate64
fsync fdatasync sync sync_file_range syncfs fadvise64 fadvise64_64 readahead
getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr
sendfile sendfile64 splice tee vmsplice copy_file_range
select _newselect pselect6 pselect6_time64 poll ppoll ppoll_time64
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old epoll_pwait epoll_pwait2
eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime timerfd_settime64 timerfd_gettime64
recvfrom recvmsg recvmmsg recv send shutdown getsockname getpeername getsockopt
brk munmap mremap mprotect msync madvise mincore mlock mlock2 munlock mlockall munlockall
pkey_alloc pkey_free pkey_mprotect mseal cachestat map_shadow_stack
mbind get_mempolicy set_mempolicy set_mempolicy_home_node
fork vfork execve execveat exit exit_group wait4 waitid waitpid pidfd_open pidfd_send_signal
kill tkill tgkill pause alarm rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigtimedwait_time64
rt_sigsuspend rt_sigreturn rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack sigreturn sigaction sigprocmask sigpending sigsuspend signal
restart_syscall futex futex_time64 futex_waitv futex_wake futex_wait futex_requeue set_robust_list get_robust_list
set_tid_address set_thread_area get_thread_area arch_prctl set_tls get_tls cacheflush breakpoint membarrier rseq
sched_yield sched_setaffinity sched_getaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler
sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_rr_get_interval_time64 sched_setattr sched_getattr
getpriority setpriority ioprio_get nice
getpid getppid gettid getpgid getpgrp setpgid getsid getcpu
getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid
getuid32 geteuid32 getgid32 getegid32 getresuid32 getresgid32 getgroups32 setuid32 setgid32 setreuid32 setregid32 setresuid32 setresgid32
capget capset prctl getrlimit ugetrlimit getrusage times uname sysinfo getrandom
time gettimeofday clock_gettime clock_getres clock_nanosleep clock_gettime64 clock_getres_time64 clock_nanosleep_time64 nanosleep
getitimer setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete timer_settime64 timer_gettime64
landlock_create_ruleset landlock_add_rule landlock_restrict_self riscv_flush_icache riscv_hwprobe`

// An argument restricts one argument of a system call. It must have one of the values. If there are none,
// its lower half must have none of the bits in no, and the bit in has.
type argument struct {
	index  uint32
	values []uint64
	no     uint64
	has    uint64 // one bit; 0: not required
}

// namespaces are the flags of clone(2) that create namespaces.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC |
	syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET

// guarded lists the calls that are allowed only with some arguments. The kernel uses the lower half of most
// arguments. Comparing the whole argument is stricter, so the upper half cannot deceive the filter.
var guarded = map[string][]argument{
	"clone":       {{index: 0, no: namespaces | syscall.CLONE_THREAD}},
	"close_range": {{index: 2, no: unix.CLOSE_RANGE_UNSHARE}},
	"socketpair":  {{index: 0, values: []uint64{unix.AF_UNIX}}, {index: 1, values: pairs}},
	"fcntl":       {{index: 1, values: fileCommands}},
	"fcntl64":     {{index: 1, values: fileCommands}},
	// Reserving space is refused, releasing it is allowed.
	"fallocate": {{index: 1, values: []uint64{unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE}}},
	// Only its own limits: a processor time limit of zero kills the process that has it.
	"prlimit64":   {{index: 0, values: []uint64{0}}, {index: 1, values: resources}},
	"setrlimit":   {{index: 0, values: resources}},
	"personality": {{index: 0, values: []uint64{0, 0xffffffff}}},
	// Huge pages that the machine has set aside belong to the owner, and count in no process's memory.
	"mmap":         {{index: 3, no: unix.MAP_HUGETLB}},
	"mmap2":        {{index: 3, no: unix.MAP_HUGETLB}},
	"memfd_create": {{index: 1, no: unix.MFD_HUGETLB}},
	// A program may only lower its disk priority.
	"ioprio_set": {{index: 2, values: []uint64{lastOfAll, idleAtDisk}}},
	// A send that opens a connection would be a connect. sendmsg, which can send descriptors, is not
	// allowed: the guard could not find files in transit.
	"sendto": {{index: 3, no: unix.MSG_FASTOPEN}},
	// socketcall combines all socket calls, with their arguments out of the filter's reach; Go uses it on
	// 386. The listed operations do not create, bind, connect or address a socket.
	"socketcall": {{index: 0, values: []uint64{getsockname, getpeername, send, recv, recvfrom, shutdown, getsockopt, recvmsg}}},
	// Excludes those of network interfaces and of terminal drivers.
	"ioctl": {{index: 1, values: []uint64{
		unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCINQ, fionbio, fioclex, fionclex, unix.FICLONE,
	}}},
}

// fileCommands are the commands of fcntl(2) that a program needs. Locks and leases are excluded: they work
// on every readable file, and could block the owner's programs.
var fileCommands = []uint64{
	unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
	unix.F_GETOWN, unix.F_SETOWN, unix.F_GETOWN_EX, unix.F_SETOWN_EX, unix.F_GETSIG, unix.F_SETSIG,
	unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ, unix.F_ADD_SEALS, unix.F_GET_SEALS,
	unix.F_GET_RW_HINT, unix.F_SET_RW_HINT, unix.F_GET_FILE_RW_HINT, unix.F_SET_FILE_RW_HINT, unix.F_DUPFD_QUERY,
}

// lockCommands are the commands of fcntl(2) that lock files, by their numbers on all processors but MIPS,
// PA-RISC and SPARC. The numbers 12 to 14 are those of fcntl64.
var lockCommands = []uint64{5, 6, 7, 12, 13, 14, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW}

// resources are those of setrlimit(2) except RLIMIT_CORE, see filter.
var resources = []uint64{
	unix.RLIMIT_CPU, unix.RLIMIT_FSIZE, unix.RLIMIT_DATA, unix.RLIMIT_STACK, unix.RLIMIT_RSS, unix.RLIMIT_NPROC,
	unix.RLIMIT_NOFILE, unix.RLIMIT_MEMLOCK, unix.RLIMIT_AS, unix.RLIMIT_LOCKS, unix.RLIMIT_SIGPENDING,
	unix.RLIMIT_MSGQUEUE, unix.RLIMIT_NICE, unix.RLIMIT_RTPRIO, unix.RLIMIT_RTTIME,
}

// thread is the restriction on clone(2) for threads. A thread with its own descriptor table or working
// folder could hide files from the guard, which measures per process.
var thread = []argument{{index: 0, no: namespaces}, {index: 0, has: syscall.CLONE_FILES}, {index: 0, has: syscall.CLONE_FS}}

// pairs are the allowed types of socketpair(2). Datagram sockets are excluded: they can send to any
// address.
var pairs = []uint64{
	unix.SOCK_STREAM, unix.SOCK_STREAM | unix.SOCK_CLOEXEC,
	unix.SOCK_STREAM | unix.SOCK_NONBLOCK, unix.SOCK_STREAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC,
	unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC,
	unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC,
}

// Operations of socketcall(2).
const (
	getsockname = 6
	getpeername = 7
	send        = 9
	recv        = 10
	recvfrom    = 12
	shutdown    = 13
	getsockopt  = 15
	recvmsg     = 17
)

// Priorities of ioprio_set(2): the lowest best-effort level, and the idle class.
const (
	lastOfAll  = 2<<13 | 7
	idleAtDisk = 3 << 13
)

// Requests of ioctl(2), on all but historic processors.
const (
	fionbio  = 0x5421
	fionclex = 0x5450
	fioclex  = 0x5451
)

// options are the socket options that a program may set, by level. The send rate is excluded, since the
// owner limits it.
var options = map[uint64][]uint64{
	unix.SOL_SOCKET: {
		unix.SO_KEEPALIVE, unix.SO_LINGER, unix.SO_RCVBUF, unix.SO_SNDBUF, unix.SO_RCVTIMEO, unix.SO_SNDTIMEO,
		unix.SO_RCVLOWAT, unix.SO_BUSY_POLL, unix.SO_PASSCRED, unix.SO_ZEROCOPY, unix.SO_OOBINLINE,
	},
	unix.IPPROTO_TCP: {
		unix.TCP_NODELAY, unix.TCP_CORK, unix.TCP_QUICKACK, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT,
		unix.TCP_USER_TIMEOUT, unix.TCP_NOTSENT_LOWAT, unix.TCP_LINGER2,
	},
}

// filterCalls makes the kernel refuse, from now on, the system calls of this thread that filter does not
// allow.
func filterCalls() error {
	table, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("system calls of this processor: %w", err)
	}
	raw, err := bpf.Assemble(filter(uint32(table.ID), table.SyscallNames))
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, errno := syscall.Syscall(syscall.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Offsets in struct seccomp_data. On the supported processors, the lower half of an argument comes first.
const (
	callAt      = 0
	processorAt = 4
	argumentsAt = 16
	word        = 4
)

var (
	allow  = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	absent = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	unable = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)}
	ignore = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO} // returns success without effect
)

// filter returns the BPF program that decides about calls. calls maps the names of existing calls to their
// numbers. Each rule loads its own operands and relies on no earlier rule.
func filter(processor uint32, calls map[string]int) []bpf.Instruction {
	out := []bpf.Instruction{load(processorAt), bpf.JumpIf{Cond: bpf.JumpEqual, Val: processor, SkipTrue: 1}, refuse}
	add := func(name string, arguments []argument, verdict bpf.Instruction) {
		if number, ok := calls[name]; ok {
			out = append(out, rule(uint32(number), arguments, verdict)...)
		}
	}
	for name := range strings.FieldsSeq(allowed) {
		add(name, nil, allow)
	}
	_, two := calls["mmap2"] // if it exists, the arguments of mmap are out of reach
	for name, arguments := range guarded {
		if two && name == "mmap" {
			continue
		}
		for _, one := range combinations(arguments) {
			add(name, one, allow)
		}
	}
	for level, names := range options {
		for _, one := range combinations([]argument{{index: 1, values: []uint64{level}}, {index: 2, values: names}}) {
			add("setsockopt", one, allow)
		}
	}
	add("clone", thread, allow)
	add("clone3", nil, absent) // its flags are out of reach; programs fall back to clone
	// The kernel may schedule by session, whatever the niceness of its processes (sched_autogroup).
	// Programs call setsid to survive their terminal, and there is none.
	add("setsid", nil, ignore)
	// Extended attributes take disk space that some file systems count nowhere. Programs that copy files
	// tolerate a file system without them.
	//
	// fallocate reserves gigabytes in a millisecond, faster than the guard can measure: beyond the file
	// size limit (FALLOC_FL_KEEP_SIZE), or within it in many files. posix_fallocate(3) writes zeros
	// instead.
	for _, name := range []string{"setxattr", "lsetxattr", "fsetxattr", "fallocate", "flock"} {
		add(name, nil, unable)
	}
	for _, command := range lockCommands {
		for _, name := range []string{"fcntl", "fcntl64"} {
			add(name, []argument{{index: 1, values: []uint64{command}}}, unable)
		}
	}
	// The core file limit is 1 byte, which keeps the kernel from starting the owner's core handler. A
	// program that lowers it to 0 would enable the handler again, so it may only read the limit.
	add("prlimit64", []argument{{index: 0, values: []uint64{0}}, {index: 1, values: []uint64{unix.RLIMIT_CORE}}, {index: 2, values: []uint64{0}}}, allow)
	return append(out, refuse)
}

func load(offset uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offset, Size: word} }

// rule returns the instructions that give verdict for a call if all arguments are as required. Each
// argument has at most one value.
func rule(number uint32, arguments []argument, verdict bpf.Instruction) []bpf.Instruction {
	out := []bpf.Instruction{load(callAt), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number}}
	for _, a := range arguments {
		low := argumentsAt + 2*word*a.index
		if len(a.values) == 0 {
			out = append(out, load(low), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: uint32(a.no)})
			if a.has != 0 {
				out = append(out, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: uint32(a.has)})
			}
			continue
		}
		out = append(out, load(low), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(a.values[0])},
			load(low+word), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(a.values[0] >> 32)})
	}
	out = append(out, verdict)
	for i, instruction := range out {
		if jump, ok := instruction.(bpf.JumpIf); ok { // jumps past this rule
			jump.SkipTrue = uint8(len(out) - 1 - i)
			out[i] = jump
		}
	}
	return out
}

// combinations returns all combinations of the arguments with one of their values each.
func combinations(arguments []argument) [][]argument {
	sets := [][]argument{nil}
	for _, a := range arguments {
		if len(a.values) == 0 {
			for i := range sets {
				sets[i] = append(sets[i], a)
			}
			continue
		}
		var next [][]argument
		for _, set := range sets {
			for _, v := range a.values {
				next = append(next, append(slices.Clone(set), argument{index: a.index, values: []uint64{v}}))
			}
		}
		sets = next
	}
	return sets
}
