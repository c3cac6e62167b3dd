//go:build !race

package mpj_test

const raceEnabled = false
