// Package e2e checks the whole system with real processes: p2pboot, p2prun and
// p2phalt as a user starts them, real programs, SIGKILL and SIGSTOP. Traffic
// stays on loopback, or in network namespaces that a test makes for itself, as a
// LAN of machines whose links it cuts and slows down. Every process has a bound in
// time, and each test ends with a look for what a job may have left: slots,
// processes, scratch files.
//
//	go test ./e2e/            all of it
//	go test ./e2e/ -run Kill  only what kills
//	go test ./e2e/ -run LAN   only those with links
//	go test ./e2e/ -run NAT   only those with routers, behind which the peers are
//
// TestNemesis runs jobs whose answers are known and strikes at processes, peers
// and network, as package nemesis plans it from a printed seed, and has them judged;
// package ether is the network. For a rare fault, and for one round again:
//
//	go test ./e2e/ -run Nemesis -v -timeout 0 -nemesis 2h
//	go test ./e2e/ -run Nemesis -v -nemesis.seed 687047151129312766 -nemesis.round 12
//
// Network namespaces need root, or a user namespace in which the tests are root:
//
//	unshare --user --map-root-user --net go test ./e2e/ -run LAN
//
// Without either, the tests with links are skipped, or fail where CI is set. They use
// ip and tc (iproute2), and nft (nftables).
//
// The tests build the commands and the programs once, into a temporary folder, and
// without the race detector. Tests that mostly wait run at once, twice as many as
// there are processors; -full runs all of them in all their shapes and sizes. Where there
// is no compiler, -bin names a folder with all that they run.
package e2e
