package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// maxRoutes bounds the lines that name processes. More are counted instead.
const maxRoutes = 40

// Routes says in sentences how processes reach each other: those that go the
// same way there and back in one, all that processes do within themselves in
// one, and in a large job only how many go each way.
func Routes(all []job.Route) []string {
	var routes []route
	if len(all) > maxRoutes*maxRoutes {
		for _, r := range all {
			routes = append(routes, route{Route: r})
		}
	} else {
		routes = bothWays(all)
	}
	if len(routes) > maxRoutes {
		return counted(routes)
	}
	var out []string
	for _, r := range routes {
		out = append(out, fmt.Sprintf("%s: %s%s, %s", r.between(), r.kind(), r.distance(), r.Why))
	}
	return out
}

// A route is one or two of the job's: there, and back if that is the same.
type route struct {
	job.Route
	back bool
}

func (r route) kind() string {
	switch {
	case r.Kind == "":
		return "no channel"
	case r.Relay != "":
		return r.Kind + ", relayed through " + r.Relay
	case r.Way != "":
		return r.Kind + ", " + r.Way
	}
	return r.Kind
}

// distance is how far apart the peers are, for a sentence, or nothing.
func (r route) distance() string {
	if r.RTT == 0 {
		return ""
	}
	return ", " + rounded(r.RTT).String()
}

// within reports whether the route is among the processes of one peer.
func (r route) within() bool { return slices.Equal(r.From, r.To) }

func (r route) between() string {
	switch {
	case r.Kind == "self":
		return "each process to itself"
	case r.within():
		return "among " + names(r.From)
	case r.back:
		return names(r.From) + " and " + names(r.To)
	}
	return names(r.From) + " to " + names(r.To)
}

// pairs counts the ordered pairs of processes.
func (r route) pairs() int {
	n := len(r.From) * len(r.To)
	switch {
	case r.Kind == "self":
		return 1
	case r.within():
		return n - len(r.From)
	case r.back:
		return 2 * n
	}
	return n
}

// names lists processes as rank.replica.
func names(ps []view.Process) string {
	const most = 8
	var b []string
	for _, p := range ps[:min(len(ps), most)] {
		b = append(b, p.String())
	}
	if len(ps) > most {
		b = append(b, fmt.Sprintf("(%d more)", len(ps)-most))
	}
	return strings.Join(b, " ")
}

// bothWays joins each route with the one back if they are alike, and all of
// processes to themselves.
func bothWays(routes []job.Route) []route {
	var out []route
	for _, r := range routes {
		i := slices.IndexFunc(out, func(o route) bool {
			if r.Kind == "self" {
				return o.Kind == "self"
			}
			return !o.back && !o.within() && slices.Equal(o.From, r.To) && slices.Equal(o.To, r.From) &&
				o.Kind == r.Kind && o.Way == r.Way && o.Relay == r.Relay && o.Why == r.Why
		})
		switch {
		case i < 0:
			out = append(out, route{Route: r})
		case r.Kind != "self":
			out[i].back = true
			out[i].RTT = cmp.Or(out[i].RTT, r.RTT)
		}
	}
	return out
}

// counted says how many pairs of processes go each way, in the order in which
// the ways come up first.
func counted(routes []route) []string {
	var ways []string
	pairs := make(map[string]int)
	for _, r := range routes {
		way := r.kind() + ", " + r.Why
		if pairs[way] == 0 {
			ways = append(ways, way)
		}
		pairs[way] += r.pairs()
	}
	var out []string
	for _, way := range ways {
		out = append(out, fmt.Sprintf("%s: %s", number(int64(pairs[way]), "pair of processes", "pairs of processes"), way))
	}
	return out
}
