package reservation

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/reservation/internal/pb"
)

func mustMarshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// FuzzRequest: no request makes the service panic, grant more than it has, or send an answer outside the
// protocol.
func FuzzRequest(f *testing.F) {
	f.Add(mustMarshal(holdRequest(Request{Job: "j", Slots: 1, Since: start, Waits: true})))
	f.Add(mustMarshal(holdRequest(Request{Job: "j", Slots: maxSlots, Since: start, Waits: true})))
	f.Add(mustMarshal(confirmRequest(Key{1}, 1)))
	f.Add(mustMarshal(releaseRequest("j", false)))
	f.Add(mustMarshal(&pb.Request{Protocol: 1}))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var q pb.Request
		if proto.Unmarshal(b, &q) != nil {
			return
		}
		s := &Service{ledger: NewLedger(Limits{Slots: 3})}
		for range 2 {
			a := s.answer(&q, alice, "192.0.2.1")
			if a == nil || pb.Reason_name[int32(a.GetReason())] == "" || a.GetSlots() > 3 {
				t.Fatalf("%v answered with %v", &q, a)
			}
		}
		if st := s.Snapshot(); st.Free+st.Held != 3 {
			t.Fatalf("%v left %+v", &q, st)
		}
	})
}

// FuzzAnswer: an accepted grant is valid.
func FuzzAnswer(f *testing.F) {
	f.Add(mustMarshal(grantAnswer(Grant{Key: Key{1}, Slots: 2, Expires: start.Add(time.Second)}, start)))
	f.Add(mustMarshal(refusal(Busy)))
	f.Add(mustMarshal(&pb.Answer{Reason: 99}))
	f.Add(mustMarshal(&pb.Answer{Slots: 1 << 31, Key: make([]byte, 16)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a pb.Answer
		if proto.Unmarshal(b, &a) != nil {
			return
		}
		g, err := grantOf(&a, start)
		if err == nil && (g.Slots < 1 || g.Slots > maxSlots || g.Expires.Before(start)) {
			t.Fatalf("%v accepted as %+v", &a, g)
		}
	})
}
