package discovery

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/record"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-multistream"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
)

// duplicateProtocol carries one TwinRequest and its TwinResponse. It detects another process with the same
// identity (a duplicate).
//
//	peer P, a copy of its home        another peer           P, the original
//	  |-- instance, nonce ----------------->|                       |
//	  |                                     |-- nonce ------------->|  over each other
//	  |                                     |<- signed by P: nonce, |  connection of P's
//	  |<------------------------------------|   instance, up for    |
//	  signed with my key, but not by this process: I am a copy
//
// Only a live process that holds P's key can sign the nonce. So the other peer need not be trusted, and a
// restart is not mistaken for a copy, although old connections may remain.
const duplicateProtocol protocol.ID = "/p2pmpi/twin/1.0.0"

const (
	maxDuplicate      = maxProof + 512  // bytes of a request or response
	proofTimeout      = 2 * time.Second // for the proof over one connection
	duplicateTimeout  = 5 * time.Second // for one whole request
	maxDuplicateConns = 8               // connections of one peer that are asked
	duplicateEvery    = time.Minute     // interval between questions; newly met peers are asked as well
)

// A DuplicateError reports that another process has this peer's identity and has run for longer.
type DuplicateError struct {
	Addr ma.Multiaddr  // address at which the finding peer sees it; may be nil
	Up   time.Duration // its uptime, at least
}

// Error states where the other process is and how long it has run.
func (e *DuplicateError) Error() string {
	at := ""
	if e.Addr != nil {
		at = fmt.Sprintf(" at %s", e.Addr)
	}
	return fmt.Sprintf("another process has the identity of this peer, and has run%s for %v", at, e.Up.Round(time.Second))
}

// newInstance returns a random mark for this process.
func newInstance() []byte {
	instance := make([]byte, instanceSize)
	_, _ = rand.Read(instance) // never fails
	return instance
}

// prove signs an answer to nonce.
func (s *Service) prove(nonce []byte) ([]byte, error) {
	key := s.host.Peerstore().PrivKey(s.host.ID())
	if key == nil {
		return nil, errors.New("prove the identity: the host has no private key")
	}
	p := s.proof()
	p.Nonce = nonce
	envelope, err := record.Seal(&p, key)
	if err != nil {
		return nil, fmt.Errorf("prove the identity: %w", err)
	}
	return envelope.Marshal()
}

// proof returns this process's unsigned proof. Its uptime is measured with the wall clock, because the
// monotonic clock may stop during sleep, differently on each machine.
func (s *Service) proof() proof {
	up := time.Now().Round(0).Sub(s.started.Round(0))
	return proof{Instance: s.instance, Up: max(0, up)} // the clock may have been set back
}

