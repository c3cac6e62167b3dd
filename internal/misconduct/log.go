package misconduct

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-yamux/v5"
	"github.com/multiformats/go-varint"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"
)

// A Log logs events of peers. Its methods are safe for concurrent use.
type Log struct {
	log            zerolog.Logger
	wrong, refused Pace
}

// New returns a Log that writes to log.
func New(log zerolog.Logger) *Log { return &Log{log: log} }

// Ended logs how an interaction with a peer, such as a stream, ended: at debug level, or as a protocol
// violation if err is one.
func (l *Log) Ended(p p2ppeer.ID, what string, err error) {
	if Is(err) {
		l.Note(p, what, err)
		return
	}
	l.log.Debug().Err(err).Stringer("peer", p).Msg(what)
}

// Note logs a protocol violation, rate-limited per peer.
func (l *Log) Note(p p2ppeer.ID, what string, err error) {
	l.say(zerolog.WarnLevel, &l.wrong, p, what, err, func(*zerolog.Event) {})
}

// Refused logs that a peer's request was refused, and why, rate-limited per peer. A refusal is not a violation,
// but any peer can cause one.
func (l *Log) Refused(p p2ppeer.ID, what string, why error, details func(*zerolog.Event)) {
	l.say(zerolog.InfoLevel, &l.refused, p, what, why, details)
}

func (l *Log) say(level zerolog.Level, pace *Pace, p p2ppeer.ID, what string, err error, details func(*zerolog.Event)) {
	say, suppressed, crowd := pace.due(p)
	if !say {
		return
	}
	line := l.log.WithLevel(level).Err(err).Stringer("peer", p).Func(details)
	if suppressed > 0 {
		line = line.Int("more", suppressed)
	}
	if crowd {
		what += "; also other peers, too many to name"
	}
	line.Msg(what)
}

// A Pace bounds how often each peer is logged per minute. Its methods are safe for concurrent use.
type Pace struct {
	Times int // log lines per peer and minute, which must not change; zero means one

	mu      sync.Mutex
	limiter limiter
}

// Due reports whether to log an event of the peer now, and how many of its events were suppressed before.
func (p *Pace) Due(peer p2ppeer.ID) (say bool, suppressed int) {
	say, suppressed, _ = p.due(peer)
	return say, suppressed
}

func (p *Pace) due(peer p2ppeer.ID) (say bool, suppressed int, crowd bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limiter.times = p.Times
	return p.limiter.due(peer, time.Now())
}

// Is reports whether err, from reading a peer's messages, is a protocol violation of that peer.
func Is(err error) bool {
	if _, ended := errors.AsType[*network.ConnError](err); ended {
		return false // even if the connection timed out
	}
	return slices.ContainsFunc(wrongs, func(wrong error) bool { return errors.Is(err, wrong) })
}

var wrongs = []error{
	io.ErrShortBuffer, // pbio: longer than allowed
	io.ErrUnexpectedEOF,
	varint.ErrOverflow, varint.ErrUnderflow, varint.ErrNotMinimal,
	proto.Error, errQuota,
	yamux.ErrTimeout, os.ErrDeadlineExceeded, // timeouts of a stream; those of a connection are different errors
}
