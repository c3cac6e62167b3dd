package filetransfer

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A Content describes one content that a Store holds or is receiving.
type Content struct {
	Digest   string    `json:"digest"`
	Bytes    int64     `json:"bytes"` // number of bytes counted against the limit
	Complete bool      `json:"complete"`
	Arriving bool      `json:"arriving,omitempty"`
	Used     time.Time `json:"used"`          // time of the last use; to the hour for uses by an earlier process
	Jobs     []string  `json:"jobs"`          // jobs that have pinned the content, which prevents eviction
	URL      string    `json:"url,omitempty"` // source on the web, if any
}

// list lists the items of a store, the most recently used first.
func list(items map[Digest]*item, pins pins, urls map[Digest]string) []Content {
	all := make([]Content, 0, len(items))
	for d, it := range items {
		jobs := slices.AppendSeq([]string{}, maps.Keys(pins[d])) // an empty list in JSON, not null
		slices.Sort(jobs)
		all = append(all, Content{
			Digest: d.String(), Bytes: it.bytes, Complete: it.complete, Arriving: it.claim != nil,
			Used: it.last, Jobs: jobs, URL: urls[d],
		})
	}
	slices.SortFunc(all, func(a, b Content) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Digest, b.Digest)) })
	return all
}
