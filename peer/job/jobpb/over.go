package jobpb

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// OverProtocol is the protocol by which a peer that was disconnected asks the submitter whether its part of
// a job is over. The peer sends the job's ID and closes its direction; the answer is one byte.
const OverProtocol protocol.ID = "/p2pmpi/job/over/1.0.0"

const (
	maxJobID    = 64
	overTimeout = 5 * time.Second

	partOver  = 1
	partUnder = 0 // still running, or not known
)

// AskOver asks a submitter whether this peer's part of a job is over. It takes 5 s at most.
func AskOver(ctx context.Context, h host.Host, submitter p2ppeer.ID, job string) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, overTimeout)
	defer cancel()
	stream, err := h.NewStream(network.WithAllowLimitedConn(network.WithNoDial(ctx, "ask"), "ask"), submitter, OverProtocol)
	if err != nil {
		return false, fmt.Errorf("ask whether job %s is over: %w", job, err)
	}
	defer stream.Reset() // nothing else is sent on it
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	if _, err = io.WriteString(stream, job); err == nil {
		err = stream.CloseWrite()
	}
	answer := []byte{partUnder}
	if err == nil {
		_, err = io.ReadFull(stream, answer)
	}
	if err != nil {
		return false, fmt.Errorf("ask whether job %s is over: %w", job, err)
	}
	return answer[0] == partOver, nil
}

// AnswerOver answers such requests on h with the result of over.
func AnswerOver(h host.Host, over func(peer p2ppeer.ID, job string) bool) {
	h.SetStreamHandler(OverProtocol, func(stream network.Stream) {
		defer stream.Close()
		_ = stream.SetDeadline(time.Now().Add(overTimeout))
		job, err := io.ReadAll(io.LimitReader(stream, maxJobID+1))
		if err != nil || len(job) > maxJobID {
			_ = stream.Reset()
			return
		}
		answer := []byte{partUnder}
		if over(stream.Conn().RemotePeer(), string(job)) {
			answer[0] = partOver
		}
		_, _ = stream.Write(answer)
	})
}
