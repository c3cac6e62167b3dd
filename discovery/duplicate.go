package discovery

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-multistream"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/sealed"
)

// duplicateProtocol carries one TwinRequest and its TwinResponse. Peers use it to detect another process
// with the same identity (a duplicate).
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
	proofTimeout      = 2 * time.Second // bound on the proof over one connection
	duplicateTimeout  = 5 * time.Second // bound on one whole request
	maxDuplicateConns = 8               // connections of one peer that are asked
	duplicateEvery    = time.Minute     // interval between questions; newly met peers are asked as well
)

// A DuplicateError reports that another process has this peer's identity and has run for longer.
type DuplicateError struct {
	Addr ma.Multiaddr  // address of the other process, as another peer sees it; may be nil
	Up   time.Duration // lower bound of its uptime
}

// Error states where the other process is and how long it has run.
func (e *DuplicateError) Error() string {
	at := ""
	if e.Addr != nil {
		at = fmt.Sprintf(" at %s", e.Addr)
	}
	return fmt.Sprintf("another process has the identity of this peer, and has run%s for %v", at, e.Up.Round(time.Second))
}

// duplicates finds duplicates of this peer, and helps other peers to find theirs.
type duplicates struct {
	host     host.Host
	report   func(*DuplicateError) // called with the first duplicate of this peer; may be nil
	reported sync.Once
	instance []byte    // random mark of this process
	started  time.Time // start of this process
	work     *background.Work
	conduct  *misconduct.Log
}

func newDuplicates(h host.Host, report func(*DuplicateError), work *background.Work, conduct *misconduct.Log) *duplicates {
	return &duplicates{host: h, report: report, instance: newInstance(), started: time.Now(), work: work, conduct: conduct}
}

// newInstance returns a random mark for a process.
func newInstance() []byte {
	instance := make([]byte, instanceSize)
	_, _ = rand.Read(instance) // never fails
	return instance
}

// prove signs an answer to nonce.
func (d *duplicates) prove(nonce []byte) ([]byte, error) {
	p := d.proof()
	p.Nonce = nonce
	return sealed.Seal(&p, d.host.Peerstore().PrivKey(d.host.ID()))
}

// proof returns this process's unsigned proof. Its uptime is measured with the wall clock, because the
// monotonic clock may stop during sleep, differently on each machine.
func (d *duplicates) proof() proof {
	up := time.Now().Round(0).Sub(d.started.Round(0))
	return proof{Instance: d.instance, Up: max(0, up)} // the clock may have been set back
}

// serve answers one TwinRequest.
func (d *duplicates) serve(stream network.Stream) {
	defer stream.Close()
	ctx, cancel := context.WithTimeout(d.work.Context(), duplicateTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { stream.Reset() })()
	if err := d.answer(ctx, stream); err != nil {
		d.conduct.Ended(stream.Conn().RemotePeer(), "duplicate identity not checked", err)
		stream.Reset()
	}
}

func (d *duplicates) answer(ctx context.Context, stream network.Stream) error {
	var req pb.TwinRequest
	if err := pbio.NewDelimitedReader(stream, maxDuplicate).ReadMsg(&req); err != nil {
		return err
	}
	if len(req.GetNonce()) != nonceSize {
		return fmt.Errorf("nonce of %d bytes", len(req.GetNonce()))
	}
	resp := &pb.TwinResponse{}
	if len(req.GetInstance()) == 0 {
		envelope, err := d.prove(req.GetNonce())
		if err != nil {
			return err
		}
		resp.Envelope = envelope
	} else {
		resp = d.find(ctx, stream.Conn(), &req)
	}
	return pbio.NewDelimitedWriter(stream).WriteMsg(resp)
}

// find asks the other connections of the requesting peer's ID for a proof and returns one from
// another process.
func (d *duplicates) find(ctx context.Context, conn network.Conn, req *pb.TwinRequest) *pb.TwinResponse {
	id := conn.RemotePeer()
	conns := d.host.Network().ConnsToPeer(id)
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
	defer context.AfterFunc(ctx, func() { stream.Reset() })()
	if err := multistream.SelectProtoOrFail(duplicateProtocol, stream); err != nil {
		return nil, err
	}
	resp, err := exchangeDuplicate(stream, &pb.TwinRequest{Nonce: nonce})
	return resp.GetEnvelope(), err
}

func exchangeDuplicate(stream network.Stream, req *pb.TwinRequest) (*pb.TwinResponse, error) {
	resp := new(pb.TwinResponse)
	return resp, exchange(pbio.NewDelimitedReader(stream, maxDuplicate), pbio.NewDelimitedWriter(stream), req, resp)
}

// check asks a connected peer whether it knows another process with this identity, and reports one
// that has run for longer. If the peer does not answer, it counts as knowing none.
func (d *duplicates) check(ctx context.Context, id p2ppeer.ID) {
	if d.report == nil {
		return
	}
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "duplicate"), duplicateTimeout)
	defer cancel()
	duplicate, err := d.knownTo(ctx, id)
	if err != nil {
		d.conduct.Ended(id, "no answer about a duplicate identity", err)
	}
	if duplicate != nil {
		d.reported.Do(func() { d.report(duplicate) })
	}
}

func (d *duplicates) knownTo(ctx context.Context, id p2ppeer.ID) (*DuplicateError, error) {
	stream, err := d.host.NewStream(ctx, id, duplicateProtocol)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { stream.Reset() })()
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails
	resp, err := exchangeDuplicate(stream, &pb.TwinRequest{Nonce: nonce, Instance: d.instance})
	if err != nil || len(resp.GetEnvelope()) == 0 {
		return nil, err
	}
	own := d.proof()
	return own.duplicateOf(resp, d.host.ID(), nonce)
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

// askRandom asks a random connected peer, because a duplicate may connect at any time.
func (d *duplicates) askRandom(ctx context.Context) {
	if peers := d.host.Network().Peers(); len(peers) > 0 {
		d.check(ctx, peers[mathrand.IntN(len(peers))])
	}
}
