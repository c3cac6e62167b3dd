package messagelog

import (
	"os"
	"sync"
)

// A segment is a part of a Log: a file, and the end of the segment in memory.
//
//	tail --> writing --> file
//
// A nil segment is empty. The mutex of the Log guards it.
type segment struct {
	file    *os.File // nil if closed
	written uint64   // bytes in the file
	writing []byte   // following bytes, which are being written to the file
	tail    []byte   // bytes after writing
	spare   []byte   // memory of an earlier tail, for reuse
	busy    bool     // a goroutine writes
}

func (s *segment) length() uint64 {
	if s == nil {
		return 0
	}
	return s.written + uint64(len(s.writing)+len(s.tail))
}

func (s *segment) close() {
	if s == nil || s.file == nil {
		return
	}
	s.file.Close()
	*s = segment{busy: s.busy}
}

// write moves the tail into the file until the tail is short. mu is held, but not while it writes.
func (s *segment) write(mu *sync.Mutex) error {
	for s.file != nil && len(s.tail) >= tailWritten {
		s.writing, s.tail = s.tail, s.spare[:0]
		f, b, at := s.file, s.writing, int64(s.written)
		mu.Unlock()
		_, err := f.WriteAt(b, at)
		mu.Lock()
		switch {
		case s.file == nil:
		case err != nil:
			return err
		default:
			s.written += uint64(len(b))
			s.writing, s.spare = nil, nil
			if cap(b) <= 2*maxPiece {
				s.spare = b
			}
		}
	}
	return nil
}

// piece returns the bytes that follow a position, and whether they reach the end. It returns nil and
// false when the position does not exist or the file cannot be read. mu is held, but not while it
// reads.
func (s *segment) piece(position uint64, mu *sync.Mutex) (b []byte, last bool) {
	switch end := s.length(); {
	case s.file == nil || position > end:
		return nil, false
	case position < s.written:
		b, last = make([]byte, min(maxPiece, s.written-position)), position+maxPiece >= end && s.written == end
		f := s.file
		mu.Unlock()
		_, err := f.ReadAt(b, int64(position))
		mu.Lock()
		if err != nil {
			return nil, false
		}
		return b, last
	}
	rest := s.writing
	if position -= s.written; position >= uint64(len(s.writing)) {
		rest, position = s.tail, position-uint64(len(s.writing))
		last = len(s.tail)-int(position) <= maxPiece
	}
	rest = rest[position:]
	return append([]byte(nil), rest[:min(maxPiece, len(rest))]...), last
}
