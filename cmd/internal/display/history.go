package display

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// Jobs says in a line each which jobs of whom have slots of a peer now.
func Jobs(hosted []peer.HostedJob, now time.Time) string {
	if len(hosted) == 0 {
		return "no jobs\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tOF\tCLASS\tPROGRAM\tKIND\tDIGEST\tSLOTS\tSTATE\tFOR\tCPU\tMEMORY")
	for _, h := range hosted {
		var age, cpu string
		if !h.Since.IsZero() {
			age = briefly(now.Sub(h.Since))
		}
		if h.Use.CPU > 0 {
			cpu = briefly(h.Use.CPU)
		}
		state := h.State
		if h.Use.Starved > 0 {
			state += ", starved" // by the owner's own work
		}
		fmt.Fprintf(w, "%.8s\t%s\t%s\t%s\t%s\t%.8s\t%d\t%s\t%s\t%s\t%s\n", h.Job, job.ShortPeer(h.Submitter), dash(h.Class), program(h.Program), dash(h.Kind), dash(h.Digest), h.Slots, state, dash(age), dash(cpu), dash(known(h.Use.Memory)))
	}
	w.Flush()
	return b.String()
}

// History says in a line each which jobs a peer has run, and what they have had of it.
func History(past []peer.Past) string {
	if len(past) == 0 {
		return "no jobs yet\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BEGAN\tJOB\tOF\tPROGRAM\tKIND\tPROCESSES\tFOR\tCPU\tMEMORY\tFILES")
	for _, e := range past {
		took := "?" // it runs, or the peer was killed
		if !e.Until.IsZero() {
			took = briefly(e.Until.Sub(e.Since))
		}
		fmt.Fprintf(w, "%s\t%.8s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", e.Since.Local().Format(time.DateTime), e.Job, job.ShortPeer(e.Submitter),
			program(e.Program), dash(e.Kind), e.Processes, took, briefly(e.CPU), dash(known(e.Memory)), size(e.Staged))
	}
	w.Flush()
	return b.String()
}

// briefly writes a time with as much as people want to know of it.
func briefly(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// known writes a number of bytes; 0 is one that is not known.
func known(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return size(bytes)
}

// dash stands for what is not known.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// maxProgram bounds the name of a program in a table, in characters.
const maxProgram = 16

// program is the name of a program, which a stranger has chosen, as it can be shown: a terminal
// obeys what is not printable.
func program(name string) string {
	var out []rune
	for _, r := range name {
		if len(out) == maxProgram {
			return string(out[:maxProgram-1]) + "…"
		}
		if !unicode.IsPrint(r) {
			r = '?'
		}
		out = append(out, r)
	}
	return dash(string(out))
}
