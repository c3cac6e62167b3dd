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

// A Log writes about peers. Its methods are safe for concurrent use.
type Log struct {
	log            zerolog.Logger
	wrong, refused Pace
}

// New returns a Log that writes to log.
func New(log zerolog.Logger) *Log { return &Log{log: log} }

// Ended says how something with a peer, such as a stream, ended: for who looks for it, or
// as a warning if that was misconduct.
func (l *Log) Ended(p p2ppeer.ID, what string, err error) {
	if Is(err) {
		l.Note(p, what, err)
		return
	}
	l.log.Debug().Err(err).Stringer("peer", p).Msg(what)
}

// Note says that a peer does what no peer should, unless it was said just now.
func (l *Log) Note(p p2ppeer.ID, what string, err error) {
	l.say(zerolog.WarnLevel, &l.wrong, p, what, err, func(*zerolog.Event) {})
}

// Refused says that a peer does not get what it has asked for, and why, unless that was said just
// now. That is no misconduct, but anybody can ask.
func (l *Log) Refused(p p2ppeer.ID, what string, why error, details func(*zerolog.Event)) {
	l.say(zerolog.InfoLevel, &l.refused, p, what, why, details)
}

func (l *Log) say(level zerolog.Level, pace *Pace, p p2ppeer.ID, what string, err error, details func(*zerolog.Event)) {
	say, unsaid, crowd := pace.due(p)
	if !say {
		return
	}
	line := l.log.WithLevel(level).Err(err).Stringer("peer", p).Func(details)
	if unsaid > 0 {
		line = line.Int("more", unsaid)
	}
	if crowd {
		what += "; others too, more than are named"
	}
	line.Msg(what)
}

// A Pace bounds how often each peer is named within a minute. Its methods are safe for concurrent
// use.
type Pace struct {
	Times int // fixed; 0 is once

	mu      sync.Mutex
	limiter limiter
}

// Due reports whether something that a peer does is to be said now, and how often it did such a thing
// before and it was not said.
func (p *Pace) Due(peer p2ppeer.ID) (say bool, unsaid int) {
	say, unsaid, _ = p.due(peer)
	return say, unsaid
}

func (p *Pace) due(peer p2ppeer.ID) (say bool, unsaid int, crowd bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limiter.times = p.Times
	return p.limiter.due(peer, time.Now())
}

// Is reports whether err, of reading what a peer sends, is that peer's misconduct.
func Is(err error) bool {
	if _, ended := errors.AsType[*network.ConnError](err); ended {
		return false // also by a timeout of the connection
	}
	return slices.ContainsFunc(wrongs, func(wrong error) bool { return errors.Is(err, wrong) })
}

var wrongs = []error{
	io.ErrShortBuffer, // pbio: longer than allowed
	io.ErrUnexpectedEOF,
	varint.ErrOverflow, varint.ErrUnderflow, varint.ErrNotMinimal,
	proto.Error, ErrQuota,
	yamux.ErrTimeout, os.ErrDeadlineExceeded, // of a stream; a connection's are others
}
