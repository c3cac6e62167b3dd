package lifetime

import "github.com/p2pmpi/p2pmpi/internal/reliability"

// A Job has Ranks ranks with Replicas replicas each. Member i of its group runs rank i mod Ranks, as the
// strategy spread places processes on peers with one slot each.
type Job struct{ Ranks, Replicas int }

// Members returns n·r.
func (j Job) Members() int { return j.Ranks * j.Replicas }

// Survives reports whether these crashes leave each rank a replica.
func (j Job) Survives(crashed Set) bool {
	alive := allOf(j.Members()).minus(crashed)
	var ranks Set
	for range j.Replicas {
		ranks = ranks.union(alive)
		alive = alive.down(j.Ranks)
	}
	return ranks.intersect(allOf(j.Ranks)) == allOf(j.Ranks)
}

// Fails returns the probability that the job fails if each process crashes with probability f.
func (j Job) Fails(f float64) float64 { return reliability.JobFails(j.Ranks, j.Replicas, f) }
