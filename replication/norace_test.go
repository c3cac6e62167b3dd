//go:build !race

package replication

const (
	defaultSchedules = 10000
	defaultStates    = 20000
)
