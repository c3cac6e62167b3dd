package job

import "bytes"

// MaxRecord is the maximum length of a record, in bytes. A longer line of output is split into records of
// this length. A shorter record without a final newline is the last that a process wrote.
const MaxRecord = 64 << 10

// RecordLen returns the length of the first record of output in b: a line, a piece of a longer line, or all
// of b.
func RecordLen(b []byte) int {
	b = b[:min(len(b), MaxRecord)]
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}

// RecordsLen returns the length of the first n records in b, or of all of b if it has fewer.
func RecordsLen(b []byte, n uint64) (size int) {
	for ; n > 0 && size < len(b); n-- {
		size += RecordLen(b[size:])
	}
	return size
}

// WholeRecords returns the number of complete records at the beginning of b, and their length. An
// unfinished line may follow.
func WholeRecords(b []byte) (records uint64, size int) {
	for size < len(b) {
		n := RecordLen(b[size:])
		if n < MaxRecord && b[size+n-1] != '\n' {
			break
		}
		records++
		size += n
	}
	return records, size
}
