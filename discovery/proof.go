package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/sealed"
)

const (
	nonceSize    = 32 // bytes
	instanceSize = 16
	maxProof     = 1 << 10 // bytes of a sealed proof, including an RSA key
)

// A proof is the signed statement of one instance (process) of a peer that it is alive.
type proof struct {
	Nonce    []byte // nonce of the asking peer
	Instance []byte // random mark of the process, drawn at its start
	Up       time.Duration
}

func (p *proof) Kind() string { return "twin" }

func (p *proof) MarshalRecord() ([]byte, error) {
	return proto.Marshal(&pb.TwinProof{Nonce: p.Nonce, Instance: p.Instance, UpMillis: uint64(p.Up.Milliseconds())})
}

func (p *proof) UnmarshalRecord(data []byte) error {
	var m pb.TwinProof
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decode proof: %w", err)
	}
	const longest = math.MaxInt64 / uint64(time.Millisecond)
	*p = proof{m.GetNonce(), m.GetInstance(), time.Duration(min(m.GetUpMillis(), longest)) * time.Millisecond}
	return nil
}

// openProof decodes the envelope that answers nonce and returns its proof, if it is signed with the key
// of id.
func openProof(data []byte, id p2ppeer.ID, nonce []byte) (proof, error) {
	var p proof
	signer, err := sealed.Open(data, maxProof, &p)
	switch {
	case err != nil:
		return proof{}, err
	case signer != id:
		return proof{}, errors.New("signed by another peer")
	case len(p.Instance) != instanceSize || len(nonce) != nonceSize || !bytes.Equal(p.Nonce, nonce):
		return proof{}, errors.New("the nonce does not match")
	}
	return p, nil
}

// mustYield reports whether p has to end in favour of other, which has the same identity. The process that
// has run for longer stays, so that a copy does not displace the original.
func (p *proof) mustYield(other proof) bool {
	if own := p.Up.Truncate(time.Millisecond); own != other.Up {
		return own < other.Up
	}
	return bytes.Compare(p.Instance, other.Instance) < 0
}
