//go:build !linux

package peer

func diskFree(string) int64 { return -1 } // not known, like the others

func openFiles() uint64 { return 0 }

func processes() uint64 { return 0 }

func totalMemory() uint64 { return 0 }

func memoryLimit() uint64 { return totalMemory() }
