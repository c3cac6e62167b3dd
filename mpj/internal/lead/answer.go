package lead

import (
	"encoding/binary"
	"errors"
	"time"
)

// An Answer contains the marks of a master, at least one, earliest first, and the reading of its clock
// at the answer.
type Answer struct {
	now   time.Duration
	marks []mark
}

// steps returns the number of steps that the master has taken.
func (a Answer) steps() uint64 { return a.marks[len(a.marks)-1].steps }

// markSize is the length of an encoded mark, in bytes.
const markSize = 16

// longestClock bounds the reading of a clock.
const longestClock = time.Duration(1) << 60

var errAnswer = errors.New("malformed pace reply")

// Encode returns the payload of the frame that carries a.
func (a Answer) Encode() []byte {
	b := make([]byte, 0, 8+markSize*len(a.marks))
	b = binary.LittleEndian.AppendUint64(b, uint64(a.now))
	for _, m := range a.marks {
		b = binary.LittleEndian.AppendUint64(b, m.steps)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.at))
	}
	return b
}

// DecodeAnswer decodes the output of Encode and rejects everything else.
func DecodeAnswer(b []byte) (a Answer, err error) {
	n := (len(b) - 8) / markSize
	if n < 1 || n > maxMarks || len(b) != 8+n*markSize {
		return a, errAnswer
	}
	a.now = time.Duration(binary.LittleEndian.Uint64(b))
	a.marks = make([]mark, n)
	var before mark
	for i := range a.marks {
		at := b[8+i*markSize:]
		m := mark{binary.LittleEndian.Uint64(at), time.Duration(binary.LittleEndian.Uint64(at[8:]))}
		if m.at < before.at || m.steps < before.steps {
			return Answer{}, errAnswer
		}
		a.marks[i], before = m, m
	}
	if a.now < before.at || a.now > longestClock {
		return Answer{}, errAnswer
	}
	return a, nil
}
