package engine_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// readers returns a job whose ranks read each other's payloads.
func readers(wrap func(from, to view.Process, s channel.Sender) channel.Sender) *localworld.World {
	return localworld.New(context.Background(), localworld.Config{
		Ranks: 2, Replicas: 1, Rings: true, Reading: channel.ReadAny, Wrap: wrap,
	})
}

// A liar is a ring that announces payloads at wrong addresses.
type liar struct {
	*channel.ShmSender
	address uint64
}

func (l liar) Address([]byte) uint64 { return l.address }

func TestInvalidAddressViolatesTheProtocol(t *testing.T) {
	for _, address := range []uint64{1, 1 << 46, 1<<64 - 8} {
		job := readers(func(_, _ view.Process, s channel.Sender) channel.Sender { return liar{s.(*channel.ShmSender), address} })
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			const size = 1 << 18
			if err := meet(p, e); err != nil {
				return err
			}
			if err := occupy(p, e); err != nil {
				return err
			}
			return exchangeOnce(p, e, make([]byte, size), make([]byte, size))
		})
		if err == nil || !strings.Contains(err.Error(), "violated the protocol") {
			t.Errorf("payload at %#x: got %v", address, err)
		}
	}
}

// exchangeOnce sends out from rank 0 to rank 1.
func exchangeOnce(p view.Process, e *engine.Engine, out, in []byte) error {
	if p.Rank == 0 {
		return e.Send(context2, 1, 0, out, engine.Standard)
	}
	_, err := e.Recv(context2, 0, 0, in)
	return err
}

// meet opens the channels between ranks 0 and 1. When it returns, each rank has sent twice and
// received once.
func meet(p view.Process, e *engine.Engine) error {
	for range 2 {
		if _, err := e.Sendrecv(context2, 1-p.Rank, 0, nil, 1-p.Rank, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// occupy gives rank 1 a send that is never received, so that it reads the payloads of arriving
// messages.
func occupy(p view.Process, e *engine.Engine) error {
	if p.Rank == 0 {
		return nil
	}
	_, err := e.Isend(context2+1, 0, 0, make([]byte, 100), engine.Synchronous)
	return err
}

// TestPayloadOfAFailedSenderIsCompleteOrLost checks that a payload whose sender fails is delivered
// unchanged or not at all, although the sender's program may reuse its buffer.
func TestPayloadOfAFailedSenderIsCompleteOrLost(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		const size = 1 << 19
		job, looks := readers(nil), random.IntN(20)
		torn := errors.New("delivered a payload that the sender did not send")
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			if err := meet(p, e); err != nil {
				return err
			}
			if err := occupy(p, e); err != nil {
				return err
			}
			want := bytes.Repeat([]byte{1}, size)
			if p.Rank == 1 {
				got := make([]byte, size)
				if _, err := e.Recv(context2, 0, 0, got); err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return torn
				}
				return nil
			}
			r, err := e.Isend(context2, 1, 0, want, engine.Standard)
			for range looks {
				if err == nil {
					_, err = e.Testall([]*engine.Request{r})
				}
			}
			job.Kill(p)
			clear(want)
			return err
		})
		if errors.Is(err, torn) {
			t.Fatalf("seed %d, %d looks: %v", seed, looks, err)
		}
	}
}
