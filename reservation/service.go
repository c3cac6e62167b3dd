package reservation

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/reservation/internal/pb"
)

// streamTimeout bounds how long a remote peer can keep a stream open.
const streamTimeout = 5 * time.Second

// Config configures a Service.
type Config struct {
	Limits Limits
	Log    zerolog.Logger
	// Machine is a secret identity of this machine, known only to its peers; see machineName. If Machine is
	// empty, submitters get no machine name.
	Machine string
}

// A Service answers remote submitters from a Ledger, expires leases on time, and reports the use of the
// slots to the local peer. Its methods are safe for concurrent use.
type Service struct {
	host    host.Host
	log     zerolog.Logger
	machine string
	conduct *misconduct.Log
	changed chan struct{}    // holds one token if the slots have changed
	rearm   chan struct{}    // holds one token if the next expiry may be earlier
	work    *background.Work // the expirer and every stream handler

	mu     sync.Mutex
	ledger *Ledger
}

// NewService starts to serve protocolID on h until Close.
func NewService(h host.Host, c Config) *Service {
	s := &Service{
		host:    h,
		log:     c.Log,
		machine: c.Machine,
		conduct: misconduct.New(c.Log),
		changed: make(chan struct{}, 1),
		rearm:   make(chan struct{}, 1),
		work:    background.New(context.Background()),
		ledger:  NewLedger(c.Limits),
	}
	s.work.Go(s.expire)
	h.SetStreamHandler(protocolID, func(stream network.Stream) { s.work.Serve(stream, func() { s.handle(stream) }) })
	return s
}

// Close stops the service, resets the streams that it is answering, and returns when all its goroutines
// have ended. The ledger is not used afterwards.
func (s *Service) Close() error {
	s.host.RemoveStreamHandler(protocolID)
	s.work.Stop()
	s.work.Wait()
	return nil
}

// Redeem uses up the right to start the job's processes and returns how many may start. The caller must
// call Release when they have ended.
func (s *Service) Redeem(key Key, job string, submitter p2ppeer.ID) (slots int, err error) {
	s.update(func(l *Ledger, now time.Time) { slots, err = l.Redeem(key, job, submitter, now) })
	if err == nil {
		s.log.Debug().Str("job", job).Stringer("peer", submitter).Int("slots", slots).Msg("slots redeemed")
	}
	return slots, err
}

// Release frees the slots of key. The peer calls it when the job has ended here.
func (s *Service) Release(key Key) {
	s.update(func(l *Ledger, _ time.Time) { l.Release(key) })
}

// Holds reports whether a submitter has slots here, held or in use.
func (s *Service) Holds(submitter p2ppeer.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired(s.ledger.Expire(time.Now()))
	return s.ledger.Holds(submitter)
}

// Machine returns the name of this machine for a submitter, which need not hold slots here. The name is
// the same for all its jobs and for every peer on the machine, and different for each submitter. It is
// empty if the machine is unknown.
func (s *Service) Machine(submitter p2ppeer.ID) string {
	return machineName(s.machine, Name{Submitter: submitter}) // no job has an empty name
}

// Drain makes the service refuse further holds; see Ledger.drain.
func (s *Service) Drain() {
	s.update(func(l *Ledger, _ time.Time) { l.drain() })
}

// Bar refuses a job further slots; see Ledger.bar.
func (s *Service) Bar(job Name) {
	s.update(func(l *Ledger, _ time.Time) { l.bar(job) })
}

// Resize changes the number of slots; see Ledger.Resize.
func (s *Service) Resize(slots int) {
	s.update(func(l *Ledger, _ time.Time) { l.Resize(slots) })
}

// Snapshot returns the present state of every slot.
func (s *Service) Snapshot() (st Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired(s.ledger.Expire(time.Now()))
	return s.ledger.Snapshot()
}

// Changed returns a channel, shared by all callers. It gets a token when the slots may have changed since
// the last token was taken; the receiver then takes a Snapshot.
func (s *Service) Changed() <-chan struct{} { return s.changed }

