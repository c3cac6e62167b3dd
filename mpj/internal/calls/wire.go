package calls

import (
	"encoding/json"
	"fmt"
)

// largest bounds the encoded size of a call, in bytes. An Alltoallv among thousands of ranks has
// two lists with a part for each rank.
const largest = 1 << 20

// Encode returns the message that contains c.
func Encode(c Call) ([]byte, error) { return json.Marshal(c) }

// Decode is the inverse of Encode. b is untrusted.
func Decode(b []byte) (c Call, err error) {
	if len(b) > largest {
		return c, fmt.Errorf("call of %d bytes, at most %d are allowed", len(b), largest)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("decode a call: %w", err)
	}
	return c, nil
}

// EncodeDifference returns the message that contains d.
func EncodeDifference(d Difference) ([]byte, error) { return json.Marshal(d) }

// DecodeDifference is the inverse of EncodeDifference. b is untrusted.
func DecodeDifference(b []byte) (d Difference, err error) {
	if len(b) > largest {
		return d, fmt.Errorf("difference of %d bytes, at most %d are allowed", len(b), largest)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("decode a difference: %w", err)
	}
	return d, nil
}
