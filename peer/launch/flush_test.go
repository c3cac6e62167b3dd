package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/outbox"
)

// flusher prints more than a pipe holds and asks what the user has received, then asks within a line.
// Finally it continues after records that it has not printed.
func flusher() int {
	l := enter(version.Protocol)
	l.say(proclink.Init, withKey)
	l.await(proclink.Start)
	asked := uint64(0)
	ask := func(behind *[2]uint64) *[2]uint64 {
		asked++
		l.say(proclink.Flush, func(m *proclink.Message) { m.Count, m.Records = asked, behind })
		m := l.await(proclink.Flushed)
		if m.Count != asked {
			fmt.Println("an answer to", m.Count)
		}
		return m.Records
	}
	for i := range 20_000 {
		fmt.Println("line", i)
	}
	fmt.Println("user has", *ask(nil))
	fmt.Print("half")
	fmt.Println(" a line:", ask(nil))
	fmt.Println("user has", *ask(nil))
	ask(nil)
	ask(&[2]uint64{30_000, 7})
	fmt.Println("behind")
	l.say(proclink.Finalized, nil)
	l.await(proclink.Bye)
	return 0
}

// floodSize is the number of bytes that flooder prints, which is more than a box holds.
const floodSize = 3 << 20

// flooder prints, and continuously asks what the user has received.
func flooder() int {
	l := enter(version.Protocol)
	l.say(proclink.Init, withKey)
	l.await(proclink.Start)
	var mu sync.Mutex
	asked := uint64(0)
	ask := func() {
		mu.Lock()
		defer mu.Unlock()
		asked++
		l.say(proclink.Flush, func(m *proclink.Message) { m.Count = asked })
	}
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		line := []byte(strings.Repeat("x", 1023) + "\n")
		for i := range floodSize / len(line) {
			if i%32 == 0 {
				ask()
			}
			os.Stdout.Write(line)
		}
	}()
	for {
		select {
		case <-printed:
			l.say(proclink.Finalized, nil)
			l.await(proclink.Bye)
			return 0
		case <-time.After(time.Millisecond):
			ask()
		}
	}
}

// TestFlushDoesNotOverfillTheOutbox checks the box while the submitter reads late.
func TestFlushDoesNotOverfillTheOutbox(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "flush often")
	j.start()
	j.awaitInitialized()
	j.begin()
	here, ok := j.peers[0].launch.lookup(j.spec.ID)
	if !ok {
		t.Fatal("no job")
	}
	p, l := here.here.local[view.Process{}], j.links[0]
	for filled, asked, end := false, uint64(0), time.Now().Add(eventTimeout); ; {
		full, _ := query(here, func() bool { return p.out[stdout].box.Full() })
		if full && !filled {
			filled, asked = true, p.flushes.Load()
		}
		if filled && p.flushes.Load() > asked+10 {
			break
		}
		if <-time.After(time.Millisecond); time.Now().After(end) {
			t.Fatal("the box is not full, or no flush was requested")
		}
	}
	if all, _ := query(here, func() uint64 { return p.out[stdout].all }); all > outbox.Limit+readSize {
		t.Errorf("%d bytes were read before the user got any", all)
	}
	size := 0
	for end := false; !end; {
		o := await(l, (*jobpb.FromPeer).GetOutput)
		if o.Stream != 1 {
			continue
		}
		size += len(o.Data)
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Stdout: o.First + recordsIn(o)}}})
		end = o.End
	}
	if size != floodSize {
		t.Errorf("received %d of %d bytes", size, floodSize)
	}
	l.exited(view.Process{})
	j.stop()
}

// TestFrequentFlushLosesNoOutput interrupts a drainer continuously.
func TestFrequentFlushLosesNoOutput(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var asked atomic.Uint64
	d, err := newDrainer(in, &asked)
	if err != nil {
		t.Fatal(err)
	}
	const writes = 2000
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer out.Close()
		for range writes {
			out.Write([]byte("line\n"))
		}
	}()
	var flushing sync.WaitGroup
	flushing.Go(func() {
		for {
			select {
			case <-written:
				return
			default:
				asked.Add(1)
				in.SetReadDeadline(time.Now())
			}
		}
	})
	size, last := 0, uint64(0)
	for buf := make([]byte, 64); ; {
		n, empty, err := d.read(buf)
		size += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || empty != 0 && empty < last {
			t.Fatalf("after %d bytes, empty for %d after %d: %v", size, empty, last, err)
		}
		last = max(last, empty)
	}
	flushing.Wait()
	if size != writes*len("line\n") {
		t.Errorf("received %d of %d bytes", size, writes*len("line\n"))
	}
}

// TestOutputAfterACheckpointSkipsWhatTheUserHas checks R6 for a process that has not printed what
// other replicas of its rank have.
func TestOutputAfterACheckpointSkipsWhatTheUserHas(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "flush")
	j.start()
	j.awaitInitialized()
	j.begin()
	p, l := view.Process{}, j.links[0]
	texts := make(map[uint64]string)
	for end := false; !end; {
		o := await(l, (*jobpb.FromPeer).GetOutput)
		if o.Stream != 1 {
			continue
		}
		next := o.First
		for r := range strings.Lines(string(o.Data)) {
			texts[next] = strings.TrimSuffix(r, "\n")
			next++
		}
		shown := o.First + recordsIn(o)
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Stdout: shown}}})
		end = o.End
	}
	want := map[uint64]string{
		0: "line 0", 19_999: "line 19999", 20_000: "user has [20000 0]",
		20_001: "half a line: <nil>", 20_002: "user has [20002 0]", 30_000: "behind",
	}
	for n, text := range want {
		if texts[n] != text {
			t.Errorf("record %d is %q, want %q", n, texts[n], text)
		}
	}
	if len(texts) != 20_004 {
		t.Errorf("%d records", len(texts))
	}
	l.exited(p)
	j.stop()
}