// hold, confirm and withdraw are the submitter's calls, remote or local.
func (s *Service) hold(q Request) (g Grant, err error) {
	var v Verdict
	s.update(func(l *Ledger, now time.Time) {
		if g, err = l.Hold(q, newKey(), now); err != nil {
			v = l.limits.judge(q, now)
		}
	})
	if v.Refused != 0 && errors.Is(err, v.Refused) {
		s.conduct.Refused(q.Submitter, "slots refused by the owner's policy", err, func(e *zerolog.Event) {
			e.Str("job", q.Job).Str("class", v.Class).Strs("kinds", q.Kinds)
		})
	}
	s.log.Debug().Str("job", q.Job).Stringer("peer", q.Submitter).Int("slots", g.Slots).AnErr("refusal", err).Msg("hold")
	if err == nil {
		g.Machine = machineName(s.machine, q.name())
	}
	return g, err
}

func (s *Service) confirm(key Key, submitter p2ppeer.ID, slots int) (err error) {
	s.update(func(l *Ledger, now time.Time) { err = l.Confirm(key, submitter, slots, now) })
	return err
}

func (s *Service) withdraw(job string, submitter p2ppeer.ID, waits bool) {
	s.update(func(l *Ledger, _ time.Time) { l.Withdraw(job, submitter, waits) })
}

// update runs one call on the ledger and notifies the waiting goroutines.
func (s *Service) update(call func(l *Ledger, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expired(s.ledger.Expire(now))
	call(s.ledger, now)
	background.Notify(s.changed)
	background.Notify(s.rearm)
}

// expired logs the leases that have ended. The caller holds mu.
func (s *Service) expired(keys []Key) {
	if len(keys) > 0 {
		s.log.Debug().Int("leases", len(keys)).Msg("leases ended")
		background.Notify(s.changed)
	}
}

// expire ends leases on time, so that offers are up to date.
func (s *Service) expire(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.rearm:
		case <-timer.C:
		}
		s.mu.Lock()
		now := time.Now()
		s.expired(s.ledger.Expire(now))
		at, ok := s.ledger.nextExpiry()
		s.mu.Unlock()
		timer.Stop()
		if ok {
			timer.Reset(at.Sub(now))
		}
	}
}

func (s *Service) handle(stream network.Stream) {
	_ = stream.SetDeadline(time.Now().Add(streamTimeout))
	var q pb.Request
	if err := pbio.NewDelimitedReader(stream, maxMessage).ReadMsg(&q); err != nil {
		s.conduct.Ended(stream.Conn().RemotePeer(), "reservation request not read", err)
		_ = stream.Reset()
		return
	}
	a := s.answer(&q, stream.Conn().RemotePeer(), originOf(stream.Conn().RemoteMultiaddr()))
	// A lost answer is harmless: see taken, Confirm and Withdraw.
	_ = pbio.NewDelimitedWriter(stream).WriteMsg(a)
	if key, err := keyFromBytes(a.GetKey()); err == nil && !taken(stream) {
		s.update(func(l *Ledger, _ time.Time) { l.Abandon(key) })
	}
	_ = stream.Close()
}

// taken waits until the submitter acknowledges a grant: it closes the stream after receiving the grant,
// and resets it after it has stopped waiting. A Release on another stream cannot serve as
// acknowledgement, because it might overtake the Hold.
func taken(stream network.Stream) bool {
	_, err := stream.Read(make([]byte, 1))
	return errors.Is(err, io.EOF) && !errors.Is(err, network.ErrReset) // also returned when the connection ends
}

// answer processes a request of submitter, whose identity libp2p has verified, from origin. It returns a
// valid answer of the protocol for any request.
func (s *Service) answer(q *pb.Request, submitter p2ppeer.ID, origin string) *pb.Answer {
	if q.GetProtocol() != version.Protocol {
		return refusal(Version)
	}
	switch call := q.GetCall().(type) {
	case *pb.Request_Hold:
		g, err := s.hold(requestOf(call.Hold, submitter, origin))
		if err != nil {
			return refusal(err)
		}
		return grantAnswer(g, time.Now())
	case *pb.Request_Confirm:
		key, err := keyFromBytes(call.Confirm.GetKey())
		if err != nil {
			return refusal(Malformed)
		}
		return refusal(s.confirm(key, submitter, int(min(call.Confirm.GetSlots(), maxSlots))))
	case *pb.Request_Release:
		s.withdraw(call.Release.GetJob(), submitter, call.Release.GetWaits())
		return refusal(nil)
	}
	return refusal(Malformed)
}
