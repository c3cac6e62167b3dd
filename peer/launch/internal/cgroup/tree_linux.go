package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/cgroups/v3"
)

// A Tree is where a peer makes the groups of its jobs. The zero Tree has none.
type Tree struct {
	prefix  string // of their names
	kernel  kernel
	record  string
	missing map[Controller]error
}

// A kernel makes groups as its version of control groups wants it.
type kernel interface {
	// parents returns the folder of each controller in which jobs get theirs. It is to be
	// asked once, and changes what has to be.
	parents(prefix string) (map[Controller]string, map[Controller]error)
	// home returns the folders to which the peer belongs.
	home() []string
	// job and process make a group and return its folders.
	job(name string, q Quota) (map[Controller]string, error)
	process(job, name string, q Quota) (map[Controller]string, error)
	// giveWay lets others than a job go first.
	giveWay(folders map[Controller]string, p Precedence) error
	// setCPU changes the share of the processors that the processes of a job may use together.
	setCPU(folders map[Controller]string, percent int64) error
	// usage returns what a group has. Where its Short is not told, alarm's bell of a job rings.
	usage(folders map[Controller]string) Usage
	alarm(folders map[Controller]string) (bell *os.File, err error)
}

// Open returns where the peer of a home makes its groups, and removes what an earlier one
// has left. Controllers that cannot be used are missing; no error prevents a peer.
func Open(home string) *Tree {
	sum := sha256.Sum256([]byte(home))
	t := &Tree{prefix: "p2pmpi-" + hex.EncodeToString(sum[:6]), record: filepath.Join(home, "cgroups")}
	t.removeStale()
	switch cgroups.Mode() {
	case cgroups.Unified:
		t.kernel = newV2()
	case cgroups.Legacy, cgroups.Hybrid:
		t.kernel = newV1()
	default:
		return t
	}
	var parents map[Controller]string
	parents, t.missing = t.kernel.parents(t.prefix)
	t.keep(parents)
	return t
}

// Missing says why a controller cannot be used; nil: it can.
func (t *Tree) Missing(c Controller) error {
	if t.kernel == nil {
		return errAbsent
	}
	return t.missing[c]
}

// Home returns the folders of the peer's own groups, for supervisors to go back to.
func (t *Tree) Home() []string {
	if t.kernel == nil {
		return nil
	}
	return t.kernel.home()
}

// A Group is that of a job, or of a process.
type Group struct {
	tree    *Tree
	name    string
	folders map[Controller]string // its own
	job     *Group                // nil: it is that of a job
	bell    *os.File              // see kernel; nil: none
}

// NewJob makes the group of a job.
func (t *Tree) NewJob(id string, q Quota) (*Group, error) {
	job, err := t.group(t.prefix+"-"+id, func(name string) (map[Controller]string, error) {
		return t.kernel.job(name, q)
	})
	if err == nil && t.kernel != nil {
		job.bell, _ = t.kernel.alarm(job.folders) // without, nobody says that it was the job that had no more
	}
	return job, err
}

// GiveWay has the job let others go first. Until then it has the usual weight.
func (g *Group) GiveWay(p Precedence) error {
	if len(g.folders) == 0 {
		return nil
	}
	return g.tree.kernel.giveWay(g.folders, p)
}

// Hurry gives the job the usual weight again: for one whose processes have all been killed, which
// need a processor to be gone.
func (g *Group) Hurry() { _ = g.GiveWay(Precedence{Weight: usual}) } // an error means that it is gone

// SetCPU changes the share of the processors that the processes of the job may use together, in percent of one
// processor. The job must have been made with such a limit.
func (g *Group) SetCPU(percent int64) error {
	if len(g.folders) == 0 {
		return nil
	}
	return g.tree.kernel.setCPU(g.folders, percent)
}

// NewProcess makes the group of a process of the job, for memory and number.
func (g *Group) NewProcess(name string, q Quota) (*Group, error) {
	process, err := g.tree.group(name, func(name string) (map[Controller]string, error) {
		return g.tree.kernel.process(g.name, name, q)
	})
	if err == nil {
		process.job = g
	}
	return process, err
}

func (t *Tree) group(name string, make func(string) (map[Controller]string, error)) (*Group, error) {
	if t.kernel == nil {
		return &Group{tree: t}, nil
	}
	folders, err := make(name)
	if err != nil {
		return nil, fmt.Errorf("make control group %s: %w", name, err)
	}
	return &Group{tree: t, name: name, folders: folders}, nil
}

// Folders returns those that each process has to enter: the group's, and for a controller of which
// it has none of its own the job's.
func (g *Group) Folders() (all []string) {
	for _, c := range controllers {
		f, ok := g.folders[c]
		if !ok && g.job != nil {
			f, ok = g.job.folders[c]
		}
		if ok && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// own returns those that no other process is in.
func (g *Group) own() []string { return slices.Compact(slices.Sorted(maps.Values(g.folders))) }

// Usage returns what the processes of the group have.
func (g *Group) Usage() Usage {
	if len(g.folders) == 0 {
		return Usage{}
	}
	u := g.tree.kernel.usage(g.folders)
	if g.bell != nil {
		u.Short = short(g.bell, g.folders)
	}
	return u
}

// Processes returns those in the group and below; none if it has no folder of its own.
func (g *Group) Processes() []int {
	for _, f := range g.own() {
		return processesIn(f)
	}
	return nil
}

// Remove kills what is left in the group, and removes it.
func (g *Group) Remove() error {
	var errs []error
	for _, f := range g.own() {
		errs = append(errs, removeTree(f))
	}
	if g.bell != nil {
		g.bell.Close()
	}
	return errors.Join(errs...)
}

// keep writes down where groups will be, for the next peer of this home, which may be
// started in another group. If that fails, only what is left by a peer and all its
// supervisors that are killed together stays.
func (t *Tree) keep(parents map[Controller]string) {
	var lines []string
	for _, c := range controllers {
		if f, ok := parents[c]; ok {
			lines = append(lines, f)
		}
	}
	if len(lines) > 0 {
		_ = os.WriteFile(t.record, []byte(strings.Join(lines, "\n")), 0o600)
	}
}

// removeStale removes the groups of jobs of an earlier peer of this home.
func (t *Tree) removeStale() {
	text, _ := os.ReadFile(t.record)
	for parent := range strings.Lines(string(text)) {
		parent = strings.TrimSpace(parent)
		groups, _ := os.ReadDir(parent) // no pattern: names of units have backslashes
		for _, g := range groups {
			if strings.HasPrefix(g.Name(), t.prefix+"-") {
				_ = removeTree(filepath.Join(parent, g.Name())) // one that the peer is in itself stays
			}
		}
	}
}

var errAbsent = errors.New("this system has no control groups")
