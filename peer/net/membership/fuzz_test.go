package membership

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

// FuzzJudge checks that no peer is admitted without a signature.
func FuzzJudge(f *testing.F) {
	owner, ownerID := newKey(f)
	_, a := newKey(f)
	_, b := newKey(f)
	i := invite(f, owner, "lab", a, epoch.Add(1e12))
	data, err := proto.Marshal(&pb.Proof{Token: i.sealed, Voucher: i.sealed})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var p pb.Proof
		if proto.Unmarshal(data, &p) != nil {
			return
		}
		if v, _ := judge(&p, b, Network{"lab", ownerID}, epoch); v == pb.Verdict_ADMITTED {
			t.Errorf("a peer was admitted with the proof %x", data)
		}
	})
}

// FuzzToken checks that a token that can be decoded contains only short, printable names, and that encoding and
// decoding do not change it.
func FuzzToken(f *testing.F) {
	_, a := newKey(f)
	for _, name := range []string{"", "alice"} {
		data, err := (&Token{Network: Network{Name: "lab"}, Holder: a, Name: name, Issued: epoch, Expires: epoch}).MarshalRecord()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var token Token
		if token.UnmarshalRecord(data) != nil {
			return
		}
		for _, name := range []string{token.Network.Name, token.Name} {
			if len(name) > 47 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("a token with the name %q was decoded", name)
			}
		}
		again, err := token.MarshalRecord()
		if err != nil {
			t.Fatal(err)
		}
		var got Token
		if err := got.UnmarshalRecord(again); err != nil || got != token {
			t.Errorf("got %+v, %v; want %+v", got, err, token)
		}
	})
}

// FuzzReadMessage checks that messages are bounded, and that no byte after a message is read.
func FuzzReadMessage(f *testing.F) {
	var b bytes.Buffer
	if err := writeMessage(&b, &pb.Word{Verdict: pb.Verdict_EXPIRED, Proof: &pb.Proof{Token: []byte("t")}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		if _, err := readMessage(r); err != nil {
			return
		}
		n := 2 + int(data[0])<<8 + int(data[1])
		if n > 2+maxMessage || len(data)-r.Len() != n {
			t.Errorf("the reader used %d bytes, want %d", len(data)-r.Len(), n)
		}
	})
}

// FuzzParseInvitation checks that formatting and parsing do not change an invitation.
func FuzzParseInvitation(f *testing.F) {
	owner, _ := newKey(f)
	for _, holder := range []string{"", "x"} {
		i := invite(f, owner, "lab", "", epoch)
		if holder != "" {
			i.key = nil
		}
		text, err := i.Text()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(prefix)
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseInvitation(text)
		if err != nil {
			return
		}
		again, err := i.Text()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseInvitation(again); err != nil || got.Token != i.Token {
			t.Errorf("got %+v, %v; want %+v", got, err, i.Token)
		}
	})
}
