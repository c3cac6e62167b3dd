//go:build !race

package viewgroup

const defaultStates = 1500
