package job

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"
)

// A transcript stands for what the user has got of a rank's standard output. It is kept with a job that another
// process may go on with (keep.go), so that a replica that prints one thing and accounts for another is found
// then, too.
type transcript struct {
	records uint64    // whole ones
	bytes   uint64    // in them
	digest  hash.Hash // of them, SHA-256; nil: unknown, since a part of them is
}

func newTranscript() transcript { return transcript{digest: sha256.New()} }

// newTranscripts returns those of n ranks, nothing of which is printed yet.
func newTranscripts(n int) (all []transcript) {
	for range n {
		all = append(all, newTranscript())
	}
	return all
}

// add appends records of output. The last of them has number next; if they do not follow the previous ones, the
// digest becomes unknown.
func (t *transcript) add(next, records uint64, data []byte) {
	if t.records+records != next {
		t.digest = nil
	}
	t.records, t.bytes = next, t.bytes+uint64(len(data))
	if t.digest != nil {
		t.digest.Write(data)
	}
}

// with returns what the user has got once an unfinished last line has come, too. It is not ok if that is unknown.
func (t *transcript) with(tail []byte) (p printed, ok bool) {
	cloner, ok := t.digest.(hash.Cloner)
	if !ok {
		return printed{}, false
	}
	all, err := cloner.Clone()
	if err != nil {
		return printed{}, false
	}
	all.Write(tail)
	return printed{Bytes: t.bytes + uint64(len(tail)), Digest: [sha256.Size]byte(all.Sum(nil))}, true
}

// A transcript takes transcriptSize bytes: records and bytes as eight bytes each, and the state of the digest, as
// package crypto/sha256 encodes it; zeros are no state.
const (
	digestStateSize = 108
	transcriptSize  = 16 + digestStateSize
)

// encode returns the transcript as it is kept.
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

// decodeTranscript reads what encode has returned. Zeros, as in a part of the file that was never written, are a
// transcript of no output.
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
