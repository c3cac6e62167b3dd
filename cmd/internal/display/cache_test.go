package display

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

func TestCacheHasOneLinePerEntry(t *testing.T) {
	now := time.Unix(10_000, 0)
	c := status.Cache{Home: "/home/p", Bytes: 3 << 20, Limit: 4 << 30, Contents: []filetransfer.Content{
		{Digest: "00112233445566778899", Bytes: 1 << 20, Arriving: true, Used: now, Jobs: []string{"abcdefghijk"}},
		{Digest: "11112233445566778899", Bytes: 1 << 20, Complete: true, Used: now.Add(-time.Minute), Jobs: []string{"a", "b", "c", "d"}, URL: "http://h/x"},
		{Digest: "22112233445566778899", Bytes: 1 << 20, Used: now.Add(-time.Hour)},
		{Digest: "33112233445566778899", Complete: true, Used: now.Add(time.Hour)},
	}}
	want := `cache of /home/p: 3.0 MiB of 4096.0 MiB in 4 files
0011223344556677  1.0 MiB  0s ago      incoming, job abcdefgh
1111223344556677  1.0 MiB  1m0s ago    job a, job b, job c, and 1 more, http://h/x
2211223344556677  1.0 MiB  1h0m0s ago  incomplete
3311223344556677  0.0 KiB  0s ago      unused
`
	if got := Cache(c, now); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
