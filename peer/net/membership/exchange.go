package membership

import (
	"fmt"
	"io"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

// exchangeTimeout bounds the exchange of proofs with one peer.
const exchangeTimeout = 10 * time.Second

// pipe is the part of a connection or stream that the exchange uses.
type pipe interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// ask shows the proof of self to peer, and judges the proof that peer returns. The error is a *Refusal,
// unless the exchange itself failed.
func (g *Gate) ask(p pipe, self, peer p2ppeer.ID) error {
	p.SetDeadline(time.Now().Add(exchangeTimeout))
	defer p.SetDeadline(time.Time{})
	if err := writeMessage(p, &pb.Word{Proof: g.proof(self)}); err != nil {
		return fmt.Errorf("send the token: %w", err)
	}
	answer, err := readMessage(p)
	if err != nil {
		return fmt.Errorf("read the peer's verdict: %w", err)
	}
	if answer.GetVerdict() != pb.Verdict_ADMITTED {
		return g.refusedBy(peer, answer.GetVerdict())
	}
	verdict, token := g.judge(answer.GetProof(), peer)
	if err := writeMessage(p, &pb.Word{Verdict: verdict}); err != nil {
		return fmt.Errorf("send the verdict: %w", err)
	}
	if verdict != pb.Verdict_ADMITTED {
		linger(p)
	}
	return g.conclude(peer, verdict, token)
}

// requestToken tells a peer that shows no token that it needs one.
func (g *Gate) requestToken(p pipe, peer p2ppeer.ID) error {
	p.SetDeadline(time.Now().Add(exchangeTimeout))
	if writeMessage(p, &pb.Word{}) == nil {
		readMessage(p) // returns after the peer has received the request
	}
	return g.conclude(peer, pb.Verdict_NO_TOKEN, Token{})
}

// answer judges the proof of peer, and shows the proof of self only if peer is admitted.
func (g *Gate) answer(p pipe, self, peer p2ppeer.ID) error {
	p.SetDeadline(time.Now().Add(exchangeTimeout))
	defer p.SetDeadline(time.Time{})
	asked, err := readMessage(p)
	if err != nil {
		return fmt.Errorf("read its token: %w", err)
	}
	if g.Open() {
		writeMessage(p, &pb.Word{Verdict: pb.Verdict_OPEN}) // the peer is refused even if this fails
		linger(p)
		return g.refusedBy(peer, pb.Verdict_NO_TOKEN)
	}
	verdict, token := g.judge(asked.GetProof(), peer)
	if verdict != pb.Verdict_ADMITTED {
		writeMessage(p, &pb.Word{Verdict: verdict})
		linger(p)
		return g.conclude(peer, verdict, token)
	}
	if err := writeMessage(p, &pb.Word{Verdict: verdict, Proof: g.proof(self)}); err != nil {
		return fmt.Errorf("send the token: %w", err)
	}
	last, err := readMessage(p)
	if err != nil {
		return fmt.Errorf("read the peer's verdict: %w", err)
	}
	if last.GetVerdict() != pb.Verdict_ADMITTED {
		return g.refusedBy(peer, last.GetVerdict())
	}
	return g.conclude(peer, verdict, token)
}

// lingerTimeout bounds the time for a refused peer to read the verdict.
const lingerTimeout = 2 * time.Second

// linger waits until the other side has closed the connection, at most for lingerTimeout. An immediate close by
// this side could discard its last message.
func linger(p pipe) {
	p.SetDeadline(time.Now().Add(lingerTimeout))
	p.Read(make([]byte, 1))
}
