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

// maxFound bounds the rendezvous records that one lookup accepts. Many may belong to peers that have
// left, so the bound is well above the number of peers that a job needs.
const maxFound = 500

// answer is the result of asking one peer.
type answer struct {
	candidate Candidate
	refusal   *Refusal // nil for a candidate
}

// Candidates searches for peers that offer slots now. It returns them nearest first, together with the
// reason why each other peer is not a candidate. If the local peer offers slots, it is among the
// candidates, with round-trip time 0.
//
// Candidates returns when every known peer has answered, or soon after need is met (see Config.Grace). If
// ctx ends first, it returns ctx's error and the candidates found so far. Finding fewer slots than needed
// is not an error; the caller has to count them.
func (s *Service) Candidates(ctx context.Context, need Need) ([]Candidate, []Considered, error) {
	if !s.work.Enter() {
		return nil, nil, fmt.Errorf("search for candidates: %w", context.Canceled)
	}
	defer s.work.Leave()
	search := &search{
		s:       s,
		core:    newGathering(need, s.cfg.parallel(need), s.cfg.Grace),
		hints:   make(chan p2ppeer.AddrInfo),
		answers: make(chan answer),
		addrs:   make(map[p2ppeer.ID]p2ppeer.AddrInfo),
	}
	search.core.estimate = s.offers.coordinates.estimate
	err := search.run(ctx)
	candidates, considered := search.core.result()
	if err != nil {
		err = fmt.Errorf("search for candidates: %w", err)
	}
	return candidates, considered, err
}

// A search drives one gathering. The goroutine of run owns all fields; finder and askers communicate with
// it over the channels.
type search struct {
	s       *Service
	core    *gathering
	hints   chan p2ppeer.AddrInfo // closed by the finder when it ends
	answers chan answer
	addrs   map[p2ppeer.ID]p2ppeer.AddrInfo
	wg      sync.WaitGroup // counts finder and askers
}

func (q *search) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer q.wg.Wait()
	defer cancel() // stops finder and askers
	defer context.AfterFunc(q.s.work.Context(), cancel)()

	for _, id := range q.core.need.Only { // first, so that other hints cannot crowd them out
		q.addPeer(p2ppeer.AddrInfo{ID: id})
	}
	for _, info := range q.s.near() {
		q.addPeer(info)
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
			q.addPeer(info)
		case a := <-q.answers:
			q.note(a)
		case <-q.graceOver():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// graceOver returns a channel that fires when the gathering stops waiting for silent peers.
func (q *search) graceOver() <-chan time.Time {
	end, ok := q.core.deadline()
	if !ok {
		return nil
	}
	return time.After(time.Until(end))
}

func (q *search) addPeer(info p2ppeer.AddrInfo) {
	if q.core.addPeer(info.ID) {
		q.addrs[info.ID] = info
	}
}

// ask starts one goroutine for each peer that the gathering wants asked now.
func (q *search) ask(ctx context.Context) {
	for _, id := range q.core.ask() {
		info := q.addrs[id]
		q.wg.Go(func() { // ends with the answer, cfg.AskTimeout or ctx
			var a answer
			if a.candidate, a.refusal = q.s.offers.offerOf(ctx, info); a.refusal != nil {
				a.candidate.AddrInfo = info
			}
			select {
			case q.answers <- a:
			case <-ctx.Done():
			}
		})
	}
}

// note passes an answer to the gathering and the book.
func (q *search) note(a answer) {
	now, id := time.Now(), a.candidate.AddrInfo.ID
	if a.refusal == nil {
		q.core.accepted(a.candidate, now)
		if id != q.s.host.ID() {
			q.s.book.answered(a.candidate, now)
		}
		return
	}
	q.core.refused(id, a.refusal)
	if r := a.refusal.Reason; r == Unreachable || r == Silent {
		q.s.book.missed(id)
	}
	q.s.cfg.Log.Debug().Stringer("peer", id).Err(a.refusal).Msg("not a candidate")
}

// find passes the rendezvous records on to run until the lookup ends.
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

// found looks up the rendezvous. The channel is closed when the lookup or ctx ends.
func (s *Service) found(ctx context.Context) <-chan p2ppeer.AddrInfo {
	records, err := s.rendezvous.FindPeers(ctx, namespace(s.cfg.Network), discovery.Limit(maxFound))
	if err != nil { // returned only for wrong arguments
		s.cfg.Log.Error().Err(err).Msg("rendezvous lookup failed")
		none := make(chan p2ppeer.AddrInfo)
		close(none)
		return none
	}
	return records
}

// namespace returns the rendezvous name under which offering peers announce themselves.
func namespace(network string) string { return "p2pmpi/" + network + "/offers" }

// near returns the peers to ask that are known without a lookup: the local peer, the peers in the book,
// and the DHT's routing table. It also returns connected peers that speak the offer protocol or whose
// protocols are not known yet.
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
