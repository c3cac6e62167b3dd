package guest

import (
	"context"
	"errors"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// The codes that the host returns.
const (
	codeOK = iota
	codeTruncated
	codeReplicated
	codeClosed
	codeNotice
	codeOther
)

// maxText bounds the text of an error, in bytes.
const maxText = 4 << 10

// textOf returns the text of the error that the host has just returned.
func textOf(code int32) string {
	if code != codeOther {
		return ""
	}
	b := make([]byte, maxText)
	return string(b[:hostErrorText(address(b), maxText)])
}

// failed returns the error for a code, or nil for codeOK.
func (h *host) failed(code int32, text string) error {
	switch code {
	case codeOK:
		return nil
	case codeReplicated:
		return engineapi.ErrReplicated
	case codeClosed:
		return engineapi.ErrClosed
	case codeNotice:
		return engineapi.ErrNotice
	}
	if err := context.Cause(h.parent); err != nil {
		return err
	}
	return errors.New(text)
}

// received returns the result of a receive into a buffer.
func (h *host) received(s *status, capacity int, code int32, text string) (engineapi.Status, error) {
	if code == codeTruncated {
		return s.status(), &engineapi.TruncateError{Status: s.status(), Capacity: capacity}
	}
	if code != codeOK {
		return engineapi.Status{}, h.failed(code, text)
	}
	return s.status(), nil
}

// A status is a message status in the host's format.
type status struct {
	source, tag int32
	size        uint32
	cancelled   uint32
}

func (s *status) status() engineapi.Status {
	return engineapi.Status{Source: int(s.source), Tag: s.tag, Size: int(s.size), Cancelled: s.cancelled != 0}
}

// address returns the address of the first byte of b.
func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// where returns the address of b as a number, for memory that the host reads. The caller must keep
// b alive.
func where(b []byte) uint32 {
	shown = address(b)
	shown = nil
	return uint32(uintptr(address(b)))
}

// shown is never read. Storing an address in it makes its memory escape from the stack, which Go
// may move.
var shown unsafe.Pointer
