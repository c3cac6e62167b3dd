package submit

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// FuzzAccount checks that decoded accounts are of bounded size and in order.
func FuzzAccount(f *testing.F) {
	v := view.New(2, 2)
	many := make([]*jobpb.Sum, protection.MaxSums+1)
	for i := range many {
		many[i] = &jobpb.Sum{Context: uint32(i)}
	}
	for _, m := range []*jobpb.Account{
		{}, {Digested: true}, {Digested: true, Digest: make([]byte, 32)}, {Digest: make([]byte, 99)}, {Sums: many},
		{Summed: true, Sums: []*jobpb.Sum{{Context: 1, Dest: 1}, {Context: 1, Dest: 0}}}, {Sums: []*jobpb.Sum{{Dest: 2}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m jobpb.Account
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		a, err := accountOf(&m, v)
		if err != nil {
			return
		}
		if err := protection.ValidSums(a.Sums, v); err != nil || len(a.Sums) != len(m.Sums) {
			t.Errorf("%v was taken: %v", a.Sums, err)
		}
		if x, y, unlike := protection.FirstDifference(a.Sums, a.Sums); unlike {
			t.Errorf("%v is unlike %v", x, y)
		}
	})
}
