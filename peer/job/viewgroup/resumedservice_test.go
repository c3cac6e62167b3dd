package viewgroup

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// TestO4PeersAreAddedWhileMessagesAreRefused introduces many processes of the submitter on streams while
// the messages of another peer are refused. Both look up peers of the group.
func TestO4PeersAreAddedWhileMessagesAreRefused(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for number := range 200 {
				own := Newcomer{Peer: g.first + number, ID: g.ids[0], Process: NoProcess}
				if err := own.Sign(g.keys[0], "a job"); err != nil {
					t.Error(err)
				}
				g.groups[1].meetSubmitter(own.Peer, own.Signature)
			}
		}()
		for {
			select {
			case <-done:
				return
			case g.groups[1].inbox <- received{2, &Message{From: 2, To: 2}}: // to another peer
			}
		}
	})
}

// lines is a log that is read while others write it.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

// take returns and removes what was written.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.all.Reset()
	return l.all.String()
}

// TestResumedSubmitterGetsNoMessagesForItsFormerProcess checks that the peers send nothing to the former number of the
// submitter's peer once they know the new one: the new process would refuse it, and each such message would end the
// stream with those for the new process.
func TestResumedSubmitterGetsNoMessagesForItsFormerProcess(t *testing.T) {
	inGroup(t, 5, func(g *testGroup) {
		var refused lines
		g.services[0].conduct = misconduct.New(zerolog.New(&refused))
		for i := range 5 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.groups[0].Close()
		time.Sleep(time.Second)
		g.resume()
		time.Sleep(absentTicks * TickPeriod)
		refused.take() // the streams that were opened before the new process was known are replaced
		time.Sleep(manyElections)
		synctest.Wait()
		if all := refused.take(); all != "" {
			t.Errorf("the new process has refused messages, or streams have ended: %s", all)
		}
		if !g.groups[0].Leads() {
			t.Error("the new process does not lead")
		}
	})
}

// TestFormerProcessOfTheSubmitterDoesNotReplaceTheStream opens a stream as a former process of the submitter, which was
// stopped and runs again. The stream of the present process stays open.
func TestFormerProcessOfTheSubmitterDoesNotReplaceTheStream(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.groups[0].Close()
		own := g.resume()
		time.Sleep(manyElections)
		inbound := func() network.Stream {
			g.groups[1].mu.Lock()
			defer g.groups[1].mu.Unlock()
			return g.groups[1].inbound[own.Peer]
		}
		before := inbound()
		stream, err := g.hosts[0].NewStream(g.t.Context(), g.ids[1], Protocol)
		if err != nil {
			t.Fatal(err)
		}
		if err := pbio.NewDelimitedWriter(stream).WriteMsg(&pb.Hello{Job: "a job"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if after := inbound(); before == nil || after != before {
			t.Errorf("stream %v instead of %v", after, before)
		}
	})
}
