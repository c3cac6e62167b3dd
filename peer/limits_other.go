//go:build !linux

package peer

import "github.com/pbnjay/memory"

func diskFree(string) int64 { return -1 } // not known, like the next two

func openFiles() uint64 { return 0 }

func processes() uint64 { return 0 }

func memoryLimit() uint64 { return memory.TotalMemory() }
