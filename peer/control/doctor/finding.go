package doctor

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"
)

// A Level is the severity of a finding.
type Level string

// The levels, best first.
const (
	Well    Level = "ok"
	Unknown Level = "unknown" // could not be determined
	Warning Level = "warning" // works, but could be better
	Failing Level = "failure" // does not work
)

// A Finding is one result of p2pboot doctor.
type Finding struct {
	About string `json:"about"`
	Level Level  `json:"level"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what the owner can do, or empty if Level is Well
}

func well(about, format string, args ...any) Finding {
	return Finding{About: about, Level: Well, Found: fmt.Sprintf(format, args...)}
}

// Worst returns the worst level among the findings.
func Worst(all []Finding) Level {
	levels := []Level{Well, Unknown, Warning, Failing}
	worst := 0
	for _, f := range all {
		worst = max(worst, slices.Index(levels, f.Level))
	}
	return levels[worst]
}

// Diagnose returns the findings for the facts about a machine.
func Diagnose(s Facts) []Finding {
	out := checkPeer(s)
	if p := s.Network; p != nil {
		out = append(out, checkSupernodes(*p), checkReachability(*p, s.Machine), checkNAT(*p), checkClock(*p))
	}
	out = append(out, checkGranted(s.Granted)...)
	out = append(out, checkRules(s.Unread)...)
	m := s.Machine
	out = append(out, checkPortMapping(m, s.Network), checkDisk(m))
	out = append(append(out, checkLimits(m)...), checkKernel(m))
	if s.Home != "" { // without a home, no sandbox was tested
		return out
	}
	return append(out, checkSandbox(m.Sandbox)...)
}

// checkPeer reports that a peer runs, or why none can.
func checkPeer(s Facts) (out []Finding) {
	if p := s.Network; p != nil {
		return []Finding{well("peer", "running, announces %s, connected to %s",
			english.Plural(p.Addresses, "address", "addresses"), english.Plural(p.Connected, "peer", ""))}
	}
	if s.Home != "" {
		out = append(out, Finding{"home", Failing, s.Home, "choose another folder with --home or P2PMPI_HOME"})
	}
	if s.Ports != "" {
		out = append(out, Finding{"ports", Failing, s.Ports,
			"stop the program that uses the port, or choose another address with --listen or --data-listen"})
	}
	if len(out) == 0 {
		out = append(out, Finding{"peer", Warning, "no peer runs on this home; its ports are free",
			"start p2pboot, then run p2pboot doctor again: only a running peer can check how other peers reach it"})
	}
	return out
}
