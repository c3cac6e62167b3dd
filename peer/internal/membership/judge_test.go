package membership

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/internal/membership/internal/pb"
)

func prove(t *testing.T, i *Invitation, id p2ppeer.ID, home crypto.PrivKey) *pb.Proof {
	t.Helper()
	p, err := i.proof(id, home)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhoIsAdmitted(t *testing.T) {
	owner, ownerID := newKey(t)
	other, _ := newKey(t)
	aKey, a := newKey(t)
	_, b := newKey(t)
	lab := Network{"lab", ownerID}
	later := epoch.Add(time.Hour)
	bound := invite(t, owner, "lab", a, later)
	anyone := invite(t, owner, "lab", "", later)
	forged := prove(t, bound, a, nil)
	forged = &pb.Proof{Token: append([]byte(nil), forged.GetToken()...)}
	forged.Token[len(forged.Token)-1] ^= 1
	voucher := prove(t, bound, b, aKey)
	tests := map[string]struct {
		proof *pb.Proof
		from  p2ppeer.ID
		at    time.Time
		want  pb.Verdict
	}{
		"the holder":                      {prove(t, bound, a, nil), a, epoch, pb.Verdict_ADMITTED},
		"just before the end":             {prove(t, bound, a, nil), a, later.Add(-time.Millisecond), pb.Verdict_ADMITTED},
		"at the end":                      {prove(t, bound, a, nil), a, later, pb.Verdict_EXPIRED},
		"whoever has the invitation":      {prove(t, anyone, b, nil), b, epoch, pb.Verdict_ADMITTED},
		"who has copied that one's proof": {prove(t, anyone, b, nil), a, epoch, pb.Verdict_OTHER_PEER},
		"who has copied the holder's":     {prove(t, bound, a, nil), b, epoch, pb.Verdict_OTHER_PEER},
		"one that the holder vouches for": {voucher, b, epoch, pb.Verdict_ADMITTED},
		"one that it does not":            {voucher, ownerID, epoch, pb.Verdict_OTHER_PEER},
		"a voucher of another holder's":   {&pb.Proof{Token: prove(t, anyone, b, nil).GetToken(), Voucher: voucher.GetVoucher()}, b, epoch, pb.Verdict_OTHER_PEER},
		"a token in place of a voucher":   {&pb.Proof{Token: voucher.GetToken(), Voucher: voucher.GetToken()}, b, epoch, pb.Verdict_OTHER_PEER},
		"a voucher in place of a token":   {&pb.Proof{Token: voucher.GetVoucher()}, b, epoch, pb.Verdict_MALFORMED},
		"none":                            {nil, a, epoch, pb.Verdict_NO_TOKEN},
		"another owner of the same name":  {prove(t, invite(t, other, "lab", a, later), a, nil), a, epoch, pb.Verdict_OTHER_NETWORK},
		"another network of the owner":    {prove(t, invite(t, owner, "office", a, later), a, nil), a, epoch, pb.Verdict_OTHER_NETWORK},
		"changed":                         {forged, a, epoch, pb.Verdict_MALFORMED},
		"too long":                        {&pb.Proof{Token: make([]byte, maxSealed+1)}, a, epoch, pb.Verdict_MALFORMED},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, until := judge(test.proof, test.from, lab, test.at)
			if got != test.want {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			if got == pb.Verdict_ADMITTED && !until.Equal(later) {
				t.Errorf("admitted until %v, want %v", until, later)
			}
		})
	}
}

func TestABoundInvitationIsOfNoUseToAnother(t *testing.T) {
	owner, _ := newKey(t)
	_, a := newKey(t)
	bKey, b := newKey(t)
	_, err := invite(t, owner, "lab", a, epoch).proof(b, bKey)
	if bound, ok := errors.AsType[*BoundError](err); !ok || bound.To != a || bound.Peer != b {
		t.Errorf("got %v, want it to name both", err)
	}
}

func TestInvitationsAreReadAsWritten(t *testing.T) {
	owner, ownerID := newKey(t)
	_, a := newKey(t)
	for _, holder := range []p2ppeer.ID{a, ""} {
		i := invite(t, owner, "lab", holder, epoch.Add(time.Hour))
		text, err := i.Text()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseInvitation(" " + text + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if got.Token != i.Token || got.Bound() != (holder != "") || got.Network != (Network{"lab", ownerID}) {
			t.Errorf("got %+v, want %+v", got.Token, i.Token)
		}
	}
}

func TestEveryLetterOfAnInvitationMatters(t *testing.T) {
	owner, _ := newKey(t)
	_, a := newKey(t)
	text, err := invite(t, owner, "lab", a, epoch).Text()
	if err != nil {
		t.Fatal(err)
	}
	for n := range text {
		changed := []byte(text)
		if changed[n]++; changed[n] == 'z'+1 {
			changed[n] = 'a'
		}
		got, err := ParseInvitation(string(changed))
		if err == nil {
			t.Errorf("letter %d changed, and it was read as %+v", n, got.Token)
		}
	}
}

func TestNamesOfNetworks(t *testing.T) {
	for name, want := range map[string]bool{
		"lab": true, "a.b-c_d+e": true, "": false, ".": false, "..": false, "...": false, "a/b": false, "a b": false,
		"12345678901234567890123456789012345678901234567": true, "123456789012345678901234567890123456789012345678": false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: got %v", name, err)
		}
	}
	_, a := newKey(t)
	_, b := newKey(t)
	if (Network{"lab", a}).ID() == (Network{"lab", b}).ID() {
		t.Error("two owners, one ID")
	}
}
