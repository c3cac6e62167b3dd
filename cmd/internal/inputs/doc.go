// Package inputs reads p2prun's lists of input files and determines the path under which each file is
// staged.
//
//	# a comment
//	data/a.txt       -> data/a.txt        relative to the current folder
//	/srv/corpus/b    -> srv/corpus/b      an absolute path loses its slash
//	data             -> data/...          a folder: all files below it
//	../c             -> refused           nothing is staged outside the scratch folder
//	https://example.org/d.gz sha256:9f86d0... as data/d.gz
//	                 -> data/d.gz         downloaded, and refused if its digest differs
//	https://example.org/e
//	                 -> e                 downloaded without a check of its digest
//
// In a folder, symbolic links to files and folders inside it are followed. A link that leads out of the folder,
// or forms a circle, is refused. Empty folders are not staged.
package inputs
