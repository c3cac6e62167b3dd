//go:build !race

package replication

const (
	defaultSchedules = 20000
	defaultStates    = 100000
)
