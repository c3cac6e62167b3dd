//go:build !linux

package machine

func DiskFree(string) int64 { return -1 } // unknown, like the other values

func OpenFiles() uint64 { return 0 }

func Processes() uint64 { return 0 }

func TotalMemory() uint64 { return 0 }

func Memory() uint64 { return TotalMemory() }
