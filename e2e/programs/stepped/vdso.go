//go:build linux && amd64

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Entries of the auxiliary vector (linux/auxvec.h).
const (
	auxNull   = 0
	auxIgnore = 1
	auxVDSO   = 33
)

// hideVDSO lets the parent, which this thread has seized, continue until it executes its program.
// It then removes the vDSO from the program's auxiliary vector.
func hideVDSO(program int) error {
	if err := unix.PtraceInterrupt(program); err != nil {
		return os.NewSyscallError("ptrace", err)
	}
	seen := false
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(program, &status, unix.WALL, nil); err != nil {
			return os.NewSyscallError("wait4", err)
		}
		signal := 0
		switch {
		case !status.Stopped():
			return fmt.Errorf("the program has ended with %v", status)
		case status.TrapCause() == unix.PTRACE_EVENT_EXEC:
			err := hide(program)
			if e := unix.PtraceDetach(program); err == nil {
				err = e
			}
			return err
		case !seen: // the requested interruption: only now can the options be set
			seen = true
			if err := unix.PtraceSetOptions(program, unix.PTRACE_O_TRACEEXEC); err != nil {
				return os.NewSyscallError("ptrace", err)
			}
			if _, err := unix.Write(socket, []byte{1}); err != nil {
				return err
			}
		case status.StopSignal() != syscall.SIGTRAP:
			signal = int(status.StopSignal())
		}
		if err := unix.PtraceCont(program, signal); err != nil {
			return os.NewSyscallError("ptrace", err)
		}
	}
}

// hide overwrites the vDSO's entry in the program's auxiliary vector, so that the program ignores
// it. The vector is on the program's stack, above the arguments and the environment.
func hide(program int) error {
	var registers unix.PtraceRegs
	if err := unix.PtraceGetRegs(program, &registers); err != nil {
		return os.NewSyscallError("ptrace", err)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", program), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	at := int64(registers.Rsp)
	word := func() (uint64, error) {
		var b [8]byte
		_, err := memory.ReadAt(b[:], at)
		at += 8
		return binary.LittleEndian.Uint64(b[:]), err
	}
	arguments, err := word()
	if err != nil {
		return err
	}
	at += 8 * int64(arguments+1)
	for last := uint64(1); last != 0; { // skip the environment
		if last, err = word(); err != nil {
			return err
		}
	}
	for {
		kind, err := word()
		if err != nil || kind == auxNull {
			return err
		}
		if kind == auxVDSO {
			_, err := memory.WriteAt(binary.LittleEndian.AppendUint64(nil, auxIgnore), at-8)
			return err
		}
		at += 8
	}
}
