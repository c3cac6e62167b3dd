// Package docs holds the documentation for users and developers. Its tests compare the pages with the
// code:
//
//	mpj.md       tables of names  <->  the names that package mpj exports
//	security.md  names of tests   <->  the tests and fuzz targets of this module
//	all pages    links            <->  files and headings
//
// They also check the statements about fuzzing in networking.md and security.md: each package that decodes
// input from other peers has a fuzz target, and each fuzz target has a small corpus.
package docs
