// Package unruly is of hostile programs in tests that do not stand still when they are stopped. It
// works on Linux.
package unruly
