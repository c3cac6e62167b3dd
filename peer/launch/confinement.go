package launch

import (
	"errors"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// A confinement applies the owner's grant to the processes of a job (limits.go).
type confinement struct {
	groups    *cgroup.Tree
	job       string
	grant     limits.Grant
	niceness  int // niceness of the programs
	folder    scratch.Job
	program   int64         // size of the program in bytes
	processes int           // number of processes here
	group     *cgroup.Group // control group of the job; nil: none
	upload    pacer         // limits the rate of everything that the job sends
}

func newConfinement(s *Service, a admission, grant limits.Grant, folder scratch.Job) confinement {
	return confinement{
		groups: s.groups, job: a.spec.ID, grant: grant, niceness: s.config.Niceness, folder: folder, program: a.program.Size,
		processes: len(a.processes), upload: newPacer(jobUpload(grant, len(a.processes))),
	}
}

// resize adjusts the upload, CPU and weight limits to another number of processes. An error means that the CPU
// limit was not changed.
func (c *confinement) resize(processes int) (err error) {
	c.processes = processes
	c.upload.adjust(jobUpload(c.grant, processes))
	if c.group == nil {
		return nil
	}
	if most := c.processors(); most > 0 {
		err = c.group.SetCPU(most)
	}
	_ = c.lowerPriority() // after an error it keeps the weight that it had
	return err
}

// removeGroups removes the control groups of the compiler and of the job, if there are any. The group remains
// readable: goroutines that watch processes may still ask for its usage.
func (c *confinement) removeGroups(compiler *cgroup.Group) error {
	var errs []error
	for _, g := range []*cgroup.Group{compiler, c.group} {
		if g != nil {
			errs = append(errs, g.Remove())
		}
	}
	return errors.Join(errs...)
}
