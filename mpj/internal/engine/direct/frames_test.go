package direct

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// FuzzDirectFrames checks that a frame from another process can at most stop the engine.
func FuzzDirectFrames(f *testing.F) {
	f.Add(uint8(frame.Announce), uint32(2), uint32(100), int32(0), uint64(1), make([]byte, 8))
	for kind := frame.Data; kind <= frame.Body; kind++ {
		f.Add(uint8(kind), uint32(2), uint32(0), int32(0), uint64(1), []byte("x"))
	}
	f.Fuzz(func(t *testing.T, kind uint8, context, rank uint32, tag int32, seq uint64, payload []byte) {
		e := newEngine(t, view.New(2, 1), noOpener{})
		s, r := channel.Self()
		defer s.Close()
		e.Accept(view.Process{Rank: 1}, r)
		h := frame.Header{Kind: frame.Kind(kind), Context: context, Rank: rank, Tag: tag, Size: uint64(len(payload))}
		for i := range uint64(3) {
			h.Seq = seq + i
			if s.Send(frame.Frame{Header: h, Payload: payload}) != nil {
				return
			}
		}
	})
}
