package outbox

import (
	"bytes"

	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

const (
	// MaxRecord is the length in bytes of the pieces of a longer line. The
	// submitter goes by it too.
	MaxRecord = jobpb.MaxRecord

	// Limit is how many bytes a Box holds before it is Full.
	Limit = 1 << 20

	// overhead is counted for each record beside its bytes, so that empty lines
	// fill a Box too: a slice header and the allocator's smallest block.
	overhead = 40
)

// A Box holds one output stream of one process. The zero Box is empty. It is
// pure: no goroutine, no pipe, no clock.
type Box struct {
	tail    []byte   // line that is not yet complete
	records [][]byte // not acknowledged
	first   uint64   // number of records[0], or of the next record to be cut
	size    int      // of records, with their overhead
	acked   uint64   // may be ahead of first: another replica was faster
	sent    uint64   // records below it have been handed out since Rewind
	closed  bool
	ended   bool // the end has been handed out since Rewind
}

// A Batch is a run of consecutive records on their way to the submitter.
type Batch struct {
	First   uint64 // number of Records[0]
	Records [][]byte
	End     bool // nothing follows
}

// Append takes the next bytes of the stream. It takes them even when the Box is
// full; the owner is to ask first.
func (b *Box) Append(p []byte) {
	for p = bytes.Clone(p); len(p) > 0; { // the records share one copy
		n := jobpb.RecordLen(p[:min(len(p), MaxRecord-len(b.tail))])
		if len(b.tail) == 0 {
			b.tail = p[:n:n]
		} else {
			b.tail = append(b.tail, p[:n]...)
		}
		p = p[n:]
		if len(b.tail) == MaxRecord || b.tail[len(b.tail)-1] == '\n' {
			b.cut()
		}
	}
}

// cut makes a record of the tail, unless the user has it already.
func (b *Box) cut() {
	if b.next() < b.acked {
		b.first++
		b.tail = nil
		return
	}
	b.records = append(b.records, b.tail)
	b.size += len(b.tail) + overhead
	b.tail = nil
}

// next is the number of the record that will be cut next.
func (b *Box) next() uint64 { return b.first + uint64(len(b.records)) }

// Close says that the stream has ended. An unfinished last line becomes a
// record only if whole is set: a process that was killed may have been in the
// middle of it.
func (b *Box) Close(whole bool) {
	if b.closed {
		return
	}
	if whole && len(b.tail) > 0 {
		b.cut()
	}
	b.tail, b.closed = nil, true
}

// Next returns the records that were not handed out yet, up to about max bytes
// but at least one, and marks them as handed out. ok is false when there is
// nothing to send.
func (b *Box) Next(max int) (batch Batch, ok bool) {
	if b.ended {
		return Batch{}, false
	}
	batch.First = b.sent
	for size := 0; b.sent < b.next(); b.sent++ {
		record := b.records[b.sent-b.first]
		if size += len(record) + overhead; size > max && len(batch.Records) > 0 {
			break
		}
		batch.Records = append(batch.Records, record)
	}
	batch.End = b.closed && b.sent >= b.next()
	b.ended = batch.End
	return batch, batch.End || len(batch.Records) > 0
}

// Rewind makes Next begin again at the first record that was not acknowledged:
// the process has come to speak for its rank.
func (b *Box) Rewind() { b.sent, b.ended = max(b.first, b.acked), false }

// Acknowledge says that the user has got the first count records of the rank,
// from whichever replica. They are dropped, also those still to come.
func (b *Box) Acknowledge(count uint64) {
	b.acked = max(b.acked, count)
	b.sent = max(b.sent, b.acked)
	for len(b.records) > 0 && b.first < b.acked {
		b.size -= len(b.records[0]) + overhead
		b.records[0] = nil
		b.records = b.records[1:]
		b.first++
	}
}

// Unfinished reports whether the stream ends within a line.
func (b *Box) Unfinished() bool { return len(b.tail) > 0 }

// Shown returns how many records there have been, and whether the user has got them
// all.
func (b *Box) Shown() (count uint64, all bool) { return b.next(), b.next() <= b.acked }

// Skip says that the process goes on behind the first count records of its rank, which
// the user has got. It reports whether that can be: it has not printed more.
func (b *Box) Skip(count uint64) bool {
	if b.next() > count || len(b.tail) > 0 {
		return false
	}
	b.Acknowledge(count)
	b.first = count
	return true
}

// Full reports whether the owner should stop reading the stream.
func (b *Box) Full() bool { return b.size >= Limit }
