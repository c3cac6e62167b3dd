// Package canonical encodes Go values as gob messages that depend only on the value.
//
// Package encoding/gob numbers types in the order of their first use in a process, and writes map
// entries in random iteration order. Two replicas of a rank would therefore send different bytes for
// equal values. Append encodes with encoding/gob and rewrites the message:
//
//   - all type definitions come first, in the order in which the value uses the
//     types, numbered in that order and without names;
//   - the entries of each map are sorted by their encoding.
//
// The result is a gob stream of one value that any gob.Decoder can read. Types that encode
// themselves (gob.GobEncoder, encoding.BinaryMarshaler and encoding.TextMarshaler) must do so
// deterministically.
package canonical
