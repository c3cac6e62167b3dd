// Package atomicfile replaces a small file atomically: a reader finds either the old contents or the new
// ones, even after a crash.
package atomicfile
