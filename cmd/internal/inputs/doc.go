// Package inputs reads p2prun's lists of input files and says under which path
// each file is staged.
//
//	# a comment
//	data/a.txt       -> data/a.txt        relative to the current folder
//	/srv/corpus/b    -> srv/corpus/b      an absolute path loses its slash
//	data             -> data/...          a folder: all files below it
//	../c             -> refused           nothing is staged outside the scratch folder
//	https://example.org/d.gz sha256:9f86d0... as data/d.gz
//	                 -> data/d.gz         downloaded, and refused if its digest differs
//	https://example.org/e
//	                 -> e                 downloaded, whatever it is
//
// In a folder, symbolic links are followed to files and folders inside of it; one that
// leads out, or in a circle, is refused. Empty folders are not staged.
package inputs
