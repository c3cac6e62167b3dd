package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// maxRoutes bounds the number of lines that name processes. If there are more routes, they are only counted.
const maxRoutes = 40

// routes describes how processes reach each other. It combines two routes that are equal in both
// directions, and all routes of processes to themselves. For a large job it only counts the pairs of
// processes for each kind of route.
func routes(all []submit.Route) []string {
	var routes []route
	if len(all) > maxRoutes*maxRoutes {
		for _, r := range all {
			routes = append(routes, route{Route: r})
		}
	} else {
		routes = combineDirections(all)
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

// A route is one route of the job, or two that are equal in both directions.
type route struct {
	submit.Route
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

// distance returns the round-trip time between the peers as part of a sentence, or "" if it is unknown.
func (r route) distance() string {
	if r.RTT == 0 {
		return ""
	}
	return ", " + rounded(r.RTT).String()
}

// within reports whether the route connects processes of one peer.
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

// pairs returns the number of ordered pairs of processes.
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

// combineDirections combines each route with an equal one in the other direction, and all routes of processes to
// themselves.
func combineDirections(routes []submit.Route) []route {
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

// counted returns the number of pairs of processes for each kind of route, in the order of first
// occurrence.
func counted(routes []route) []string {
	var kinds []string
	pairs := make(map[string]int)
	for _, r := range routes {
		kind := r.kind() + ", " + r.Why
		if pairs[kind] == 0 {
			kinds = append(kinds, kind)
		}
		pairs[kind] += r.pairs()
	}
	var out []string
	for _, kind := range kinds {
		out = append(out, fmt.Sprintf("%s: %s", number(int64(pairs[kind]), "pair of processes", "pairs of processes"), kind))
	}
	return out
}
