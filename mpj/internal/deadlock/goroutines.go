package deadlock

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A goroutine is a goroutine in a dump written by runtime.Stack.
type goroutine struct {
	id, parent uint64 // parent is 0 for the main goroutine
	state      string
	creator    string   // function that created it
	frames     []string // functions, innermost first
}

const (
	module = "github.com/p2pmpi/p2pmpi/"
	sleep  = module + "mpj/internal/engine.(*Engine).sleep"
	borrow = module + "mpj/internal/engine.(*Engine).borrow"
	// program is the prefix of the function that runs the program of a rank, if a process has
	// several ranks.
	program = module + "mpj.runIn.func"
)

// Idle reports whether all goroutines in dump that belong to root wait for each other or in the
// engine, so that only a message can resume one of them. If root is 0, all goroutines belong to it;
// otherwise, the descendants of root and goroutines of unknown origin do.
func Idle(dump []byte, root uint64) bool {
	all, err := parse(dump)
	if err != nil {
		return false
	}
	byID := make(map[uint64]goroutine, len(all))
	for _, g := range all {
		byID[g.id] = g
	}
	return !slices.ContainsFunc(all, func(g goroutine) bool {
		return !g.waits() && !g.serves() && g.belongs(root, byID)
	})
}

// Current returns the number of the goroutine that wrote dump about itself.
func Current(dump []byte) uint64 {
	var id uint64
	if _, err := fmt.Sscanf(string(dump), "goroutine %d ", &id); err != nil {
		return 0
	}
	return id
}

// waiting lists the states of a goroutine that only another goroutine can end. A goroutine that
// waits at a channel may be waiting for a timer.
var waiting = []string{
	"sync.", "semacquire", "chan send", "chan receive (nil chan)", "select (no cases)",
}

// waits reports whether g waits for another goroutine or in the engine.
func (g goroutine) waits() bool {
	return hasAnyPrefix(g.state, waiting) || g.isIn(sleep) || g.isIn(borrow) ||
		g.state == "chan receive" && len(g.frames) > 0 && hasAnyPrefix(g.frames[0], before)
}

// before lists functions of the library that wait for an earlier operation in another goroutine of
// this rank.
var before = []string{module + "mpj/internal/core.start.", module + "mpj/internal/core.(*comparison).wait"}

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// serves reports whether g belongs to the library or the runtime, and so makes no calls for the
// program.
func (g goroutine) serves() bool {
	for _, s := range []string{module + "mpj/internal/", module + "mpj/channel", module + "internal/", "os/signal.", "runtime.", "context.(*cancelCtx).propagateCancel"} {
		if strings.HasPrefix(g.creator, s) {
			return true
		}
	}
	return g.isIn(module + "mpj.(*detector).")
}

func (g goroutine) isIn(function string) bool {
	return slices.ContainsFunc(g.frames, func(f string) bool { return strings.HasPrefix(f, function) })
}

// belongs reports whether g may belong to root.
func (g goroutine) belongs(root uint64, all map[uint64]goroutine) bool {
	for range len(all) {
		if root == 0 || g.id == root {
			return true
		}
		if g.isIn(program) || g.parent == 0 { // belongs to another rank, or to the goroutine that started the ranks
			return false
		}
		parent, ok := all[g.parent]
		if !ok {
			return true
		}
		g = parent
	}
	return true
}

// parse parses a dump.
func parse(dump []byte) ([]goroutine, error) {
	var all []goroutine
	for block := range bytes.SplitSeq(bytes.TrimSpace(dump), []byte("\n\n")) {
		g, err := parseOne(strings.Split(string(block), "\n"))
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func parseOne(lines []string) (goroutine, error) {
	var g goroutine
	if _, err := fmt.Sscanf(lines[0], "goroutine %d ", &g.id); err != nil {
		return g, fmt.Errorf("%q is not the header of a goroutine: %w", lines[0], err)
	}
	_, state, _ := strings.Cut(lines[0], "[")
	state, _, _ = strings.Cut(strings.TrimSuffix(state, "]:"), ",")
	g.state = strings.TrimSuffix(state, " (durable)")
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		if by, ok := strings.CutPrefix(line, "created by "); ok {
			g.creator, by, _ = strings.Cut(by, " in goroutine ")
			fmt.Sscanf(by, "%d", &g.parent)
			continue
		}
		g.frames = append(g.frames, line)
	}
	return g, nil
}
