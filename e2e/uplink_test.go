package e2e

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
)

// staged is the size of the input of the job of TestNATSaturatedUplink, in bytes. It is several
// times the capacity of the queues on the path.
const staged = 2 << 20

// TestNATSaturatedUplink stages from a home network with a 2 Mbit/s uplink to two others. One of
// these is behind a symmetric router and can be reached only through a relay. While the uplink is
// full, no peer considers a connection dead or a peer failed (V3).
func TestNATSaturatedUplink(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	near, far, behind := i.home(cone, 1), i.home(cone, 2), i.home(symmetric, 2)
	g := i.natGrid(near, far, behind)
	program := []string{filepath.Join(bin, "stepper"), "-steps", "10", "-every", "5"}
	if s := g.submit(t, "5", "1", program...).wait(); s != 0 { // afterwards all peers have the program
		t.Fatalf("exit status %d", s)
	}
	for _, h := range []*home{near, far, behind} {
		i.distance(h.port, ether.Link{Delay: 30 * time.Millisecond})
		h.rates(2, 20)
	}
	for _, p := range g.peers[1:3] {
		g.peers[0].awaitWay(p, "punched")
	}
	for _, p := range g.peers[3:] {
		g.peers[0].awaitWay(p, "relayed")
	}
	input := filepath.Join(t.TempDir(), "input")
	b := make([]byte, staged)
	rand.Read(b)
	if err := os.WriteFile(input, b, 0o600); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte(input+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := near.copyTime(t, i.public(), staged)

	start := time.Now()
	j := g.submit(t, "5", "1", append([]string{"-l", list}, program...)...)
	j.waitRunning()
	took := time.Since(start)
	t.Logf("staged after %v; one copy of the input takes %v: %.2f times", took, one, took.Seconds()/one.Seconds())
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 5, 10, 5)
	expectNoFailure(t, j)
	for _, p := range g.peers {
		if n := strings.Count(p.log.String(), "dropped a connection that does not respond"); n > 0 {
			t.Errorf("%s has dropped %d connections", p.machine.addr, n)
		}
	}
}

// copyTime returns the time to copy a number of bytes from the first machine of a home to another
// machine.
func (h *home) copyTime(t *testing.T, to *machine, bytes int64) time.Duration {
	t.Helper()
	var l net.Listener
	err := to.inside.do(func() (err error) {
		l, err = net.Listen("tcp4", to.addr+":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan error, 1)
	go func() { // ends with the connection
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			var n int64
			if n, err = io.Copy(io.Discard, c); err == nil && n != bytes {
				err = fmt.Errorf("the receiver got %d of %d bytes", n, bytes)
			}
		}
		got <- err
	}()
	start := time.Now()
	var c net.Conn
	err = h.machines[0].inside.do(func() (err error) {
		c, err = net.DialTimeout("tcp4", l.Addr().String(), limit)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}
