package switchboard

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

func TestChoice(t *testing.T) {
	const shm, tcp, stream = proclink.Shm, proclink.TCP, proclink.Stream
	cases := map[string]struct {
		situation situation
		allowed   []proclink.Kind
		kind      proclink.Kind
		why       string
	}{
		"one peer":      {situation{here: true}, proclink.Kinds, shm, "both on one peer"},
		"two peers":     {situation{}, proclink.Kinds, tcp, "on different peers"},
		"no memory":     {situation{here: true, noMemory: "not on this system"}, proclink.Kinds, tcp, "both on one peer; no shm: not on this system"},
		"no way direct": {situation{noDirect: "192.0.2.1:4: i/o timeout"}, proclink.Kinds, stream, "on different peers; no tcp: 192.0.2.1:4: i/o timeout"},
		"tcp forbidden": {situation{}, []proclink.Kind{shm, stream}, stream, "on different peers; tcp is not allowed"},
		"stream only":   {situation{here: true}, []proclink.Kind{stream}, stream, "both on one peer; shm is not allowed; tcp is not allowed"},
		"stream first":  {situation{}, []proclink.Kind{stream, tcp, shm}, stream, "on different peers; stream is preferred to tcp"},
		"tcp first":     {situation{here: true}, []proclink.Kind{tcp, shm}, tcp, "both on one peer; tcp is preferred to shm"},
		"shm only":      {situation{}, []proclink.Kind{shm}, "", "on different peers; tcp is not allowed; stream is not allowed"},
		"nothing works": {situation{noDirect: "refused"}, []proclink.Kind{shm, tcp}, "", "on different peers; no tcp: refused; stream is not allowed"},
		"nothing at all": {situation{here: true}, nil, "",
			"both on one peer; shm is not allowed; tcp is not allowed; stream is not allowed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if kind, why := choose(c.situation, c.allowed); kind != c.kind || why != c.why {
				t.Errorf("got %q because %q, want %q because %q", kind, why, c.kind, c.why)
			}
		})
	}
}

// TestPassageOrder compares passages, listed from the best to the worst.
func TestPassageOrder(t *testing.T) {
	const tcp, stream = proclink.TCP, proclink.Stream
	const direct, punched, relayed = connection.Direct, connection.Punched, connection.Relayed
	tests := map[string]struct {
		allowed []proclink.Kind
		order   []channelPath
		best    int // number of passages that cannot be improved
	}{
		"all allowed": {proclink.Kinds, []channelPath{
			{kind: tcp, how: direct}, {kind: stream, how: direct}, {kind: stream, how: punched}, {kind: stream, how: relayed}, {},
		}, 1},
		"no TCP": {[]proclink.Kind{stream}, []channelPath{
			{kind: stream, how: direct}, {kind: stream, how: punched}, {kind: stream, how: relayed}, {},
		}, 1},
		"streams first": {[]proclink.Kind{proclink.Shm, stream, tcp}, []channelPath{
			{kind: stream, how: direct}, {kind: stream, how: relayed}, {kind: tcp, how: direct}, {},
		}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !slices.IsSortedFunc(test.order, func(a, b channelPath) int {
				if a.rank(test.allowed) < b.rank(test.allowed) {
					return -1
				}
				return 1
			}) {
				t.Errorf("%v are not sorted from best to worst", test.order)
			}
			for i, p := range test.order {
				if got := p.best(test.allowed); got != (i < test.best) {
					t.Errorf("best(%v) = %v", p, got)
				}
			}
		})
	}
}

func TestBetterPassageLookupBacksOff(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newPathSearch(now)
	if s.begin(now, false) {
		t.Error("at once, when the channel has just been opened")
	}
	looks := 0
	for second := range 600 {
		if at := now.Add(time.Duration(second) * time.Second); s.begin(at, false) {
			if s.begin(at, true) {
				t.Fatal("a second search began while one was running")
			}
			looks++
			s.end(at)
		}
	}
	if looks < 20 || looks > 25 {
		t.Errorf("%d searches in ten minutes, want 20 to 25", looks)
	}
	if at := now.Add(600 * time.Second); !s.begin(at, true) {
		t.Error("no search after the connection has improved")
	}
}

// TestTCPAvoidanceBacksOff checks the growing time for which TCP is avoided. Three channels
// fail at each attempt.
func TestTCPAvoidanceBacksOff(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newPathSearch(now)
	if s.avoidsTCP(now) {
		t.Fatal("before anything has failed")
	}
	failsFor := func(want time.Duration) {
		t.Helper()
		for range 3 {
			s.failTCP(now)
			now = now.Add(time.Second)
		}
		end := now.Add(want - 3*time.Second)
		if !s.avoidsTCP(end.Add(-1)) || s.avoidsTCP(end) {
			t.Errorf("avoided until %v, want %v", s.until, end)
		}
		now = end.Add(20 * time.Second) // the next search
	}
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, maxAvoid, maxAvoid} {
		failsFor(want)
	}
	s.failTCP(now)
	s.reset()
	if s.avoidsTCP(now) {
		t.Error("TCP is still avoided after the connection to the peer has changed")
	}
	failsFor(minAvoid)
	failsFor(2 * minAvoid)
	now = now.Add(maxAvoid) // no failure meanwhile
	failsFor(minAvoid)
}