// serveDuplicate answers one TwinRequest.
func (s *Service) serveDuplicate(stream network.Stream) {
	if !s.enter() {
		stream.Reset()
		return
	}
	defer s.wg.Done()
	defer stream.Close()
	ctx, cancel := context.WithTimeout(s.ctx, duplicateTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	if err := s.answerDuplicate(ctx, stream); err != nil {
		s.conduct.Ended(stream.Conn().RemotePeer(), "duplicate identity not checked", err)
		stream.Reset()
	}
}

func (s *Service) answerDuplicate(ctx context.Context, stream network.Stream) error {
	var req pb.TwinRequest
	if err := pbio.NewDelimitedReader(stream, maxDuplicate).ReadMsg(&req); err != nil {
		return err
	}
	if len(req.GetNonce()) != nonceSize {
		return fmt.Errorf("nonce of %d bytes", len(req.GetNonce()))
	}
	resp := &pb.TwinResponse{}
	if len(req.GetInstance()) == 0 {
		envelope, err := s.prove(req.GetNonce())
		if err != nil {
			return err
		}
		resp.Envelope = envelope
	} else {
		resp = s.findDuplicate(ctx, stream.Conn(), &req)
	}
	return pbio.NewDelimitedWriter(stream).WriteMsg(resp)
}

// findDuplicate asks the other connections of the requesting peer's ID for a proof and returns one from
// another process.
func (s *Service) findDuplicate(ctx context.Context, conn network.Conn, req *pb.TwinRequest) *pb.TwinResponse {
	id := conn.RemotePeer()
	conns := s.host.Network().ConnsToPeer(id)
	found := make(chan *pb.TwinResponse, len(conns))
	asked := 0
	for _, other := range conns {
		if other.ID() == conn.ID() || asked == maxDuplicateConns {
			continue
		}
		asked++
		go func() { // ends with ctx at the latest
			envelope, err := proofOver(ctx, other, req.GetNonce())
			p, openErr := openProof(envelope, id, req.GetNonce())
			if err != nil || openErr != nil || bytes.Equal(p.Instance, req.GetInstance()) {
				found <- nil // no live process answered, or the same one did
				return
			}
			found <- &pb.TwinResponse{Envelope: envelope, Address: other.RemoteMultiaddr().Bytes()}
		}()
	}
	proven := &pb.TwinResponse{}
	for range asked {
		if f := <-found; f != nil {
			proven = f
		}
	}
	return proven
}

// proofOver requests a proof over conn in particular. Opening the stream through the host could use
// another connection to the same peer ID.
func proofOver(ctx context.Context, conn network.Conn, nonce []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "duplicate"), proofTimeout)
	defer cancel()
	stream, err := conn.NewStream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	if err := multistream.SelectProtoOrFail(duplicateProtocol, stream); err != nil {
		return nil, err
	}
	resp, err := exchangeDuplicate(stream, &pb.TwinRequest{Nonce: nonce})
	return resp.GetEnvelope(), err
}

func exchangeDuplicate(stream network.Stream, req *pb.TwinRequest) (*pb.TwinResponse, error) {
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(req); err != nil {
		return nil, err
	}
	var resp pb.TwinResponse
	if err := pbio.NewDelimitedReader(stream, maxDuplicate).ReadMsg(&resp); err != nil {
		return nil, err
	}
	return &resp, nil
}

// checkDuplicate asks a connected peer whether it knows another process with this identity, and reports one
// that has run for longer to cfg.Duplicate. If the peer does not answer, it counts as knowing none.
func (s *Service) checkDuplicate(ctx context.Context, id p2ppeer.ID) {
	if s.cfg.Duplicate == nil {
		return
	}
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "duplicate"), duplicateTimeout)
	defer cancel()
	duplicate, err := s.duplicateKnownTo(ctx, id)
	if err != nil {
		s.conduct.Ended(id, "no answer about a duplicate identity", err)
	}
	if duplicate != nil {
		s.duplicateFound.Do(func() { s.cfg.Duplicate(duplicate) })
	}
}

func (s *Service) duplicateKnownTo(ctx context.Context, id p2ppeer.ID) (*DuplicateError, error) {
	stream, err := s.host.NewStream(ctx, id, duplicateProtocol)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails
	resp, err := exchangeDuplicate(stream, &pb.TwinRequest{Nonce: nonce, Instance: s.instance})
	if err != nil || len(resp.GetEnvelope()) == 0 {
		return nil, err
	}
	own := s.proof()
	return own.duplicateOf(resp, s.host.ID(), nonce)
}

// duplicateOf returns the duplicate that resp, an answer to nonce, proves, if p has to end in favour of it.
// Both have identity id.
func (p *proof) duplicateOf(resp *pb.TwinResponse, id p2ppeer.ID, nonce []byte) (*DuplicateError, error) {
	other, err := openProof(resp.GetEnvelope(), id, nonce)
	if err != nil || bytes.Equal(p.Instance, other.Instance) || !p.mustYield(other) {
		return nil, err
	}
	duplicate := &DuplicateError{Up: other.Up}
	if addr, err := ma.NewMultiaddrBytes(resp.GetAddress()); err == nil {
		duplicate.Addr = addr
	}
	return duplicate, nil
}

// duplicateLoop asks random connected peers, one per interval, because a duplicate may connect at any time.
func (s *Service) duplicateLoop(ctx context.Context) {
	ticker := time.NewTicker(duplicateEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if peers := s.host.Network().Peers(); len(peers) > 0 {
			s.checkDuplicate(ctx, peers[mathrand.IntN(len(peers))])
		}
	}
}
