package filetransfer

import (
	"context"
	"fmt"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Fetch brings the wanted contents that are missing into the store. The peer from serves them for the job.
// Fetch pins all wanted contents for the job until Store.Unpin, even if it fails. It does not request
// contents that the store has or that another Fetch is receiving, and resumes partial contents (promise
// T2). After Share, it also requests units from members of the swarm. progress, if not nil, is called with
// each number of new bytes, one call at a time.
//
// Fetch replaces a broken or stalled stream, a bounded number of times in a row. It asks no member again that has
// sent wrong bytes. The error names the peer and the content, which was refused, changed at its source, did not
// have the wanted size, or did not match its digest (T1). Fetch fails if the contents do not fit into the store.
func (s *Service) Fetch(ctx context.Context, from p2ppeer.ID, job string, want []Want, progress func(bytes int64)) error {
	if !s.work.Enter() {
		return errClosed
	}
	defer s.work.Leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.work.Context(), cancel)()
	if err := s.fetch(ctx, from, job, want, progress); err != nil {
		return fmt.Errorf("fetch from %s: %w", from, err)
	}
	return nil
}

// FetchManifest fetches and decodes the manifest that w identifies.
func (s *Service) FetchManifest(ctx context.Context, from p2ppeer.ID, job string, w Want) (Manifest, error) {
	if w.Size > maxManifestBytes {
		return nil, fmt.Errorf("manifest %s: %d bytes, at most %d are allowed", w.Digest, w.Size, maxManifestBytes)
	}
	if err := s.Fetch(ctx, from, job, []Want{w}, nil); err != nil {
		return nil, err
	}
	return s.store.Manifest(ctx, w.Digest)
}

func (s *Service) fetch(ctx context.Context, from p2ppeer.ID, job string, want []Want, progress func(int64)) error {
	if len(job) > maxJob {
		return fmt.Errorf("name of the job has %d bytes, at most %d are allowed", len(job), maxJob)
	}
	digests := make([]Digest, len(want))
	for i, w := range want {
		if err := w.validate(); err != nil {
			return err
		}
		digests[i] = w.Digest
	}
	units := unitsOf(want)
	if len(units) > maxUnits {
		return fmt.Errorf("%d contents in %d units, at most %d are allowed", len(want), len(units), maxUnits)
	}
	s.store.Pin(job, digests)
	var members, near []p2ppeer.ID
	var sh *share
	id := listID(want)
	if sw := s.swarms.of(job); sw != nil && from == sw.from && from != s.host.ID() && worthSharing(want) {
		members = slices.DeleteFunc(slices.Clone(sw.members), func(p p2ppeer.ID) bool { return p == from })
		near, sh = sw.near, sw.join(id, want, units)
	}
	sh.addComplete(s.store)
	defer func() { sh.addComplete(s.store) }() // includes contents that other calls have fetched
	return s.store.fillAll(ctx, want, func(c *claim) error {
		t := &transfer{
			svc: s, job: job, id: id, list: want, units: units, claim: c, share: sh, progress: progress,
			from: from, members: members, near: near,
		}
		return t.run(ctx)
	})
}

// smallList is the size, in bytes, up to which all peers fetch a list from the origin rather than wait
// for each other.
const smallList = 256 << 10

func worthSharing(list []Want) bool {
	var size int64
	for _, w := range list {
		size += w.Size
	}
	return size > smallList
}
