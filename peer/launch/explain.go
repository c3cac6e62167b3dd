package launch

import (
	"context"
	"maps"
	"slices"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// This file reports to the submitter the paths that the messages of the processes here take. It probes
// them, since firewalls cannot be detected otherwise.

// A probe is a pair of live processes, the second on another peer.
type probe struct {
	peer      p2ppeer.ID
	from, to  view.Process
	situation situation
}

// probes returns one probe for each other peer of the job.
func (j *job) probes() (out []probe) {
	from := slices.IndexFunc(j.order, j.view.Live)
	if from < 0 {
		return nil
	}
	seen := map[p2ppeer.ID]bool{j.service.host.ID(): true}
	for _, to := range j.view.Processes() {
		peer, ok := j.members.peerOf[to]
		if ok && !seen[peer] && j.view.Live(to) {
			seen[peer] = true
			out = append(out, probe{peer, j.order[from], to, j.situation(j.order[from], to)})
		}
	}
	return out
}

// maxProbes bounds the peers that are probed at one time.
const maxProbes = 8

// probePaths probes the paths to all other peers, reports them to the submitter, and then lets mpj.Init
// return.
func (j *job) probePaths(probes []probe) {
	defer j.running.Done()
	found := make([]route, len(probes))
	next := make(chan int)
	var trying sync.WaitGroup
	for range min(maxProbes, len(probes)) {
		trying.Go(func() {
			for i := range next {
				found[i] = j.try(j.ctx, probes[i])
			}
		})
	}
	for i := range probes {
		next <- i
	}
	close(next)
	trying.Wait()
	j.do(func() {
		routes := map[p2ppeer.ID]route{}
		if len(j.order) > 1 {
			var w route
			w.kind, w.why = choose(j.localSituation(j.local[j.order[0]], j.local[j.order[1]]), j.kinds)
			routes[j.service.host.ID()] = w
		}
		for i, p := range probes {
			routes[p.peer] = found[i]
			j.distances[p.peer] = found[i].rtt
		}
		j.told = make(map[p2ppeer.ID]channelPath)
		j.reportPaths(routes)
		j.release()
	})
}

// try reaches a peer as a channel would, and closes the connection again.
func (j *job) try(ctx context.Context, p probe) route {
	open := &pb.Open{Job: j.spec.ID, From: pbProcess(p.from), To: pbProcess(p.to), Probe: true}
	w := j.reach(ctx, p.peer, open, p.situation, j.kinds)
	if w.conn != nil {
		w.conn.Close()
	}
	if w.stream != nil {
		w.stream.Close()
	}
	if w.err == nil {
		ctx, cancel := context.WithTimeout(ctx, measureTimeout)
		defer cancel()
		w.rtt, _ = connection.RoundTrip(ctx, j.service.host, p.peer)
	}
	return w
}

// reached records the path that a channel has taken, and reports it if it differs from the path reported
// before.
func (j *job) reached(id channelID, peer p2ppeer.ID, w route) {
	if c := j.channels[id]; c != nil {
		c.route, c.peer = w, peer
	}
	if before, ok := j.told[peer]; ok && before != w.channelPath {
		w.rtt = j.distances[peer]
		j.reportPaths(map[p2ppeer.ID]route{peer: w})
	}
}

// reportPaths reports to the submitter how other peers are reached.
func (j *job) reportPaths(routes map[p2ppeer.ID]route) {
	m := &jobpb.Paths{}
	for _, peer := range slices.Sorted(maps.Keys(routes)) {
		w := routes[peer]
		if w.err != nil {
			w.channelPath, w.why = channelPath{}, text(w.err)
		}
		j.told[peer] = w.channelPath
		m.Paths = append(m.Paths, &jobpb.Path{Peer: []byte(peer), Kind: string(w.kind), Relay: []byte(w.relay), Why: clip(w.why),
			Way: string(w.how), RoundTripUs: uint32(w.rtt.Microseconds())})
	}
	j.send(&jobpb.FromPeer{Body: &jobpb.FromPeer_Paths{Paths: m}})
}
