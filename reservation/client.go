package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/multiformats/go-multistream"

	"github.com/p2pmpi/p2pmpi/reservation/internal/pb"
)

// requestTimeout bounds a request whose context has no earlier deadline.
const requestTimeout = 5 * time.Second

// A Client implements Requester over libp2p with one short stream per request. The host must know the
// peers' addresses. To request its own slots, it must be able to open streams to itself; see package
// loopback.
type Client struct{ host host.Host }

// NewClient returns a client that opens its streams on h.
func NewClient(h host.Host) *Client { return &Client{host: h} }

// Hold asks peer for slots. It ignores q.Submitter: the peer sees this host as the submitter. If ctx ends
// before the answer arrives, the peer releases the slots, even if it processes the request later. The
// error wraps a Reason or a *queued.
func (c *Client) Hold(ctx context.Context, peer p2ppeer.ID, q Request) (Grant, error) {
	asked := time.Now()
	a, err := c.call(ctx, peer, holdRequest(q))
	var g Grant
	if err == nil {
		g, err = grantOf(a, asked)
	}
	if err != nil {
		return Grant{}, fmt.Errorf("hold %d slots at %s: %w", q.Slots, peer, err)
	}
	return g, nil
}

// Confirm keeps the given number of the slots that key holds at peer and releases the rest. A repeated
// Confirm may release more slots; it does not extend the lease. The error wraps a Reason.
func (c *Client) Confirm(ctx context.Context, peer p2ppeer.ID, key Key, slots int) error {
	a, err := c.call(ctx, peer, confirmRequest(key, slots))
	if err == nil {
		err = answerError(a)
	}
	if err != nil {
		return fmt.Errorf("confirm %d slots at %s: %w", slots, peer, err)
	}
	return nil
}

// Release gives back the slots that job holds at peer and has not used. If waits is true, the job stays in
// the peer's queue. If ctx ends before the answer arrives, the peer may still process the request.
func (c *Client) Release(ctx context.Context, peer p2ppeer.ID, job string, waits bool) error {
	a, err := c.call(ctx, peer, releaseRequest(job, waits))
	if err == nil {
		err = answerError(a)
	}
	if err != nil {
		return fmt.Errorf("release slots at %s: %w", peer, err)
	}
	return nil
}

func (c *Client) call(ctx context.Context, peer p2ppeer.ID, q *pb.Request) (answer *pb.Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := c.host.NewStream(ctx, peer, protocolID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", dialReason(err), err)
	}
	defer func() {
		if err != nil && q.GetHold() != nil {
			_ = stream.Reset() // see taken
		}
		_ = stream.Close() // not a reset, even on failure, because sent data has to arrive
	}()
	defer context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })()
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(q); err != nil {
		return nil, fmt.Errorf("%w: send request: %w", streamReason(err), err)
	}
	var a pb.Answer
	if err := pbio.NewDelimitedReader(stream, maxMessage).ReadMsg(&a); err != nil {
		return nil, fmt.Errorf("%w: read answer: %w", streamReason(err), err)
	}
	return &a, nil
}

// notSpoken reports whether err means that the peer does not speak the protocol. The peer rejects the
// protocol when the stream is opened, or resets the stream later if libp2p assumed that it is supported.
func notSpoken(err error) bool {
	var unsupported multistream.ErrNotSupported[protocol.ID]
	late := &network.StreamError{ErrorCode: network.StreamProtocolNegotiationFailed, Remote: true}
	return errors.As(err, &unsupported) || errors.Is(err, late)
}

// dialReason returns the Reason for a failure to open a stream.
func dialReason(err error) Reason {
	switch {
	case notSpoken(err):
		return Version
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Silent
	}
	return Unreachable
}

// streamReason returns the Reason for an open stream without an answer.
func streamReason(err error) Reason {
	if notSpoken(err) {
		return Version
	}
	return Silent
}
