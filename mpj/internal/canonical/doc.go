// Package canonical encodes Go values as gob messages that depend on the value
// alone.
//
// Package encoding/gob numbers types as a process first meets them and writes
// the entries of a map in the random order of an iteration. Two replicas of a
// rank would so send different bytes for equal values. Append encodes with
// encoding/gob and rewrites the message:
//
//   - all type definitions come first, in the order in which the value uses the
//     types, numbered in that order and without names;
//   - the entries of each map are sorted by their encoding.
//
// The result is a gob stream of one value that any gob.Decoder reads. Types
// that encode themselves (gob.GobEncoder, encoding.BinaryMarshaler and
// encoding.TextMarshaler) have to do that deterministically.
package canonical
