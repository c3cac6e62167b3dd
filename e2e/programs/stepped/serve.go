//go:build linux && amd64

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is the child's descriptor of the socket to its parent.
const socket = 3

// serve is the main function of the child. It takes over the listener, waits until the parent has
// become the program without a vDSO, and then answers its requests for the time.
func serve(file string) error {
	program := os.Getppid()
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, 0)
	if err != nil {
		return os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("take over the listener: %d messages: %w", len(messages), err)
	}
	rights, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	if err := unix.PtraceSeize(program); err != nil {
		return os.NewSyscallError("ptrace", err)
	}
	if err := hideVDSO(program); err != nil {
		return err
	}
	if err := os.WriteFile(file+".ready", nil, 0o644); err != nil {
		return err
	}
	return answer(rights[0], file)
}

// A question is a request of the kernel (struct seccomp_notif), and a reply the answer (struct
// seccomp_notif_resp).
type (
	question struct {
		id         uint64
		pid, flags uint32
		number     int32
		arch       uint32
		pointer    uint64
		args       [6]uint64
	}
	reply struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// answer answers requests for the time until the program has ended.
func answer(listener int, file string) error {
	for {
		var q question
		if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)); errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
			continue // a signal interrupted either side
		} else if err != nil {
			return err
		}
		r := reply{id: q.id}
		if err := tell(int(q.pid), q.args[1], time.Now().Add(step(file))); err != nil {
			r.errno = -int32(unix.EFAULT)
		}
		if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}

// step returns the error of the clock.
func step(file string) time.Duration {
	text, _ := os.ReadFile(file)
	seconds, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 without a file
	return time.Duration(seconds) * time.Second
}

// tell writes the time to the address that a thread of the program has passed.
func tell(thread int, address uint64, now time.Time) error {
	timespec := binary.LittleEndian.AppendUint64(nil, uint64(now.Unix()))
	timespec = binary.LittleEndian.AppendUint64(timespec, uint64(now.Nanosecond()))
	local := unix.Iovec{Base: &timespec[0]}
	local.SetLen(len(timespec))
	_, err := unix.ProcessVMWritev(thread, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(timespec)}}, 0)
	return err
}
