//go:build !race

package replication

const defaultSchedules = 20000
