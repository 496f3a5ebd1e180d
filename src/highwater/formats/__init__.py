"""The formats of files, and their readers: files are cut into records here. Needs no project."""
