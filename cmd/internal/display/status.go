package display

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// Status describes a peer and its connections in lines of at most 80 columns. A line is longer only if it
// contains a longer ID or address.
func Status(s status.Status) string {
	var b strings.Builder
	say := func(name, format string, args ...any) {
		b.WriteString(command.Sentence(name, fmt.Sprintf(format, args...), routeWidth))
	}
	say("peer", "%s", s.Peer)
	say("network", "%s, release %s, protocol %d", s.Network, s.Release, s.Protocol)
	say("up", "%v, process %d, home %s", ago(s.Since), s.Process, s.Home)
	say("slots", "%s", slots(s.Slots))
	if s.Granted != nil {
		if slot := s.Granted.Slot.Each(); len(slot) > 0 {
			say("limits of a process", "%s", strings.Join(slot, ", "))
		}
		if job := s.Granted.Job.Each(); len(job) > 0 {
			say("limits of a job", "%s", strings.Join(job, ", "))
		}
		for _, t := range s.Granted.Terms {
			say("class "+string(t.Class), "%s", strings.Join(t.Each(), ", "))
		}
		for _, u := range s.Granted.Unenforced {
			say("not enforced", "limit of %s: %s; instead, %s", u.Limit, u.Why, u.Instead)
		}
	}
	for _, u := range s.Unprotected {
		say("not protected from native programs", "%s: %s", u.Resource, u.Why)
	}
	for _, u := range s.Unread {
		say("suspend rule not evaluated", "%s: %s", u.Rule, u.Why)
	}
	say("uses", "%s of memory, %s, %s", size(int64(s.Use.Memory)), number(int64(s.Use.Streams), "stream", "streams"), number(int64(s.Use.Goroutines), "goroutine", "goroutines"))
	for _, a := range s.Addresses {
		fmt.Fprintf(&b, "address: %s\n", a)
	}
	for _, h := range s.Hosted {
		writeHosted(&b, h)
	}
	for _, j := range s.Submitted {
		more := ""
		if !j.Detached.IsZero() {
			more = ", no p2prun attached: use p2prun --attach"
		}
		say("submitted job", "%.8s %s, %d × %d, %s for %v%s", j.Job, j.Name, j.N, j.R, j.Phase, ago(j.Since), more)
	}
	fmt.Fprintf(&b, "connected: %s\n", number(int64(len(s.Connections)), "peer", "peers"))
	writeConnections(&b, s.Connections)
	return b.String()
}

// Slots describes the use of a peer's slots in one line.
func Slots(s status.Slots) string { return "slots: " + slots(s) + "\n" }

func slots(s status.Slots) string {
	text := fmt.Sprintf("%d of %d free; %d held, %d confirmed, %d running", s.Free, s.Total, s.Held, s.Confirmed, s.Running)
	if s.Paused != "" {
		text += "; suspended: " + s.Paused
	}
	if s.NoDisk {
		text += "; too little free disk space for other users' jobs, see p2pboot doctor"
	}
	if s.Draining {
		text += "; draining, accepts no new jobs"
	}
	return text
}

// writeHosted writes a job that has slots here, and the channels from its processes to others.
func writeHosted(b *strings.Builder, h status.HostedJob) {
	name := program(h.Program) + " " + names(h.Processes)
	if h.Program == "" {
		name = number(int64(h.Slots), "slot", "slots")
	}
	b.WriteString(command.Sentence("hosted job", fmt.Sprintf("%.8s %s, %s, of %s",
		h.Job, name, hostedState(h), submit.ShortPeer(h.Submitter)), routeWidth))
	for _, group := range groupChannels(h.Channels) {
		c := group[0]
		b.WriteString(command.Sentence("  "+pairs(group), fmt.Sprintf("%s, %s, %s", c.Kind, connectionKind(c.Way, c.Relay), roundTrip(c.RTT)), routeWidth))
		b.WriteString(command.Sentence("    why", c.Why, routeWidth))
	}
}

// groupChannels groups channels that use the same kind of connection to the same peer.
func groupChannels(channels []status.Channel) (out [][]status.Channel) {
	for _, c := range channels {
		i := slices.IndexFunc(out, func(group []status.Channel) bool {
			first := group[0]
			first.From, first.To = c.From, c.To
			return first == c
		})
		if i < 0 {
			out = append(out, []status.Channel{c})
			continue
		}
		out[i] = append(out[i], c)
	}
	return out
}

// pairs lists the processes of some channels.
func pairs(group []status.Channel) string {
	const most = 2
	var b []string
	for _, c := range group[:min(len(group), most)] {
		b = append(b, fmt.Sprintf("%v to %v", c.From, c.To))
	}
	if len(group) > most {
		b = append(b, fmt.Sprintf("%d more", len(group)-most))
	}
	return strings.Join(b, ", ") + " at " + submit.ShortPeer(group[0].Peer)
}

// writeConnections writes a table of connections. The line below a connection explains why a better kind was not
// possible.
func writeConnections(b *strings.Builder, connections []status.Connection) {
	if len(connections) == 0 {
		return
	}
	rows := [][]string{{"PEER", "KIND", "TRANSPORT", "ROUND TRIP"}}
	for _, c := range connections {
		rows = append(rows, []string{submit.ShortPeer(c.Peer), connectionKind(c.Way, c.Relay), c.Transport, roundTrip(c.RTT)})
	}
	b.WriteString(table(rows, func(b *strings.Builder, row int) {
		if why := connections[row].Why; why != "" {
			b.WriteString(command.Sentence("  why", why, routeWidth))
		}
	}))
}

func connectionKind(kind, relay string) string {
	if relay != "" {
		return kind + " through " + submit.ShortPeer(relay)
	}
	return kind
}

func roundTrip(d time.Duration) string {
	if d == 0 {
		return "no answer"
	}
	return rounded(d).String()
}

// rounded rounds a round-trip time to its significant digits.
func rounded(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}

func ago(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }
