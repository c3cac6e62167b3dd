package unruly

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// HideMapped fills size bytes of a deleted file that is reachable only through a mapping.
func HideMapped(name string, size int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := errors.Join(os.Remove(name), f.Truncate(int64(size))); err != nil {
		return err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	fill(b)
	return err
}

// HideShared fills size bytes of shared memory and removes them from the page table.
func HideShared(size int) error {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	if err != nil {
		return err
	}
	fill(b)
	return unix.Madvise(b, unix.MADV_DONTNEED)
}

// fill writes to each page.
func fill(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}
