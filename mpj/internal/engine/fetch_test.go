package engine_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A carrier counts the bytes that pass through its ring, and may announce wrong addresses of
// payloads.
type carrier struct {
	*channel.ShmSender
	carried *atomic.Int64
	lie     uint64
}

func (c carrier) TrySend(f frame.Frame) (bool, error) {
	done, err := c.ShmSender.TrySend(f)
	if done {
		c.carried.Add(int64(f.Size))
	}
	return done, err
}

func (c carrier) Address(payload []byte) uint64 { return c.ShmSender.Address(payload) + c.lie }

// sendUnattended makes rank 0 start to send a message of size bytes to rank 1, and then make no call
// until the message has arrived. It returns the number of bytes that passed through a ring.
func sendUnattended(size int, reading channel.Reading, lie uint64, receive func(*engine.Engine, []byte) error) (int64, error) {
	var carried atomic.Int64
	job := localworld.New(context.Background(), localworld.Config{
		Ranks: 2, Replicas: 1, Rings: true, Reading: reading,
		Wrap: func(_, _ view.Process, s channel.Sender) channel.Sender {
			return carrier{s.(*channel.ShmSender), &carried, lie}
		},
	})
	want := bytes.Repeat([]byte{1, 2, 3, 4, 5}, (size+4)/5)[:size]
	arrived := make(chan struct{})
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		if err := meet(p, e); err != nil {
			return err
		}
		if p.Rank == 1 {
			defer close(arrived)
			got := make([]byte, size)
			if err := receive(e, got); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return errors.New("the received payload differs from the sent one")
			}
			return nil
		}
		r, err := e.Isend(context2, 1, 0, want, engine.Standard)
		if err != nil {
			return err
		}
		<-arrived
		_, err = e.Wait(r)
		return err
	})
	return carried.Load(), err
}

func receiveOne(e *engine.Engine, into []byte) error {
	_, err := e.Recv(context2, 0, 0, into)
	return err
}

func TestPayloadOfABusyProgramIsFetched(t *testing.T) {
	const size = 3<<20 + 7
	for name, c := range map[string]struct {
		reading channel.Reading
		fetched bool
	}{"readable": {channel.ReadAny, true}, "not readable": {channel.ReadNone, false}} {
		carried, err := sendUnattended(size, c.reading, 0, receiveOne)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if fetched := carried < size; fetched != c.fetched {
			t.Errorf("%s: %d bytes went through the ring, fetched %v, want %v", name, carried, fetched, c.fetched)
		}
	}
}

func TestInvalidOfferViolatesTheProtocol(t *testing.T) {
	_, err := sendUnattended(1<<20, channel.ReadAny, 1<<46, receiveOne)
	if err == nil || !strings.Contains(err.Error(), "violated the protocol") {
		t.Errorf("the receiver returned %v, want a protocol violation", err)
	}
}
