package channel

import (
	"bytes"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// A foreign is another process whose memory this process reads.
type foreign struct {
	pid   int
	proof uintptr // address of the proof in that process
	seen  [proofSize]byte

	local  [2]syscall.Iovec // a field, so that a call allocates nothing
	remote [2]remoteVector
}

// A remoteVector is an iovec of another process.
type remoteVector struct{ base, length uintptr }

// readv is the number of process_vm_readv(2) on each architecture.
var readv = map[string]uintptr{
	"386": 347, "amd64": 310, "arm": 376, "arm64": 270, "loong64": 270,
	"ppc64": 351, "ppc64le": 351, "riscv64": 270, "s390x": 340,
}[runtime.GOARCH]

// read copies len(b) bytes at address in the process to b, and then its proof to seen. It returns
// the number of bytes copied, or -1. The system looks up the process once per call, so all bytes
// come from the memory of one process.
func (f *foreign) read(address uintptr, b []byte) int {
	if readv == 0 {
		return -1
	}
	f.seen = [proofSize]byte{}
	local, remote := f.local[:0], f.remote[:0]
	if len(b) > 0 {
		local = append(local, vector(b))
		remote = append(remote, remoteVector{address, uintptr(len(b))})
	}
	local = append(local, vector(f.seen[:]))
	remote = append(remote, remoteVector{f.proof, proofSize})
	for {
		// Not a raw system call, because a long copy must not block the runtime.
		n, _, errno := syscall.Syscall6(readv, uintptr(f.pid), uintptr(unsafe.Pointer(&local[0])), uintptr(len(local)),
			uintptr(unsafe.Pointer(&remote[0])), uintptr(len(remote)), 0)
		if errno == syscall.EINTR {
			continue
		}
		clear(local) // drops the reference to the program's buffer
		if errno != 0 {
			return -1
		}
		return int(n)
	}
}

func vector(b []byte) syscall.Iovec {
	v := syscall.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return v
}

// Arguments of prctl(2).
const (
	setPtracer    = 0x59616d61
	setPtracerAny = ^uintptr(0)
)

// allowReading lets other processes of the same user read this one's memory where Yama restricts
// ptrace to ancestors (ptrace_scope 1). With other settings, they are already allowed, or cannot be
// allowed.
var allowReading = sync.OnceFunc(func() {
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err == nil && bytes.Equal(bytes.TrimSpace(scope), []byte("1")) {
		syscall.Syscall6(syscall.SYS_PRCTL, setPtracer, setPtracerAny, 0, 0, 0, 0)
	}
})
