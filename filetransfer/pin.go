package filetransfer

// pins holds the jobs that have pinned each content.
type pins map[Digest]map[string]struct{}

// add pins a content for a job. It returns false if another job or this one has pinned the content.
func (p pins) add(job string, d Digest) (first bool) {
	if first = p[d] == nil; first {
		p[d] = make(map[string]struct{})
	}
	p[d][job] = struct{}{}
	return first
}

// remove removes all pins of a job. It returns the contents that no job pins any more.
func (p pins) remove(job string) (free []Digest) {
	for d, jobs := range p {
		if _, pinned := jobs[job]; !pinned {
			continue
		}
		if delete(jobs, job); len(jobs) == 0 {
			delete(p, d)
			free = append(free, d)
		}
	}
	return free
}
