package engine

import "syscall"

// yieldProcessor lets another process run. It makes a raw system call, so the goroutine keeps its
// thread.
func yieldProcessor() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
