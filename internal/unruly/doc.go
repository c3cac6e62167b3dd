// Package unruly is what hostile programs in tests do: they hide what they have, and, on Linux, do not
// stand still when they are stopped.
package unruly
