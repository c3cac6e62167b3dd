package display

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// Config determines where and how to show a job.
type Config struct {
	Name           string // name of the command, which precedes each message
	Stdout, Stderr io.Writer
	Ranks          int
	Replicas       int
	Tag            bool // "[rank] " before each line of output
	JSON           bool // events as JSON lines instead of sentences
}

// redraw is the interval at which the live line is updated.
const redraw = 200 * time.Millisecond

// A Display shows one job. Its methods are safe for concurrent use.
type Display struct {
	cfg     Config
	live    bool
	started time.Time
	done    chan struct{}
	drawer  sync.WaitGroup

	mu    sync.Mutex
	job   string // job ID, once an event has named it
	lines lines
	state *State
	said  map[submit.Phase]bool // phases reported so far; each is reported once, since searches may be repeated
	shown bool                  // the live line is on the screen
	over  bool                  // the result has been shown
	err   error                 // error of the first failed write
}

// New returns a display and, on a terminal, starts to draw. The caller must close it.
func New(cfg Config) *Display {
	d := &Display{
		cfg:     cfg,
		live:    command.IsTerminal(cfg.Stderr) && !cfg.JSON,
		started: time.Now(),
		done:    make(chan struct{}),
		lines:   lines{Tag: cfg.Tag},
		state:   newState(cfg.Ranks, cfg.Replicas),
		said:    make(map[submit.Phase]bool),
	}
	if d.live {
		d.drawer.Go(d.draw) // ends with Close
	}
	return d
}

// Event shows an event. It returns an error once standard output or standard error cannot be written to.
func (d *Display) Event(e submit.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Job != "" {
		d.job = e.Job
	}
	if e.Kind == submit.OutputEvent && (e.Stream == job.Stdout || !d.cfg.JSON) {
		d.write(d.stream(e.Stream), d.lines.Add(job.Source{Rank: e.Rank, Stream: e.Stream}, e.Data))
		return d.err
	}
	if d.cfg.JSON {
		d.writeJSON(e)
		return d.err
	}
	d.state.update(e)
	for _, line := range plan(e.Planned) {
		d.sayWrapped(line, routeWidth)
	}
	for _, sentence := range routes(e.Routes) {
		d.sayWrapped(sentence, routeWidth)
	}
	switch {
	case e.Text != "":
		d.say(e.Text)
	case e.Kind == submit.PhaseEvent && !d.live && !d.said[e.Phase]:
		d.said[e.Phase] = true
		d.say(d.state.sentence())
	}
	return d.err
}

func (d *Display) stream(s job.Stream) io.Writer {
	if s == job.Stderr {
		return d.cfg.Stderr
	}
	return d.cfg.Stdout
}

// Say shows a message of the command itself.
func (d *Display) Say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cfg.JSON {
		d.writeJSON(submit.Event{Kind: submit.WarningEvent, Time: time.Now(), Text: fmt.Sprintf(format, args...)})
		return
	}
	d.say(fmt.Sprintf(format, args...))
}

func (d *Display) say(text string) {
	d.write(d.cfg.Stderr, []byte(command.Sentence(d.cfg.Name, text, command.Width(d.cfg.Stderr))))
}

// routeWidth is the width of the lines that describe channels and peers, even if they do not go to a
// terminal. They are tables for human readers.
const routeWidth = 80

func (d *Display) sayWrapped(text string, width int) {
	d.write(d.cfg.Stderr, []byte(command.Sentence(d.cfg.Name, text, width)))
}

// Result shows the result of the job: first the incomplete last lines of its output, then the message.
// Nothing may be shown after it.
func (d *Display) Result(r job.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	d.over = true
	if d.writeIncomplete() && d.live {
		io.WriteString(d.cfg.Stderr, "\n") // the cursor is behind such a line
	}
	switch {
	case d.cfg.JSON:
		d.err = errors.Join(d.err, writeResult(d.cfg.Stderr, d.job, r))
	case r.Status == command.OK:
		d.say(fmt.Sprintf("done in %v", time.Since(d.started).Round(100*time.Millisecond)))
	default:
		for _, line := range reasons(r.Shortage) {
			d.sayWrapped(line, routeWidth)
		}
		command.Report(d.cfg.Stderr, d.cfg.Name, &command.Failure{Status: r.Status, Err: fmt.Errorf("%s", r.Message), Hint: r.Hint})
	}
}

// writeIncomplete writes the incomplete lines, each followed by a newline except for the last, and reports
// whether there were any.
func (d *Display) writeIncomplete() (any bool) {
	for _, stream := range []job.Stream{job.Stdout, job.Stderr} {
		ranks := d.lines.Open(stream)
		slices.Sort(ranks)
		for i, rank := range ranks {
			text := d.lines.Incomplete(job.Source{Rank: rank, Stream: stream})
			if i < len(ranks)-1 {
				text = append(text, '\n')
			}
			d.write(d.stream(stream), text)
			any = true
		}
	}
	return any
}

// WriteResult writes the last event of a job as --json does, for a job that failed before it had a
// display.
func WriteResult(w io.Writer, r job.Result) error { return writeResult(w, "", r) }

// writeResult writes the result of the job with the given ID; the ID is empty if no job was started.
func writeResult(w io.Writer, id string, r job.Result) error {
	line, err := encode(submit.Event{Kind: submit.ResultEvent, Time: time.Now(), Job: id, Result: &r})
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// encode returns e as --json writes it. It omits the rank unless the event concerns exactly one.
func encode(e submit.Event) ([]byte, error) {
	if e.Kind == submit.OutputEvent || e.Kind == submit.HealEvent && (e.Took == 0 || e.Placed != nil) {
		return json.Marshal(e)
	}
	return json.Marshal(struct {
		submit.Event
		Rank int `json:"rank,omitempty"`
	}{Event: e})
}

func (d *Display) writeJSON(e submit.Event) {
	line, err := encode(e)
	if err != nil {
		d.err = err
		return
	}
	d.write(d.cfg.Stderr, append(line, '\n'))
}

// write erases the live line and writes text. The caller holds mu.
func (d *Display) write(w io.Writer, text []byte) {
	if len(text) == 0 || d.err != nil {
		return
	}
	d.erase()
	for len(text) > 0 && d.err == nil {
		n := writeLen(text)
		_, d.err = w.Write(text[:n])
		text = text[n:]
	}
}

// erase erases the live line. The caller holds mu.
func (d *Display) erase() {
	if d.shown {
		io.WriteString(d.cfg.Stderr, "\r\x1b[K")
		d.shown = false
	}
}

// draw updates the live line until Close.
func (d *Display) draw() {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.drawLine()
		case <-d.done:
			return
		}
	}
}

func (d *Display) drawLine() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.phase == "" || d.over {
		return
	}
	width := command.Width(d.cfg.Stderr)
	// One column stays free: a full line would wrap, and could not be erased.
	fmt.Fprintf(d.cfg.Stderr, "\r\x1b[K%s", d.state.line(time.Since(d.started), width-1))
	d.shown = true
}

// Close stops drawing and erases the live line.
func (d *Display) Close() {
	close(d.done)
	d.drawer.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
}
