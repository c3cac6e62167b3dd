package channel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// memory is a mapping that exists as long as it is referenced, so that closing an end does not unmap
// the memory while another goroutine copies.
type memory struct{ bytes []byte }

// NewRing returns shared memory for one direction between two processes. capacity is the maximum
// number of bytes of long payloads in transit: a power of two from 4 KiB to 1 GiB.
func NewRing(capacity int) (*os.File, error) {
	if err := checkCapacity(capacity); err != nil {
		return nil, err
	}
	return newMemory("p2pmpi-ring", bulkOffset+capacity)
}

// NewBoard returns shared memory with a bell for each process of a job on a peer.
func NewBoard(cells int) (*os.File, error) {
	if cells < 1 || cells > maxCells {
		return nil, fmt.Errorf("channel: board of %d cells: want 1 to %d", cells, maxCells)
	}
	return newMemory("p2pmpi-board", cells*cacheLine)
}

func openRing(f *os.File) (*ring, error) {
	m, err := mapShared(f)
	if err != nil {
		return nil, fmt.Errorf("map ring: %w", err)
	}
	return newRing(m)
}

// Constants of memfd_create(2) and fcntl(2) that package syscall lacks.
const (
	memfdCloseOnExec = 1
	memfdSealing     = 2
	memfdNoExec      = 8 // recommended since Linux 6.3; older systems reject it
	addSeals         = 1033
	getSeals         = 1034
	sealSeal         = 1
	sealShrink       = 2
	sealGrow         = 4
	seals            = sealSeal | sealShrink | sealGrow
)

// newMemory returns an anonymous file whose length cannot be changed, so that accesses to its
// mappings never fault.
func newMemory(name string, length int) (*os.File, error) {
	f, err := createMemory(name, memfdNoExec)
	if errors.Is(err, syscall.EINVAL) {
		f, err = createMemory(name, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("channel: create shared memory: %w", err)
	}
	if err := f.Truncate(int64(length)); err != nil {
		f.Close()
		return nil, fmt.Errorf("channel: shared memory of %d bytes: %w", length, err)
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), addSeals, seals); errno != 0 {
		f.Close()
		return nil, fmt.Errorf("channel: seal shared memory: %w", errno)
	}
	return f, nil
}

func createMemory(name string, flags uintptr) (*os.File, error) {
	number, ok := memfdCreate[runtime.GOARCH]
	if !ok {
		return nil, syscall.ENOSYS
	}
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return nil, err
	}
	fd, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(p)), memfdCloseOnExec|memfdSealing|flags, 0)
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, name), nil
}

// memfdCreate is the number of memfd_create(2) on each architecture.
var memfdCreate = map[string]uintptr{
	"386": 356, "amd64": 319, "arm": 385, "arm64": 279, "loong64": 279,
	"ppc64": 360, "ppc64le": 360, "riscv64": 279, "s390x": 350,
}

// mapShared maps all of f, which must be sealed.
func mapShared(f *os.File) (*memory, error) {
	have, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), getSeals, 0)
	if errno != 0 {
		return nil, fmt.Errorf("seals of %s: %w", f.Name(), errno)
	}
	if have&seals != seals {
		return nil, fmt.Errorf("%s has seals %#x, want %#x: its length could change", f.Name(), have, seals)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < cacheLine || info.Size() > maxRing+bulkOffset {
		return nil, fmt.Errorf("%s is %d bytes long", f.Name(), info.Size())
	}
	bytes, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", info.Size(), err)
	}
	m := &memory{bytes}
	runtime.AddCleanup(m, func(bytes []byte) { syscall.Munmap(bytes) }, bytes)
	return m, nil
}
