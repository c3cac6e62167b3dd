package channel

import (
	"encoding/binary"
	"unsafe"
)

// nonTemporal reports whether copyShared uses non-temporal stores, which write to memory and bypass
// the caches. An ordinary store leaves the line modified in the cache of the writer. On AMD, a read
// of such a line from another core is slower than a read from memory. Half a round trip of two
// engines on a virtual machine with two cores of an AMD EPYC (family 25, model 17), lower decile of
// short runs, in µs:
//
//	                             8 KiB   64 KiB  256 KiB    1 MiB    4 MiB
//	near cores    ordinary         1.2      7.9       31      114      495
//	              non-temporal     1.1      4.9       18       57      225
//	distant cores ordinary         3.8       30      117      455     1950
//	              non-temporal     1.4      5.2       16       52      230
//
// The host chooses the cores. They are distant when a message of 1 byte takes 0.37 instead of 0.18
// µs, presumably because they have separate third-level caches.
//
// If the receiver also uses non-temporal stores, 1 MiB takes 40 % longer. On Intel, ordinary stores
// reach the speed of a copy (see RingCapacity), so there is nothing to gain.
var nonTemporal = isAMD()

const (
	lineSize = 64 // actual length of a cache line
	// nonTemporalMin is the shortest copy with non-temporal stores. Shorter ones are slower, because
	// the last stores must reach memory before the reader can load them.
	nonTemporalMin = 8 << 10
)

// copyShared is like copy, for data that a process on another core reads next.
func copyShared(to, from []byte) int {
	n := min(len(to), len(from))
	if n < nonTemporalMin || !nonTemporal {
		return copy(to, from)
	}
	head := int(-uintptr(unsafe.Pointer(&to[0])) % lineSize)
	copy(to[:head], from)
	lines := (n - head) / lineSize
	storeLines(&to[head], &from[head], lines)
	head += lines * lineSize
	return head + copy(to[head:], from[head:])
}

// storeLines copies lines of lineSize bytes with non-temporal stores, and waits until later stores
// cannot overtake them. to is a multiple of lineSize, and lines is at least 1.
//
//go:noescape
func storeLines(to, from *byte, lines int)

// vendor returns the name of the processor's vendor in three parts.
func vendor() (b, d, c uint32)

func isAMD() bool {
	b, d, c := vendor()
	var name [12]byte
	binary.LittleEndian.PutUint32(name[0:], b)
	binary.LittleEndian.PutUint32(name[4:], d)
	binary.LittleEndian.PutUint32(name[8:], c)
	return string(name[:]) == "AuthenticAMD"
}
