package display

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
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
		state := hostedState(h)
		fmt.Fprintf(w, "%.8s\t%s\t%s\t%s\t%s\t%.8s\t%d\t%s\t%s\t%s\t%s\n", h.Job, job.ShortPeer(h.Submitter), dash(h.Class), program(h.Program), dash(h.Kind), dash(h.Digest), h.Slots, state, dash(age), dash(cpu), dash(known(h.Use.Memory)))
	}
	w.Flush()
	return b.String()
}

// hostedState is how far a job is here, and whether its processes get anything done.
func hostedState(h peer.HostedJob) string {
	switch {
	case !h.Paused.IsZero():
		return h.State + ", paused" // by one of the owner's rules
	case h.Use.Starved > 0:
		return h.State + ", starved" // by the owner's own work
	}
	return h.State
}

// Stopped says in a line how a job has gone that the owner has stopped.
func Stopped(s peer.Stopped) string { return fmt.Sprintf("job %.8s: %s\n", s.Job, s.How) }

// History says in lines of 80 columns at most which jobs of whom a peer has run, what each has had of
// it, and how it ended.
func History(past []peer.Past) string {
	if len(past) == 0 {
		return "no jobs yet\n"
	}
	var table, b strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BEGAN\tJOB\tOF\tCLASS\tPROGRAM\tKIND\tDIGEST")
	for _, e := range past {
		fmt.Fprintf(w, "%s\t%.8s\t%s\t%s\t%s\t%s\t%.8s\n", e.Since.Local().Format("2006-01-02 15:04"), e.Job, job.ShortPeer(e.Submitter),
			dash(e.Class), dash(printable(e.Program, briefProgram)), dash(e.Kind), dash(e.Digest))
	}
	w.Flush()
	for i, line := range strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n") {
		fmt.Fprintln(&b, line)
		if i > 0 {
			writeHad(&b, past[i-1])
		}
	}
	return b.String()
}

// unbroken is a space at which no line ends.
const unbroken = "\u00a0"

// writeHad writes what a job has had of a peer, and how it ended.
func writeHad(b *strings.Builder, e peer.Past) {
	processes := "  " + number(int64(e.Processes), "process", "processes")
	if e.Until.IsZero() {
		b.WriteString(command.Sentence(processes, "running, or the peer was killed meanwhile", routeWidth))
		return
	}
	had := []string{
		briefly(e.Until.Sub(e.Since)), "CPU " + briefly(e.CPU), "memory " + dash(known(e.Memory)), "files " + size(e.Staged), "output " + size(e.Output),
	}
	for i, text := range had {
		had[i] = strings.ReplaceAll(text, " ", unbroken)
	}
	b.WriteString(strings.ReplaceAll(command.Sentence(processes, strings.Join(had, ", "), routeWidth), unbroken, " "))
	words := strings.Fields(printable(e.Ended, maxEnded))
	for i, word := range words {
		words[i] = printable(word, routeWidth/2)
	}
	b.WriteString(command.Sentence("  ended", dash(strings.Join(words, " ")), routeWidth))
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

// Bounds of what strangers have written, in characters: of the name of a program in a table, of one with
// many columns, and of how a job ended.
const (
	maxProgram   = 16
	briefProgram = 12
	maxEnded     = 240
)

// program is the name of a program as it can be shown.
func program(name string) string { return dash(printable(name, maxProgram)) }

// printable is what a stranger has written as it can be shown, in so many characters: a terminal
// obeys what is not printable.
func printable(text string, most int) string {
	var out []rune
	for _, r := range text {
		if len(out) == most {
			return string(out[:most-1]) + "…"
		}
		if !unicode.IsPrint(r) {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
