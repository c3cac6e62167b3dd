package submit

import (
	"strings"
	"unicode"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// exitOf decodes a peer's report of how a process ended.
func exitOf(m *jobpb.Exited, on p2ppeer.ID) job.Exit {
	return job.Exit{
		Peer: short(on),
		Code: int(m.Code), Signal: plain(m.Signal), Reason: plain(m.Reason), Limit: plain(m.Limit),
		Initialized: m.Initialized, Finalized: m.Finalized,
	}
}

// ShortPeer shortens a peer ID for display to its last characters, since all IDs begin alike.
func ShortPeer(id string) string { return "…" + id[max(0, len(id)-8):] }

// short returns ShortPeer of p.
func short(p p2ppeer.ID) string { return ShortPeer(p.String()) }

// maxText limits, in bytes, a peer's text in a message to the user.
const maxText = 1 << 10

// plain makes a peer's text fit for a message: short, valid UTF-8, and on one line.
func plain(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
