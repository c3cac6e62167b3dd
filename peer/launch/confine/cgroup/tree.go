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
)

// A Tree is where a peer creates the groups of its jobs. The zero Tree has none.
type Tree struct {
	prefix  string // of the group names
	kernel  kernel
	record  string
	missing map[Controller]error
}

// A kernel creates groups for one version of control groups.
type kernel interface {
	// parents returns, for each controller, the folder in which jobs get their groups. It is called once,
	// and prepares these folders.
	parents(prefix string) (map[Controller]string, map[Controller]error)
	// home returns the folders of the peer's own groups.
	home() []string
	// job and process create a group and return its folders.
	job(name string, q Quota) (map[Controller]string, error)
	process(job, name string, q Quota) (map[Controller]string, error)
	// setPriority sets how far a job yields to other processes.
	setPriority(folders map[Controller]string, p Priority) error
	// setCPU changes the processor limit of all processes of a job together.
	setCPU(folders map[Controller]string, percent int64) error
	// usage returns the resource use of a group. If it cannot determine Short, the eventfd that alarm
	// returns for a job signals lack of memory.
	usage(folders map[Controller]string) Usage
	alarm(folders map[Controller]string) (bell *os.File, err error)
}

// Open returns the Tree of the peer of a home, and removes groups that an earlier peer has left.
// Controllers that cannot be used are missing; Open never fails.
func Open(home string) *Tree {
	sum := sha256.Sum256([]byte(home))
	t := &Tree{prefix: "p2pmpi-" + hex.EncodeToString(sum[:6]), record: filepath.Join(home, "cgroups")}
	t.removeStale()
	if t.kernel = newKernel(); t.kernel == nil {
		return t
	}
	var parents map[Controller]string
	parents, t.missing = t.kernel.parents(t.prefix)
	t.recordParents(parents)
	return t
}

// Missing returns the reason why a controller cannot be used, or nil.
func (t *Tree) Missing(c Controller) error {
	if t.kernel == nil {
		return errNoCgroups
	}
	return t.missing[c]
}

// Home returns the folders of the peer's own groups, to which supervisors return.
func (t *Tree) Home() []string {
	if t.kernel == nil {
		return nil
	}
	return t.kernel.home()
}

// A Group is the control group of a job or of a process.
type Group struct {
	tree     *Tree
	name     string
	folders  map[Controller]string // its own folders
	job      *Group                // nil: this is the group of a job
	oomEvent *os.File              // eventfd of kernel.alarm; nil: none
}

// NewJob creates the group of a job.
func (t *Tree) NewJob(id string, q Quota) (*Group, error) {
	job, err := t.group(t.prefix+"-"+id, func(name string) (map[Controller]string, error) {
		return t.kernel.job(name, q)
	})
	if err == nil && t.kernel != nil {
		job.oomEvent, _ = t.kernel.alarm(job.folders) // without it, lack of memory of the job itself is not detected
	}
	return job, err
}

// SetPriority sets how far the job yields to other processes. Before that it has the default weight.
func (g *Group) SetPriority(p Priority) error {
	if len(g.folders) == 0 {
		return nil
	}
	return g.tree.kernel.setPriority(g.folders, p)
}

// RestoreWeight restores the default weight of a job whose processes have all been killed, since they need
// processor time to exit.
func (g *Group) RestoreWeight() { _ = g.SetPriority(Priority{Weight: defaultWeight}) } // an error means that the group was removed

// SetCPU changes the processor limit of all processes of the job together, in percent of one processor. The
// job must have been created with such a limit.
func (g *Group) SetCPU(percent int64) error {
	if len(g.folders) == 0 {
		return nil
	}
	return g.tree.kernel.setCPU(g.folders, percent)
}

// NewProcess creates the group of a process of the job, with limits on memory and number of processes.
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

// Folders returns the folders that each process must enter: the group's own, and the job's for controllers
// without one.
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

// own returns the folders that contain only this group's processes.
func (g *Group) own() []string { return slices.Compact(slices.Sorted(maps.Values(g.folders))) }

// Usage returns the resource use of the group's processes.
func (g *Group) Usage() Usage {
	if len(g.folders) == 0 {
		return Usage{}
	}
	u := g.tree.kernel.usage(g.folders)
	if g.oomEvent != nil {
		u.Short = short(g.oomEvent, g.folders)
	}
	return u
}

// Processes returns the processes in the group and below it, or nil if it has no folder of its own.
func (g *Group) Processes() []int {
	for _, f := range g.own() {
		return processesIn(f)
	}
	return nil
}

// Remove kills the remaining processes of the group, and removes it.
func (g *Group) Remove() error {
	var errs []error
	for _, f := range g.own() {
		errs = append(errs, removeTree(f))
	}
	if g.oomEvent != nil {
		g.oomEvent.Close()
	}
	return errors.Join(errs...)
}

// recordParents records the parent folders of groups for the next peer of this home, which may start in
// another group. If that fails, groups remain only if the peer and all its supervisors are killed together.
func (t *Tree) recordParents(parents map[Controller]string) {
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

// removeStale removes the job groups of an earlier peer of this home.
func (t *Tree) removeStale() {
	text, _ := os.ReadFile(t.record)
	for parent := range strings.Lines(string(text)) {
		parent = strings.TrimSpace(parent)
		groups, _ := os.ReadDir(parent) // not Glob: names of units contain backslashes
		for _, g := range groups {
			if strings.HasPrefix(g.Name(), t.prefix+"-") {
				_ = removeTree(filepath.Join(parent, g.Name())) // a group that contains the peer itself stays
			}
		}
	}
}

var errNoCgroups = errors.New("this system has no control groups")
