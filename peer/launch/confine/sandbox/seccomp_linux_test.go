package sandbox

import (
	"encoding/binary"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// asked returns the input of the filter, a struct seccomp_data, with big-endian words. The kernel's struct has the byte
// order of the machine, but the VM of package bpf reads big-endian words.
func asked(audit, call uint32, args [6]uint64) []byte {
	b := binary.BigEndian.AppendUint32(nil, call)
	b = binary.BigEndian.AppendUint32(b, audit)
	b = binary.BigEndian.AppendUint64(b, 0) // instruction pointer
	for _, a := range args {
		b = binary.BigEndian.AppendUint32(b, uint32(a))
		b = binary.BigEndian.AppendUint32(b, uint32(a>>32))
	}
	return b
}

// TestO1SyscallFilter runs the filter on calls, as the kernel does.
func TestO1SyscallFilter(t *testing.T) {
	table, err := arch.GetInfo("")
	if err != nil {
		skip.Lacks(t, err)
	}
	vm, err := bpf.NewVM(filter(uint32(table.ID), table.SyscallNames))
	if err != nil {
		t.Fatal(err)
	}
	type arguments = [6]uint64
	for _, c := range []struct {
		call  string
		args  arguments
		allow bool
	}{
		{"read", arguments{}, true},
		{"sched_getaffinity", arguments{}, true},
		{"socket", arguments{unix.AF_INET, unix.SOCK_STREAM}, false},
		{"socketpair", arguments{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, true},
		{"socketpair", arguments{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK}, true},
		{"socketpair", arguments{unix.AF_UNIX, unix.SOCK_DGRAM}, false},
		{"socketpair", arguments{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, false},
		{"socketpair", arguments{unix.AF_INET, unix.SOCK_STREAM}, false},
		{"prlimit64", arguments{0, unix.RLIMIT_NOFILE}, true},
		{"prlimit64", arguments{1, unix.RLIMIT_CPU}, false},
		{"clone", arguments{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_FS}, true},
		{"clone", arguments{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_FS}, false},
		{"clone", arguments{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_FILES}, false},
		{"clone", arguments{unix.CLONE_THREAD | unix.CLONE_FILES | unix.CLONE_FS | unix.CLONE_NEWNET}, false},
		{"clone", arguments{unix.CLONE_VM | unix.CLONE_VFORK}, true},
		{"unshare", arguments{unix.CLONE_FILES}, false},
		{"close_range", arguments{3, 9, unix.CLOSE_RANGE_CLOEXEC}, true},
		{"close_range", arguments{3, 9, unix.CLOSE_RANGE_UNSHARE}, false},
		{"clone", arguments{unix.CLONE_NEWUSER}, false},
		{"sendto", arguments{3}, true},
		{"sendto", arguments{3, 0, 0, unix.MSG_FASTOPEN}, false},
		{"sendmsg", arguments{3}, false},
		{"sendmmsg", arguments{3}, false},
		{"recvmsg", arguments{3}, true},
		{"ioctl", arguments{0, unix.TCGETS}, true},
		{"ioctl", arguments{0, unix.TIOCSTI}, false},
		{"ioctl", arguments{0, unix.TIOCSTI | 1<<32}, false}, // the kernel uses only the lower half
		{"socketpair", arguments{unix.AF_UNIX, unix.SOCK_DGRAM | 1<<32}, false},
		{"setsockopt", arguments{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, true},
		{"setsockopt", arguments{3, unix.SOL_SOCKET, unix.SO_OOBINLINE}, true},
		{"setsockopt", arguments{3, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE}, false},
		{"personality", arguments{0xffffffff}, true},
		{"personality", arguments{8}, false},
		{"fsetxattr", arguments{3}, false},
		{"fallocate", arguments{3, 0}, false},
		{"fallocate", arguments{3, unix.FALLOC_FL_KEEP_SIZE}, false},
		{"fallocate", arguments{3, unix.FALLOC_FL_ZERO_RANGE}, false},
		{"fallocate", arguments{3, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE}, true},
		{"flock", arguments{3, unix.LOCK_SH}, false},
		{"fcntl", arguments{3, unix.F_SETFL}, true},
		{"fcntl", arguments{3, unix.F_DUPFD_CLOEXEC}, true},
		{"fcntl", arguments{3, unix.F_SETLK}, false},
		{"fcntl", arguments{3, unix.F_OFD_SETLK}, false},
		{"fcntl", arguments{3, unix.F_OFD_SETLK | 1<<32}, false},
		{"fcntl", arguments{3, unix.F_SETLEASE}, false},
		{"prlimit64", arguments{0, unix.RLIMIT_CORE, 0}, true},
		{"prlimit64", arguments{0, unix.RLIMIT_CORE, 4096}, false},
		{"setrlimit", arguments{unix.RLIMIT_CORE}, false},
		{"setrlimit", arguments{unix.RLIMIT_STACK}, true},
		{"mmap", arguments{0, 4096, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, true},
		{"mmap", arguments{0, 1 << 21, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB}, false},
		{"memfd_create", arguments{0, unix.MFD_CLOEXEC}, true},
		{"memfd_create", arguments{0, unix.MFD_HUGETLB}, false},
		{"ioprio_set", arguments{1, 0, idleAtDisk}, true},
		{"ioprio_set", arguments{1, 0, 2 << 13}, false}, // higher priority than others
		{"ioprio_set", arguments{1, 0, 1 << 13}, false}, // highest priority
		{"setsid", arguments{}, false},
		{"io_setup", arguments{}, false},
		{"inotify_init1", arguments{}, false},
		{"io_uring_setup", arguments{}, false},
	} {
		got, err := vm.Run(asked(uint32(table.ID), uint32(table.SyscallNames[c.call]), c.args))
		if err != nil {
			t.Fatal(err)
		}
		if allowed := got == unix.SECCOMP_RET_ALLOW; allowed != c.allow {
			t.Errorf("%s%x: got %x, want allowed: %t", c.call, c.args, got, c.allow)
		}
	}
}

// TestSocketsOn386 checks that socketcall, the only socket call that Go uses on 386, cannot create, bind,
// connect, configure or address sockets.
func TestSocketsOn386(t *testing.T) {
	table, err := arch.GetInfo("386")
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(filter(uint32(table.ID), table.SyscallNames))
	if err != nil {
		t.Fatal(err)
	}
	const socket, bind, connect, socketpair, sendto, setsockopt, sendmsg = 1, 2, 3, 8, 11, 14, 16
	for call, allow := range map[uint64]bool{
		getsockopt: true, getsockname: true, recvmsg: true, shutdown: true,
		socket: false, bind: false, connect: false, socketpair: false, sendto: false, setsockopt: false, sendmsg: false,
	} {
		got, err := vm.Run(asked(uint32(table.ID), uint32(table.SyscallNames["socketcall"]), [6]uint64{call}))
		if err != nil {
			t.Fatal(err)
		}
		if allowed := got == unix.SECCOMP_RET_ALLOW; allowed != allow {
			t.Errorf("socketcall %d: got %x, want allowed: %t", call, got, allow)
		}
	}
}
