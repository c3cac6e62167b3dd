package display

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

// Jobs lists, in lines of at most 80 columns, the jobs that now have slots on a peer, with their submitters and
// the resources that each job uses.
func Jobs(hosted []status.HostedJob, now time.Time) string {
	if len(hosted) == 0 {
		return "no jobs\n"
	}
	rows := [][]string{{"JOB", "OF", "CLASS", "PROGRAM", "KIND", "DIGEST"}}
	for _, h := range hosted {
		rows = append(rows, []string{shortID(h.Job), submit.ShortPeer(h.Submitter), cmp.Or(h.Class, "-"), program(h.Program), cmp.Or(h.Kind, "-"), cmp.Or(shortID(h.Digest), "-")})
	}
	return table(rows, func(b *strings.Builder, row int) { writeUse(b, hosted[row], now) })
}

// writeUse writes the state of a job on a peer and the resources that it uses.
func writeUse(b *strings.Builder, h status.HostedJob, now time.Time) {
	has := []string{number(int64(h.Slots), "slot", "slots")}
	if !h.Since.IsZero() {
		cpu := ""
		if h.Use.CPU > 0 {
			cpu = shortDuration(h.Use.CPU)
		}
		has = append(has, shortDuration(now.Sub(h.Since)), "CPU "+cmp.Or(cpu, "-"), "memory "+cmp.Or(known(h.Use.Memory), "-"))
	}
	writeAmounts(b, "  "+hostedState(h), has)
}

func hostedState(h status.HostedJob) string {
	switch {
	case !h.Paused.IsZero():
		return h.State + ", suspended" // by one of the owner's rules
	case h.Use.Starved > 0:
		return h.State + ", starved" // by the owner's own work
	}
	return h.State
}

// Stopped describes in one line how a job that the owner has stopped ended.
func Stopped(s status.Stopped) string { return fmt.Sprintf("job %.8s: %s\n", s.Job, s.How) }

// History lists, in lines of at most 80 columns, the jobs that a peer has run, with their submitters, the
// resources that each job used, and how each ended.
func History(past []journal.Entry) string {
	if len(past) == 0 {
		return "no jobs yet\n"
	}
	rows := [][]string{{"BEGAN", "JOB", "OF", "CLASS", "PROGRAM", "KIND", "DIGEST"}}
	for _, e := range past {
		rows = append(rows, []string{e.Since.Local().Format("2006-01-02 15:04"), shortID(e.Job), submit.ShortPeer(e.Submitter),
			cmp.Or(e.Class, "-"), cmp.Or(printable(e.Program, briefProgram), "-"), cmp.Or(e.Kind, "-"), cmp.Or(shortID(e.Digest), "-")})
	}
	return table(rows, func(b *strings.Builder, row int) { writePastUse(b, past[row]) })
}

const nonBreakingSpace = "\u00a0"

// writePastUse writes the resources that a job used on a peer, and how it ended.
func writePastUse(b *strings.Builder, e journal.Entry) {
	processes := "  " + number(int64(e.Processes), "process", "processes")
	if e.Until.IsZero() {
		b.WriteString(command.Sentence(processes, "running, or the peer was killed before the job ended", routeWidth))
		return
	}
	had := []string{
		shortDuration(e.Until.Sub(e.Since)), "CPU " + shortDuration(e.CPU), "memory " + cmp.Or(known(e.Memory), "-"), "files " + size(e.Staged), "output " + size(e.Output),
	}
	writeAmounts(b, processes, had)
	words := strings.Fields(printable(e.Ended, maxEnded))
	for i, word := range words {
		words[i] = printable(word, routeWidth/2)
	}
	b.WriteString(command.Sentence("  ended", cmp.Or(strings.Join(words, " "), "-"), routeWidth))
}

// writeAmounts writes a list of amounts and wraps it only between them.
func writeAmounts(b *strings.Builder, who string, amounts []string) {
	for i, text := range amounts {
		amounts[i] = strings.ReplaceAll(text, " ", nonBreakingSpace)
	}
	b.WriteString(strings.ReplaceAll(command.Sentence(who, strings.Join(amounts, ", "), routeWidth), nonBreakingSpace, " "))
}

// shortID returns the first 8 characters of an ID or digest.
func shortID(number string) string { return fmt.Sprintf("%.8s", number) }

// shortDuration formats a duration with reasonable precision.
func shortDuration(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// known formats a number of bytes. It returns "" for 0, which stands for an unknown number.
func known(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return size(bytes)
}

// Bounds, in characters, on texts from strangers: a program's name in a table, the same name in a table with
// many columns, and the description of how a job ended.
const (
	maxProgram   = 16
	briefProgram = 12
	maxEnded     = 240
)

func program(name string) string { return cmp.Or(printable(name, maxProgram), "-") }

// printable returns text from a stranger in printable form, shortened to most characters. Other
// characters could be control sequences for the terminal.
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
