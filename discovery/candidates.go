package discovery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/discovery"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// maxFound bounds the rendezvous records that one lookup takes in. Many may
// be of peers long gone, so it is well above what a job needs.
const maxFound = 500

// answer is what asking one peer came to.
type answer struct {
	candidate Candidate
	refusal   *Refusal // nil for a candidate
}

// Candidates looks for peers that offer slots now and returns them nearest
// first, and why the other peers are none. The local peer is among
// them, at round-trip time 0, when it offers slots.
//
// It returns when everybody known has answered, or soon after need is met (see
// Config.Grace), or when ctx ends: then with ctx's error and what was found so
// far. Fewer slots than needed is no error: the caller counts.
func (s *Service) Candidates(ctx context.Context, need Need) ([]Candidate, []Considered, error) {
	if !s.enter() {
		return nil, nil, fmt.Errorf("look for candidates: %w", context.Canceled)
	}
	defer s.wg.Done()
	search := &search{
		s:       s,
		core:    newGathering(need, s.cfg.parallel(need), s.cfg.Grace),
		hints:   make(chan p2ppeer.AddrInfo),
		answers: make(chan answer),
		addrs:   make(map[p2ppeer.ID]p2ppeer.AddrInfo),
	}
	search.core.estimate = s.coordinates.estimate
	err := search.run(ctx)
	candidates, considered := search.core.result()
	if err != nil {
		err = fmt.Errorf("look for candidates: %w", err)
	}
	return candidates, considered, err
}

// A search drives one gathering. Its run owns all fields; finder and askers
// talk to it over the channels.
type search struct {
	s       *Service
	core    *gathering
	hints   chan p2ppeer.AddrInfo // closed by the finder at its end
	answers chan answer
	addrs   map[p2ppeer.ID]p2ppeer.AddrInfo
	wg      sync.WaitGroup // finder and askers
}

func (q *search) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer q.wg.Wait()
	defer cancel() // ends finder and askers
	defer context.AfterFunc(q.s.ctx, cancel)()

	for _, id := range q.core.need.Only { // nobody crowds them out
		q.heard(p2ppeer.AddrInfo{ID: id})
	}
	for _, info := range q.s.near() {
		q.heard(info)
	}
	q.wg.Go(func() { q.find(ctx) }) // ends with the lookup or ctx
	hints := q.hints
	for {
		q.ask(ctx)
		if q.core.done(time.Now()) {
			return nil
		}
		select {
		case info, more := <-hints:
			if !more {
				hints = nil
				q.core.sourcesEnded()
				break
			}
			q.heard(info)
		case a := <-q.answers:
			q.note(a)
		case <-q.graceOver():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// graceOver fires when the gathering need wait no longer for the silent.
func (q *search) graceOver() <-chan time.Time {
	end, ok := q.core.deadline()
	if !ok {
		return nil
	}
	return time.After(time.Until(end))
}

func (q *search) heard(info p2ppeer.AddrInfo) {
	if q.core.heard(info.ID) {
		q.addrs[info.ID] = info
	}
}

// ask starts asking whomever the gathering wants asked now.
func (q *search) ask(ctx context.Context) {
	for _, id := range q.core.ask() {
		info := q.addrs[id]
		q.wg.Go(func() { // ends with the answer, cfg.AskTimeout or ctx
			var a answer
			if a.candidate, a.refusal = q.s.offerOf(ctx, info); a.refusal != nil {
				a.candidate.AddrInfo = info
			}
			select {
			case q.answers <- a:
			case <-ctx.Done():
			}
		})
	}
}

// note tells the gathering and the book of an answer.
func (q *search) note(a answer) {
	now, id := time.Now(), a.candidate.AddrInfo.ID
	if a.refusal == nil {
		q.core.taken(a.candidate, now)
		if id != q.s.host.ID() {
			q.s.book.answered(a.candidate, now)
		}
		return
	}
	q.core.refused(id, a.refusal)
	if r := a.refusal.Reason; r == Unreachable || r == Silent {
		q.s.book.missed(id)
	}
	q.s.log.Debug().Stringer("peer", id).Err(a.refusal).Msg("no candidate")
}

// find hands on the rendezvous' records until there are no more.
func (q *search) find(ctx context.Context) {
	defer close(q.hints)
	ctx, cancel := context.WithTimeout(ctx, q.s.cfg.SearchTimeout)
	defer cancel()
	for info := range q.s.found(ctx) {
		select {
		case q.hints <- info:
		case <-ctx.Done():
			return
		}
	}
}

// found looks the rendezvous up. The channel is closed when the lookup or ctx ends.
func (s *Service) found(ctx context.Context) <-chan p2ppeer.AddrInfo {
	records, err := s.rendezvous.FindPeers(ctx, namespace(s.cfg.Network), discovery.Limit(maxFound))
	if err != nil { // only ever about the arguments
		s.log.Error().Err(err).Msg("rendezvous lookup")
		none := make(chan p2ppeer.AddrInfo)
		close(none)
		return none
	}
	return records
}

// namespace is the rendezvous under which peers that offer slots announce themselves.
func namespace(network string) string { return "p2pmpi/" + network + "/offers" }

// near returns the peers to ask that are known without a lookup: the local
// peer, those that have answered before, those connected that speak the offer
// protocol or have yet to say what they speak, mDNS neighbours, and the DHT's routing
// table.
func (s *Service) near() []p2ppeer.AddrInfo {
	var infos []p2ppeer.AddrInfo
	if s.cfg.Offer != nil {
		infos = append(infos, p2ppeer.AddrInfo{ID: s.host.ID()})
	}
	for _, k := range s.book.list(time.Now()) {
		infos = append(infos, k.AddrInfo)
	}
	for _, id := range s.host.Network().Peers() {
		known, err := s.host.Peerstore().GetProtocols(id)
		if err == nil && (len(known) == 0 || slices.Contains(known, offerProtocol)) {
			infos = append(infos, p2ppeer.AddrInfo{ID: id})
		}
	}
	for _, id := range s.dht.RoutingTable().ListPeers() {
		infos = append(infos, p2ppeer.AddrInfo{ID: id})
	}
	return infos
}

// offerOf asks a peer for its offer; the local peer is not asked over the network.
func (s *Service) offerOf(ctx context.Context, info p2ppeer.AddrInfo) (Candidate, *Refusal) {
	if info.ID != s.host.ID() {
		return s.ask(ctx, info)
	}
	if s.cfg.Offer == nil {
		return Candidate{}, &Refusal{Reason: OffersNothing}
	}
	o := s.ownOffer(info.ID)
	if err := o.valid(); err != nil {
		return Candidate{}, &Refusal{BadOffer, err}
	}
	return Candidate{AddrInfo: p2ppeer.AddrInfo{ID: info.ID, Addrs: s.host.Addrs()}, Offer: o}, nil
}
