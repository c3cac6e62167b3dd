package reservation

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/reservation/internal/pb"
)

// streamTimeout bounds how long a remote peer can occupy a stream.
const streamTimeout = 5 * time.Second

// Config is what a Service needs to know.
type Config struct {
	Limits Limits
	Log    zerolog.Logger
	// Machine is what tells this machine from all others, known to its peers only; see machineName.
	// Empty: submitters are not told.
	Machine string
}

// A Service answers remote submitters out of a Ledger, ends leases when they
// are over, and tells the local peer what its slots are doing. Its methods are
// safe for concurrent use.
type Service struct {
	host    host.Host
	log     zerolog.Logger
	machine string
	conduct *misconduct.Log
	changed chan struct{} // holds one token when something has changed
	rearm   chan struct{} // holds one token when the next expiry may be sooner
	stop    chan struct{}
	running sync.WaitGroup // the expirer and every stream handler

	mu      sync.Mutex
	ledger  *Ledger
	closed  bool
	streams map[network.Stream]bool // being answered
}

// NewService starts to serve ProtocolID at h. Close it to stop.
func NewService(h host.Host, c Config) *Service {
	s := &Service{
		host:    h,
		log:     c.Log,
		machine: c.Machine,
		conduct: misconduct.New(c.Log),
		changed: make(chan struct{}, 1),
		rearm:   make(chan struct{}, 1),
		stop:    make(chan struct{}),
		ledger:  NewLedger(c.Limits),
		streams: map[network.Stream]bool{},
	}
	s.running.Go(s.expire) // ends with stop
	h.SetStreamHandler(ProtocolID, s.handle)
	return s
}

// Close ends the service, cutting off the submitters that it is answering, and
// returns when all its goroutines have ended. The slots are as good as free.
func (s *Service) Close() error {
	s.host.RemoveStreamHandler(ProtocolID)
	s.mu.Lock()
	already := s.closed
	s.closed = true
	for stream := range s.streams {
		_ = stream.Reset()
	}
	s.mu.Unlock()
	if !already {
		close(s.stop)
	}
	s.running.Wait()
	return nil
}

// Redeem spends the right to start the job's processes and returns how many
// they may be. The caller owes a Release once they are gone.
func (s *Service) Redeem(key Key, job string, submitter p2ppeer.ID) (slots int, err error) {
	s.update(func(l *Ledger, now time.Time) { slots, err = l.Redeem(key, job, submitter, now) })
	if err == nil {
		s.log.Debug().Str("job", job).Stringer("peer", submitter).Int("slots", slots).Msg("slots redeemed")
	}
	return slots, err
}

// Release frees the slots of key; for the launcher, when nothing of the job is
// left.
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

// Machine names this machine to a submitter before it holds slots here. The name is the same for all of its
// jobs and for every peer on the machine, and different for each submitter. It is empty if the machine is
// unknown.
func (s *Service) Machine(submitter p2ppeer.ID) string {
	return machineName(s.machine, Name{Submitter: submitter}) // no job has an empty name
}

// Drain refuses whatever is new from now on.
func (s *Service) Drain() {
	s.update(func(l *Ledger, _ time.Time) { l.Drain() })
}

// Bar has a job get nothing any more: see Ledger.Bar.
func (s *Service) Bar(job Name) {
	s.update(func(l *Ledger, _ time.Time) { l.Bar(job) })
}

// Resize changes how many slots there are: see Ledger.Resize.
func (s *Service) Resize(slots int) {
	s.update(func(l *Ledger, _ time.Time) { l.Resize(slots) })
}

// Snapshot returns the state of every slot now.
func (s *Service) Snapshot() (st Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired(s.ledger.Expire(time.Now()))
	return s.ledger.Snapshot()
}

// Changed returns the channel, one for all callers, that gets a token when the
// slots may have changed since the last token was taken; then take a Snapshot.
func (s *Service) Changed() <-chan struct{} { return s.changed }

// hold, confirm and withdraw are the calls of a submitter, remote or local.
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

// update carries out one call on the ledger and tells those who wait for one.
func (s *Service) update(call func(l *Ledger, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expired(s.ledger.Expire(now))
	call(s.ledger, now)
	signal(s.changed)
	signal(s.rearm)
}

// expired notes the leases that ended by themselves. mu is held.
func (s *Service) expired(keys []Key) {
	if len(keys) > 0 {
		s.log.Debug().Int("leases", len(keys)).Msg("leases ended")
		signal(s.changed)
	}
}

// signal leaves a token in c unless there is one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// expire ends leases on time, so that the offer says so without being asked.
func (s *Service) expire() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.rearm:
		case <-timer.C:
		}
		s.mu.Lock()
		now := time.Now()
		s.expired(s.ledger.Expire(now))
		at, ok := s.ledger.NextExpiry()
		s.mu.Unlock()
		timer.Stop()
		if ok {
			timer.Reset(at.Sub(now))
		}
	}
}

// handle answers one stream.
func (s *Service) handle(stream network.Stream) {
	if !s.enter(stream) {
		_ = stream.Reset()
		return
	}
	defer s.leave(stream)
	_ = stream.SetDeadline(time.Now().Add(streamTimeout))
	var q pb.Request
	if err := pbio.NewDelimitedReader(stream, maxMessage).ReadMsg(&q); err != nil {
		s.conduct.Ended(stream.Conn().RemotePeer(), "reservation request not read", err)
		_ = stream.Reset()
		return
	}
	a := s.answer(&q, stream.Conn().RemotePeer(), originOf(stream.Conn().RemoteMultiaddr()))
	// An answer that gets lost needs no care: see taken, Confirm and Withdraw.
	_ = pbio.NewDelimitedWriter(stream).WriteMsg(a)
	if key, err := keyFromBytes(a.GetKey()); err == nil && !taken(stream) {
		s.update(func(l *Ledger, _ time.Time) { l.Abandon(key) })
	}
	_ = stream.Close()
}

// taken waits for the submitter's word that it has got a grant: it closes the
// stream then, and resets it when it has stopped waiting. A Release on another
// stream, which might be faster than the Hold, does not serve for that.
func taken(stream network.Stream) bool {
	_, err := stream.Read(make([]byte, 1))
	return errors.Is(err, io.EOF) && !errors.Is(err, network.ErrReset) // as when the connection ends
}

// enter counts a handler in, unless the service is closed.
func (s *Service) enter(stream network.Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.streams[stream] = true
	s.running.Add(1)
	return true
}

func (s *Service) leave(stream network.Stream) {
	s.mu.Lock()
	delete(s.streams, stream)
	s.mu.Unlock()
	s.running.Done()
}

// answer carries out a request of submitter, who is who he says: libp2p has
// checked; and asks from origin. Whatever the request contains, the answer is one of the protocol.
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
