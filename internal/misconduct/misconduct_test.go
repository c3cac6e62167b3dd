package misconduct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/libp2p/go-yamux/v5"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var epoch = time.Unix(1_000_000, 0)

func TestPeerIsNamedOnceAMinute(t *testing.T) {
	var l limiter
	steps := []struct {
		at         time.Duration
		peer       p2ppeer.ID
		say        bool
		suppressed int
	}{
		{0, "a", true, 0},
		{1, "a", false, 0},
		{2, "a", false, 0},
		{3, "b", true, 0},
		{every - 1, "a", false, 0},
		{every, "a", true, 3},
		{every + 1, "a", false, 0},
		{2 * every, "a", true, 1},
	}
	for i, s := range steps {
		say, suppressed, crowd := l.due(s.peer, epoch.Add(s.at))
		if say != s.say || suppressed != s.suppressed || crowd {
			t.Errorf("step %d: got %v, %d, %v; want %v, %d", i, say, suppressed, crowd, s.say, s.suppressed)
		}
	}
}

func TestPaceBoundsTheLogRate(t *testing.T) {
	l := limiter{times: 3}
	for i, s := range []struct {
		at         time.Duration
		say        bool
		suppressed int
	}{{0, true, 0}, {1, true, 0}, {2, true, 0}, {3, false, 0}, {4, false, 0}, {every, true, 2}, {every + 1, true, 0}} {
		if say, suppressed, crowd := l.due("a", epoch.Add(s.at)); say != s.say || suppressed != s.suppressed || crowd {
			t.Errorf("step %d: got %v, %d, %v", i, say, suppressed, crowd)
		}
	}
	p := Pace{Times: 3}
	for i, want := range []bool{true, true, true, false} {
		if got, _ := p.Due("a"); got != want {
			t.Errorf("line %d is due: %v", i, got)
		}
	}
}

func TestManyPeersShareOneLogLine(t *testing.T) {
	var l limiter
	lines := 0
	for i := range 100_000 {
		if say, _, _ := l.due(p2ppeer.ID(fmt.Sprint(i)), epoch); say {
			lines++
		}
	}
	if lines != maxNamed+1 || len(l.named) > maxNamed {
		t.Errorf("%d lines, and %d peers remembered; want %d and one line for the rest", lines, len(l.named), maxNamed)
	}
	if say, suppressed, crowd := l.due("late", epoch.Add(every)); !say || suppressed != 0 || crowd {
		t.Errorf("a minute later: got %v, %d, %v; want individual peers to be logged again", say, suppressed, crowd)
	}
}

func TestMisconductClassification(t *testing.T) {
	read := func(b ...byte) error {
		return pbio.NewDelimitedReader(bytes.NewReader(b), 16).ReadMsg(new(wrapperspb.BytesValue))
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"too long":               {read(0xff, 0xff, 0xff, 0x7f), true},
		"length that overflows":  {read(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), true},
		"malformed message":      {read(3, 0xff, 0xff, 0xff), true},
		"truncated message":      {read(3, 0xff), true},
		"end of the stream":      {read(), false},
		"stalled":                {fmt.Errorf("read: %w", os.ErrDeadlineExceeded), true},
		"over yamux":             {fmt.Errorf("read: %w", yamux.ErrTimeout), true},
		"lost connection":        {yamux.ErrKeepAliveTimeout, false},
		"reset":                  {&network.StreamError{Remote: true}, false},
		"connection":             {&network.ConnError{Remote: true, TransportError: os.ErrDeadlineExceeded}, false},
		"error text of the peer": {errors.New("job is not here"), false},
		"closed":                 {io.ErrClosedPipe, false},
		"no error":               {nil, false},
	} {
		if got := Is(test.err); got != test.want {
			t.Errorf("%s: %v: got %v, want %v", name, test.err, got, test.want)
		}
	}
}

func TestLogIsNotFlooded(t *testing.T) {
	var b bytes.Buffer
	l := New(zerolog.New(&b).Level(zerolog.InfoLevel))
	p := p2ppeer.ID("somebody")
	for range 10_000 {
		l.Ended(p, "a stream ended", io.ErrShortBuffer)
		l.Ended(p, "a stream ended", io.EOF)
		l.Refused(p, "refused", errors.New("wasm only"), func(e *zerolog.Event) { e.Str("class", "everyone") })
	}
	if n := strings.Count(b.String(), "\n"); n > 4 || strings.Count(b.String(), p.String()) != n {
		t.Errorf("got %d lines, want one of each kind that names %s:\n%s", n, p, b.String())
	}
	for _, want := range []string{`"level":"warn"`, `"level":"info","error":"wasm only"`, `"class":"everyone"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in\n%s", want, b.String())
		}
	}
}

func TestQuotaIsShared(t *testing.T) {
	q := NewQuota(3, 2)
	take := func(p p2ppeer.ID) func() {
		t.Helper()
		give, err := q.Take(p)
		if err != nil {
			t.Fatal(err)
		}
		return give
	}
	first := take("a")
	take("a")
	if _, err := q.Take("a"); !errors.Is(err, errQuota) {
		t.Errorf("a peer took more than its share: %v", err)
	}
	take("b")
	if _, err := q.Take("c"); !errors.Is(err, errQuota) {
		t.Errorf("more than the total was taken: %v", err)
	}
	first()
	take("c")()
	take("a")
	if q.sum != 3 || len(q.held) != 2 {
		t.Errorf("the shares are %v, with a total of %d", q.held, q.sum)
	}
}
