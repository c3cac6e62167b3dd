// Package atomicfile replaces a small file as a whole: whoever reads it, at whatever time and
// after whatever crash, finds the old contents or the new ones.
package atomicfile
