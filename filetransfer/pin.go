package filetransfer

// pins counts the jobs that have pinned each content.
type pins struct {
	count map[Digest]int
	jobs  map[string]map[Digest]struct{}
}

// add pins a content for a job. It returns false if another job or this one has pinned the content.
func (p *pins) add(job string, d Digest) (first bool) {
	if p.jobs[job] == nil {
		p.jobs[job] = make(map[Digest]struct{})
	}
	first = p.count[d] == 0
	if _, ok := p.jobs[job][d]; !ok {
		p.jobs[job][d] = struct{}{}
		p.count[d]++
	}
	return first
}

// remove removes all pins of a job. It returns the contents that no job pins any more.
func (p *pins) remove(job string) (free []Digest) {
	for d := range p.jobs[job] {
		if p.count[d]--; p.count[d] == 0 {
			delete(p.count, d)
			free = append(free, d)
		}
	}
	delete(p.jobs, job)
	return free
}
