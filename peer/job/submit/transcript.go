package submit

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A transcript summarizes the standard output of a rank that the user has received. It is kept with a
// job that another process may resume (keep.go). So a replica that prints one thing and accounts
// for another is detected after a resume, too.
type transcript struct {
	records uint64    // number of whole records
	bytes   uint64    // number of bytes in them
	digest  hash.Hash // their SHA-256 state; nil: unknown, since part of them is unknown
}

func newTranscript() transcript { return transcript{digest: sha256.New()} }

// newTranscripts returns the empty transcripts of n ranks.
func newTranscripts(n int) (all []transcript) {
	for range n {
		all = append(all, newTranscript())
	}
	return all
}

// add appends records of output, of which the last one has number next. If they do not directly
// follow the previous ones, the digest becomes unknown.
func (t *transcript) add(next, records uint64, data []byte) {
	if t.records+records != next {
		t.digest = nil
	}
	t.records, t.bytes = next, t.bytes+uint64(len(data))
	if t.digest != nil {
		t.digest.Write(data)
	}
}

// with returns the printed output of t followed by tail, an unfinished last line. ok is false if
// the digest is unknown.
func (t *transcript) with(tail []byte) (p job.Printed, ok bool) {
	cloner, ok := t.digest.(hash.Cloner)
	if !ok {
		return job.Printed{}, false
	}
	all, err := cloner.Clone()
	if err != nil {
		return job.Printed{}, false
	}
	all.Write(tail)
	return job.Printed{Bytes: t.bytes + uint64(len(tail)), Digest: [sha256.Size]byte(all.Sum(nil))}, true
}

// A transcript is encoded in transcriptSize bytes: records and bytes in eight bytes each, and the
// state of the digest, as package crypto/sha256 encodes it; zeros for no state.
const (
	digestStateSize = 108
	transcriptSize  = 16 + digestStateSize
)

// encode returns the encoded transcript.
func (t *transcript) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, transcriptSize), t.records)
	b = binary.BigEndian.AppendUint64(b, t.bytes)
	if state, ok := t.digest.(encoding.BinaryAppender); ok {
		if with, err := state.AppendBinary(b); err == nil && len(with) == transcriptSize {
			return with
		}
	}
	return b[:transcriptSize]
}

// decodeTranscript decodes the result of encode. Zeros, as in a part of the file that was never
// written, decode to an empty transcript.
func decodeTranscript(b [transcriptSize]byte) transcript {
	if b == [transcriptSize]byte{} {
		return newTranscript()
	}
	t := transcript{records: binary.BigEndian.Uint64(b[:]), bytes: binary.BigEndian.Uint64(b[8:])}
	digest := sha256.New()
	if state, ok := digest.(encoding.BinaryUnmarshaler); ok && state.UnmarshalBinary(b[16:]) == nil {
		t.digest = digest
	}
	return t
}
