package outbox

import "github.com/p2pmpi/p2pmpi/peer/job"

const (
	// Limit is the number of bytes at which a Box is Full.
	Limit = 1 << 20

	// overhead is added to the bytes of each segment, so that short segments fill a Box too. It covers
	// their header and the allocator's smallest block.
	overhead = 40

	// maxSegment bounds a segment in bytes, unless its records arrive together.
	maxSegment = 64 << 10
)

// A Box holds one output stream of one process. The zero Box is empty. It is pure: no goroutine, no pipe,
// no clock.
type Box struct {
	tail     []byte // incomplete line
	segments []segment
	sent     int    // number of segments handed out since Rewind
	at       uint64 // number of the first record after these
	first    uint64 // number of the first record held, or of the next one to arrive
	next     uint64 // number of the next record to arrive
	size     int    // bytes of the segments, with overhead
	acked    uint64 // may exceed next if another replica is faster
	closed   bool
	ended    bool // the end has been handed out since Rewind
}

// A segment is a run of records that the user may not have received yet. Segments that have been handed out
// do not grow.
type segment struct {
	data    []byte
	records uint64
}

// A Batch is a run of consecutive records to send to the submitter.
type Batch struct {
	First uint64 // number of its first record
	Data  []byte // consecutive records
	End   bool   // nothing follows
}

// Append adds the next bytes of the stream, even if the Box is full. The owner must check Full.
func (b *Box) Append(p []byte) {
	if len(b.tail) > 0 {
		p = p[b.finish(p):]
	}
	records, size := job.WholeRecords(p)
	b.add(p[:size], records)
	b.tail = append(b.tail, p[size:]...)
}

// finish adds the first bytes of p to the tail, up to the end of its record, and returns their number.
func (b *Box) finish(p []byte) int {
	n := job.RecordLen(p[:min(len(p), job.MaxRecord-len(b.tail))])
	b.tail = append(b.tail, p[:n]...)
	if records, size := job.WholeRecords(b.tail); records > 0 {
		b.add(b.tail[:size], records)
		b.tail = b.tail[:0]
	}
	return n
}

// add stores a copy of the records, except those that the user has received already.
func (b *Box) add(data []byte, records uint64) {
	had := min(records, b.acked-min(b.acked, b.next))
	data = data[job.RecordsLen(data, had):]
	b.next += records
	if len(b.segments) == 0 {
		b.first = b.next - (records - had)
		b.at = b.first
	}
	if records == had {
		return
	}
	last := len(b.segments) - 1
	if last < b.sent || len(b.segments[last].data)+len(data) > maxSegment {
		b.segments = append(b.segments, segment{})
		b.size += overhead
		last++
	}
	s := &b.segments[last]
	s.data = append(s.data, data...)
	s.records += records - had
	b.size += len(data)
}

// Close marks the end of the stream. An unfinished last line becomes a record only if whole is set: a
// process that was killed may have stopped in the middle of it.
func (b *Box) Close(whole bool) {
	if b.closed {
		return
	}
	if whole && len(b.tail) > 0 {
		b.add(b.tail, 1)
	}
	b.tail, b.closed = nil, true
}

// Next returns records that were not handed out yet, and marks them as handed out. ok is false if there is
// nothing to send.
func (b *Box) Next() (batch Batch, ok bool) {
	if b.ended {
		return Batch{}, false
	}
	batch.First = max(b.next, b.acked)
	if b.sent < len(b.segments) {
		s := b.segments[b.sent]
		batch.First, batch.Data = b.at, s.data
		b.at += s.records
		b.sent++
	}
	batch.End = b.closed && b.sent == len(b.segments)
	b.ended = batch.End
	return batch, batch.End || len(batch.Data) > 0
}

// Rewind makes Next start again at the first record that was not acknowledged. The owner calls it when the
// process becomes its rank's output leader or stops being it, and when the submitter reconnects.
func (b *Box) Rewind() { b.sent, b.at, b.ended = 0, b.first, false }

// Acknowledge records that the user has received the first count records of the rank, from any replica. The
// Box drops them, including those yet to arrive.
func (b *Box) Acknowledge(count uint64) {
	b.acked = max(b.acked, count)
	for len(b.segments) > 0 && b.first < b.acked {
		s := &b.segments[0]
		n := min(b.acked-b.first, s.records)
		size := len(s.data)
		if n < s.records {
			size = job.RecordsLen(s.data, n)
		}
		b.first += n
		b.size -= size
		if s.data, s.records = s.data[size:], s.records-n; s.records == 0 {
			b.drop()
		}
	}
	b.at = max(b.at, b.first)
}

// drop removes the first segment.
func (b *Box) drop() {
	b.segments[0] = segment{}
	b.segments = b.segments[1:]
	b.sent = max(0, b.sent-1)
	b.size -= overhead
}

// Unfinished reports whether the stream ends within a line.
func (b *Box) Unfinished() bool { return len(b.tail) > 0 }

// Shown returns the number of records so far, and whether the user has received them all.
func (b *Box) Shown() (count uint64, all bool) { return b.next, b.next <= b.acked }

// Skip declares that the process continues after the first count records of its rank, which the user has
// received. It returns false if the process has already written more than that, or part of a line.
func (b *Box) Skip(count uint64) bool {
	if b.next > count || len(b.tail) > 0 {
		return false
	}
	b.Acknowledge(count)
	b.first, b.next, b.at = count, count, count
	return true
}

// Full reports whether the owner should stop reading the stream.
func (b *Box) Full() bool { return b.size >= Limit }
